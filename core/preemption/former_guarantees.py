"""Guarantees as YuniKorn 1.5 compares them with usage (5.9), for comparisons with its core.

A queue is protected up to its bound: for each type the smallest amount guaranteed to it or to a queue
above, and never more than the smallest quota on its path. A type without a guarantee is bounded by
quotas alone, root's quota being the sum of all nodes. So a queue without a guarantee loses nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.preemption.queue_snapshot import (
    ABOVE,
    AT_MAX,
    NO_GUARANTEE,
    QueueSnapshot,
    Refusal,
    Snapshots,
    least,
)

if TYPE_CHECKING:
    from quadriga.core.model.queue import Queue
    from quadriga.core.resources.vectors import Vector


class _FormerSnapshot(QueueSnapshot):
    """``lowest`` is the smallest guarantee on the path, ``defined`` the smaller of it and the smallest
    quota. ``bound`` has the same for every type."""

    __slots__ = ("defined", "lowest")

    def __init__(self, queue: Queue, upper: _FormerSnapshot | None) -> None:
        own = tuple(queue.guaranteed_by_type.items())
        self.lowest: dict[int, int] = least(upper.lowest if upper else {}, own)
        super().__init__(queue, upper)
        self.defined = least(self.lowest, tuple(self.most.items()))
        self.bound = [max(0, self.defined.get(at, 0)) for at in range(len(self.used))]
        self.guards = (self,)

    def over(self, vector: Vector) -> list[int]:
        over = [max(0, used - bound) for used, bound in zip(self.used, self.bound, strict=True)]
        for index, amount in enumerate(vector):
            over[index] = max(0, self.used[index] + amount - self.bound[index])
        return over

    @property
    def kept(self) -> set[int]:
        return set()

    def keeps_guarantee(self, evicted: list[int], vector: Vector) -> bool:
        """Whether the queue is above its bound for some type without the evicted amounts, or below its
        guarantee for none."""
        rest = list(map(int.__sub__, self.used, evicted))
        if any(map(int.__gt__, rest, self.bound)):
            return True
        return all(rest[index] >= amount for index, amount in self.lowest.items())


class FormerSnapshots(Snapshots):
    """Snapshots that compare as YuniKorn 1.5 does."""

    __slots__ = ()

    def _make(self, queue: Queue, upper: QueueSnapshot | None) -> QueueSnapshot:
        assert upper is None or isinstance(upper, _FormerSnapshot)
        return _FormerSnapshot(queue, upper)

    def refusal(self, vector: Vector) -> Refusal | None:
        leaf = self.of(self.own)
        assert isinstance(leaf, _FormerSnapshot)
        if not leaf.lowest:
            return Refusal(NO_GUARANTEE, self.own, [])
        if leaf.full_for(vector):
            return Refusal(AT_MAX, self.own, [])
        over = leaf.over(vector)
        return Refusal(ABOVE, self.own, over) if any(over) else None

    def victims_in(self, leaf: Queue) -> QueueSnapshot | None:
        found = self.of(leaf)
        assert isinstance(found, _FormerSnapshot)
        allocated = leaf.allocated
        if all(allocated[index] <= max(0, most) for index, most in found.defined.items()):
            return None
        return found
