"""Scale-up hints: asks that wait only because no node has room (5.11, G32, X27)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from quadriga.core.model.gang import NODES, PREDICATES
from quadriga.core.model.queue import LeafQueue
from quadriga.core.resources.demand import EVERY_BIT, Level
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.steps import gang, limits
from quadriga.si import UpdateContainerSchedulingStateRequest

if TYPE_CHECKING:
    from quadriga.core.model.account import Ledger
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue

#: the headroom of each limit, by type, while asks are counted against it
Granted = dict["Ledger", dict[int, int]]
#: the asks of one leaf that were not reported yet, by application, each with its sort key
Unreported = dict["Application", list[tuple[int, int, "Ask"]]]

_FAILED = UpdateContainerSchedulingStateRequest.FAILED
_REASON = "request is waiting for cluster resources become available"


def watch(kernel: Kernel, partition: Partition) -> None:
    """Start the timer of an inspection after a round that decided nothing.

    Nothing is started if one is planned or under way, or if nothing has changed since the last one.
    """
    if (
        partition.waiting.demand_epoch == partition.hints.inspected_epoch
        or partition.hints.inspection is not None
    ):
        return
    if partition.hints.asks and partition.hints.timer is None:
        partition.hints.timer = kernel.timers.start(
            kernel.now, kernel.options.inspect_interval, "partition.inspect", partition
        )


def inspect(kernel: Kernel, partition: Partition) -> None:
    """Report each ask that waits only for a node once to the resource manager.

    The asks are counted against the headroom of quotas, in the order in which they would be served, so
    no more asks are reported than the quotas allow to run.
    """
    start_inspection(kernel, partition)
    continue_inspection(partition)


def start_inspection(kernel: Kernel, partition: Partition) -> None:
    """Start an inspection, which ``continue_inspection`` carries out."""
    partition.hints.timer = None
    partition.hints.inspected_epoch = partition.waiting.demand_epoch
    partition.hints.inspection = _inspection(kernel, partition) if partition.hints.asks else None


def continue_inspection(partition: Partition, most: int = -1) -> None:
    """Inspect at most ``most`` of the remaining asks (negative: all)."""
    look = partition.hints.inspection
    if look is None or not most:
        return
    for _ in look:
        most -= 1
        if not most:
            return
    partition.hints.inspection = None


def _inspection(kernel: Kernel, partition: Partition) -> Iterator[None]:
    """Inspect the asks of the partition, and yield after each.

    Asks may change between two steps. So the inspection uses copies, and skips an ask that has been
    allocated or released.
    """
    unreported: dict[Queue, Unreported] = {}
    for ask in list(partition.hints.asks):
        # sorted in the order in which they would be served, in which they usually arrived
        row = unreported.setdefault(ask.app.queue, {}).setdefault(ask.app, [])
        row.append((-ask.priority, ask.seq, ask))
        yield
    granted: Granted = {}
    for leaf in list(partition.leaves()):
        if leaf in unreported:
            yield from _inspect_leaf(kernel, partition, leaf, unreported[leaf], granted)


def _inspect_leaf(
    kernel: Kernel, partition: Partition, leaf: LeafQueue, unreported: Unreported, granted: Granted
) -> Iterator[None]:
    room = leaf.headroom(with_root=False)  # root's max is the capacity of the nodes (5.3)
    counts = bool(room or leaf.limited)  # otherwise no quota or limit applies
    apps = leaf.apps.values() if counts else unreported
    for app in sorted(apps, key=lambda a: a.rank or a.make_rank()):
        if not app.asks:
            continue
        tried = _tried(app)
        if counts:
            rooms = [room, *_left_to(app, granted)]
            if (
                partition.waiting.deferred_asks
                or partition.waiting.stranded
                or not _take_all(rooms, tried, partition.waiting.exhausted_at)
            ):
                yield from _inspect_application(kernel, partition, app, tried, rooms)
                continue
        for _, _, ask in sorted(unreported.get(app, ())):
            if _is_among(partition, ask, tried):
                _hint(kernel, partition, ask)
            yield


def _take_all(rooms: list[dict[int, int]], groups: Iterable[AskGroup], until: int) -> bool:
    """Take the room for all asks of these groups up to sequence number ``until``, if there is enough.

    There usually is, and then the asks need not be inspected one by one.
    """
    total: dict[int, int] = {}
    for group in groups:
        asks = group.asks
        last = next(reversed(asks))
        number = len(asks) if last <= until else sum(seq <= until for seq in asks)
        for index, value in group.shape.need:
            total[index] = total.get(index, 0) + number * value
    return _take(rooms, total)


def _inspect_application(
    kernel: Kernel,
    partition: Partition,
    app: Application,
    groups: Iterable[AskGroup],
    rooms: list[dict[int, int]],
) -> Iterator[None]:
    """Inspect the asks in order. A group ends at the first ask without room: room only shrinks."""
    heads: list[tuple[int, int, Ask, Iterator[Ask]]] = []
    for group in groups:
        _push_next(partition, heads, iter(list(group.asks.values())))
    if partition.waiting.deferred_asks or partition.waiting.stranded:
        for ask in app.asks.values():
            if _is_outside_groups(partition, ask):
                _push_next(partition, heads, iter((ask,)))
    while heads:
        _, _, ask, more = heappop(heads)
        yield
        if ask.group is None and not _is_outside_groups(partition, ask):  # no longer pending
            _push_next(partition, heads, more)
            continue
        # an ask that replaces a placeholder needs no further quota (X27)
        if _has_a_placeholder(partition, ask) or _take(rooms, _need(ask)):
            _hint(kernel, partition, ask)
            _push_next(partition, heads, more)


def _is_outside_groups(partition: Partition, ask: Ask) -> bool:
    """Whether the ask waits outside of a group, because a round has tried it."""
    return ask in partition.waiting.deferred_asks or ask.planned in partition.waiting.stranded


def _need(ask: Ask) -> dict[int, int]:
    return {index: value for index, value in enumerate(ask.kind.vector) if value}


def _push_next(
    partition: Partition, heads: list[tuple[int, int, Ask, Iterator[Ask]]], more: Iterator[Ask]
) -> None:
    ask = next(more, None)
    if ask is not None and (ask.seq <= partition.waiting.exhausted_at or ask.group is None):
        heappush(heads, (-ask.priority, ask.seq, ask, more))


def _take(rooms: list[dict[int, int]], need: dict[int, int]) -> bool:
    """Subtract ``need`` from all ``rooms`` if each of them has enough."""
    for room in rooms:
        for index, value in need.items():
            if value > room.get(index, value):
                return False
    for room in rooms:
        for index, value in need.items():
            if index in room:
                room[index] -= value
    return True


def _left_to(app: Application, granted: Granted) -> list[dict[int, int]]:
    """Return the headroom of the application's limits after the asks counted so far."""
    for ledger in app.limiting:
        if ledger not in granted:
            granted[ledger] = ledger.headroom()
    return [granted[ledger] for ledger in app.limiting]


def _has_a_placeholder(partition: Partition, ask: Ask) -> bool:
    """Whether the ask replaces a placeholder, or could do so, and only lacks a node."""
    if ask.planned is not None and ask.planned in partition.waiting.stranded:
        return True
    if ask.group is not None or ask not in partition.waiting.deferred_asks:
        return False
    group = ask.app.gang.task_groups.get(ask.kind.task_group)
    return not ask.kind.placeholder and bool(group and group.available)


def _hint(kernel: Kernel, partition: Partition, ask: Ask) -> None:
    if not ask.hinted and not ask.required_node:
        ask.hinted = True
        partition.hints.asks.pop(ask, None)
        if ask.group is not None:
            ask.group.skipped_for = ""
        kernel.outbox.container_state(ask, _FAILED, _REASON)


def was_tried(partition: Partition, ask: Ask) -> bool:
    """Whether a round has tried the ask without success.

    An ask whose replacement fits on no node was tried as well (X27). An ask that is held, or waits for
    a placeholder, was not.
    """
    return _is_among(partition, ask, _tried(ask.app))


def _is_among(partition: Partition, ask: Ask, tried: dict[AskGroup, None]) -> bool:
    """Whether the ask was tried, given the groups that were."""
    if _is_outside_groups(partition, ask):
        return True
    return ask.group in tried and ask.seq <= partition.waiting.exhausted_at


def _tried(app: Application) -> dict[AskGroup, None]:
    """Return the groups of the application that a round tries."""
    if _is_blocked(app) or limits.full(app) is not None:
        return {}
    waiting = [
        group
        for group in app.groups.values()
        if group.demand & group.shape.bits or _lacks_nodes_as_a_gang(app, group)
    ]
    if any(group.kind.placeholder for group in waiting) and gang.gate(app) is not None:
        waiting = [group for group in waiting if not group.kind.placeholder]
    if reopened := app.partition.waiting.reopened:
        # a limit stopped them until now, so they have not been tried with nodes
        waiting = [
            group
            for group in waiting
            if not any(
                (ledger, group.shape) in reopened
                or (not app.counted and (ledger, None) in reopened)
                for ledger in app.limiting
            )
        ]
    return dict.fromkeys(waiting)


def _lacks_nodes_as_a_gang(app: Application, group: AskGroup) -> bool:
    """Whether the group waits until nodes have room for all members of its gang, or take them (Q2, G12)."""
    return app.gang.lacks in (NODES, PREDICATES) and app.gang.starts_whole(group)


def _is_blocked(level: Level | None) -> bool:
    """Return True if the application is not tried: it waits for its turn or for a slot under
    maxapplications."""
    while level is not None:
        if level.blocked == EVERY_BIT:
            return True
        level = level.above
    return False
