"""Answers that take their time: what the scheduler and whoever asks for them agree on.

Of a request that is not waited for, the scheduler tells an `Outcome`.

A predicate is a function that says at once whether an ask may go to a node (I36, I37). One that has
to ask somebody far away answers `UNANSWERED` meanwhile. The scheduler then sets the ask aside, goes
on with others, and comes back to it once the answer is there.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final, Protocol

__all__ = ["UNANSWERED", "UNANSWERED_INDEX", "FarPredicate", "FarPreemption", "Outcome"]


class _Unanswered(str):
    """A text that no reason is, whatever it says."""

    __slots__ = ()


#: instead of a reason against a node: nobody knows yet. Compared by identity
UNANSWERED: Final = _Unanswered("not answered yet")
#: the same instead of the index of a victim
UNANSWERED_INDEX: Final = -(1 << 40)


class Outcome(Protocol):
    """Whoever is told what became of a request: a future, or what has this of one."""

    def set_result(self, result: None) -> None: ...

    def set_exception(self, exception: BaseException | None) -> None: ...


class FarPredicate(Protocol):
    """A predicate (I36) that may answer `UNANSWERED`."""

    def __call__(self, allocation_key: str, node_id: str, allocate: bool, /) -> str | None:
        """``None``, the reason against the node, or `UNANSWERED`: then it is being asked for."""
        ...

    def look_ahead(self, allocation_key: str, node_ids: Iterable[str], allocate: bool) -> None:
        """These nodes come next if the one that has no answer yet is refused: ask for as many of
        them as makes sense, in the same breath."""
        ...

    def allowed(self, allocation_key: str) -> Container[str]:
        """The nodes to which the ask may be allocated by an answer that holds; empty if none."""
        ...

    def awaits(self, allocation_key: str) -> bool:
        """Whether some answer for this ask is on its way, so that trying it again is vain. If not,
        in spite of `UNANSWERED`, there are too many on their way already."""
        ...


class FarPreemption(Protocol):
    """A preemption predicate (I37) that may answer `UNANSWERED_INDEX`."""

    def __call__(
        self, allocation_key: str, node_id: str, victims: list[str], start: int, /
    ) -> int | None:
        """The index of the last victim that has to go, ``None`` for no, or `UNANSWERED_INDEX`."""
        ...

    def awaits(self, allocation_key: str) -> bool:
        """Whether some answer for this ask is on its way."""
        ...
