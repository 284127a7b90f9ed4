"""The lowest of many numbers that change one at a time: a score for each node (5.7).

A few thousand numbers are searched in a microsecond or so. Larger columns are kept in blocks, and the
lowest number of each block is known. So a search reads one number of each block, and then one block:
among 100,000 nodes it costs little more than among 1,000.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import nlargest
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from quadriga.core.ordering.reservable import ReservableNodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from quadriga.core.model.node import Node
    from quadriga.core.resources.shapes import Shape

Column = npt.NDArray[np.float64]

Scalar = TypeVar("Scalar", bound=np.generic)

#: columns of at most this many numbers are searched as a whole
_SMALL: Final = 4096
#: the scores of this many shapes are kept when nodes come or go, if few nodes changed since they were read
_FEW_SHAPES: Final = 4
_FEW_CHANGES: Final = 64


class _Blocks:
    """Numbers in blocks; there are about as many blocks as numbers in each."""

    __slots__ = ("_blocks", "_lows", "_padded", "_rows", "_size", "values")

    def __init__(self, values: Column) -> None:
        number = len(values)
        self._size = size = 1 << number.bit_length() // 2
        padded = np.full(-(-number // size) * size, inf)
        padded[:number] = values
        self._padded = padded
        self._blocks: Column = padded.reshape(-1, size)
        self._lows: Column = self._blocks.min(axis=1)
        self._rows: list[Column] = list(self._blocks)
        self.values = padded[:number]

    def insert(self, position: int, value: float) -> bool:
        """Insert a number; return False if there is no space for it."""
        number, padded = len(self.values), self._padded
        if number == len(padded):
            return False
        padded[position + 1 : number + 1] = padded[position:number]
        padded[position] = value
        self.values = padded[: number + 1]
        self._find_lows(position)
        return True

    def remove(self, positions: list[int]) -> None:
        """Remove the numbers at these positions, in order."""
        number = len(self.values)
        self.values = removed(self.values, positions)
        self._padded[len(self.values) : number] = inf
        self._find_lows(positions[0])

    def _find_lows(self, position: int) -> None:
        """The numbers from this position on have moved."""
        at = position // self._size
        self._lows[at:] = self._blocks[at:].min(axis=1)

    def __setitem__(self, position: int, value: float) -> None:
        values, lows, at = self.values, self._lows, position // self._size
        low = lows.item(at)
        was_lowest = values.item(position) == low
        values[position] = value
        if value <= low:
            lows[at] = value
        elif was_lowest:
            row = self._rows[at]
            lows[at] = row[row.argmin()]

    def lowest(self) -> int:
        at = int(self._lows.argmin())
        return at * self._size + int(self._rows[at].argmin())


class Scores:
    """``values`` are in node order, infinite for nodes that cannot be chosen. They are read as they
    are, and changed through ``each``, one at a time."""

    __slots__ = ("_blocks", "each", "values")

    def __init__(self, values: Column) -> None:
        self._hold(values)

    def _hold(self, values: Column) -> None:
        self._blocks = _Blocks(values) if len(values) > _SMALL else None
        self.values = values if self._blocks is None else self._blocks.values
        self.each: Column | _Blocks = self.values if self._blocks is None else self._blocks

    def insert(self, position: int, value: float) -> None:
        """A node is new at this position, with this score."""
        if self._blocks is None or not self._blocks.insert(position, value):
            self._hold(inserted(self.values, position, value))
        else:
            self.values = self._blocks.values

    def remove(self, positions: list[int]) -> None:
        """The nodes at these positions, in order, are gone."""
        if not positions:
            return
        if self._blocks is None:
            self.values = self.each = removed(self.values, positions)
        else:
            self._blocks.remove(positions)
            self.values = self._blocks.values

    def first(self) -> int:
        """The position of the lowest score, the first among equals; -1 where all are infinite."""
        values = self.values
        if self._blocks is not None:
            position = self._blocks.lowest()
        elif len(values):
            position = int(values.argmin())
        else:
            return -1
        return position if values.item(position) != inf else -1


def inserted(values: npt.NDArray[Scalar], at: int, row: Any) -> npt.NDArray[Scalar]:
    """The array with one more row at this position. It is moved in its own memory, which has some to spare
    after the first time."""
    number, whole = len(values), values.base
    if whole is None or len(whole) <= number or whole.shape[1:] != values.shape[1:]:
        whole = np.empty((number + number // 8 + 16, *values.shape[1:]), values.dtype)
        whole[:at] = values[:at]
        whole[at + 1 : number + 1] = values[at:]
    else:
        width = whole[:1].size  # rows of one array: numpy moves flat ones without a copy
        flat = whole.reshape(-1)
        flat[(at + 1) * width : (number + 1) * width] = flat[at * width : number * width]
    whole[at] = row
    return whole[: number + 1]


def removed(values: npt.NDArray[Scalar], positions: list[int]) -> npt.NDArray[Scalar]:
    """The array without the rows at these positions, which are in order; it is moved in its own memory."""
    width, flat = values[:1].size, values.reshape(-1)
    ends = [*positions[1:], len(values)]
    for gone, (at, end) in enumerate(zip(positions, ends, strict=True)):
        flat[(at - gone) * width : (end - gone - 1) * width] = flat[(at + 1) * width : end * width]
    return values[: len(values) - len(positions)]


class Columns:
    """What the index keeps for one shape. ``synced`` is the length of the log when its scores were brought
    up to date."""

    __slots__ = ("first", "scores", "synced", "to_reserve")

    def __init__(self) -> None:
        self.scores: Scores | None = None
        self.synced = 0
        #: the node of the lowest score, where that is known
        self.first: Node | None = None
        self.to_reserve = ReservableNodes()


def shifted(
    columns: dict[Shape, Columns],
    gone: list[int],
    log: list[int],
    nodes: list[Node],
    score: Callable[[Node, Shape], float],
) -> dict[Shape, Columns]:
    """The columns that were read last, up to date, without the nodes that are gone. These had the positions
    ``gone``, in order, and are no longer among ``nodes``."""
    kept: dict[Shape, Columns] = {}
    able = ((s, c) for s, c in columns.items() if c.scores and not s.required_node)
    for shape, each in nlargest(_FEW_SHAPES, able, key=lambda each: each[1].synced):
        scores, late = each.scores, log[each.synced :]
        if scores is None or len(late) > _FEW_CHANGES:
            break
        for position in late:
            place = bisect_left(gone, position)
            if place == len(gone) or gone[place] != position:
                scores.each[position] = score(nodes[position - place], shape)
        scores.remove(gone)
        kept[shape] = Columns()
        kept[shape].scores = scores
    return kept
