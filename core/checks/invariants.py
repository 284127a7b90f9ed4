"""The invariants: what must hold between any two steps (6.1, V1 to V9).

Every total that the scheduler maintains is counted again here and compared.
"""

# Not compiled: it does not run for every ask.

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

from quadriga.core.model.queue import LeafQueue
from quadriga.core.ordering.lanes import LaneSet, LimitLane
from quadriga.core.resources import units as units_of
from quadriga.core.resources.demand import EVERY_BIT
from quadriga.core.resources.vectors import Totals, Vector
from quadriga.core.steps.gang import IDLE_TIMER
from quadriga.core.steps.queue_tree import is_removable
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import ask as ask_fsm

if TYPE_CHECKING:
    from quadriga.core.model.account import Account, Ledger
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.resources.demand import Level


def violations(partition: Partition) -> list[str]:
    """The invariants of the partition that do not hold, as texts; empty if all hold."""
    size = len(partition.registry)
    found = [*_queues(partition, size), *_accounts(partition, size), *_waiting(partition)]
    for node in partition.nodes.values():
        found.extend(node_violations(node, size))
    for app in partition.applications.values():
        found.extend(application_violations(app, size))
    found.extend(_shelves(partition))
    return [f"{partition.key}: {text}" for text in found]


def _total(vectors: Iterable[Vector | Totals], size: int) -> Totals:
    total = list(map(sum, zip_longest(*vectors, fillvalue=0)))
    return total + [0] * (size - len(total))


def _queues(partition: Partition, size: int) -> Iterator[str]:
    for queue in partition.queues():
        children = list(queue.children.values())
        if isinstance(queue, LeafQueue):
            apps = list(queue.apps.values())
            allocated = _total(
                (book for app in apps for book in (app.allocated, app.allocated_placeholder)), size
            )
            pending = _total((app.pending for app in apps), size)
            promised = _total((app.reserved_headroom for app in apps), size)
            running = sum(app.state in application_fsm.COUNTED for app in apps)
            owned = (
                a for app in apps for a in (*app.allocations.values(), *app.placeholders.values())
            )
            going = (a.vector for a in owned if a.reason == allocation_fsm.PREEMPTION)
            preempting = _total(going, size)
            yield from _reserving(queue)
        else:
            preempting = _total((child.preempting for child in children), size)
            allocated = _total((child.allocated for child in children), size)
            pending = _total((child.pending for child in children), size)
            promised = _total((child.reserved_headroom for child in children), size)
            running = sum(child.running for child in children)
        if allocated != queue.allocated:
            yield f"V1 queue {queue.path}: allocated {queue.allocated}, below it {allocated}"
        if pending != queue.pending:
            yield f"V1 queue {queue.path}: pending {queue.pending}, below it {pending}"
        if promised != queue.reserved_headroom:
            yield f"X16 queue {queue.path}: promised {queue.reserved_headroom}, below it {promised}"
        if preempting != queue.preempting:
            yield f"V1 queue {queue.path}: preempting {queue.preempting}, below it {preempting}"
        if running != queue.running:
            yield f"V5 queue {queue.path}: running {queue.running}, below it {running}"
        if partition.clean_timer is None and is_removable(queue):
            yield f"V7 queue {queue.path} is {queue.state} and empty, and no cleaner will come"
    planned = [
        a.planned_more
        for node in partition.nodes.values()
        for a in node.allocations
        if a.state in allocation_fsm.AHEAD
    ]
    on_nodes = _total((node.allocated for node in partition.nodes.values()), size)
    stranded = (tuple([-value for value in a.vector]) for a in partition.waiting.stranded)
    held = _total((partition.root.allocated, *planned, *stranded), size)
    without_units = partition.registry.without_units
    if without_units(held) != without_units(on_nodes):
        yield f"V1 root and planned hold {held}, the nodes {on_nodes}"
    yield from _bounds(partition)
    capacity = _total((node.total for node in partition.nodes.values()), size)
    if capacity != partition.capacity:
        yield f"V2 capacity {partition.capacity}, the nodes have {capacity}"


def _reserving(leaf: LeafQueue) -> Iterator[str]:
    """V3: the leaf, the applications, the groups and the asks count the same reservations."""
    for app in leaf.apps.values():
        made: dict[Ask, int] = {}
        for kept in app.reservations:
            made[kept.ask] = made.get(kept.ask, 0) + 1
            if kept.node.reservation is not kept and kept not in kept.node.also_reserved:
                yield f"V3 ask {kept.ask.key} has node {kept.node.node_id}, which knows nothing of it"
        if leaf.reserving.get(app, 0) != len(app.reservations):
            yield f"V3 leaf {leaf.path}: {app.app_id} has {len(app.reservations)} reservations"
        for ask in app.asks.values():
            if ask.reservations != made.get(ask, 0):
                yield f"V3 ask {ask.key} counts {ask.reservations} reservations"
        for group in app.groups.values():
            if group.reserved != sum(ask.reservations for ask in group.asks.values()):
                yield f"V3 a group of {app.app_id} counts {group.reserved} reservations"
    if any(app.queue is not leaf for app in leaf.reserving):
        yield f"V3 leaf {leaf.path}: an application that is gone has a node reserved"


def _bounds(partition: Partition) -> Iterator[str]:
    """Q7: reservations stay within their bounds, and are counted right."""
    bounds = partition.reservation_bounds
    counted: dict[object, int] = {}
    for kept in partition.reservations:
        if kept.kind is not None:
            group = kept.ask.app, kept.kind
            counted[group] = counted.get(group, 0) + 1
    if counted != bounds.groups or sum(counted.values()) != bounds.count:
        yield f"Q7 {bounds.count} reservations of {len(bounds.groups)} groups are counted wrongly"
    limit = bounds.limit(len(partition.nodes))
    if limit is not None and bounds.count > limit:
        yield f"Q7 {bounds.count} of {len(partition.nodes)} nodes are reserved, at most {limit} may be"
    if limit is not None and any(number > 1 for number in counted.values()):
        yield "Q7 equal asks of an application have several nodes reserved"
    barred = {node for node in partition.nodes.values() if node.barred}
    if barred != set(bounds.barred) or (barred and bounds.timer is None):
        yield f"Q7 {len(barred)} nodes are barred, {len(bounds.barred)} are listed"


def _accounts(partition: Partition, size: int) -> Iterator[str]:
    """V1, V5 for users and groups: every ledger agrees with its applications."""
    bound: dict[Account, list[Application]] = {}
    writing: dict[Ledger, list[Application]] = {}
    for app in partition.applications.values():
        for account in dict.fromkeys((app.user_account, app.group_account)):
            if account is None:
                continue
            bound.setdefault(account, []).append(app)
            for queue in app.queue.lineage:
                ledger = account.ledgers.get(queue.path)
                if ledger is not None and ledger.queue is queue:
                    writing.setdefault(ledger, []).append(app)
    for account in (*partition.users.values(), *partition.groups.values()):
        if set(bound.get(account, ())) != set(account.applications):
            yield f"V1 {account.kind} {account.name}: other applications than are bound to it"
        for path, ledger in account.ledgers.items():
            below = writing.get(ledger, [])
            total = _total(
                (b for app in below for b in (app.allocated, app.allocated_placeholder)), size
            )
            if ledger.usage != total or path != ledger.queue.path:
                yield f"V1 {ledger}: usage {ledger.usage}, applications hold {total}"
            if set(ledger.running) != {app for app in below if app.counted}:
                yield f"V5 {ledger}: its running applications are not those that count"
            if ledger.bound != len(below):
                yield f"V1 {ledger}: written to by {ledger.bound} applications of {len(below)}"
            yield from ledger_violations(ledger)


def ledger_violations(ledger: Ledger) -> Iterator[str]:
    """V7: no ledger stops an application for which it has room."""
    if any(ledger.has_room(shape) for shape in ledger.short_of):
        yield f"V7 {ledger}: an application waits for room that is free"
    if ledger.shut and ledger.admits():
        yield f"V7 {ledger}: an application waits for a slot that is free"


def _counted(app: Application) -> Iterator[str]:
    """V1, V5: the application is counted in the right ledgers, and at the right time."""
    group = app.group_account
    wanted = [(app.user_account, app.queue)]
    if group is not None:
        wanted.append((group, app.queue))
    written = [(ledger.account, ledger.queue) for ledger in app.ledgers]
    above = [
        (account, queue)
        for account, _ in wanted
        for queue in app.queue.lineage[1:]
        if account is not None and account.granted(queue)[0] is not None
    ]
    if set(written) != {*wanted, *above} or len(written) != len(set(written)):
        yield f"V1 application {app.app_id} is not written to the right ledgers: {app.ledgers}"
    holds = bool(app.allocations or app.placeholders)
    if app.counted and app.state in application_fsm.IDLE:
        yield f"V5 application {app.app_id} is {app.state} and counts as running"
    if app.counted and app.state in application_fsm.GATHERS and app not in app.queue.admitted:
        yield f"V5 application {app.app_id} is {app.state} and counts for its user alone"
    if holds and not app.counted and app.state in application_fsm.SERVED:
        yield f"V5 application {app.app_id} is {app.state}, holds something and does not count"


def node_violations(node: Node, size: int) -> Iterator[str]:
    """The violations of V2 and V3 at one node; ``size`` is the number of resource types."""
    sums = _total((node.allocated, node.occupied, node.available), size)
    if sums != node.total:
        yield f"V2 node {node.node_id}: {sums} is not its total {node.total}"
    occupied = _total((node.anonymous, *(f.vector for f in node.foreign.values())), size)
    for device, units in node.partition.registry.shared.items():
        for at, used in units_of.occupied(units, node.total, occupied[device]):
            occupied[at] = used
    if occupied != node.occupied:
        yield f"V2 node {node.node_id}: occupied {node.occupied}, others use {occupied}"
    for each in node.foreign.values():
        if each.node is not node or node.partition.foreign.get(each.allocation_key) is not each:
            yield f"V3 foreign allocation {each.allocation_key} is in the wrong books"
    allocated = _total((a.on_node for a in node.allocations), size)
    if allocated != node.allocated:
        yield f"V2 node {node.node_id}: allocated {node.allocated}, there are {allocated}"
    for allocation in node.allocations:
        if allocation.node is not node:
            yield f"V3 allocation {allocation.key} is on two nodes"
        app = allocation.ask.app
        held = app.allocations.get(allocation.uuid) or app.placeholders.get(allocation.uuid)
        planned = allocation.state in allocation_fsm.AHEAD
        if (held is allocation) == planned:
            yield f"V3 allocation {allocation.key} is {allocation.state} and in the wrong books"
    first = [node.reservation] if node.reservation is not None else []
    if any(each.node is not node for each in (*first, *node.also_reserved)):
        yield f"V3 the reservation of node {node.node_id} is for another node"
    if node.also_reserved:
        if not first:
            yield f"V3 node {node.node_id} is reserved, but not for the first of them"
        if not all(each.ask.required_node for each in (*first, *node.also_reserved)):
            yield f"V3 node {node.node_id} is reserved for several, and not all require it"


def application_violations(app: Application, size: int) -> Iterator[str]:
    """The violations of V1, V3, V4 and V6 at one living application; ``size`` is the number of resource
    types."""
    claimed = [ask.planned.growth for ask in app.asks.values() if ask.planned is not None]
    for book, held, more in (
        (app.allocated, app.allocations, claimed),
        (app.allocated_placeholder, app.placeholders, []),
    ):
        if held or more:
            right = _total([book], size) == _total(
                (*(a.vector for a in held.values()), *more), size
            )
        else:  # true of most applications in a full cluster
            right = not any(book)
        if not right:
            yield f"V1 application {app.app_id}: its books differ from its allocations"
    waiting = _total(
        (
            tuple(value * (ask.pending - (ask.planned is not None)) for value in ask.vector)
            for ask in app.asks.values()
        ),
        size,
    )
    if waiting != _total([app.pending], size):
        yield f"V1 application {app.app_id}: pending {app.pending}, its asks want {waiting}"
    for allocation in (*app.allocations.values(), *app.placeholders.values()):
        if allocation not in allocation.node.allocations:
            yield f"V3 allocation {allocation.key} is on no node"
        releasing = allocation.state in allocation_fsm.ASKED_BACK
        if releasing != (allocation.reason is not None):
            yield f"V6 allocation {allocation.key} is {allocation.state} for {allocation.reason}"
    for ask in app.asks.values():
        if (ask.state in ask_fsm.IN_REPLACEMENT) != (ask.planned is not None):
            yield f"G29 ask {ask.key} is {ask.state} with planned {ask.planned}"
        if ask.reservations > ask.pending:
            yield f"V3 ask {ask.key} has {ask.reservations} reservations for {ask.pending}"
    waits = app.gang.timeout or app.gang.timed_out
    if app.state in application_fsm.GATHERS and app.is_gang and waits:
        if not any(timer.name == IDLE_TIMER and not timer.dead for timer in app.timers):
            yield f"V7 gang {app.app_id} is {app.state}, and has no timer"
    yield from _task_groups(app)
    yield from _counted(app)


def _task_groups(app: Application) -> Iterator[str]:
    for group in app.gang.task_groups.values():
        pending = sum(
            ask.pending
            for ask in app.asks.values()
            if ask.placeholder and ask.task_group == group.name
        )
        allocated = sum(a.ask.task_group == group.name for a in app.placeholders.values())
        if (pending, allocated) != (group.pending, group.allocated):
            yield (
                f"V4 task group {app.app_id}/{group.name}: pending {group.pending}, "
                f"allocated {group.allocated}; there are {pending} and {allocated}"
            )
        if group.count != group.pending + group.allocated + group.replaced + group.timed_out:
            yield f"V4 task group {app.app_id}/{group.name}: its count does not add up"


def ended_violations(app: Application) -> Iterator[str]:
    """V8: an ended application holds nothing."""
    if app.asks or app.allocations or app.placeholders or app.reservations:
        yield f"V8 application {app.app_id} is {app.state} and holds something"
    if any(app.allocated) or any(app.allocated_placeholder) or any(app.pending):
        yield f"V8 application {app.app_id} is {app.state} and has usage"


def _shelves(partition: Partition) -> Iterator[str]:
    """V8: only ended applications are kept as such, and their number and size are counted."""
    rm = partition.rm
    for app in partition.ended:
        if app.state not in application_fsm.ENDED:
            yield f"V8 application {app.app_id} is {app.state} and counts as ended"
    for shelf in (rm.ended, rm.rejected):
        count, size = shelf.counted()
        if (shelf.count, shelf.bytes) != (count, size):
            yield (
                f"V8 {shelf.count} ended applications of {shelf.bytes} bytes are counted; there are "
                f"{count} of {size}"
            )
    if len(partition.ended) > rm.ended.count + rm.rejected.count:
        yield f"V8 {len(partition.ended)} ended applications are known, and fewer are counted"


def _waiting(partition: Partition) -> Iterator[str]:
    """V7: the demand of every queue is exactly that of the groups in its leaves."""
    for leaf in partition.leaves():
        for app in leaf.apps.values():
            yield from waiting_violations(app)
        yield from _lanes(leaf)
    for queue in partition.queues():
        yield from _passed_on(queue, f"queue {queue.path}")
        if not isinstance(queue, LeafQueue):
            demand = 0
            for child in queue.children.values():
                demand |= child.demand
            if demand != queue.demand_below:
                yield f"V7 queue {queue.path}: demand {queue.demand_below}, of its children {demand}"


def _passed_on(level: Level, name: str) -> Iterator[str]:
    if level.demand != level.demand_below & ~level.blocked:
        text = f"offers {level.demand}, of {level.demand_below} without {level.blocked}"
        yield f"V7 {name} {text}"


def _lanes(leaf: LeafQueue) -> Iterator[str]:
    below: dict[Level, int] = {}
    members: dict[Level, int] = {}
    for app in leaf.apps.values():
        level: Level | None = app.above
        demand = app.demand
        if level is not None:
            members[level] = members.get(level, 0) + 1
        while level is not None and level is not leaf:
            below[level] = below.get(level, 0) | demand
            demand = below[level] & ~level.blocked
            level = level.above
        if app.limiting and app.state in application_fsm.SERVED:
            lane = app.above
            limits = (lane.lanes.ledgers, lane.ledgers) if isinstance(lane, LimitLane) else None
            if limits != (app.group_limits, app.user_limits):
                yield f"V7 application {app.app_id} is in a lane of others"
    passed = leaf.partition.waiting.retries.demand_of(leaf)
    for lanes in leaf.lanes:
        passed |= lanes.demand
    if passed != leaf.demand_below:
        yield f"V7 leaf {leaf.path}: demand {leaf.demand_below}, of its lanes {passed}"
    for level in (*leaf.lanes, *below):
        yield from _passed_on(level, f"leaf {leaf.path}: a lane")
        if level.demand_below != below.get(level, 0):
            yield f"V7 leaf {leaf.path}: a lane's demand {level.demand_below}, below it {below.get(level, 0)}"
        if isinstance(level, LimitLane):
            if level.members != members.get(level, 0):
                yield f"V7 leaf {leaf.path}: a lane has {level.members} members"
        if isinstance(level, LaneSet | LimitLane) and level.above is not leaf:
            yield from lane_violations(leaf, level)


def lane_violations(leaf: LeafQueue, level: LaneSet | LimitLane) -> Iterator[str]:
    """V7: a lane that is blocked has a ledger that knows of it and will unblock it."""
    if level.blocked == EVERY_BIT:
        justified = any(level in ledger.shut for ledger in level.ledgers)
    else:
        known = 0
        for ledger in level.ledgers:
            for shape, levels in ledger.short_of.items():
                if level in levels:
                    known |= shape.bits
        justified = not level.blocked & ~known
    if not justified:
        yield f"V7 leaf {leaf.path}: a lane stops {level.blocked} and nobody remembers why"


def waiting_violations(app: Application) -> Iterator[str]:
    """V7: whether the application's demand is that of its groups."""
    wants = 0
    for group in app.groups.values():
        if group.demand != group.demand_now():
            yield f"V7 group of {app.app_id} announces {group.demand}, wants {group.demand_now()}"
        wants |= group.demand
    if wants != app.demand_below:
        yield f"V7 application {app.app_id}: demand {app.demand_below}, of its groups {wants}"
    yield from _passed_on(app, f"application {app.app_id}")
