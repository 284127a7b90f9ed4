"""Predicates that answer later, and predicates that know the refused nodes of an ask.

A predicate is a function that tells at once whether an ask may go to a node (I36, I37). A predicate
that first has to ask a remote resource manager returns `ANSWER_PENDING`. The scheduler then defers the
ask, continues with others, and returns to the ask when the answer has come.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class _AnswerPending(str):
    """A text that is never equal by identity to a reason."""

    __slots__ = ()


#: returned instead of a reason against a node while the answer is pending; compared by identity
ANSWER_PENDING: Final = _AnswerPending("not answered yet")
#: returned instead of the index of a victim while the answer is pending
ANSWER_PENDING_INDEX: Final = -(1 << 40)


class RemotePredicate(Protocol):
    """A predicate (I36) that may return `ANSWER_PENDING`."""

    def __call__(self, allocation_key: str, node_id: str, allocate: bool, /) -> str | None:
        """Return ``None`` if the ask may go to the node, else the reason against it. Return
        `ANSWER_PENDING` if the question has been queued but not answered."""

    def known(self, allocation_key: str, node_id: str, allocate: bool, /) -> str | None:
        """The answer that is there and still valid, else `ANSWER_PENDING`. Nothing is asked."""

    def look_ahead(self, allocation_key: str, node_ids: Iterable[str], allocate: bool) -> None:
        """Add further nodes to the question that is being prepared, as many as one question allows.
        They are the nodes that come next if the first one is refused."""

    def allowed(self, allocation_key: str) -> Container[str]:
        """The nodes to which the ask may be allocated according to answers that are still valid."""

    def awaits(self, allocation_key: str) -> bool:
        """Whether an answer for this ask is pending, so that another try must wait for it. If it is
        False after `ANSWER_PENDING`, the limit of pending questions is reached."""


class RemotePreemption(Protocol):
    """A preemption predicate (I37) that may return `ANSWER_PENDING_INDEX`."""

    def __call__(
        self, allocation_key: str, node_id: str, victims: list[str], start: int, /
    ) -> int | None:
        """Return the index of the last victim that must be evicted, ``None`` if the ask may not go to
        the node, or `ANSWER_PENDING_INDEX`."""

    def awaits(self, allocation_key: str) -> bool:
        """Whether an answer for this ask is pending."""


# -- predicates that know the refused nodes of an ask ----------------------------------------------


@dataclass(slots=True, eq=False)
class Revision:
    """Something that refusals rest on, such as the labels of the nodes. Whoever changes it sets
    ``outdated``, from any thread, and makes another one for the answers that follow."""

    outdated: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class KnownRefusals:
    """The nodes that would refuse an ask if it was to be allocated there now."""

    #: for each node the number of the reason in ``reasons``, from 1; 0 if the predicate must be asked
    numbers: npt.NDArray[np.int32]
    #: what the predicate would answer
    reasons: Sequence[str]
    #: No node stops refusing the ask before one of these is outdated. ``None`` if that may happen at any time:
    #: the ask is then tried again in each call for decisions.
    revisions: Sequence[Revision] | None = None

    @property
    def outdated(self) -> bool:
        """Whether a node may have stopped refusing the ask."""
        return self.revisions is None or any(each.outdated for each in self.revisions)


class KnowsRefusals(Protocol):
    """A predicate (I36) of a resource manager in the same process that knows refused nodes.

    A predicate answers about one node. Where most nodes refuse an ask, thousands of questions would precede the
    answer yes. A predicate may have this method, and a callback with predicates a method of the same name: the
    scheduler calls it when the first node is refused, and asks about the nodes that are left. It chooses the
    same node as without the method.
    """

    def __call__(self, allocation_key: str, node_id: str, allocate: bool, /) -> str | None:
        """Return ``None`` if the ask may go to the node, else the reason against it."""

    def refused_nodes(self, allocation_key: str, node_ids: tuple[str, ...]) -> KnownRefusals | None:
        """The refused nodes among these, or ``None`` if the predicate must be asked about each.

        The caller passes the same object as long as it has the same nodes.
        """
