"""Preemption attempts that found no victims, as data.

A failed attempt of one ask counts for every ask of its leaf with the same shape. The leaf stops
announcing that these asks may preempt until a retry makes sense, as ``preemption.failed_preemptions``
decides. A gang that is placed in one step preempts as a whole, and a failed attempt counts for it alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from quadriga.base.times import SECOND
from quadriga.core.resources.demand import EVERY_BIT

if TYPE_CHECKING:
    from quadriga.core.model.timer import Timer
    from quadriga.core.resources.shapes import Shape

#: shortest time between two preemption attempts (ns)
RETRY: Final = 15 * SECOND


class HasRetries(Protocol):
    """A leaf: what it announces, and the attempts that it repeats when it gets resources back."""

    blocked: int
    above_guarantee: dict[FailedPreemption, None]

    def block(self, bits: int) -> None: ...

    def unblock(self, bits: int) -> None: ...


@dataclass(slots=True, eq=False)
class FailedPreemption:
    """An attempt in ``leaf`` that found no victims for an ask of ``shape`` at ``since`` (ns).

    ``priority`` is that of the ask; an ask of a higher priority may succeed. ``why`` is the reason as
    ``explain`` gives it.
    """

    leaf: HasRetries
    shape: Shape
    priority: int
    since: int
    why: str

    @property
    def retry_at(self) -> int:
        """The earliest instant of a retry (ns)."""
        return self.since + RETRY

    @property
    def key(self) -> tuple[HasRetries, object]:
        """What the attempt counts for."""
        return self.leaf, self.shape

    def hold(self) -> None:
        """The leaf no longer announces that asks of this shape may preempt."""
        self.leaf.block(self.shape.preempt)

    def let_go(self) -> None:
        """The leaf announces it again."""
        if self.leaf.blocked != EVERY_BIT:
            self.leaf.unblock(self.shape.preempt)


class FailedPreemptions:
    """The failed preemption attempts of a partition."""

    __slots__ = (
        "_until_change",
        "_version",
        "by_shape",
        "candidates",
        "gangs_tried",
        "next_retry",
        "retriable",
        "timer",
        "tried_at",
    )

    def __init__(self) -> None:
        #: by leaf, and the shape of the asks or the gang that the attempt counts for
        self.by_shape: dict[tuple[HasRetries, object], FailedPreemption] = {}
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
        #: the number of gangs for which victims were searched, by leaf, at the instant ``tried_at`` (ns)
        self.gangs_tried: dict[HasRetries, int] = {}
        self.tried_at = -1
        #: what may be evicted, for the preemption for guarantees (``preemption.known_candidates``); ``None``
        #: between two calls of the scheduler, and when a node's reservation was cancelled
        self.candidates: object = None

    def count_gang(self, leaf: HasRetries, now: int) -> int:
        """Count a search for victims for a gang of the leaf; return the number of those at this instant."""
        if self.tried_at != now:
            self.tried_at = now
            self.gangs_tried.clear()
        tries = self.gangs_tried[leaf] = self.gangs_tried.get(leaf, 0) + 1
        return tries

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
        before = self.by_shape.get(failed.key)
        if before is not None:
            self.remove(before)
        self.by_shape[failed.key] = failed
        failed.hold()

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
        """Those that the attempt counts for may preempt again."""
        self.forget(failed)
        failed.let_go()

    def forget(self, failed: FailedPreemption) -> None:
        """The attempt counts for nothing any more."""
        del self.by_shape[failed.key]
        self.retriable.pop(failed, None)
        self._until_change.pop(failed, None)
        failed.leaf.above_guarantee.pop(failed, None)

    def remove_shape(self, shape: Shape) -> None:
        """Remove the attempts of a shape that no ask has any more."""
        for failed in [each for key, each in self.by_shape.items() if key[1] is shape]:
            self.remove(failed)
