"""Who waits although nothing is in the way: a slow reading of the rules, counted anew from the entities."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from quadriga.core.model.account import Account, Limit
from quadriga.core.model.application import Application
from quadriga.core.model.ask import Ask
from quadriga.core.model.node import Node
from quadriga.core.model.partition import Partition
from quadriga.core.model.queue import LeafQueue, Queue
from quadriga.fsm.lifecycles import application as application_fsm

#: whether the resource manager refuses this ask (by its key) on this node
Refuses = Callable[[str, str], bool]


def waits_for_nothing(partition: Partition, now: int, refuses: Refuses) -> Iterator[str]:
    """Asks that should have been placed by a round without a limit, in words."""
    if partition.state == "Stopped":
        return
    for app in partition.applications.values():
        if _is_served(app, now):
            together = [
                ask
                for ask in app.asks.values()
                for _ in range(ask.pending if _starts_whole(app, ask) else 0)
            ]
            if together and _fits_whole(app, together, refuses):
                yield f"{partition.key}: the gang {app.app_id} of {app.queue.path} fits"
            for ask in app.asks.values():
                if ask in together:
                    continue
                if ask.state == "Pending" and _has_its_turn(app, ask) and _within_all(app, [ask]):
                    for node in chain(*_domains(app, partition.nodes.values())):
                        if _takes(node, ask) and not refuses(ask.ask_key, node.node_id):
                            yield f"{partition.key}: {ask.key} of {app.queue.path} fits {node.node_id}"


# -- the application -------------------------------------------------------------------------------


def _is_served(app: Application, now: int) -> bool:
    """Its state, its back-off (2.2.2), its turn and its place (2.9, 2.5)."""
    leaf = app.queue
    assert isinstance(leaf, LeafQueue)
    if app.state not in application_fsm.SERVED or app.backoff_until > now:
        return False
    if leaf.stateaware and app.state != application_fsm.RUNNING and _turn(leaf) is not app:
        return False
    if app.state in application_fsm.COUNTED or app in leaf.admitted:
        return True
    return all(queue.admits() for queue in leaf.lineage) and (
        app.counted or all(_admits(queue, account, limit) for queue, account, limit in _limits(app))
    )


def _turn(leaf: LeafQueue) -> Application | None:
    """The Starting ones (several after a reload or a recovery), else the oldest that asks for anything."""
    starting = [app for app in leaf.apps.values() if app.state == application_fsm.STARTING]
    asking = [
        app
        for app in leaf.apps.values()
        if app.state == application_fsm.ACCEPTED
        and any(ask.state == "Pending" for ask in app.asks.values())
    ]
    return min(starting or asking, key=lambda app: app.seq, default=None)


# -- the ask ---------------------------------------------------------------------------------------


def _has_its_turn(app: Application, ask: Ask) -> bool:
    """What gangs make of it: the gate (X16), the hold (X9), a placeholder to wait for (G27)."""
    whole = app.gang.size
    if ask.placeholder:
        if whole is None or app.gang.started or app.gang.admission != "whole":
            return True
        queues = app.queue.lineage
        capacity = app.partition.capacity
        if any(value > sum(capacity[place : place + 1]) for place, value in enumerate(whole)):
            queues = queues[:-1]  # it is larger than the cluster and asks for nodes (G12)
        return all(
            place >= len(whole) or whole[place] <= max(0, _left(app, queue, place, limit))
            for queue in queues
            for place, limit in queue.limits
        )
    if app.holding:
        return False
    group = app.gang.task_groups.get(ask.task_group)
    return group is None or group.count <= group.replaced + group.timed_out


def _left(app: Application, queue: Queue, place: int, limit: int) -> int:
    """What the queue has left of its quota for the whole gang, and beside a planned start (Q12)."""
    left = limit - queue.allocated[place] - queue.reserved_headroom[place]
    plan = queue.plan
    asks = [ask for ask in app.asks.values() if ask.placeholder and ask.pending]
    if plan is None or plan.app is app or _ends_before(asks, plan.start):
        return left
    return min(left, plan.beside.get(place, left))


def _starts_whole(app: Application, ask: Ask) -> bool:
    """Whether it is placed with all others of its gang, or not at all (Q1)."""
    return ask.state == "Pending" and ask.group is not None and app.gang.starts_whole(ask.group)


def _fits_whole(app: Application, asks: list[Ask], refuses: Refuses) -> bool:
    """Whether all asks have arrived (G24), and large ones first find a place for each. Where they differ
    and predicates decide, the scheduler may overlook a place, and it places no member on a node that
    drains, not even one that requires the node."""
    if not app.gang.has_all_asks or not _within_all(app, asks):
        return False
    nodes = [node for node in app.partition.nodes.values() if node.state == "Schedulable"]
    differ = len({(ask.vector, ask.required_node) for ask in asks}) > 1
    if differ and any(refuses(ask.ask_key, node.node_id) for ask in asks for node in nodes):
        return False
    return any(_fit_in(domain, asks, refuses) for domain in _domains(app, nodes))


def _domains(app: Application, nodes: Iterable[Node]) -> list[list[Node]]:
    """Where all members of the gang may be, those that run included (Q13)."""
    rule = app.gang.rule
    if rule is None or not rule.required:
        return [list(nodes)]
    running = [*app.allocations.values(), *app.placeholders.values()]
    stay = [each.partner or each for each in running if each.partner or each.state != "Releasing"]
    used = {each.node.attributes.get(rule.required) for each in stay} - {None}
    types = [each for each in ("x", "y") if each in used or not used]
    return [[n for n in nodes if n.attributes.get(rule.required) == each] for each in types]


def _fit_in(nodes: list[Node], asks: list[Ask], refuses: Refuses) -> bool:
    taken: dict[Node, list[Ask]] = {}
    for ask in sorted(asks, key=lambda ask: ask.vector, reverse=True):
        for node in nodes:
            there = taken.setdefault(node, [])
            if not refuses(ask.ask_key, node.node_id) and _takes(node, ask, there):
                there.append(ask)
                break
        else:
            return False
    return True


def _within_all(app: Application, asks: list[Ask]) -> bool:
    """Quotas of queues, and limits of its user and group (5.6, steps 3 and 5)."""
    need = _sum(asks)
    for quota in (*app.queue.lineage, *app.limiting):
        plan = quota.plan  # it keeps the quota for what has waited longest (Q12)
        if plan is None or _ends_before(asks, plan.start) or plan.leaves(need.items()):
            continue
        together = _starts_whole(app, asks[0])
        equal = plan.group is not None and plan.group.kind.requires == asks[0].kind.requires
        if not (plan.app is app if together else equal):
            return False
    for queue in app.queue.lineage:
        held = _held(queue, lambda each: True)
        if any(held.get(at, 0) + need[at] > most for at, most in queue.limits if at in need):
            return False
    for queue, account, limit in _limits(app):
        held = _held(queue, _belongs_to(account))
        if any(held.get(at, 0) + need[at] > most for at, most in limit.resources if at in need):
            return False
    return True


def _sum(asks: Iterable[Ask]) -> dict[int, int]:
    total: dict[int, int] = {}
    for ask in asks:
        for at, value in enumerate(ask.vector):
            if value:
                total[at] = total.get(at, 0) + value
    return total


def _takes(node: Node, ask: Ask, others: Iterable[Ask] | None = None) -> bool:
    """Whether the node takes it, as a member of a gang beside these others."""
    kept = node.reservation
    taken = _sum(others or ())
    plan = node.partition.node_index.planned
    if plan is not None and node in plan.needs and not ask.required_node:
        mine = others is not None and plan.app is ask.app  # a member of the gang
        lasting = _sum(e for e in [*(others or ()), ask] if not _ends_before([e], plan.start))
        beside = node.beside or []
        if not mine and any(lasting[at] > beside[at] for at in lasting.keys() & _sum([ask]).keys()):
            if not _ends_before([ask], plan.start):
                return False  # it would delay the planned start (Q9)
    return (
        (node.state == "Schedulable" or (node.state == "Draining" and bool(ask.required_node)))
        and ask.required_node in ("", node.node_id)
        and (kept is None or kept.ask is ask or (others is not None and kept.ask.app is ask.app))
        and all(
            value <= max(0, node.available[at] - taken.get(at, 0))
            for at, value in enumerate(ask.vector)
            if value
        )
    )


def _ends_before(asks: Iterable[Ask], start: int) -> bool:
    """Whether all are expected to end before a planned start if they begin now, by what was expected of them
    when they arrived (Q9, Q11)."""
    return all(0 < a.kind.requires.runtime <= start - a.app.partition.node_index.now for a in asks)


# -- limits of users and groups --------------------------------------------------------------------


def _limits(app: Application) -> Iterator[tuple[Queue, Account, Limit]]:
    """All that apply to the application, on every queue of its path (2.5)."""
    for queue in app.queue.lineage:
        user, group = app.user_account, app.group_account
        assert user is not None
        own = queue.user_limits.get(user.name) or queue.user_limits.get("*")
        if own is not None:
            yield queue, user, own
        if group is not None and group.name in queue.group_limits:
            yield queue, group, queue.group_limits[group.name]


def _belongs_to(account: Account) -> Callable[[Application], bool]:
    return lambda app: account in (app.user_account, app.group_account)


def _admits(queue: Queue, account: Account, limit: Limit) -> bool:
    belongs = _belongs_to(account)
    running = sum(app.counted and belongs(app) for app in _below(queue))
    return not limit.applications or running < limit.applications


def _below(queue: Queue) -> Iterator[Application]:
    return (app for app in queue.partition.applications.values() if queue in app.queue.lineage)


def _held(queue: Queue, whose: Callable[[Application], bool]) -> dict[int, int]:
    """What applications hold in the queue and below, by type."""
    held: dict[int, int] = {}
    for app in _below(queue):
        if whose(app):
            for book in (app.allocated, app.allocated_placeholder):
                for place, value in enumerate(book):
                    held[place] = held.get(place, 0) + value
    return held


# -- what no decision may exceed -------------------------------------------------------------------


def back_from_waiting(partition: Partition) -> set[Application]:
    """Those who run and count nowhere yet: they may exceed a number of applications (V5)."""
    return {
        app
        for app in partition.applications.values()
        if app.state in application_fsm.COUNTED and not app.counted
    }


def held_by_daemons(partition: Partition) -> dict[tuple[object, ...], int]:
    """What asks hold that require their node. Root's max, the sum of all nodes, does not bound them."""
    held: dict[tuple[object, ...], int] = {}
    for node in partition.nodes.values():
        for each in node.allocations:
            if each.ask.required_node:
                for at, value in enumerate(each.vector):
                    key = (partition.root.path, at)
                    held[key] = held.get(key, 0) + value
    return held


def use_of(
    partition: Partition, back: set[Application]
) -> dict[tuple[object, ...], tuple[int, int]]:
    """What is used of everything with a maximum, and that; who is ``back`` counts for no user or group."""
    found: dict[tuple[object, ...], tuple[int, int]] = {}
    for queue in partition.queues():
        if queue.max_applications:
            running = sum(app.state in application_fsm.COUNTED for app in _below(queue))
            counted = running + len(queue.admitted)
            found[queue.path, "applications"] = (counted, queue.max_applications)
        held = _held(queue, lambda each: True)
        for at, most in queue.limits:
            found[queue.path, at] = (held.get(at, 0), most)
    for app in partition.applications.values():
        for queue, account, limit in _limits(app):
            belongs = _belongs_to(account)
            key = (queue.path, account.kind, account.name)
            if limit.applications:
                counted = sum(e.counted and e not in back and belongs(e) for e in _below(queue))
                found[*key, "applications"] = (counted, limit.applications)
            if limit.resources:
                held = _held(queue, belongs)
                for at, most in limit.resources:
                    found[*key, at] = (held.get(at, 0), most)
    return found
