"""The lowest of many numbers that change one at a time: a score for each node (5.7).

A few thousand numbers are looked through in a microsecond or two. Where there are more, they stand in
blocks, and the lowest of each block is known: so the choice looks at one number a block and at one
block, and costs hardly more among 100,000 nodes than among 1,000.
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
_BLOCK: Final = 512


class Scores:
    """``values`` in node order; infinite for nodes that are out of the question."""

    __slots__ = ("_blocks", "_lows", "values")

    def __init__(self, values: Column) -> None:
        self._lows: Column | None = None
        self._blocks: Column = values
        number = len(values)
        if number > _SMALL:
            padded = np.full(-(-number // _BLOCK) * _BLOCK, inf)
            padded[:number] = values
            self._blocks = padded.reshape(-1, _BLOCK)
            self._lows = self._blocks.min(axis=1)
            values = padded[:number]
        self.values = values

    def __setitem__(self, place: int, value: float) -> None:
        lows = self._lows
        if lows is None:
            self.values[place] = value
            return
        at = place // _BLOCK
        row, low = self._blocks[at], lows[at]
        was_lowest = self.values[place] == low
        self.values[place] = value
        if value <= low:
            lows[at] = value
        elif was_lowest:
            lows[at] = row[row.argmin()]

    def first(self) -> int:
        """The place of the lowest, the first among equals; -1 where there is none."""
        values, lows = self.values, self._lows
        if lows is not None:
            at = int(lows.argmin())
            place = at * _BLOCK + int(self._blocks[at].argmin())
        elif len(values):
            place = int(values.argmin())
        else:
            return -1
        return place if values.item(place) != inf else -1
