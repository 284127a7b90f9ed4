"""Reservations: a node kept for an ask that fits on no node yet (2.7, 5.8).

An ask that is within its quotas and has waited for two seconds may reserve the node where it would fit
most tightly. Other asks cannot use a reserved node. When the node gets room, the reserving ask is
served before all others. If another node has room earlier, the ask takes that node and the reservation
is cancelled. A node has one reservation, unless several asks require the same node. An ask has at most
one reservation for each of its repeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition

from quadriga.core.model.reservation import Reservation
from quadriga.core.preemption import preemption_queue
from quadriga.core.runtime.kernel import Kernel, Options
from quadriga.si import UpdateContainerSchedulingStateRequest

__all__ = [
    "cancel",
    "cancel_all_of",
    "candidate",
    "enqueue",
    "expire",
    "make",
    "may_reserve",
    "reserve",
    "start_reserve_timer",
]

_RESERVED = UpdateContainerSchedulingStateRequest.RESERVED


def may_reserve(ask: Ask, now: int, options: Options) -> bool:
    """Whether the ask has waited long enough and has nodes left to reserve (2.7)."""
    old_enough = ask.required_node or ask.created + options.reservation_delay <= now
    return bool(old_enough) and ask.reservations < ask.pending and ask.reserve_from <= now


def candidate(group: AskGroup, now: int, delay: int) -> Ask | None:
    """Return the first ask of the group that has waited long enough and may reserve another node."""
    for ask in group.asks.values():
        if not ask.required_node and ask.created + delay > now:
            return None
        if ask.reservations < ask.pending and ask.reserve_from <= now:
            return ask
    return None


def _next_candidate(group: AskGroup, delay: int) -> tuple[Ask, int] | None:
    """Return the ask of the group that may reserve first, and the time (ns) from which it may."""
    first: tuple[Ask, int] | None = None
    for ask in group.asks.values():
        if ask.reservations < ask.pending:
            old_enough = ask.created if ask.required_node else ask.created + delay
            when = max(old_enough, ask.reserve_from)
            if first is None or when < first[1]:
                first = ask, when
            if when == old_enough:  # all later asks are younger
                break
    return first


def reserve(partition: Partition, ask: Ask, node: Node, now: int) -> Reservation:
    """Keep the node for the ask.

    An ask that requires this node cancels the reservation of an ask that does not, and waits behind
    earlier asks that require it.
    """
    if node.reservation is not None and not node.reservation.ask.required_node:
        cancel(partition, node.reservation)
    reservation = Reservation(ask, node, now)
    if node.reservation is None:
        node.reservation = reservation
    else:
        node.also_reserved[reservation] = None
    ask.reservations += 1
    _count_reservation(ask, 1)
    ask.app.reservations[reservation] = None
    partition.reservations[reservation] = None
    partition.node_index.changed(node)
    # tried from the next round on: quota may become free, or preemption may make room
    partition.waiting.retries.add(reservation)
    if ask.group is not None:
        ask.group.reserved += 1
        partition.waiting.refresh_group(ask.group)
    partition.rm.observer.reserved(node, ask)
    return reservation


def make(kernel: Kernel, ask: Ask, node: Node) -> None:
    """Reserve the node for the ask, for a limited time (S6)."""
    partition = ask.app.partition
    reserve(partition, ask, node, kernel.now)
    kernel.tally.reservations += 1
    if partition.rm.all_states:  # X43
        kernel.outbox.container_state(ask, _RESERVED, f"node {node.node_id} is reserved for it")
    if partition.waiting.give_up_timer is None:
        _start_expiry_timer(kernel, partition, kernel.now)


def cancel(partition: Partition, reservation: Reservation) -> None:
    """Cancel the reservation. The next one of the node, if there is one, takes effect."""
    node, ask = reservation.node, reservation.ask
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
    partition.node_index.gained(node)
    partition.rm.observer.unreserved(node, ask)
    group = ask.group
    if group is not None:
        group.reserved -= 1
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

    Their asks wait equally long before they reserve again. An ask with a required node keeps its
    reservation. All reservations last equally long, so they expire in the order in which they were made.
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
        ask.reserve_from = kernel.now + delay
        cancel(partition, each)
        if ask.group is not None:
            start_reserve_timer(kernel, ask.group)
