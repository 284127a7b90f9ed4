"""The hint to add nodes: asks that only the lack of nodes holds back (5.11, G32, X27)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from quadriga.core.model.demand import EVERY_BIT, Level
from quadriga.core.model.queue import LeafQueue
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.scheduling import gang, limits
from quadriga.si import UpdateContainerSchedulingStateRequest

if TYPE_CHECKING:
    from quadriga.core.model.account import Ledger
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue

__all__ = ["begin", "go_on", "inspect", "looked_at", "watch"]

#: what each limit leaves, by type, while asks are counted against it
Granted = dict["Ledger", dict[int, int]]
#: the asks of one leaf that the resource manager has not been told of, by application, with what
#: puts them in order
Fresh = dict["Application", list[tuple[int, int, "Ask"]]]

_FAILED = UpdateContainerSchedulingStateRequest.FAILED
_REASON = "request is waiting for cluster resources become available"


def watch(kernel: Kernel, partition: Partition) -> None:
    """A round found nothing: look at what is left a second from now, unless that is planned or under
    way, or the last look was at the same."""
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
    """Tell the resource manager, once for each, of asks that would fit but for the nodes.

    They are counted against what the quotas leave, in the order in which they would be served, so
    no more is reported than the quotas would let run.
    """
    begin(kernel, partition)
    go_on(partition)


def begin(kernel: Kernel, partition: Partition) -> None:
    """As ``inspect``, which ``go_on`` then does."""
    partition.hints.timer = None
    partition.hints.inspected_epoch = partition.waiting.demand_epoch
    partition.hints.inspection = _look(kernel, partition) if partition.hints.asks else None


def go_on(partition: Partition, most: int = -1) -> None:
    """Look at the next asks of the pass, at most ``most`` of them (negative: all)."""
    look = partition.hints.inspection
    if look is None or not most:
        return
    for _ in look:
        most -= 1
        if not most:
            return
    partition.hints.inspection = None


def _look(kernel: Kernel, partition: Partition) -> Iterator[None]:
    """The asks of the partition. It stops after each, and anything may happen to them meanwhile: so it
    goes over copies, and an ask that has been served or taken back is passed over."""
    fresh: dict[Queue, Fresh] = {}
    for ask in list(partition.hints.asks):
        # in the order in which they would be served; usually they have come in this order
        row = fresh.setdefault(ask.app.queue, {}).setdefault(ask.app, [])
        row.append((-ask.priority, ask.seq, ask))
        yield
    granted: Granted = {}
    for leaf in list(partition.leaves()):
        if leaf in fresh:
            yield from _look_at_leaf(kernel, partition, leaf, fresh[leaf], granted)


def _look_at_leaf(
    kernel: Kernel, partition: Partition, leaf: LeafQueue, fresh: Fresh, granted: Granted
) -> Iterator[None]:
    room = leaf.headroom(with_root=False)  # nodes are just what is missing (5.3)
    counts = bool(room or leaf.limited)  # else there is nothing to count against
    apps = leaf.apps.values() if counts else fresh
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
                yield from _look_at_app(kernel, partition, app, tried, rooms)
                continue
        for _, _, ask in sorted(fresh.get(app, ())):
            if _is_among(partition, ask, tried):
                _hint(kernel, partition, ask)
            yield


def _take_all(rooms: list[dict[int, int]], groups: Iterable[AskGroup], until: int) -> bool:
    """Take all asks of these groups that came up to then, if there is as much; most times there is,
    and nobody has to be looked at one by one."""
    total: dict[int, int] = {}
    for group in groups:
        asks = group.asks
        last = next(reversed(asks))
        number = len(asks) if last <= until else sum(seq <= until for seq in asks)
        for index, value in group.shape.need:
            total[index] = total.get(index, 0) + number * value
    return _take(rooms, total)


def _look_at_app(
    kernel: Kernel,
    partition: Partition,
    app: Application,
    groups: Iterable[AskGroup],
    rooms: list[dict[int, int]],
) -> Iterator[None]:
    """Ask by ask in order, of each group as many as what is left has room for: it only gets less."""
    heads: list[tuple[int, int, Ask, Iterator[Ask]]] = []
    for group in groups:
        _put(partition, heads, iter(list(group.asks.values())))
    if partition.waiting.deferred_asks or partition.waiting.stranded:
        for ask in app.asks.values():
            if _is_away(partition, ask):
                _put(partition, heads, iter((ask,)))
    while heads:
        _, _, ask, more = heappop(heads)
        yield
        if ask.group is None and not _is_away(partition, ask):  # it waits no longer
            _put(partition, heads, more)
            continue
        # with a placeholder it needs no more quota than that (X27)
        if _has_a_placeholder(partition, ask) or _take(rooms, _need(ask)):
            _hint(kernel, partition, ask)
            _put(partition, heads, more)


def _is_away(partition: Partition, ask: Ask) -> bool:
    """Whether it waits and is in no group: a round has tried it."""
    return ask in partition.waiting.deferred_asks or ask.planned in partition.waiting.stranded


def _need(ask: Ask) -> dict[int, int]:
    return {index: value for index, value in enumerate(ask.vector) if value}


def _put(
    partition: Partition, heads: list[tuple[int, int, Ask, Iterator[Ask]]], more: Iterator[Ask]
) -> None:
    ask = next(more, None)
    if ask is not None and (ask.seq <= partition.waiting.exhausted_at or ask.group is None):
        heappush(heads, (-ask.priority, ask.seq, ask, more))


def _take(rooms: list[dict[int, int]], need: dict[int, int]) -> bool:
    """Take it from what is left everywhere, if there is as much."""
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
    """What the limits of its user and group still leave, after what has been counted so far."""
    for ledger in app.limiting:
        if ledger not in granted:
            granted[ledger] = ledger.headroom()
    return [granted[ledger] for ledger in app.limiting]


def _has_a_placeholder(partition: Partition, ask: Ask) -> bool:
    """Whether it could take over a placeholder, or has done so, if only some node would do."""
    if ask.planned is not None and ask.planned in partition.waiting.stranded:
        return True
    if ask.group is not None or ask not in partition.waiting.deferred_asks:
        return False
    group = ask.app.gang.task_groups.get(ask.task_group)
    return not ask.placeholder and bool(group and group.available)


def _hint(kernel: Kernel, partition: Partition, ask: Ask) -> None:
    if not ask.hinted and not ask.required_node:
        ask.hinted = True
        partition.hints.asks.pop(ask, None)
        kernel.outbox.container_state(ask, _FAILED, _REASON)


def looked_at(partition: Partition, ask: Ask) -> bool:
    """Whether a round has tried the ask and found nothing. One whose replacement fits nowhere was
    tried as well (X27); one that is held, or waits for a placeholder, was not."""
    return _is_among(partition, ask, _tried(ask.app))


def _is_among(partition: Partition, ask: Ask, tried: dict[AskGroup, None]) -> bool:
    """Whether the ask, if it is in one of these groups, was tried."""
    if _is_away(partition, ask):
        return True
    return ask.group in tried and ask.seq <= partition.waiting.exhausted_at


def _tried(app: Application) -> dict[AskGroup, None]:
    """The groups of the application that a round looks at."""
    if _is_shut(app) or limits.full(app) is not None:
        return {}
    waiting = [group for group in app.groups.values() if group.demand & group.shape.bits]
    if any(group.placeholder for group in waiting) and gang.gate(app) is not None:
        waiting = [group for group in waiting if not group.placeholder]
    return dict.fromkeys(waiting)


def _is_shut(level: Level | None) -> bool:
    """Return True if the application is not tried: it waits for its turn or for a slot under
    maxapplications."""
    while level is not None:
        if level.blocked == EVERY_BIT:
            return True
        level = level.above
    return False
