"""Attempts to preempt that led to nothing, and when it makes sense to try again (5.9).

An ask may try every 15 s. What one ask has tried in vain, all asks of its leaf that look like it would
try in vain as well, and again, until something has changed: so the leaf no longer passes on that want,
and nobody comes by. What changes depends on why nobody was found. A leaf that would be above its
guarantee has to get something back; if nothing is guaranteed, the configuration has to say something
else; in all other cases any change in the partition may make the difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.core.model.demand import EVERY_BIT
from quadriga.fsm.table import SECOND

if TYPE_CHECKING:
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.model.shapes import Shape
    from quadriga.core.model.timer import Timer
    from quadriga.core.runtime.kernel import Kernel

__all__ = ["RETRY", "Vain", "VainAttempts", "reopen", "watch"]

#: ns between two attempts
RETRY: Final = 15 * SECOND


class Vain:
    """In ``leaf`` nobody was found for an ask of this shape at the instant ``since`` (ns).

    ``priority`` is that of the ask: one of a higher priority may find somebody.
    """

    __slots__ = ("leaf", "priority", "shape", "since", "why")

    def __init__(self, leaf: Queue, shape: Shape, priority: int, since: int, why: str) -> None:
        self.leaf = leaf
        self.shape = shape
        self.priority = priority
        self.since = since
        self.why = why


class VainAttempts:
    """All of a partition. ``again`` are those that may be tried again when their time has come."""

    __slots__ = ("_unchanged", "_version", "again", "known", "next", "timer")

    def __init__(self) -> None:
        self.known: dict[tuple[Queue, Shape], Vain] = {}
        self.again: dict[Vain, None] = {}
        #: the instant of the first of these
        self.next = 0
        self.timer: Timer | None = None
        #: those that wait for any change since the partition's changes had this number
        self._unchanged: dict[Vain, None] = {}
        self._version = 0

    def until_any_change(self, vain: Vain, version: int) -> None:
        """Nobody was found; any change may matter."""
        self._note(vain)
        self._unchanged[vain] = None
        self._version = version

    def until_returned(self, vain: Vain) -> None:
        """Its leaf would be above its guarantee, until it gets something back."""
        self._note(vain)
        vain.leaf.above_guarantee[vain] = None

    def until_configured(self, vain: Vain) -> None:
        """Nothing is guaranteed."""
        self._note(vain)

    def _note(self, vain: Vain) -> None:
        before = self.known.get((vain.leaf, vain.shape))
        if before is not None:
            self.drop(before)
        self.known[vain.leaf, vain.shape] = vain
        vain.leaf.block(vain.shape.preempt)

    def changed(self, version: int) -> None:
        """So many changes there have been by now."""
        if self._unchanged and version != self._version:
            for vain in self._unchanged:
                self.may_try_again(vain)
            self._unchanged.clear()

    def may_try_again(self, vain: Vain) -> None:
        """What it waited for has happened."""
        when = vain.since + RETRY
        self.next = min(self.next, when) if self.again else when
        self.again[vain] = None

    def drop(self, vain: Vain) -> None:
        """The leaf passes the want on again."""
        del self.known[vain.leaf, vain.shape]
        self.again.pop(vain, None)
        self._unchanged.pop(vain, None)
        vain.leaf.above_guarantee.pop(vain, None)
        if vain.leaf.blocked != EVERY_BIT:
            vain.leaf.unblock(vain.shape.preempt)

    def all_may_try_again(self) -> None:
        """Guarantees, quotas or the nodes are others now."""
        for vain in self.known.values():
            self.may_try_again(vain)

    def forget(self, shape: Shape) -> None:
        """Nobody uses the shape any more."""
        for vain in [vain for vain in self.known.values() if vain.shape is shape]:
            self.drop(vain)


def reopen(partition: Partition, now: int) -> None:
    """Let those try again whose time has come and for whom something has changed."""
    attempts = partition.vain
    attempts.changed(partition.version)
    if attempts.again and attempts.next <= now:
        for vain in [vain for vain in attempts.again if vain.since + RETRY <= now]:
            attempts.drop(vain)
        attempts.next = min((vain.since + RETRY for vain in attempts.again), default=0)


def watch(kernel: Kernel, partition: Partition) -> None:
    """Have the drivers come back when somebody may try again."""
    attempts = partition.vain
    attempts.changed(partition.version)
    when = max(attempts.next, kernel.now) if attempts.again else None
    if attempts.timer is not None and attempts.timer.when != when:
        attempts.timer.cancel()
        attempts.timer = None
    if when is not None and attempts.timer is None:
        left = when - kernel.now
        attempts.timer = kernel.timers.start(kernel.now, left, "partition.preempt", partition)
