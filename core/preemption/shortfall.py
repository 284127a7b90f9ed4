"""Whether an ask's queue would be within its guarantee, with the ask in it and the victims gone (5.9).

What counts is every queue from the ask's up to root: none may use more than its bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.model.resources import Vector
    from quadriga.core.preemption.candidates import Candidate
    from quadriga.core.preemption.queue_snapshot import Standing

__all__ = ["Relief", "add_to"]


def add_to(book: list[int], vector: Vector, sign: int = 1) -> None:
    """Add (or take away) in place."""
    for place, amount in enumerate(vector):
        book[place] += sign * amount


class Relief:
    """The excess on the ask's path, and what the victims taken so far do about it.

    ``taken`` is by the victims' leaf queues. A victim helps if some type is above its bound, by the
    largest excess of any queue on the path, and less so without the victim.
    """

    __slots__ = ("_path", "_relieved", "_shared", "_vector", "taken")

    def __init__(self, path: list[Standing], vector: Vector) -> None:
        self._path = path
        self._vector = vector
        self._relieved = [[0] * len(standing.bound) for standing in path]
        self._shared: dict[Standing, list[int]] = {}
        self.taken: dict[Standing, list[int]] = {}

    def take(self, candidate: Candidate, sign: int = 1) -> None:
        """The candidate goes (or stays after all)."""
        standing = candidate.standing
        assert standing is not None
        vector = candidate.allocation.vector
        add_to(self._book(standing), vector, sign)
        for at in self._above(standing):
            add_to(self._relieved[at], vector, sign)

    def take_all(self, candidates: list[Candidate]) -> None:
        """All of them go."""
        totals: dict[Standing, list[int]] = {}
        for candidate in candidates:
            standing = candidate.standing
            assert standing is not None
            total = totals.get(standing)
            if total is None:
                total = totals[standing] = [0] * len(standing.bound)
            add_to(total, candidate.allocation.vector)
        for standing, total in totals.items():
            add_to(self._book(standing), tuple(total))
            for at in self._above(standing):
                add_to(self._relieved[at], tuple(total))

    def keeps_guarantee(self, candidate: Candidate) -> bool:
        """Whether the candidate's queue stays at or above its guarantee without it (5.9, step 4)."""
        standing = candidate.standing
        assert standing is not None
        book = list(self._book(standing))
        add_to(book, candidate.allocation.vector)
        return standing.keeps_guarantee(book)

    @property
    def shortfall(self) -> list[int]:
        """The largest excess of any queue on the path, by type."""
        most = [0] * len(self._path[0].bound)
        for standing, relieved in zip(self._path, self._relieved, strict=True):
            for place, bound in enumerate(standing.bound):
                asked = self._vector[place] if place < len(self._vector) else 0
                over = standing.used[place] + asked - relieved[place] - bound
                if over > most[place]:
                    most[place] = over
        return most

    @property
    def enough(self) -> bool:
        """Whether every queue on the path is within its bound."""
        return not any(self.shortfall)

    def _book(self, standing: Standing) -> list[int]:
        book = self.taken.get(standing)
        if book is None:
            book = self.taken[standing] = [0] * len(standing.bound)
        return book

    def _above(self, standing: Standing) -> list[int]:
        """The places in the path of the queues that are above the victim's."""
        shared = self._shared.get(standing)
        if shared is None:
            lineage = standing.queue.lineage
            shared = [at for at, each in enumerate(self._path) if each.queue in lineage]
            self._shared[standing] = shared
        return shared
