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


class Scores:
    """``values`` in node order; infinite for nodes that are out of the question."""

    __slots__ = ("_block", "_lows", "_rows", "values")

    def __init__(self, values: Column) -> None:
        self._lows: Column | None = None
        self._rows: list[Column] = []
        self._block = 1
        number = len(values)
        if number > _SMALL:
            self._block = (
                1 << number.bit_length() // 2
            )  # about as many in a block as there are blocks
            padded = np.full(-(-number // self._block) * self._block, inf)
            padded[:number] = values
            blocks = padded.reshape(-1, self._block)
            self._lows = blocks.min(axis=1)
            self._rows = list(blocks)
            values = padded[:number]
        self.values = values

    def __setitem__(self, place: int, value: float) -> None:
        values, lows = self.values, self._lows
        if lows is None:
            values[place] = value
            return
        at = place // self._block
        low = lows.item(at)
        was_lowest = values.item(place) == low
        values[place] = value
        if value <= low:
            lows[at] = value
        elif was_lowest:
            row = self._rows[at]
            lows[at] = row[row.argmin()]

    def first(self) -> int:
        """The place of the lowest, the first among equals; -1 where there is none."""
        values, lows = self.values, self._lows
        if lows is not None:
            at = int(lows.argmin())
            place = at * self._block + int(self._rows[at].argmin())
        elif len(values):
            place = int(values.argmin())
        else:
            return -1
        return place if values.item(place) != inf else -1
