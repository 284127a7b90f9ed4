"""The nodes that come first in order, whoever asks (5.7).

The score of a node is the same for all shapes, so while nodes are filled evenly the first of all nodes
mostly fits, and no shape's scores need to be looked through. The first few are kept in order. What
changes and still comes before the last of these is put in, and an entry whose node has another score by
now is dropped when it comes up. When all are used up, the next few are looked for.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from quadriga.core.ordering.scores import Column

if TYPE_CHECKING:
    from quadriga.core.model.node import Node

__all__ = ["Front"]

#: so many nodes at least, or this part of all, are looked for at a time
_LEAST: Final = 256
_PART: Final = 16
#: of so many that change it is quicker to look again
_MANY: Final = 1024


class Front:
    """``bound`` is the score of the last one; nodes with a higher one are of no interest here."""

    __slots__ = ("_changed", "_last", "_order", "bound", "whole")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Know nothing."""
        #: score and place, the first one last
        self._order: list[tuple[float, int]] = []
        #: a heap of those that came later
        self._changed: list[tuple[float, int]] = []
        self._last = -1
        self.bound = -inf
        #: there are no nodes but these that take anything
        self.whole = False

    def fill(self, scores: Column) -> None:
        """Find those who come first by these scores, in node order; infinite: it takes nothing."""
        most = max(_LEAST, len(scores) // _PART)
        places = np.flatnonzero(scores < inf)
        self.whole = len(places) <= most
        if not self.whole:
            bound = np.partition(scores, most - 1)[most - 1]
            places = np.flatnonzero(scores <= bound)
        places = places[scores[places].argsort(kind="stable")][:most][::-1]
        self._order = list(zip(scores[places].tolist(), places.tolist(), strict=True))
        self._changed = []
        self.bound, self._last = (inf, -1) if self.whole else self._order[0]

    def put(self, score: float, place: int) -> None:
        """A node has got this score, which is not above the bound."""
        if score < self.bound or place <= self._last:
            changed = self._changed
            heappush(changed, (score, place))
            if len(changed) > _MANY:
                self.clear()

    def first(self, nodes: list[Node]) -> Node | None:
        """The first of all; ``None`` where it is not known."""
        order, changed = self._order, self._changed
        first: Node | None = None
        while order:
            score, place = order[-1]
            first = nodes[place]
            if first.score == score:
                break
            order.pop()
        while changed:
            score, place = changed[0]
            if order and order[-1] < changed[0]:
                break
            node = nodes[place]
            if node.score == score:
                return node
            heappop(changed)
        return first if order else None
