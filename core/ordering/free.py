"""What is free on every node, as a matrix: one row a node, one column a resource type."""

from __future__ import annotations

from bisect import bisect_left
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from quadriga.core.ordering.scores import inserted, removed
from quadriga.core.resources.units import room_of_nodes
from quadriga.core.resources.vectors import MAX_QUANTITY, Totals

if TYPE_CHECKING:
    from quadriga.core.model.node import Node
    from quadriga.core.resources.shapes import Shape

Matrix = npt.NDArray[np.int64]

#: at most this many rows are read in one step
_ROWS: Final = 2_000


class FreeAmounts:
    """The rows are in node order, and are brought up to date when they are read. ``synced`` is the length
    of the log of changed positions at that time."""

    __slots__ = ("_first", "_read", "_rows", "synced")

    def __init__(self) -> None:
        self._rows: Matrix | None = None
        #: the first of the rows, while they are read in steps
        self._first: list[Matrix] = []
        #: since nodes came or went
        self._read = False
        self.synced = 0

    def clear(self) -> None:
        """Nodes came or went, or a resource type is new."""
        self._rows = None
        self._first.clear()

    def shift(self, gone: list[int], log: list[int], nodes: list[Node]) -> None:
        """The nodes at these positions are gone, and no longer among ``nodes``."""
        rows = self._rows
        if rows is None or not self._read:
            self.clear()  # to keep the rows costs a copy, and nobody reads them
            return
        self._read = False
        for at in dict.fromkeys(log[self.synced :]):
            place = bisect_left(gone, at)
            if place == len(gone) or gone[place] != at:
                rows[at] = _matrix([nodes[at - place].available])[0]
        if gone:
            self._rows = removed(rows, gone)

    def insert(self, at: int, node: Node) -> None:
        """The node is new, at this position."""
        if self._rows is not None:
            self._rows = inserted(self._rows, at, _matrix([node.available])[0])

    def room(self, shape: Shape, nodes: list[Node], log: list[int]) -> Matrix:
        """The number of asks of this shape that each node has room for, in node order; what else matters to
        the shape is not looked at."""
        return room_by_row(self.of(nodes, log), shape)

    def of(self, nodes: list[Node], log: list[int]) -> Matrix:
        """The matrix of these nodes; ``log`` has the positions of those that have changed."""
        while not self.read_on(nodes, log):
            pass
        assert self._rows is not None
        return self._rows

    def read_on(self, nodes: list[Node], log: list[int]) -> bool:
        """Read the next few rows, or those that have changed; return whether all are up to date."""
        rows = self._rows
        self._read = True
        if rows is None:
            first, at = self._first, _ROWS * len(self._first)
            if not first:
                self.synced = len(log)
            first.append(_matrix([node.available for node in nodes[at : at + _ROWS]]))
            if at + _ROWS < len(nodes):
                return False
            self._rows = np.concatenate(first)
            first.clear()
        elif late := list(dict.fromkeys(log[self.synced : self.synced + _ROWS])):
            rows[late] = _matrix([nodes[at].available for at in late])
            self.synced = min(len(log), self.synced + _ROWS)
        return self.synced == len(log)


def room_by_row(rows: Matrix, shape: Shape) -> Matrix:
    """The number of asks of this shape for which there is room, by row."""
    if not shape.need or not len(rows):
        return np.zeros(len(rows), np.int64)
    # a division costs ten comparisons, and in a full cluster few rows have room
    able = np.ones(len(rows), bool)
    for at, value in shape.need:
        able &= rows[:, at] >= value
    if 4 * np.count_nonzero(able) < len(rows):
        room: Matrix = np.zeros(len(rows), np.int64)
        room[able] = room_by_row(rows[able], shape)
        return room
    room = np.full(len(rows), np.iinfo(np.int64).max)
    for at, value in shape.need:
        np.minimum(room, rows[:, at] // value, out=room)
    if shape.shares:
        np.minimum(room, room_of_nodes(shape.shares, rows), out=room)
    return np.maximum(room, 0, out=room)


def _matrix(rows: list[Totals]) -> Matrix:
    width = len(rows[0]) if rows else 0
    try:
        return np.fromiter(chain.from_iterable(rows), np.int64).reshape(len(rows), width)
    except OverflowError:  # far more of a node is in use than the node has
        return np.array([[_clip(value) for value in row] for row in rows], dtype=np.int64)


def _clip(value: int) -> int:
    return max(-MAX_QUANTITY, min(MAX_QUANTITY, value))
