"""How much must be evicted until an ask's queue is within its guarantee, the ask included (5.9).

Every queue from the ask's leaf up to root counts: none may use more than its bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.model.resources import Vector
    from quadriga.core.preemption.candidates import Candidate
    from quadriga.core.preemption.queue_snapshot import QueueSnapshot

__all__ = ["Shortfall", "add_to"]


def add_to(amounts: list[int], vector: Vector, sign: int = 1) -> None:
    """Add the vector (``sign`` -1: subtract it) in place."""
    for index, amount in enumerate(vector):
        amounts[index] += sign * amount


class Shortfall:
    """By how much the queues on the ask's path exceed their bounds without the victims chosen so far.

    ``vector`` is what is asked for. A victim lowers the excess of the queues that it shares with the
    ask's path.
    """

    __slots__ = ("_evicted", "_path", "_relieved", "_shared", "_vector")

    def __init__(self, path: list[QueueSnapshot], vector: Vector) -> None:
        self._path = path
        self._vector = vector
        #: what the victims free in each queue of the path
        self._relieved = [[0] * len(snapshot.bound) for snapshot in path]
        #: indexes in the path of the queues above a victim's leaf, by that leaf
        self._shared: dict[QueueSnapshot, list[int]] = {}
        #: what is evicted from each leaf
        self._evicted: dict[QueueSnapshot, list[int]] = {}

    def evict(self, candidate: Candidate) -> None:
        """The candidate becomes a victim."""
        self._add(candidate, 1)

    def keep(self, candidate: Candidate) -> None:
        """The candidate is no victim after all."""
        self._add(candidate, -1)

    def _add(self, candidate: Candidate, sign: int) -> None:
        leaf = candidate.leaf
        assert leaf is not None
        vector = candidate.allocation.vector
        add_to(self._evicted_from(leaf), vector, sign)
        for at in self._above(leaf):
            add_to(self._relieved[at], vector, sign)

    def evict_all(self, candidates: list[Candidate]) -> None:
        """All candidates become victims."""
        totals: dict[QueueSnapshot, list[int]] = {}
        for candidate in candidates:
            leaf = candidate.leaf
            assert leaf is not None
            total = totals.get(leaf)
            if total is None:
                total = totals[leaf] = [0] * len(leaf.bound)
            add_to(total, candidate.allocation.vector)
        for leaf, total in totals.items():
            add_to(self._evicted_from(leaf), tuple(total))
            for at in self._above(leaf):
                add_to(self._relieved[at], tuple(total))

    def keeps_guarantee(self, candidate: Candidate) -> bool:
        """Whether the candidate's leaf still has its guarantee without it (5.9, step 4)."""
        leaf = candidate.leaf
        assert leaf is not None
        evicted = list(self._evicted_from(leaf))
        add_to(evicted, candidate.allocation.vector)
        return leaf.keeps_guarantee(evicted)

    @property
    def amounts(self) -> list[int]:
        """The largest excess of any queue on the path, by type."""
        most = [0] * len(self._path[0].bound)
        for snapshot, relieved in zip(self._path, self._relieved, strict=True):
            for index, bound in enumerate(snapshot.bound):
                asked = self._vector[index] if index < len(self._vector) else 0
                over = snapshot.used[index] + asked - relieved[index] - bound
                if over > most[index]:
                    most[index] = over
        return most

    @property
    def covered(self) -> bool:
        """Whether every queue on the path is within its bound."""
        return not any(self.amounts)

    def _evicted_from(self, leaf: QueueSnapshot) -> list[int]:
        evicted = self._evicted.get(leaf)
        if evicted is None:
            evicted = self._evicted[leaf] = [0] * len(leaf.bound)
        return evicted

    def _above(self, leaf: QueueSnapshot) -> list[int]:
        """The indexes in the path of the queues above a victim's leaf."""
        shared = self._shared.get(leaf)
        if shared is None:
            lineage = leaf.queue.lineage
            shared = [at for at, each in enumerate(self._path) if each.queue in lineage]
            self._shared[leaf] = shared
        return shared
