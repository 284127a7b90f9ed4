"""Which shapes fit in given free quantities.

For each resource type the shapes are kept in order of the quantity that they request. So one search for each
type answers for all shapes at once, however many there are.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, Final

from quadriga.core.resources.shapes import Shape

#: a table of more shapes would take more memory than it saves time
_MOST: Final = 16_384
#: with more shapes than this, sums are kept for each ``_STEP`` shapes instead of for each shape
_MANY: Final = 2_048
_STEP: Final = 32


class _Type:
    """Shapes by their quantity of one resource type. ``numbers`` are their bit numbers, and ``sums[n]`` has the
    bits of the first ``n * step`` of them and of all shapes that request none of the type."""

    __slots__ = ("numbers", "position", "quantities", "step", "sums")

    def __init__(self, position: int, others: int, step: int) -> None:
        self.position = position
        self.step = step
        self.quantities: list[int] = []
        self.numbers: list[int] = []
        self.sums = [others]

    def add(self, bit: int, quantity: int) -> None:
        """Add a shape; ``quantity`` is 0 if it requests none of the type."""
        numbers, sums, step = self.numbers, self.sums, self.step
        if not quantity:
            self.sums = [each | bit for each in sums]
            return
        at = bisect_right(self.quantities, quantity)
        self.quantities.insert(at, quantity)
        numbers.insert(at, bit.bit_length() - 1)
        if step == 1:
            sums[at + 1 :] = [each | bit for each in sums[at:]]
            return
        n = at // step + 1  # from here on, the last shape of each sum leaves it
        leaving = numbers[n * step :: step]
        sums[n:] = [each & ~(1 << last) | bit for each, last in zip(sums[n:], leaving, strict=True)]
        if len(numbers) % step == 0:
            sums.append(_with(sums[-1], numbers[-step:]))

    def remove(self, bit: int, quantity: int) -> None:
        numbers, sums, step = self.numbers, self.sums, self.step
        if not quantity:
            self.sums = [each & ~bit for each in sums]
            return
        at = numbers.index(bit.bit_length() - 1, bisect_left(self.quantities, quantity))
        del self.quantities[at], numbers[at]
        if step == 1:
            sums[at + 1 :] = [each & ~bit for each in sums[at + 2 :]]
            return
        n = at // step + 1
        del sums[len(numbers) // step + 1 :]
        joining = numbers[n * step - 1 :: step]
        sums[n:] = [each & ~bit | 1 << last for each, last in zip(sums[n:], joining, strict=True)]

    def coarsen(self) -> None:
        """Keep the sums for each ``_STEP`` shapes."""
        self.step, self.sums = _STEP, self.sums[::_STEP]

    def first(self, count: int) -> int:
        """The first ``count`` shapes, and those that request none of the type."""
        whole = count // self.step
        return _with(self.sums[whole], self.numbers[whole * self.step : count])


def _with(bits: int, numbers: list[int]) -> int:
    for number in numbers:
        bits |= 1 << number
    return bits


class Fitting:
    """Shapes, by their bits for a node now (``Shape.allocate``). ``every`` has all of them."""

    __slots__ = ("_number", "_step", "_types", "every")

    def __init__(self) -> None:
        self.every = 0
        self._number = 0
        self._step = 1
        self._types: list[_Type] = []

    def add(self, shape: Shape) -> bool:
        """Add a shape, if it is not known. Return False if there are too many."""
        bit = shape.allocate
        if self.every & bit:
            return True
        if self._number >= _MOST:
            return False
        requested = dict(shape.need)
        for at in sorted(requested.keys() - {each.position for each in self._types}):
            self._types.append(_Type(at, self.every, self._step))
        for each in self._types:
            each.add(bit, requested.get(each.position, 0))
        self.every |= bit
        self._number += 1
        if self._number > _MANY and self._step == 1:
            self._step = _STEP
            for each in self._types:
                each.coarsen()
        return True

    def remove(self, shape: Shape) -> None:
        """Remove a shape, if it is known."""
        bit = shape.allocate
        if not self.every & bit:
            return
        requested = dict(shape.need)
        for each in self._types:
            each.remove(bit, requested.get(each.position, 0))
        self._types = [each for each in self._types if each.quantities]
        self.every &= ~bit
        self._number -= 1
        if not self._types:
            self._step = 1

    def within(self, free: Any) -> int:
        """The bits of the shapes that fit in these quantities."""
        found = self.every
        for each in self._types:
            count = bisect_right(each.quantities, free[each.position])
            found &= each.sums[count] if each.step == 1 else each.first(count)
        return found
