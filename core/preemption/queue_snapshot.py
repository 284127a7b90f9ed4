"""The usage of queues compared with what is guaranteed to them (5.9).

A queue is protected up to its bound: for each type the smallest amount guaranteed to it or to a queue
above, and never more than the smallest quota on its path. A type without a guarantee is bounded by
quotas alone, root's quota being the sum of all nodes. Usage excludes allocations that are being
preempted already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.model.resources import Vector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quadriga.core.model.queue import Queue

__all__ = ["QueueSnapshot", "Snapshots"]


def _least(upper: dict[int, int], own: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The smaller amount where both have one, else the one that there is (MinPermissive, 5)."""
    both = dict(upper)
    for index, amount in own:
        both[index] = min(amount, both.get(index, amount))
    return both


class QueueSnapshot:
    """One queue: its bound, and its usage when the snapshot was made.

    ``guaranteed`` and ``most`` are the smallest guarantee and quota on its path, ``defined`` the
    smaller of both, by index of the type. ``bound`` and ``used`` have every type.
    """

    __slots__ = ("bound", "defined", "guaranteed", "most", "queue", "used")

    def __init__(self, queue: Queue, upper: QueueSnapshot | None) -> None:
        self.queue = queue
        own = queue.guaranteed_by_type.items()
        self.guaranteed: dict[int, int] = _least(upper.guaranteed if upper else {}, own)
        self.most: dict[int, int] = _least(upper.most if upper else {}, queue.limits)
        self.defined = _least(self.guaranteed, self.most.items())
        self.bound = [max(0, self.defined.get(at, 0)) for at in range(len(queue.allocated))]
        self.used = [
            amount - going for amount, going in zip(queue.allocated, queue.preempting, strict=True)
        ]

    def excess(self, more: Vector = ()) -> list[int]:
        """How much it would be above its bound, by type, with ``more`` in use."""
        over = [max(0, used - bound) for used, bound in zip(self.used, self.bound, strict=True)]
        for index, amount in enumerate(more):
            over[index] = max(0, self.used[index] + amount - self.bound[index])
        return over

    def keeps_guarantee(self, evicted: list[int]) -> bool:
        """Whether the queue still has its guarantee without the evicted amounts: it is above its bound
        for some type, or below its guarantee for none."""
        rest = list(map(int.__sub__, self.used, evicted))
        if any(map(int.__gt__, rest, self.bound)):
            return True
        return all(rest[index] >= amount for index, amount in self.guaranteed.items())

    def full_for(self, vector: Vector) -> bool:
        """Whether the queue would exceed a quota on its path with this vector allocated as well, for
        any type that a quota names (2.21)."""
        allocated, asked = self.queue.allocated, len(vector)
        return any(
            allocated[index] + (vector[index] if index < asked else 0) > most
            for index, most in self.most.items()
        )

    @property
    def protected(self) -> bool:
        """Whether nothing may be evicted from the queue: it is above its bound for no type."""
        allocated = self.queue.allocated
        return all(allocated[index] <= max(0, most) for index, most in self.defined.items())


class Snapshots:
    """The snapshots made during one attempt, each when it was first needed."""

    __slots__ = ("_by_queue",)

    def __init__(self) -> None:
        self._by_queue: dict[Queue, QueueSnapshot] = {}

    def of(self, queue: Queue) -> QueueSnapshot:
        known = self._by_queue.get(queue)
        if known is None:
            upper = self.of(queue.parent) if queue.parent is not None else None
            known = self._by_queue[queue] = QueueSnapshot(queue, upper)
        return known

    def path(self, leaf: Queue) -> list[QueueSnapshot]:
        """The snapshots of the leaf, its parent, and so on up to root."""
        return [self.of(queue) for queue in leaf.lineage]
