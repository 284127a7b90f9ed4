"""Preemption attempts that found no victims, as data.

A failed attempt of one ask counts for every ask of its leaf with the same shape. The leaf stops
announcing that these asks may preempt until a retry makes sense, as ``preemption.failed_preemptions``
decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.core.model.demand import EVERY_BIT
from quadriga.fsm.table import SECOND

if TYPE_CHECKING:
    from quadriga.core.model.queue import Queue
    from quadriga.core.model.shapes import Shape
    from quadriga.core.model.timer import Timer

__all__ = ["RETRY", "FailedPreemption", "FailedPreemptions"]

#: shortest time between two preemption attempts (ns)
RETRY: Final = 15 * SECOND


class FailedPreemption:
    """An attempt in ``leaf`` that found no victims for an ask of ``shape`` at ``since`` (ns).

    ``priority`` is that of the ask; an ask of a higher priority may succeed. ``why`` is the reason as
    ``explain`` gives it.
    """

    __slots__ = ("leaf", "priority", "shape", "since", "why")

    def __init__(self, leaf: Queue, shape: Shape, priority: int, since: int, why: str) -> None:
        self.leaf = leaf
        self.shape = shape
        self.priority = priority
        self.since = since
        self.why = why

    @property
    def retry_at(self) -> int:
        """The earliest instant of a retry (ns)."""
        return self.since + RETRY


class FailedPreemptions:
    """The failed preemption attempts of a partition."""

    __slots__ = ("_until_change", "_version", "by_shape", "next_retry", "retriable", "timer")

    def __init__(self) -> None:
        self.by_shape: dict[tuple[Queue, Shape], FailedPreemption] = {}
        #: attempts that are repeated at ``retry_at``, because their condition has occurred
        self.retriable: dict[FailedPreemption, None] = {}
        #: the earliest ``retry_at`` among these (ns)
        self.next_retry = 0
        #: fires at ``next_retry``
        self.timer: Timer | None = None
        #: attempts that any change in the partition makes retriable, and the version of the partition
        #: when the last of them failed
        self._until_change: dict[FailedPreemption, None] = {}
        self._version = 0

    def add_until_change(self, failed: FailedPreemption, version: int) -> None:
        """Add an attempt to retry after any change in the partition since ``version``."""
        self.add(failed)
        self._until_change[failed] = None
        self._version = version

    def add_until_returned(self, failed: FailedPreemption) -> None:
        """Add an attempt to retry after the leaf got resources back."""
        self.add(failed)
        failed.leaf.above_guarantee[failed] = None

    def add(self, failed: FailedPreemption) -> None:
        """Add an attempt to retry after a new configuration or a change of the capacity."""
        before = self.by_shape.get((failed.leaf, failed.shape))
        if before is not None:
            self.remove(before)
        self.by_shape[failed.leaf, failed.shape] = failed
        failed.leaf.block(failed.shape.preempt)

    def note_version(self, version: int) -> None:
        """Allow retries of the attempts that wait for a change, if the version is another one."""
        if self._until_change and version != self._version:
            for failed in self._until_change:
                self.allow_retry(failed)
            self._until_change.clear()

    def allow_retry(self, failed: FailedPreemption) -> None:
        """The condition of the attempt has occurred."""
        when = failed.retry_at
        self.next_retry = min(self.next_retry, when) if self.retriable else when
        self.retriable[failed] = None

    def allow_all_retries(self) -> None:
        """The guarantees, the quotas or the nodes have changed."""
        for failed in self.by_shape.values():
            self.allow_retry(failed)

    def remove(self, failed: FailedPreemption) -> None:
        """The leaf announces again that asks of this shape may preempt."""
        del self.by_shape[failed.leaf, failed.shape]
        self.retriable.pop(failed, None)
        self._until_change.pop(failed, None)
        failed.leaf.above_guarantee.pop(failed, None)
        if failed.leaf.blocked != EVERY_BIT:
            failed.leaf.unblock(failed.shape.preempt)

    def remove_shape(self, shape: Shape) -> None:
        """Remove the attempts of a shape that no ask has any more."""
        for failed in [failed for failed in self.by_shape.values() if failed.shape is shape]:
            self.remove(failed)
