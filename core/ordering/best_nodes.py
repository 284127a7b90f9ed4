"""The best nodes of all, whatever the shape of the ask (5.7).

The score of a node is the same for all shapes, so while nodes are filled evenly the best node of all
has room for most asks, and no shape's column needs to be searched. The best few are kept in order. A
node that changes and still comes before the last of them is added to a heap beside them. An entry
whose node has another score by now is dropped when it comes up. When all entries are used up, the
next few are searched for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from quadriga.core.ordering.scores import Column

if TYPE_CHECKING:
    from quadriga.core.model.node import Node

#: of those that a search keeps, this many at a time are made objects
_CHUNK: Final = 256
#: one search keeps at least this many nodes, or this part of all nodes
_LEAST: Final = 256
_PART: Final = 16
#: the heap of changed nodes holds at most this many; beyond that a new search is quicker
_MANY: Final = 1024


class BestNodes:
    """``bound`` is the score of the last of them; a node with a higher score is not kept here."""

    __slots__ = ("_changed", "_last", "_order", "_rest", "_rest_scores", "bound", "whole")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all nodes."""
        #: (score, position), the best node last
        self._order: list[tuple[float, int]] = []
        #: positions of those that come after all of these, the best one last, and their scores
        self._rest: npt.NDArray[np.intp] = np.zeros(0, np.intp)
        self._rest_scores: Column = np.zeros(0)
        #: a heap of (score, position) of nodes that changed since the search
        self._changed: list[tuple[float, int]] = []
        self._last = -1
        self.bound = -inf
        #: every node that takes anything is kept here
        self.whole = False

    def fill(self, scores: Column) -> None:
        """Search the scores of all nodes, in node order, for the best few. Infinite scores are of
        nodes that take nothing."""
        most = max(_LEAST, len(scores) // _PART)
        positions = np.flatnonzero(scores < inf)
        self.whole = len(positions) <= most
        if not self.whole:
            bound = np.partition(scores, most - 1)[most - 1]
            positions = np.flatnonzero(scores <= bound)
        positions = positions[scores[positions].argsort(kind="stable")][:most][::-1]
        self._rest, self._rest_scores = positions, scores[positions]
        self._order, self._changed = [], []
        if self.whole:
            self.bound, self._last = inf, -1
        else:
            self.bound, self._last = self._rest_scores.item(0), positions.item(0)

    def put(self, score: float, position: int) -> None:
        """The node at this position has a new score, which is at most ``bound``."""
        if score < self.bound or position <= self._last:
            changed = self._changed
            heappush(changed, (score, position))
            if len(changed) > _MANY:
                self.clear()

    def insert(self, places: list[int], scores: list[float]) -> None:
        """Nodes with these scores are new, before the nodes at these positions, in order."""
        self._order = [(each, at + bisect_right(places, at)) for each, at in self._order]
        self._changed = [(each, at + bisect_right(places, at)) for each, at in self._changed]
        self._rest += np.searchsorted(places, self._rest, side="right")
        self._last += bisect_right(places, self._last)
        for new, (at, score) in enumerate(zip(places, scores, strict=True)):
            if score <= self.bound:
                self.put(score, at + new)

    def delete(self, gone: list[int]) -> None:
        """The nodes at these positions, in order, are gone: all others move up."""
        self._order, self._changed = _without(self._order, gone), _without(self._changed, gone)
        heapify(self._changed)
        kept = ~np.isin(self._rest, gone)
        self._rest, self._rest_scores = self._rest[kept], self._rest_scores[kept]
        self._rest -= np.searchsorted(gone, self._rest)
        self._last -= bisect_right(gone, self._last)

    def first(self, nodes: list[Node]) -> Node | None:
        """The best of all nodes, or ``None`` where it is not known."""
        order, changed = self._order, self._changed
        first: Node | None = None
        while order or self._more(order):
            score, position = order[-1]
            first = nodes[position]
            if first.score == score:
                break
            order.pop()
        while changed:
            score, position = changed[0]
            if order and order[-1] < changed[0]:
                break
            node = nodes[position]
            if node.score == score:
                return node
            heappop(changed)
        return first if order else None

    def _more(self, order: list[tuple[float, int]]) -> bool:
        """Put the next of the rest into the empty order; return whether there are any."""
        positions, scores = self._rest[-_CHUNK:], self._rest_scores[-_CHUNK:]
        self._rest, self._rest_scores = self._rest[:-_CHUNK], self._rest_scores[:-_CHUNK]
        order += zip(scores.tolist(), positions.tolist(), strict=True)
        return bool(order)


def _without(entries: list[tuple[float, int]], gone: list[int]) -> list[tuple[float, int]]:
    """Entries (score, position) without those of these positions, and the others moved up."""
    places = set(gone)
    return [(score, at - bisect_left(gone, at)) for score, at in entries if at not in places]
