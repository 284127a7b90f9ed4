"""The lowest of many numbers that change one at a time: a score for each node (5.7).

A few thousand numbers are searched in a microsecond or so. Larger columns are kept in blocks, and the
lowest number of each block is known. So a search reads one number of each block, and then one block:
among 100,000 nodes it costs little more than among 1,000.
"""

from __future__ import annotations

from math import inf
from typing import Final

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]

#: columns of at most this many numbers are searched as a whole
_SMALL: Final = 4096


class _Blocks:
    """Numbers in blocks; there are about as many blocks as numbers in each."""

    __slots__ = ("_lows", "_rows", "_size", "values")

    def __init__(self, values: Column) -> None:
        number = len(values)
        self._size = size = 1 << number.bit_length() // 2
        padded = np.full(-(-number // size) * size, inf)
        padded[:number] = values
        blocks = padded.reshape(-1, size)
        self._lows: Column = blocks.min(axis=1)
        self._rows: list[Column] = list(blocks)
        self.values = padded[:number]

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
        self._blocks = _Blocks(values) if len(values) > _SMALL else None
        self.values = values if self._blocks is None else self._blocks.values
        self.each: Column | _Blocks = self.values if self._blocks is None else self._blocks

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
