"""Which node: the lowest (score, node id) among those where the ask fits (5.7).

The board keeps the nodes in order of their ids. Every shape that is asked about owns a column with
one score for each node, infinite where it does not fit or the node takes nothing new, so the exact
choice is one ``argmin`` (``scores``). A change of a node is only noted in a log; a column catches up when its
shape is next looked at, so a change costs nothing for shapes that nobody asks about. Most choices need no
column at all: where nodes are filled evenly the first of all mostly fits (``front``), and where they are
packed the one that was chosen last comes first again.

A shape without any node loses its bit in ``feasible`` and is not looked at again until a node gains
room for it.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from quadriga.core.model.resources import MAX_QUANTITY, Book, Vector
from quadriga.core.model.shapes import Shape, Shapes
from quadriga.core.ordering.best_nodes import Front
from quadriga.core.ordering.scores import Column, Scores

if TYPE_CHECKING:
    from quadriga.core.model.node import Node

__all__ = ["FAIR", "BINPACKING", "NodeBoard"]

FAIR: Final = "fair"
BINPACKING: Final = "binpacking"

Matrix = npt.NDArray[np.int64]


class NodeBoard:
    """The nodes of a partition and, for each shape, their scores."""

    def __init__(self, shapes: Shapes, policy: str, weights: tuple[tuple[int, float], ...]) -> None:
        self.shapes = shapes
        self.policy = policy
        self.weights = weights
        #: place bits of shapes that may have a node, reserve bits of those that may have one to
        #: reserve; a bit is cleared by looking in vain and set by a node that gains
        self.able = 0
        self.nodes: list[Node] = []
        #: those that take new allocations of anybody; without any, nothing can be reserved
        self._unreserved: dict[Node, None] = {}
        #: the score of each node, in node order
        self._values: Column = np.zeros(0)
        self._front = Front()
        self._log: list[int] = []
        self._log_limit = 0
        self._stale = False
        self._available: Matrix = np.zeros((0, 0), dtype=np.int64)
        self._available_synced = 0

    # -- changes -----------------------------------------------------------------------------

    def add(self, node: Node) -> None:
        """A node is new."""
        self.nodes.append(node)
        self._stale = True
        self.gained(node)

    def remove(self, node: Node) -> None:
        """A node is gone."""
        self.nodes.remove(node)
        self._unreserved.pop(node, None)
        self._stale = True

    def relayout(self) -> None:
        """Resource types, weights or the policy changed: everything is computed anew."""
        self._stale = True

    def resized(self, node: Node) -> None:
        """The node's size changed; what that means for its free resources is told next."""
        if not self._stale:
            self._weigh(node)

    def changed(self, node: Node) -> None:
        """The node's free resources or its openness changed, for the worse or unknown."""
        free = node.free
        if free:
            self._unreserved[node] = None
        elif node in self._unreserved:
            del self._unreserved[node]
            if not self._unreserved:
                self._nothing_to_reserve()
        self.took(node)

    def took(self, node: Node, shape: Shape | None = None) -> None:
        """An allocation, of this shape, was placed on the node; it is as big and as open as before.

        Whose column was looked at just now is likely to be the next again, and is kept up to date.
        """
        if self._stale:
            return
        score, log, place = self.score(node), self._log, node.position
        before, node.score = node.score, score
        self._values[place] = score
        if score <= self._front.bound:
            self._front.put(score, place)
        if shape is not None and shape.synced == len(log) and not shape.required_node:
            if (column := shape.column) is not None:
                if not shape.fits(node.available):
                    score = inf
                if shape.first is not node or score > before:
                    shape.first = None
                column.cells[place] = score
                shape.synced += 1
        log.append(place)
        if len(log) > self._log_limit:
            self._trim()

    def gained(self, node: Node) -> None:
        """The node has more room than before: shapes without a node may now have one."""
        self.changed(node)
        able = self.able
        for shape in self.shapes.by_number.values():
            if not shape.asks:  # idle: it is watched anew when somebody asks for it
                continue
            if not able & shape.place and self._takes(node, shape):
                able |= shape.place
            if not able & shape.reserve and self._could_reserve(node, shape):
                able |= shape.reserve
        self.able = able

    def watch(self, shape: Shape) -> None:
        """A new shape: assume that it has a node until a look says otherwise."""
        self.able |= shape.place | shape.preempt
        if self._unreserved or shape.required_node:
            self.able |= shape.reserve

    def _nothing_to_reserve(self) -> None:
        for shape in self.shapes.by_number.values():
            if not shape.required_node:
                self.able &= ~shape.reserve

    def forget(self, shape: Shape) -> None:
        """A shape that nobody uses any more; its bits will be given to another."""
        self.able &= ~shape.bits

    def _takes(self, node: Node, shape: Shape) -> bool:
        if shape.required_node:  # others that require it, and came first, have it reserved (5.6)
            kept = node.reservation
            mine = kept is None or not kept.ask.required_node
            return mine and node.node_id == shape.required_node and shape.fits(node.available)
        return node.free and shape.fits(node.available)

    def _could_reserve(self, node: Node, shape: Shape) -> bool:
        if shape.required_node:
            return node.node_id == shape.required_node
        return node.free and shape.fits(node.total)

    # -- choices -----------------------------------------------------------------------------

    def best(self, shape: Shape) -> Node | None:
        """The node for this shape; ``None`` also clears its bit."""
        if self._stale:
            self._layout()
        if self.policy == FAIR and not shape.required_node:
            first = self._front.first(self.nodes) or self._look_again()
            if first is not None and shape.fits(first.available):
                return first
        column = shape.column
        if column is None or shape.synced != len(self._log):
            column = self._scores(shape)
        if shape.first is None:
            place = column.first()
            if place < 0:
                self.able &= ~shape.place
                return None
            shape.first = self.nodes[place]
        return shape.first

    def _look_again(self) -> Node | None:
        """The first node in order that takes anything, which is not known."""
        front = self._front
        if front.whole:
            return None
        front.fill(self._values)
        return front.first(self.nodes)

    def in_order(self, shape: Shape) -> list[Node]:
        """Every node for this shape, best first; for those who must ask a predicate about each."""
        column = self._scores(shape).values
        order = np.argsort(column, kind="stable")
        return [self.nodes[place] for place in order if column[place] != inf]

    def best_to_reserve(self, shape: Shape) -> Node | None:
        """The unreserved node with the tightest fit, were it empty enough; else clears the bit.

        Lowest FitInScore of what is free now; among equals the first in node order (5.7).
        """
        column = self._reserve_column(shape)
        low = column.min(initial=inf)
        if low == inf:
            self.able &= ~shape.reserve
            return None
        tied = np.flatnonzero(column == low)
        # in a full cluster many are alike
        first = self._values[tied].argmin() if len(tied) > 1 else 0
        node: Node = self.nodes[tied[first]]
        return node

    def fit_in_score(self, node: Node, shape: Shape) -> float:
        """FitInScore (5) of the shape on the node: low is a tight fit."""
        vector, score = shape.vector, 0.0
        free: Any  # see Queue.make_rank
        for place, free in enumerate(node.available):
            if free > 0:
                asked = vector[place] if place < len(vector) else 0
                if asked <= 0:
                    score += 1.0
                elif free > asked:
                    score += (free - asked) / free
        return score

    def score(self, node: Node) -> float:
        """Infinite for a node that takes nothing new, else by the policy: low is preferred."""
        if not node.open or node.reservation is not None:
            return inf
        shares, available = 0.0, node.available
        whole: Any  # see Queue.make_rank
        for place, weight, whole in node.weighed:
            free: float = available[place] / whole
            shares += weight * (1 - free)
        used = shares / node.weight if shares else 0.0
        return used if self.policy == FAIR else 1 - used

    def _weigh(self, node: Node) -> None:
        """Note what the node's score is made of: types in order of their names, whatever order they
        came in, with their weights and the node's size."""
        total = node.total
        node.weighed = tuple([(at, weight, total[at]) for at, weight in self.weights if total[at]])
        node.weight = 0.0
        for _, weight, _ in node.weighed:  # ``sum`` rounds otherwise from Python 3.12 on
            node.weight += weight

    # -- columns -----------------------------------------------------------------------------

    def _layout(self) -> None:
        """Put the nodes in order and forget all columns: nodes came or went."""
        self._stale = False
        self._log_limit = 4 * len(self.nodes) + 1024
        self.nodes.sort(key=lambda node: node.node_id)
        first_of_size: dict[Vector, Node] = {}
        for place, node in enumerate(self.nodes):
            node.position = place
            alike = first_of_size.setdefault(tuple(node.total), node)
            if alike is node:
                self._weigh(node)
            else:  # one copy for all, for each score reads it
                node.weighed, node.weight = alike.weighed, alike.weight
            node.score = self.score(node)
        self._values = np.array([node.score for node in self.nodes], dtype=np.float64)
        self._front.clear()
        self._log.clear()
        self._available = np.zeros((0, 0), dtype=np.int64)
        for shape in self.shapes.by_number.values():
            shape.column = shape.reserve_column = None

    def _trim(self) -> None:
        """The log is long: columns that are behind are forgotten, all others need it no longer."""
        behind = len(self._log)
        for shape in self.shapes.by_number.values():
            if shape.synced < behind:
                shape.column = None
            if shape.reserve_synced < behind:
                shape.reserve_column = None
            shape.synced = shape.reserve_synced = 0
        if self._available_synced < behind:
            self._available = np.zeros((0, 0), dtype=np.int64)
        self._available_synced = 0
        self._log.clear()

    def _scores(self, shape: Shape) -> Scores:
        if self._stale:
            self._layout()
        column, log = shape.column, self._log
        shape.first = None
        if column is None:
            column = shape.column = Scores(self._new_column(shape))
        elif shape.required_node:
            for place in log[shape.synced :]:
                column.cells[place] = self._required_cell(self.nodes[place], shape)
        else:  # a closed or reserved node has an infinite score of its own
            nodes, need, cells = self.nodes, shape.need, column.cells
            for place in dict.fromkeys(log[shape.synced :]):  # what ends here, another gets here
                node = nodes[place]
                available = node.available
                for at, value in need:
                    if available[at] < value:
                        cells[place] = inf
                        break
                else:
                    cells[place] = node.score
        shape.synced = len(log)
        return column

    def _reserve_column(self, shape: Shape) -> Column:
        """FitInScores of the nodes that may be reserved, infinite for the others."""
        if self._stale:
            self._layout()
        column, nodes, log = shape.reserve_column, self.nodes, self._log
        if column is None:
            cells = [self._reserve_cell(node, shape) for node in nodes]
            column = shape.reserve_column = np.array(cells, dtype=np.float64)
        else:
            for place in dict.fromkeys(log[shape.reserve_synced :]):
                column[place] = self._reserve_cell(nodes[place], shape)
        shape.reserve_synced = len(log)
        return column

    def _reserve_cell(self, node: Node, shape: Shape) -> float:
        return self.fit_in_score(node, shape) if self._could_reserve(node, shape) else inf

    def _required_cell(self, node: Node, shape: Shape) -> float:
        return 0.0 if self._takes(node, shape) else inf

    def _new_column(self, shape: Shape) -> Column:
        if shape.required_node:
            return np.array(
                [self._required_cell(node, shape) for node in self.nodes], dtype=np.float64
            )
        free = self._free()
        column = self._values.copy()
        for place, value in shape.need:
            column[free[:, place] < value] = inf
        return column

    def _free(self) -> Matrix:
        """What is free on every node, as a matrix; brought up to date when it is needed."""
        nodes, log = self.nodes, self._log
        width = max((len(node.available) for node in nodes), default=0)
        if self._available.shape != (len(nodes), width):
            rows = [node.available for node in nodes]
            self._available = _matrix(rows).reshape(len(nodes), width)
        else:
            places = list(dict.fromkeys(log[self._available_synced :]))
            if places:
                self._available[places] = _matrix([nodes[place].available for place in places])
        self._available_synced = len(log)
        return self._available


def _matrix(rows: list[Book]) -> Matrix:
    try:
        return np.array(rows, dtype=np.int64)
    except OverflowError:  # a node has so much more in use than it has
        return np.array([[_clip(value) for value in row] for row in rows], dtype=np.int64)


def _clip(value: int) -> int:
    return max(-MAX_QUANTITY, min(MAX_QUANTITY, value))
