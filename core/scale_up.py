"""The hint to add nodes: asks that only the lack of nodes holds back (5.11, G32, X27)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core import gang, limits
from quadriga.core.kernel import Kernel
from quadriga.core.model.queue import LeafQueue, fits_headroom
from quadriga.core.order.ranking import EVERY_BIT, Level
from quadriga.si import UpdateContainerSchedulingStateRequest

if TYPE_CHECKING:
    from quadriga.core.model.account import Ledger
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.partition import Partition

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
        for ask in sorted(app.asks.values(), key=lambda a: (-a.priority, a.seq)):
            if not looked_at(partition, ask):
                continue
            if _has_a_placeholder(partition, ask):  # and needs no more quota than that (X27)
                _hint(kernel, partition, ask)
                continue
            rooms = [room, *_left_to(app, granted)]
            if not all(fits_headroom(each, ask.vector) for each in rooms):
                continue
            for each in rooms:
                for place, value in enumerate(ask.vector):
                    if place in each:
                        each[place] -= value
            _hint(kernel, partition, ask)


def _left_to(app: Application, granted: Granted) -> list[dict[int, int]]:
    """What the limits of its user and group still leave, after what has been counted so far."""
    for ledger in app.limiting:
        if ledger not in granted:
            granted[ledger] = ledger.headroom()
    return [granted[ledger] for ledger in app.limiting]


def _has_a_placeholder(partition: Partition, ask: Ask) -> bool:
    """Whether it could take over a placeholder, if only some node would do."""
    group = ask.app.task_groups.get(ask.task_group)
    return ask in partition.aside and not ask.placeholder and bool(group and group.available)


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
    if group is None or ask.seq > partition.exhausted_at or _is_shut(ask.app):
        return False
    if limits.full(ask.app) is not None:
        return False
    if ask.placeholder and gang.gate(ask.app) is not None:
        return False
    return bool(group.bits & group.shape.bits)


def _is_shut(level: Level | None) -> bool:
    """Whether nobody looks at the application: it waits for its turn or for a place."""
    while level is not None:
        if level.blocked == EVERY_BIT:
            return True
        level = level.above
    return False
