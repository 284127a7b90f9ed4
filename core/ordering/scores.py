"""The lowest of many numbers that change one at a time: a score for each node (5.7).

A few thousand numbers are looked through in a microsecond or so. Where there are more, they stand in blocks,
and the lowest of each block is known: so the choice looks at one number a block and at one block, and
costs little more among 100,000 nodes than among 1,000.
"""

from __future__ import annotations

from math import inf
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["Column", "Scores"]

Column = npt.NDArray[np.float64]

#: so many are looked through as they are
_SMALL: Final = 4096


class _Blocks:
    """Numbers in blocks, about as many in each as there are blocks."""

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

    def __setitem__(self, place: int, value: float) -> None:
        values, lows, at = self.values, self._lows, place // self._size
        low = lows.item(at)
        was_lowest = values.item(place) == low
        values[place] = value
        if value <= low:
            lows[at] = value
        elif was_lowest:
            row = self._rows[at]
            lows[at] = row[row.argmin()]

    def lowest(self) -> int:
        at = int(self._lows.argmin())
        return at * self._size + int(self._rows[at].argmin())


class Scores:
    """``values`` in node order; infinite for nodes that are out of the question. They are changed
    through ``cells``, one at a time."""

    __slots__ = ("_blocks", "cells", "values")

    def __init__(self, values: Column) -> None:
        self._blocks = _Blocks(values) if len(values) > _SMALL else None
        self.values = values if self._blocks is None else self._blocks.values
        self.cells: Column | _Blocks = self.values if self._blocks is None else self._blocks

    def first(self) -> int:
        """The place of the lowest, the first among equals; -1 where there is none."""
        values = self.values
        if self._blocks is not None:
            place = self._blocks.lowest()
        elif len(values):
            place = int(values.argmin())
        else:
            return -1
        return place if values.item(place) != inf else -1
