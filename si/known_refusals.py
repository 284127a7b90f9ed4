"""Predicates that know the refused nodes of an ask: the interface between the scheduler and a resource
manager in the same process.

A predicate answers about one node. Where most nodes refuse an ask, thousands of questions would precede the
answer yes. Such a predicate may have a method `KnowsRefusals.refused_nodes`, and a callback with predicates
a method of the same name: the scheduler calls it when the first node is refused, and asks about the nodes
that are left. It chooses the same node as without the method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


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
    """A predicate (I36) that knows refused nodes."""

    def __call__(self, allocation_key: str, node_id: str, allocate: bool, /) -> str | None:
        """Return ``None`` if the ask may go to the node, else the reason against it."""

    def refused_nodes(self, allocation_key: str, node_ids: tuple[str, ...]) -> KnownRefusals | None:
        """The refused nodes among these, or ``None`` if the predicate must be asked about each.

        The caller passes the same object as long as it has the same nodes.
        """
