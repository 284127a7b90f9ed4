"""Reservations: a node kept for an ask that fits nowhere yet (2.7, 5.8).

An ask that has waited for two seconds, within its quotas, may reserve the node where it would fit
most tightly. A reserved node is hidden from everybody else. When the node gets room the reserving
ask is served first of all; if another node has room earlier, that one is taken and the reserved node
is free again. There is one reservation per node, except that several asks may require the same one,
and at most one per repeat of an ask.
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
    "give_up_old_ones",
    "make",
    "may_reserve",
    "reserve",
    "wait_again",
    "wait_to_reserve",
]

_RESERVED = UpdateContainerSchedulingStateRequest.RESERVED


def may_reserve(ask: Ask, now: int, options: Options) -> bool:
    """Whether the ask has waited long enough and has nodes left to reserve (2.7)."""
    old_enough = ask.required_node or ask.created + options.reservation_delay <= now
    return bool(old_enough) and ask.reservations < ask.pending and ask.reserve_from <= now


def candidate(group: AskGroup, now: int, delay: int) -> Ask | None:
    """The first ask of the group that has waited long enough and may reserve another node."""
    for ask in group.asks.values():
        if not ask.required_node and ask.created + delay > now:
            return None
        if ask.reservations < ask.pending and ask.reserve_from <= now:
            return ask
    return None


def _next_candidate(group: AskGroup, delay: int) -> tuple[Ask, int] | None:
    """The ask of the group that may reserve first, and from when on (ns)."""
    first: tuple[Ask, int] | None = None
    for ask in group.asks.values():
        if ask.reservations < ask.pending:
            old_enough = ask.created if ask.required_node else ask.created + delay
            when = max(old_enough, ask.reserve_from)
            if first is None or when < first[1]:
                first = ask, when
            if when == old_enough:  # all that follow are younger
                break
    return first


def reserve(partition: Partition, ask: Ask, node: Node, now: int) -> Reservation:
    """Keep the node for the ask.

    One that requires this node pushes out the reservation of one that does not, and waits behind
    others that do.
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
    # from the next round on: there may be room, under a quota that has none, or others may have to go
    partition.waiting.retries.add(reservation)
    if ask.group is not None:
        ask.group.reserved += 1
        partition.waiting.refresh_group(ask.group)
    partition.rm.observer.reserved(node, ask)
    return reservation


def make(kernel: Kernel, ask: Ask, node: Node) -> None:
    """Reserve the node for the ask, not for ever (S6)."""
    partition = ask.app.partition
    reserve(partition, ask, node, kernel.now)
    kernel.tally.reservations += 1
    if partition.rm.all_states:  # X43
        kernel.outbox.container_state(ask, _RESERVED, f"node {node.node_id} is reserved for it")
    if partition.waiting.give_up_timer is None:
        _wait_to_give_up(kernel, partition, kernel.now)


def cancel(partition: Partition, reservation: Reservation) -> None:
    """The node is everybody's again."""
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
            group.reservable = True  # it may reserve another; too young ones are found out then
        partition.waiting.refresh_group(group)


def _count_reservation(ask: Ask, more: int) -> None:
    """Its leaf knows which of its applications have nodes reserved."""
    reserving = ask.app.queue.reserving
    count = reserving.get(ask.app, 0) + more
    if count:
        reserving[ask.app] = count
    else:
        del reserving[ask.app]


def cancel_all_of(partition: Partition, ask: Ask) -> None:
    """The ask is over or changed: what it reserved is free again."""
    if ask.reservations:
        for reservation in [r for r in ask.app.reservations if r.ask is ask]:
            cancel(partition, reservation)


def wait_again(kernel: Kernel, ask: Ask) -> None:
    """The ask is new, or was away (parked, set aside) and waits again, in its old place."""
    ask.app.partition.waiting.add(ask)
    group = ask.group
    if group is not None and group.reserve_timer is None and not group.reservable:
        wait_to_reserve(kernel, group)
    if ask.terms.allow_preempt_other:
        preemption_queue.enter(kernel, ask)


def wait_to_reserve(kernel: Kernel, group: AskGroup) -> None:
    """Look again at the group when its first ask that may reserve has waited long enough."""
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


def _wait_to_give_up(kernel: Kernel, partition: Partition, made: int) -> None:
    """Look again when what was reserved then has been kept for long enough."""
    left = made + kernel.options.reservation_give_up - kernel.now
    partition.waiting.give_up_timer = kernel.timers.start(
        kernel.now, left, "partition.give_up", partition
    )


def give_up_old_ones(kernel: Kernel, partition: Partition) -> None:
    """S6: nodes that were kept in vain for long enough. Their asks wait as long before they reserve
    again. Only an ask that can run nowhere else keeps its node.

    All are kept for the same time, so they come up in the order in which they were made.
    """
    partition.waiting.give_up_timer = None
    delay = kernel.options.reservation_give_up
    old: list[Reservation] = []
    for each in partition.reservations:
        if each.ask.required_node:
            continue
        if each.made + delay > kernel.now:
            _wait_to_give_up(kernel, partition, each.made)
            break
        old.append(each)
    for each in old:
        ask = each.ask
        ask.reserve_from = kernel.now + delay
        cancel(partition, each)
        if ask.group is not None:
            wait_to_reserve(kernel, ask.group)
