"""The best nodes of all, whatever the shape of the ask (5.7).

The score of a node is the same for all shapes, so while nodes are filled evenly the best node of all
has room for most asks, and no shape's column needs to be searched. The best few are kept in order. A
node that changes and still comes before the last of them is added to a heap beside them. An entry
whose node has another score by now is dropped when it comes up. When all entries are used up, the
next few are searched for.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from quadriga.core.ordering.scores import Column

if TYPE_CHECKING:
    from quadriga.core.model.node import Node

#: one search keeps at least this many nodes, or this part of all nodes
_LEAST: Final = 256
_PART: Final = 16
#: the heap of changed nodes holds at most this many; beyond that a new search is quicker
_MANY: Final = 1024


class BestNodes:
    """``bound`` is the score of the last of them; a node with a higher score is not kept here."""

    __slots__ = ("_changed", "_last", "_order", "bound", "whole")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all nodes."""
        #: (score, position), the best node last
        self._order: list[tuple[float, int]] = []
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
        self._order = list(zip(scores[positions].tolist(), positions.tolist(), strict=True))
        self._changed = []
        self.bound, self._last = (inf, -1) if self.whole else self._order[0]

    def put(self, score: float, position: int) -> None:
        """The node at this position has a new score, which is at most ``bound``."""
        if score < self.bound or position <= self._last:
            changed = self._changed
            heappush(changed, (score, position))
            if len(changed) > _MANY:
                self.clear()

    def insert(self, at: int, score: float) -> None:
        """A node with this score is new: the positions from ``at`` on are higher by one."""
        self._order = [(each, place + (place >= at)) for each, place in self._order]
        self._changed = [(each, place + (place >= at)) for each, place in self._changed]
        self._last += self._last >= at
        if score <= self.bound:
            self.put(score, at)

    def first(self, nodes: list[Node]) -> Node | None:
        """The best of all nodes, or ``None`` where it is not known."""
        order, changed = self._order, self._changed
        first: Node | None = None
        while order:
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
