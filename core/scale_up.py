"""The hint to add nodes: asks that only the lack of nodes holds back (5.11, G32, X27)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from quadriga.core import gang, limits
from quadriga.core.kernel import Kernel
from quadriga.core.model.queue import LeafQueue, fits_headroom
from quadriga.core.order.ranking import EVERY_BIT, Level
from quadriga.si import UpdateContainerSchedulingStateRequest

if TYPE_CHECKING:
    from quadriga.core.model.account import Ledger
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.resources import Vector

__all__ = ["inspect", "looked_at", "watch"]

#: what each limit leaves, by type, while asks are counted against it
Granted = dict["Ledger", dict[int, int]]

_FAILED = UpdateContainerSchedulingStateRequest.FAILED
_REASON = "request is waiting for cluster resources become available"


def watch(kernel: Kernel, partition: Partition) -> None:
    """A round found nothing: look at what is left a second from now, unless that is planned, or
    the last look was at the same."""
    if partition.news == partition.inspected:
        return
    if partition.unhinted and partition.inspect_timer is None:
        partition.inspect_timer = kernel.timers.start(
            kernel.now, kernel.options.inspect_interval, "partition.inspect", partition
        )


def inspect(kernel: Kernel, partition: Partition) -> None:
    """Tell the resource manager, once for each, of asks that would fit but for the nodes.

    They are counted against what the quotas leave, in the order in which they would be served, so
    no more is reported than the quotas would let run.
    """
    partition.inspect_timer = None
    partition.inspected = partition.news
    if not partition.unhinted:
        return
    concerned = {ask.app.queue.path for ask in partition.unhinted}
    granted: Granted = {}
    for leaf in partition.leaves():
        if leaf.path in concerned:
            _inspect_leaf(kernel, partition, leaf, granted)


def _inspect_leaf(kernel: Kernel, partition: Partition, leaf: LeafQueue, granted: Granted) -> None:
    room = leaf.headroom(with_root=False)  # nodes are just what is missing (5.3)
    if not room and not leaf.limited:  # nothing to count against, so nobody else matters
        waiting = [ask for ask in partition.unhinted if ask.app.queue is leaf]
        for ask in sorted(
            waiting, key=lambda a: (a.app.rank or a.app.make_rank(), -a.priority, a.seq)
        ):
            if looked_at(partition, ask):
                _hint(kernel, partition, ask)
        return
    for app in sorted(leaf.apps.values(), key=lambda a: a.rank or a.make_rank()):
        if app.asks:
            _inspect_app(kernel, partition, app, [room, *_left_to(app, granted)])


def _inspect_app(
    kernel: Kernel, partition: Partition, app: Application, rooms: list[dict[int, int]]
) -> None:
    """Ask by ask in order, of each group as many as what is left has room for: it only gets less."""
    heads: list[tuple[int, int, Ask, Iterator[Ask]]] = []
    for source in _sources(partition, app):
        _put(partition, heads, iter(source))
    while heads:
        _, _, ask, more = heappop(heads)
        # with a placeholder it needs no more quota than that (X27)
        if _has_a_placeholder(partition, ask) or _take(rooms, ask.vector):
            _hint(kernel, partition, ask)
            _put(partition, heads, more)


def _sources(partition: Partition, app: Application) -> Iterator[Iterable[Ask]]:
    """The asks that a round looks at, alike ones together, each in order of arrival."""
    for group in app.groups.values():
        if _is_tried(group):
            yield group.asks.values()
    if partition.aside:
        for ask in app.asks.values():
            if ask in partition.aside:
                yield (ask,)


def _put(
    partition: Partition, heads: list[tuple[int, int, Ask, Iterator[Ask]]], more: Iterator[Ask]
) -> None:
    ask = next(more, None)
    if ask is not None and (ask.seq <= partition.exhausted_at or ask.group is None):
        heappush(heads, (-ask.priority, ask.seq, ask, more))


def _take(rooms: list[dict[int, int]], vector: Vector) -> bool:
    """Take it from what is left everywhere, if there is as much."""
    for room in rooms:
        if not fits_headroom(room, vector):
            return False
    for room in rooms:
        for place in room:
            if place < len(vector):
                room[place] -= vector[place]
    return True


def _left_to(app: Application, granted: Granted) -> list[dict[int, int]]:
    """What the limits of its user and group still leave, after what has been counted so far."""
    for ledger in app.limiting:
        if ledger not in granted:
            granted[ledger] = ledger.headroom()
    return [granted[ledger] for ledger in app.limiting]


def _has_a_placeholder(partition: Partition, ask: Ask) -> bool:
    """Whether it could take over a placeholder, if only some node would do."""
    if ask.group is not None or ask not in partition.aside:
        return False
    group = ask.app.task_groups.get(ask.task_group)
    return not ask.placeholder and bool(group and group.available)


def _hint(kernel: Kernel, partition: Partition, ask: Ask) -> None:
    if not ask.hinted and not ask.required_node:
        ask.hinted = True
        partition.unhinted.pop(ask, None)
        kernel.outbox.container_state(ask, _FAILED, _REASON)


def looked_at(partition: Partition, ask: Ask) -> bool:
    """Whether a round has tried the ask and found nothing. One whose replacement fits nowhere was
    tried as well (X27); one that is held, or waits for a placeholder, was not."""
    if ask in partition.aside:
        return True
    group = ask.group
    return group is not None and ask.seq <= partition.exhausted_at and _is_tried(group)


def _is_tried(group: AskGroup) -> bool:
    """Whether rounds look at the group at all."""
    app = group.app
    if not group.bits & group.shape.bits or _is_shut(app) or limits.full(app) is not None:
        return False
    return not group.placeholder or gang.gate(app) is None


def _is_shut(level: Level | None) -> bool:
    """Whether nobody looks at the application: it waits for its turn or for a place."""
    while level is not None:
        if level.blocked == EVERY_BIT:
            return True
        level = level.above
    return False
