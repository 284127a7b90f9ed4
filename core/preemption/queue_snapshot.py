"""Where queues stand between what is guaranteed to them and what they use (5.9).

A queue is protected up to its bound: for each type the smallest amount guaranteed to it or to a queue
above, and never more than the smallest quota on its path. A type that nobody guarantees is bounded by
quotas alone, at last by what the nodes have. Used is what is allocated and not being asked back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.model.resources import Vector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quadriga.core.model.queue import Queue

__all__ = ["Snapshot", "Standing"]


def _least(upper: dict[int, int], own: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The smaller amount where both have one, else the one there is (MinPermissive, 5)."""
    both = dict(upper)
    for place, amount in own:
        both[place] = min(amount, both.get(place, amount))
    return both


class Standing:
    """One queue: what protects it, and what it would use if the victims chosen so far were gone."""

    __slots__ = ("bound", "defined", "guaranteed", "most", "queue", "used")

    def __init__(self, queue: Queue, upper: Standing | None) -> None:
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
        """By how much it would be above its bound, by type, with so much more in use."""
        over = [max(0, used - bound) for used, bound in zip(self.used, self.bound, strict=True)]
        for place, amount in enumerate(more):
            over[place] = max(0, self.used[place] + amount - self.bound[place])
        return over

    def keeps_guarantee(self, taken: list[int]) -> bool:
        """Whether it is at or above what is guaranteed to it with so much less in use: above its
        bound for some type, or nowhere below its guarantee."""
        rest = list(map(int.__sub__, self.used, taken))
        if any(map(int.__gt__, rest, self.bound)):
            return True
        return all(rest[place] >= amount for place, amount in self.guaranteed.items())

    def full_for(self, vector: Vector) -> bool:
        """Whether with so much more allocated it would exceed its own quota or one above it, at last
        what the nodes have, for any type that one of them names (2.21)."""
        allocated, asked = self.queue.allocated, len(vector)
        return any(
            allocated[place] + (vector[place] if place < asked else 0) > most
            for place, most in self.most.items()
        )

    @property
    def protected(self) -> bool:
        """Whether nothing of it may be taken: it is nowhere above its bound."""
        allocated = self.queue.allocated
        return all(allocated[place] <= max(0, most) for place, most in self.defined.items())


class Snapshot:
    """The standings of the queues that somebody asked about."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Queue, Standing] = {}

    def of(self, queue: Queue) -> Standing:
        known = self._known.get(queue)
        if known is None:
            upper = self.of(queue.parent) if queue.parent is not None else None
            known = self._known[queue] = Standing(queue, upper)
        return known

    def path(self, leaf: Queue) -> list[Standing]:
        """The leaf's standing, its parent's, and so on up to root."""
        return [self.of(queue) for queue in leaf.lineage]
