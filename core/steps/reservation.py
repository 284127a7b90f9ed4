"""Reservations: a node kept for an ask that fits on no node yet (2.7, 5.8).

An ask that is within its quotas and has waited for two seconds may reserve the node where it would fit
most tightly. Other asks cannot use a reserved node. When the node gets room, the reserving ask is
served before all others. If another node has room earlier, the ask takes that node and the reservation
is cancelled. A node has one reservation, unless several asks require the same node. An ask has at most
one reservation for each of its repeats.

Reservations are bounded (Q7): a share of the nodes at most, and one node for each group of asks. The
first asks in the order of decisions get them; within an application these are the asks of the highest
priority, oldest first. A node whose reservation was given up is not reserved again for as long as it
was held. Three kinds of reservations are not bounded: of an ask for the node that it requires, of a
node where allocations were evicted for the ask, and of a gang that gathers (Q3). See D134.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition

from quadriga.core.model.allocation import Reservation
from quadriga.core.preemption import preemption_queue
from quadriga.core.runtime.kernel import Kernel, Options
from quadriga.si import UpdateContainerSchedulingStateRequest

_RESERVED = UpdateContainerSchedulingStateRequest.RESERVED


def may_reserve(ask: Ask, now: int, options: Options) -> bool:
    """Whether the ask has waited long enough and has nodes left to reserve (2.7, Q7)."""
    group, partition = ask.group, ask.app.partition
    if not ask.required_node and group is not None:
        bounds = partition.reservation_bounds
        if bounds.full(len(partition.nodes)) or bounds.holds(group) or group.reserve_from > now:
            return False
    old_enough = ask.required_node or ask.created + options.reservation_delay <= now
    return bool(old_enough) and ask.reservations < ask.pending and ask.reserve_from <= now


def candidate(group: AskGroup, now: int, delay: int) -> Ask | None:
    """Return the first ask of the group that has waited long enough and may reserve another node."""
    bounds = group.app.partition.reservation_bounds
    if bounds.holds(group) or group.reserve_from > now:
        return None
    for ask in group.asks.values():
        if not ask.required_node and ask.created + delay > now:
            return None
        if ask.reservations < ask.pending and ask.reserve_from <= now:
            return ask
    return None


def _next_candidate(group: AskGroup, delay: int) -> tuple[Ask, int] | None:
    """Return the ask of the group that may reserve first, and the time (ns) from which it may."""
    first: tuple[Ask, int] | None = None
    if group.app.partition.reservation_bounds.holds(group):
        return None
    for ask in group.asks.values():
        if ask.reservations < ask.pending:
            old_enough = ask.created if ask.required_node else ask.created + delay
            when = max(old_enough, ask.reserve_from, group.reserve_from)
            if first is None or when < first[1]:
                first = ask, when
            if when in (old_enough, group.reserve_from):  # all later asks are younger
                break
    return first


def reserve(
    partition: Partition, ask: Ask, node: Node, now: int, *, bounded: bool = True
) -> Reservation:
    """Keep the node for the ask. Without ``bounded`` it does not count against the bounds (Q7).

    An ask that requires this node cancels the reservation of an ask that does not, and waits behind
    earlier asks that require it.
    """
    if node.reservation is not None and not node.reservation.ask.required_node:
        cancel(partition, node.reservation)
    bounded = bounded and ask.group is not None and not ask.required_node
    kind = ask.group.kind if ask.group is not None and bounded else None
    reservation = Reservation(ask, node, now, kind)
    if node.reservation is None:
        node.reservation = reservation
    else:
        node.also_reserved[reservation] = None
    ask.reservations += 1
    _count_reservation(ask, 1)
    ask.app.reservations[reservation] = None
    partition.reservations[reservation] = None
    bounds = partition.reservation_bounds
    bounds.add(reservation, 1)
    if kind is not None and bounds.full(len(partition.nodes)):
        partition.node_index.allow_reservations(False)
    partition.node_index.changed(node)
    # tried from the next round on: quota may become free, or preemption may make room
    partition.waiting.retries.add(reservation)
    if ask.group is not None:
        ask.group.reserved += 1
        partition.waiting.refresh_group(ask.group)
    partition.rm.observer.reserved(node, ask)
    return reservation


def make(kernel: Kernel, ask: Ask, node: Node, *, bounded: bool = True) -> None:
    """Reserve the node for the ask, for a limited time (S6)."""
    partition = ask.app.partition
    made = reserve(partition, ask, node, kernel.now, bounded=bounded)
    made.until = kernel.now + kernel.options.reservation_give_up
    partition.node_index.gained(node)  # it may be lent to asks that end soon (Q7)
    kernel.tally.reservations += 1
    if partition.rm.all_states:  # X43
        kernel.outbox.container_state(ask, _RESERVED, f"node {node.node_id} is reserved for it")
    if partition.waiting.give_up_timer is None:
        _start_expiry_timer(kernel, partition, kernel.now)


def cancel(partition: Partition, reservation: Reservation) -> None:
    """Cancel the reservation. The next one of the node, if there is one, takes effect."""
    node, ask = reservation.node, reservation.ask
    partition.failed_preemptions.candidates = None
    if node.reservation is reservation:
        node.reservation = following = next(iter(node.also_reserved), None)
        if following is not None:
            del node.also_reserved[following]
    else:
        del node.also_reserved[reservation]
    ask.reservations -= 1
    del ask.app.reservations[reservation]
    del partition.reservations[reservation]
    _count_reservation(ask, -1)
    partition.waiting.retries.discard(reservation)
    partition.waiting.short_of_quota.pop(reservation, None)
    partition.waiting.deferred_reservations.pop(reservation, None)
    bounds = partition.reservation_bounds
    bounds.add(reservation, -1)
    if not bounds.full(len(partition.nodes)):
        partition.node_index.allow_reservations(True)
    partition.node_index.gained(node)
    partition.rm.observer.unreserved(node, ask)
    if ask.group is not None:
        ask.group.reserved -= 1
    # the ask may have left its group for a time, as one that was deferred
    group = ask.group or (ask.app.groups.get(reservation.kind) if reservation.kind else None)
    if group is not None:
        if partition.rm.reservations:
            group.reservable = True  # checked when the group is served: its asks may be too young
        partition.waiting.refresh_group(group)


def _count_reservation(ask: Ask, more: int) -> None:
    """Count the reservations of the ask's application in its leaf."""
    reserving = ask.app.queue.reserving
    count = reserving.get(ask.app, 0) + more
    if count:
        reserving[ask.app] = count
    else:
        del reserving[ask.app]


def cancel_all_of(partition: Partition, ask: Ask) -> None:
    """Cancel all reservations of an ask that has ended or changed."""
    if ask.reservations:
        for reservation in [r for r in ask.app.reservations if r.ask is ask]:
            cancel(partition, reservation)


def enqueue(kernel: Kernel, ask: Ask) -> None:
    """Add an ask to those that wait. An ask that was parked or deferred gets its old position."""
    ask.app.partition.waiting.add(ask)
    group = ask.group
    if group is not None and group.reserve_timer is None and not group.reservable:
        start_reserve_timer(kernel, group)
    if ask.terms.allow_preempt_other:
        preemption_queue.enter(kernel, ask)


def start_reserve_timer(kernel: Kernel, group: AskGroup) -> None:
    """Start the timer that fires when the first ask of the group may reserve."""
    if group.reserve_timer is not None:
        group.reserve_timer.cancel()
        group.reserve_timer = None
    partition = group.app.partition
    if not partition.rm.reservations:
        group.reservable = False
        partition.waiting.refresh_group(group)
        return
    first = _next_candidate(group, kernel.options.reservation_delay)
    group.reservable = first is not None and first[1] <= kernel.now
    if first is not None and not group.reservable:
        left = first[1] - kernel.now
        group.reserve_timer = kernel.timers.start(kernel.now, left, "group.reserve", group)
    partition.waiting.refresh_group(group)


def _start_expiry_timer(kernel: Kernel, partition: Partition, made: int) -> None:
    """Start the timer for the expiry of a reservation made at ``made`` (ns)."""
    left = made + kernel.options.reservation_give_up - kernel.now
    partition.waiting.give_up_timer = kernel.timers.start(
        kernel.now, left, "partition.give_up", partition
    )


def expire(kernel: Kernel, partition: Partition) -> None:
    """S6: cancel reservations that have not been used for ``reservation_give_up``.

    Their asks wait equally long before they reserve again; with bounds all equal asks of the application
    do, and the nodes are not reserved for anybody in this time (Q7). An ask with a required node keeps its
    reservation, and a gang that gathers keeps its nodes (Q3). All reservations last equally long, so they
    expire in the order in which they were made.
    """
    partition.waiting.give_up_timer = None
    delay = kernel.options.reservation_give_up
    old: list[Reservation] = []
    for each in partition.reservations:
        if each.ask.required_node:
            continue
        if each.made + delay > kernel.now:
            _start_expiry_timer(kernel, partition, each.made)
            break
        old.append(each)
    for each in old:
        ask = each.ask
        group = ask.group or (ask.app.groups.get(each.kind) if each.kind is not None else None)
        ask.reserve_from = kernel.now + delay
        if partition.reservation_bounds.share is not None:
            _bar(kernel, each.node, 2 * kernel.now - each.made)
            if group is not None:
                group.reserve_from = kernel.now + delay
        cancel(partition, each)
        if group is not None:
            start_reserve_timer(kernel, group)


# -- bounds (Q7) -----------------------------------------------------------------------------------


def configure(kernel: Kernel, partition: Partition) -> None:
    """Apply the bounds of the configuration. Reservations beyond them are cancelled."""
    bounds = partition.reservation_bounds
    share = partition.root.properties.reservation_max_share
    before, bounds.share = bounds.share, share if kernel.options.bound_reservations else None
    if bounds.share == before:
        return
    if bounds.share is None:
        for node in bounds.barred:
            node.barred = False
            partition.node_index.gained(node)
        bounds.barred.clear()
    else:
        held: set[object] = set()
        for each in sorted(partition.reservations, key=_order):
            group = each.ask.app, each.kind
            if each.kind is not None and group in held:
                cancel(partition, each)
            held.add(group)
        for (
            each
        ) in partition.reservations:  # what is told to end before may use the nodes from now on
            partition.node_index.gained(each.node)
    nodes_changed(partition)
    for app in partition.applications.values():
        for waiting in list(app.groups.values()):
            start_reserve_timer(kernel, waiting)


def nodes_changed(partition: Partition) -> None:
    """The number of nodes or of reservations changed: cancel those beyond the bounds, and note whether
    another node may be reserved."""
    bounds = partition.reservation_bounds
    nodes = len(partition.nodes)
    limit = bounds.limit(nodes)
    if limit is not None and bounds.count > limit:
        bounded = [each for each in partition.reservations if each.kind is not None]
        for each in sorted(bounded, key=_order)[limit:]:
            cancel(partition, each)
    partition.node_index.allow_reservations(not bounds.full(nodes))


def _order(reservation: Reservation) -> tuple[int, int]:
    return reservation.order


def _bar(kernel: Kernel, node: Node, until: int) -> None:
    """Reserve the node for nobody before an instant (ns)."""
    bounds = node.partition.reservation_bounds
    node.barred = True
    bounds.barred.pop(node, None)
    bounds.barred[node] = until
    if bounds.timer is None:
        _start_bar_timer(kernel, node.partition)


def _start_bar_timer(kernel: Kernel, partition: Partition) -> None:
    """Start the timer for the first of the barred nodes."""
    bounds = partition.reservation_bounds
    first = min(bounds.barred.values(), default=None)
    if first is not None:
        left = first - kernel.now
        bounds.timer = kernel.timers.start(kernel.now, left, "partition.barred", partition)


def lift_bars(kernel: Kernel, partition: Partition) -> None:
    """Nodes whose time has passed may be reserved again."""
    bounds = partition.reservation_bounds
    bounds.timer = None
    for node in [node for node, until in bounds.barred.items() if until <= kernel.now]:
        del bounds.barred[node]
        node.barred = False
        partition.node_index.gained(node)
    _start_bar_timer(kernel, partition)
