"""Atomic admission: gangs start whole, and one of them may keep nodes (Q1 to Q5).

A queued gang is tried when its turn comes in the queues. If all its outstanding members can be placed,
they are placed at once. Otherwise the gang holds nothing, and is not tried again before what it lacked
may have come back: quota, a limit, room on nodes, or its own asks.

A gang that has waited for nodes long enough may gather: it reserves nodes, one for each missing member
at most, until all its members fit. Of the gangs of a partition that wait so, the first in the order of
queues and submission gathers, and the others wait for their turn. Everything else in the partition goes
on meanwhile; only the nodes that the gang has reserved take nobody else.

A gang that would not fit the present cluster even if nothing ran there does not gather: more nodes are
needed first, and are asked for as for other asks (5.11, G12). A gang whose asks have not all arrived
cannot be planned: it waits for them and holds nothing, and fails when its placeholder timeout passes
(G24, G45). See D141.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Final

from quadriga.base.times import SECOND
from quadriga.core.gangs import preemption as gang_preemption
from quadriga.core.gangs import short_gangs
from quadriga.core.gangs.placing import place_members
from quadriga.core.gangs.plan import Lack, Plan, make_plan, refund
from quadriga.core.model.gang import ASKS, LIMIT, NODES, PREDICATES, QUOTA
from quadriga.core.model.gather_budget import BEGUN, GIVEN_UP, REFUSED, STARTED
from quadriga.core.model.queue import goes_before
from quadriga.core.ordering.room import room_for
from quadriga.core.resources.shapes import needed_by
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.steps import limits, reservation
from quadriga.core.steps.refused import refusal_of
from quadriga.core.topology.domains import fit
from quadriga.fsm import GANG
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import gang as gang_fsm

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.gang import Gang
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.model.reservation import Reservation
    from quadriga.core.resources.shapes import Shape

#: the timer after which a gang may gather, and that after which the budget allows it again
_GATHER_TIMER: Final = "application.gather"
_BUDGET_TIMER: Final = "partition.gather_budget"
#: a gang that cannot be gathered, or gave its nodes back, gathers for at least this time (ns) no more
_REST: Final = 600 * SECOND

# Why a gang gives its nodes back, as its event record says it (Q8).
_NO_PROGRESS: Final = "none of them had more room for its members in all its patience"
_SPENT: Final = (
    "the budget for idle capacity is spent, and none of them had more room in its patience"
)
_MAY_NOT_START: Final = "its application may not start at present"
_NO_QUOTA: Final = "queue %s has no quota for its members at present"
_NO_LIMIT: Final = "a limit has no room for its members at present"
_TIMED_OUT: Final = "its placeholders have timed out"
_NO_ASKS: Final = "some of its asks have been removed"
_OTHERS_ARE_SHORT: Final = "the running gang %s has lost placeholders"


# -- one attempt -----------------------------------------------------------------------------------


def admit(kernel: Kernel, app: Application) -> bool:
    """Place all outstanding members of the gang, or preempt for them, and return True; or note what the
    gang lacks."""
    decided = _attempt(kernel, app)
    app.partition.node_index.attempted(app)
    return decided


def _attempt(kernel: Kernel, app: Application) -> bool:
    attempts = kernel.tally.gang_attempts
    if _place_all(kernel, app):
        attempts["placed"] += 1
        return True
    if app.gang.victims:
        gang_preemption.return_nodes(app)
    if gang_preemption.preempt(kernel, app):
        attempts["preempted"] += 1
        return True
    if app.gang.lacks:
        attempts[app.gang.lacks] += 1
    return False


def _place_all(kernel: Kernel, app: Application) -> bool:
    partition = app.partition
    if app.limiting and limits.held_out(app):
        return False
    members = app.gang.members
    if not app.gang.has_all_asks:
        _wait_for(kernel, app, ASKS)
        if app.gang.without_placeholders and app.gang.state in gang_fsm.KEEPS_NODES:
            kernel.fire(GANG, app.gang, gang_fsm.REQUEUE, reason=_NO_ASKS)
        return False
    demand = _demand_of(members)
    if _short_of_quota(kernel, app, demand):
        return False
    kept = [each.node for each in app.reservations if each.node.reservation is each]
    plan = make_plan(kernel, partition, members, [node for node in kept if node.open])
    if plan.places:
        several = _demand_of([group for group in members if not group.shape.required_node])
        # other nodes hold more than they have; root's max does not bound members that require a node
        if _exceeds(app, partition.root, several, kept=False):
            refund(plan)
            _wait_for_quota(kernel, app, partition.root)
            return False
        _carry_out(kernel, app, plan)
        return True
    own = app.gang
    own.outstanding = sum(group.pending for group in members)
    own.missing = plan.missing
    if not plan.lacks:
        _wait_for(kernel, app, PREDICATES)
        return False
    _wait_for(kernel, app, NODES, plan.lacks)
    shapes, more = [plan.lacks[0].shape], own.missing
    if plan.crowded:  # more room for any member may help
        shapes = list(dict.fromkeys(group.shape for group in members))
    if plan.crowded or len(members) > 1 or own.state in gang_fsm.KEEPS_NODES:
        more = 1
    partition.node_index.await_room(app, _alike(kernel, app, members), shapes, more)
    if own.state in gang_fsm.KEEPS_NODES:
        _keep_nodes(kernel, app, members, plan.lacks)
    else:
        _gather_if_due(kernel, app)
    return False


def _alike(kernel: Kernel, app: Application, members: list[AskGroup]) -> Hashable:
    """What an attempt of the gang depends on beside the nodes: its members, their quotas and limits, and its
    place in the order. A gang that may gather or preempt, or for which more matters, is like no other."""
    queue = app.queue
    if (
        _due(app) <= kernel.now
        or app.reservations
        or any(app.reserved_headroom)
        or queue.stateaware
        or app.partition.waiting.backs_off
        or gang_preemption.may_come(app)
        or any(group.shape.required_node for group in members)
        or (app.gang.local and (app.allocations or app.placeholders))
    ):
        return app
    groups = tuple([(group.shape, group.pending) for group in members])
    return app.above, queue.properties.sort_policy, queue.sorts_priority, app.gang.over, groups


def _demand_of(members: list[AskGroup]) -> dict[int, int]:
    """What all members together ask for, by type."""
    return needed_by((group.shape, group.pending) for group in members)


def _short_of_quota(kernel: Kernel, app: Application, demand: dict[int, int]) -> bool:
    """Whether a quota or a limit has no room for all members. The gang then waits for it there.

    Root's quota is what the nodes have: a gang that exceeds it lacks nodes (G12).
    """
    for queue in app.queue.lineage[:-1]:
        if _exceeds(app, queue, demand, kept=True):
            _wait_for_quota(kernel, app, queue)
            return True
    for ledger in app.limiting:
        for at, limit in ledger.resources:
            if demand.get(at, 0) > max(0, limit - ledger.usage[at]):
                ledger.gated[app] = None
                _wait_without_nodes(kernel, app, LIMIT, _NO_LIMIT)
                return True
    return False


def _exceeds(app: Application, queue: Queue, demand: dict[int, int], *, kept: bool) -> bool:
    """Whether the queue would exceed its quota; ``kept``: headroom reserved for gangs is not free."""
    for at, limit in queue.limits:
        left = limit - queue.allocated[at]
        if kept:
            left -= queue.reserved_headroom[at] - app.own_headroom(at)
        if demand.get(at, 0) > max(0, left):
            return True
    return False


def _wait_for_quota(kernel: Kernel, app: Application, queue: Queue) -> None:
    queue.gated[app] = None
    _wait_without_nodes(kernel, app, QUOTA, _NO_QUOTA % queue.path)


def _wait_without_nodes(kernel: Kernel, app: Application, what: str, reason: str) -> None:
    """Do not try the gang again before a quota or a limit has room. Nodes do not help it meanwhile, so a
    gang that gathers gives them back at once (Q4)."""
    app.gang.lacks = what
    app.partition.waiting.refresh(app)
    app.partition.rm.observer.gang_waits(app, ())
    if app.gang.state in gang_fsm.KEEPS_NODES:
        kernel.fire(GANG, app.gang, gang_fsm.REQUEUE, reason=reason)


def _carry_out(kernel: Kernel, app: Application, plan: Plan) -> None:
    """Allocate every member to its node, in the order of the asks (G4)."""
    _stop_waiting(app)
    gang_preemption.forget(app)
    app.partition.waiting.gangs.pop(app, None)
    app.partition.rm.observer.gang_placed(app, len(plan.places))
    kernel.fire(GANG, app.gang, gang_fsm.PLACE)
    place_members(kernel, app, plan)


# -- waiting ---------------------------------------------------------------------------------------


def _wait_for(
    kernel: Kernel, app: Application, what: str, lacks: Sequence[tuple[Shape, int]] = ()
) -> None:
    """Do not try the gang again before that may have come back. ``lacks`` are the members without room
    on nodes."""
    waiting, own = app.partition.waiting, app.gang
    own.lacks = what
    waiting.refresh(app)
    app.partition.rm.observer.gang_waits(app, lacks)
    if what == PREDICATES:
        heads = [group.head for group in app.groups.values()]
        waiting.defer_gang(app, refusal_of(kernel, app.partition, heads))
        return
    waiting.gangs[app] = None
    if own.waiting_since < 0:
        own.waiting_since = kernel.now
        _await_due(kernel, app)


def retry(app: Application) -> None:
    """Try the gang again: its asks, its limits or the answers for it have changed."""
    if app.gang.lacks:
        _stop_waiting(app)
        app.partition.waiting.refresh(app)


def retry_local(partition: Partition) -> None:
    """Domains are others than before: try the gangs again that want something of them (Q13)."""
    for app in list(partition.waiting.gangs):
        if app.gang.local:
            retry(app)


def _stop_waiting(app: Application) -> None:
    own, partition = app.gang, app.partition
    for queue in app.queue.lineage:
        queue.gated.pop(app, None)
    for ledger in app.limiting:
        ledger.gated.pop(app, None)
    partition.waiting.deferred_gangs.pop(app, None)
    partition.node_index.forget_wait(app)
    own.lacks = ""


def state_changed(kernel: Kernel, app: Application) -> None:
    """The application of a gang has entered a state in which its members no longer wait for places, or
    wait for them anew (Q5)."""
    own = app.gang
    if app.state in application_fsm.GIVES_BACK:
        kernel.fire(GANG, own, gang_fsm.REQUEUE, reason=_TIMED_OUT)
        gang_preemption.forget(app)
        own.preempted = False  # its members are other asks from now on
    if app.state in application_fsm.BEFORE_RUNNING:
        return
    _stop_waiting(app)
    gang_preemption.forget(app)
    app.partition.waiting.gangs.pop(app, None)
    if app.state not in application_fsm.COUNTED:
        app.partition.waiting.short_of_members.pop(app, None)
    own.waiting_since = -1
    own.refused = False
    for timer in own.timers:
        timer.cancel()
    own.timers = ()
    if app.state in application_fsm.GANG_OVER:
        if GANG.allows(own.state, gang_fsm.END):
            kernel.fire(GANG, own, gang_fsm.END)
    elif own.without_placeholders and not app.allocations:
        # All asks were removed, and may come again.
        if own.state in gang_fsm.KEEPS_NODES:
            kernel.fire(GANG, own, gang_fsm.REQUEUE, reason=_NO_ASKS)
    elif own.state in gang_fsm.WAITS and app.state in application_fsm.SERVED:
        kernel.fire(GANG, own, gang_fsm.PLACE)


# -- the gathering gang ----------------------------------------------------------------------------


def _due(app: Application) -> int:
    """The instant (ns) from which the gang may gather."""
    own = app.gang
    return max(own.waiting_since + app.queue.properties.gang_gather_after, own.rests_until)


def _await_due(kernel: Kernel, app: Application) -> None:
    """Look at the gang when it may gather."""
    if kernel.now < _due(app):
        timer = kernel.timers.start(kernel.now, _due(app) - kernel.now, _GATHER_TIMER, app)
        app.gang.timers = (*app.gang.timers, timer)


def _rest(kernel: Kernel, app: Application) -> None:
    """Let the gang not gather for as long as its patience, at least for ten minutes."""
    app.gang.rests_until = kernel.now + max(_REST, app.gang.patience)
    _await_due(kernel, app)


def _is_candidate(kernel: Kernel, app: Application) -> bool:
    own = app.gang
    if own.state in gang_fsm.KEEPS_NODES or own.waiting_since < 0 or _due(app) > kernel.now:
        return False
    app.partition.node_index.wait_alone(app)
    return (
        own.lacks == NODES
        and not app.blocked
        and not app.not_admitted
        and own.admission == "atomic"
        and _fits_empty_cluster(app)
    )


def _fits_empty_cluster(app: Application) -> bool:
    """Whether the open nodes could hold each group of outstanding members if nothing ran there."""
    index = app.partition.node_index
    if app.gang.local:
        empty = {
            node: [
                total - occupied for total, occupied in zip(node.total, node.occupied, strict=True)
            ]
            for node in index.nodes
            if node.open
        }
        return bool(fit(app.partition, app.gang.members, empty).places)
    return all(group.pending <= index.room_when_empty(group.shape) for group in app.gang.members)


def gather_due(kernel: Kernel, app: Application) -> None:
    """The gang has waited long enough to gather."""
    own = app.gang
    own.timers = tuple([each for each in own.timers if each.name != _GATHER_TIMER])
    app.partition.node_index.wait_alone(app)
    _gather_if_due(kernel, app)


def _gather_if_due(kernel: Kernel, app: Application) -> None:
    if app.partition.waiting.gatherer is not None or _due(app) > kernel.now:
        return
    if app.partition.gather_budget.spent(kernel.now):
        _refuse(kernel, app)
    elif _is_candidate(kernel, app):
        _choose_gatherer(kernel, app.partition, candidate=app)


def _refuse(kernel: Kernel, app: Application) -> None:
    """The gang may not gather because too much was kept idle (Q10). It is counted once while it waits."""
    partition = app.partition
    budget = partition.gather_budget
    if not app.gang.refused and _is_candidate(kernel, app):
        app.gang.refused = True
        budget.counts[REFUSED] += 1
    if budget.timer is None:
        left = budget.again(kernel.now) - kernel.now
        budget.timer = kernel.timers.start(kernel.now, left, _BUDGET_TIMER, partition)


def budget_regained(kernel: Kernel, partition: Partition) -> None:
    """The budget may allow a gang to gather again."""
    partition.gather_budget.timer = None
    if partition.waiting.gatherer is None:
        _choose_gatherer(kernel, partition)


def placeholder_lost(kernel: Kernel, app: Application) -> None:
    """A running gang has lost a placeholder that no member had replaced.

    The gang keeps what it holds until the member has a node. So the gathering gang, which may wait for
    what this gang holds, gives its nodes back, and no gang gathers before all members run.
    """
    if app.gang.admission != "atomic" or app.state not in application_fsm.COUNTED:
        return
    short_gangs.note(kernel, app)
    gatherer = app.partition.waiting.gatherer
    if gatherer is not None:
        why = _OTHERS_ARE_SHORT % app.app_id
        kernel.fire(GANG, gatherer.gang, gang_fsm.REQUEUE, reason=why)


def short_for_long(kernel: Kernel, app: Application) -> None:
    """A running gang has lacked members for long (Q6)."""
    short_gangs.help_first(kernel, app, precedes)


def _choose_gatherer(
    kernel: Kernel,
    partition: Partition,
    *,
    candidate: Application | None = None,
    but_not: Application | None = None,
) -> None:
    """Let the first gang gather that has waited long enough (Q3). A gang that has given its nodes back
    comes after those that have done so less often. ``candidate`` is known to have waited so."""
    budget = partition.gather_budget
    if short_gangs.is_any_short(partition) or not partition.waiting.gangs:
        return
    if budget.spent(kernel.now):
        for app in partition.waiting.gangs:
            _refuse(kernel, app)
        return
    first: Application | None = None
    for app in partition.waiting.gangs:
        if app is but_not or (first is not None and not _gathers_before(app, first)):
            continue
        if app is candidate or _is_candidate(kernel, app):
            first = app
    if first is not None and not _can_be_gathered(kernel, first):
        _rest(kernel, first)
    elif first is not None:
        partition.waiting.gatherer = first
        first.gang.refused = False
        budget.counts[BEGUN] += 1
        first.gang.missing_before = first.gang.missing
        kernel.fire(GANG, first.gang, gang_fsm.GATHER)
        partition.rm.observer.gang_gathers(first)
        retry(first)


def _can_be_gathered(kernel: Kernel, app: Application) -> bool:
    """Whether the open nodes have room for each group of outstanding members when all has ended there
    that is expected to end. A gang for which they have none keeps nothing."""
    partition = app.partition
    rooms = {
        node.node_id: partition.gather_budget.room_in_time(node, kernel.now)
        for node in partition.node_index.nodes
        if node.open
    }
    if app.gang.local:
        then = {partition.nodes[node_id]: room for node_id, room in rooms.items()}
        return bool(fit(partition, app.gang.members, then).places)
    for group in app.gang.members:
        shape = group.shape
        usable = (room for node_id, room in rooms.items() if shape.required_node in ("", node_id))
        if shape.need and sum(room_for(shape, room) for room in usable) < group.pending:
            return False
    return True


def _gathers_before(one: Application, other: Application) -> bool:
    if one.gang.given_up != other.gang.given_up:
        return one.gang.given_up < other.gang.given_up
    return precedes(one, other)


def precedes(one: Application, other: Application) -> bool:
    """Compare by queues from root down (5.4), and within a queue by submission."""
    if one.queue is not other.queue:
        paths = zip(reversed(one.queue.lineage), reversed(other.queue.lineage), strict=False)
        for left, right in paths:
            if left is not right:
                return goes_before(left, right)
    return one.seq < other.seq


def _keep_nodes(
    kernel: Kernel, app: Application, members: list[AskGroup], lacks: list[Lack]
) -> None:
    """Reserve the nodes that have room for members, and for each member that is still missing a node
    that may get room: those that lack the least come first. Of these it gives back as many as it has
    found other nodes. While the budget is spent it keeps what it has (Q10)."""
    partition = app.partition
    if app.reservations and partition.gather_budget.spent(kernel.now):
        return
    if app.gang.local:
        _keep_nodes_of_domains(kernel, app, members)
        return
    for shape, missing in lacks:
        groups = [group for group in members if group.shape is shape]
        left = sum(group.pending for group in groups) - missing
        busy = []
        for each in app.reservations:
            if room := room_for(shape, each.node.available):
                left -= room
            elif each.ask.kind.requires == shape.requires:
                busy.append(each)
        found = []
        for node in partition.node_index.first(shape, left) if left > 0 else ():
            if left > 0 and node.free:
                left -= room_for(shape, node.available)
                found.append(node)
        if len(busy) > missing:
            busy.sort(key=lambda each: _lack(shape, each.node))
            for each in busy[missing:]:
                reservation.cancel(partition, each)
        elif len(busy) < missing:
            found += _nodes_to_keep(kernel, partition, shape, missing - len(busy))
        nodes = iter(found)
        for ask in (ask for group in groups for ask in group.asks.values()):
            while ask.reservations < ask.pending:
                if (taken := next(nodes, None)) is None:
                    break
                reservation.make(kernel, ask, taken, bounded=False)
                partition.gather_budget.keep(taken, kernel)


def _keep_nodes_of_domains(kernel: Kernel, app: Application, members: list[AskGroup]) -> None:
    """Reserve the nodes that all members fit on, in the domains that they want, when all has ended there that
    is expected to end, and give others back (Q13)."""
    partition = app.partition
    budget, kept = partition.gather_budget, {each.node: each for each in app.reservations}
    then = {
        node: budget.room_in_time(node, kernel.now)
        for node in partition.node_index.nodes
        if node.free or (node.open and node in kept and node.reservation is kept[node])
    }
    places = fit(partition, members, then, own=kept).places
    wanted = {node: group for group, node, _ in places}
    for node, each in kept.items():
        if wanted.pop(node, None) is None:
            reservation.cancel(partition, each)
    for node, group in wanted.items():
        ask = next((ask for ask in group.asks.values() if ask.reservations < ask.pending), None)
        if ask is not None:
            reservation.make(kernel, ask, node, bounded=False)
            budget.keep(node, kernel)


def _lack(shape: Shape, node: Node) -> tuple[float, str]:
    """The largest part of the shape for which the node has no room, and the node."""
    lack: Any = max((value - node.available[at]) / value for at, value in shape.need)
    return lack, node.node_id


def _nodes_to_keep(kernel: Kernel, partition: Partition, shape: Shape, number: int) -> list[Node]:
    """The open nodes without a reservation that would have room for the shape if all of this scheduler
    had ended there that is expected to end, and lack the smallest part of it now."""
    found = []
    budget = partition.gather_budget
    for node in partition.node_index.nodes:
        if not node.free or shape.required_node not in ("", node.node_id):
            continue
        if shape.fits(node.available):
            continue
        if shape.fits(budget.room_in_time(node, kernel.now)):
            found.append((*_lack(shape, node), node))
    return [node for _, _, node in nsmallest(number, found)]


def serve_reserving(kernel: Kernel, kept: Reservation) -> bool:
    """A node that is reserved for all members of the gang has changed: try the gang again."""
    app = kept.ask.app
    retries = app.partition.waiting.retries
    for each in list(retries.of(app)):  # one attempt is enough for all of them
        retries.discard(each)
    return serve_gatherer(kernel, app)


def serve_gatherer(kernel: Kernel, app: Application) -> bool:
    """Try the gang that keeps nodes, or that had allocations preempted, before other asks."""
    if app.blocked or app.not_admitted:  # it may not start now, so it must not hold up others
        kernel.fire(GANG, app.gang, gang_fsm.REQUEUE, reason=_MAY_NOT_START)
        return False
    if app.gang.victims and gang_preemption.awaits_room(app):
        return False
    if not app.gang.lacks and app.gang.state not in gang_fsm.KEEPS_NODES:
        return False  # its turn comes in the queues
    _stop_waiting(app)
    return admit(kernel, app)


def nodes_freed(kernel: Kernel, app: Application, reason: str) -> None:
    """The gang no longer gathers: cancel its reservations, and let the next gang gather."""
    partition, own = app.partition, app.gang
    if reason:
        partition.rm.observer.gang_gave_back(app, reason)
        partition.gather_budget.counts[GIVEN_UP] += 1
    elif own.state in gang_fsm.HAS_PLACES:
        partition.gather_budget.counts[STARTED] += 1
    for timer in own.timers:
        timer.cancel()
    own.timers = ()
    for each in [r for r in app.reservations if not r.ask.required_node]:
        reservation.cancel(partition, each)
    partition.gather_budget.drop_all()
    if partition.waiting.gatherer is app:
        partition.waiting.gatherer = None
        own.given_up += 1
        if own.waiting_since >= 0 and own.state in gang_fsm.WAITS:
            _rest(kernel, app)
        _choose_gatherer(kernel, partition, but_not=app)


def gave_up(kernel: Kernel, own: Gang) -> None:
    """The gathering gang has gained nothing in time, or may go on (Q3)."""
    if own.state in gang_fsm.KEEPS_NODES:
        why = _SPENT if own.partition.gather_budget.spent(kernel.now) else _NO_PROGRESS
        kernel.fire(GANG, own, gang_fsm.ABANDON, reason=why)
        own.missing_before = own.missing  # where it goes on, for the next time
