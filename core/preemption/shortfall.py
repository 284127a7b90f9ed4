"""How much must be evicted until the queues above an ask have room for it, and what may be (5.9).

Every queue from the ask's leaf up to root counts: none may use more than its bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.preemption.candidates import Candidate
    from quadriga.core.preemption.queue_snapshot import QueueSnapshot
    from quadriga.core.resources.vectors import Vector


def add_to(amounts: list[int], vector: Vector, sign: int = 1) -> None:
    """Add the vector (``sign`` -1: subtract it) in place."""
    for index, amount in enumerate(vector):
        amounts[index] += sign * amount


class Evicted:
    """The amounts evicted from each queue that guards victims, after those that were evicted ``before``."""

    __slots__ = ("_before", "_by_queue")

    def __init__(self, before: Evicted | None = None) -> None:
        self._by_queue: dict[QueueSnapshot, list[int]] = {}
        self._before = before._by_queue if before is not None else {}

    def add(self, candidate: Candidate) -> bool:
        """Add the candidate unless a queue would fall below its guarantee; return whether it was."""
        self.force(candidate)
        leaf, vector = candidate.leaf, candidate.allocation.vector
        assert leaf is not None
        if all(guard.keeps_guarantee(self._of(guard), vector) for guard in leaf.guards):
            return True
        self.remove(candidate)
        return False

    def force(self, candidate: Candidate) -> None:
        """Add the candidate whatever is guaranteed to its queues."""
        self._count(candidate, 1)

    def remove(self, candidate: Candidate) -> None:
        self._count(candidate, -1)

    def _count(self, candidate: Candidate, sign: int) -> None:
        assert candidate.leaf is not None
        for guard in candidate.leaf.guards:
            add_to(self._of(guard), candidate.allocation.vector, sign)

    def _of(self, guard: QueueSnapshot) -> list[int]:
        amounts = self._by_queue.get(guard)
        if amounts is None:
            amounts = list(self._before.get(guard) or [0] * len(guard.used))
            self._by_queue[guard] = amounts
        return amounts


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
        self._evicted = Evicted()

    def force(self, candidate: Candidate) -> None:
        """The candidate is a victim."""
        self._evicted.force(candidate)
        self._relieve(candidate, 1)

    def evict(self, candidate: Candidate) -> bool:
        """The candidate becomes a victim unless a queue would fall below its guarantee (5.9, step 4);
        return whether it did."""
        if not self._evicted.add(candidate):
            return False
        self._relieve(candidate, 1)
        return True

    def keep(self, candidate: Candidate) -> None:
        """The candidate is no victim after all."""
        self._evicted.remove(candidate)
        self._relieve(candidate, -1)

    def _relieve(self, candidate: Candidate, sign: int) -> None:
        assert candidate.leaf is not None
        for at in self._above(candidate.leaf):
            add_to(self._relieved[at], candidate.allocation.vector, sign)

    def evict_all(self, candidates: list[Candidate]) -> None:
        """All candidates become victims, whatever is guaranteed to their queues."""
        totals: dict[QueueSnapshot, list[int]] = {}
        for candidate in candidates:
            leaf = candidate.leaf
            assert leaf is not None
            total = totals.get(leaf)
            if total is None:
                total = totals[leaf] = [0] * len(leaf.bound)
            add_to(total, candidate.allocation.vector)
        for leaf, total in totals.items():
            self.evict_from(leaf, total)

    def evict_from(self, leaf: QueueSnapshot, total: list[int]) -> None:
        """Victims of this leaf have these amounts in total, whatever is guaranteed to its queues."""
        for at in self._above(leaf):
            add_to(self._relieved[at], tuple(total))

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

    def _above(self, leaf: QueueSnapshot) -> list[int]:
        """The indexes in the path of the queues above a victim's leaf."""
        shared = self._shared.get(leaf)
        if shared is None:
            lineage = leaf.queue.lineage
            shared = [at for at, each in enumerate(self._path) if each.queue in lineage]
            self._shared[leaf] = shared
        return shared
