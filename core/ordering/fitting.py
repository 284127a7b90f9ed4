"""Which shapes fit in given free quantities.

For each resource type the requested quantities are kept in order, each with the shapes that request no
more of the type. So one search for each type answers for all shapes at once, however many there are.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, Final

from quadriga.core.resources.shapes import Shape

#: a table of more shapes would take more memory than it saves time
_MOST: Final = 2048


class _Type:
    """The quantities of one resource type: ``within[n]`` has the shapes that request none of the type or at
    most the first ``n`` of ``quantities``."""

    __slots__ = ("position", "quantities", "within")

    def __init__(self, position: int, others: int) -> None:
        self.position = position
        self.quantities: list[int] = []
        self.within = [others]

    def add(self, bit: int, quantity: int) -> None:
        """Add a shape; ``quantity`` is 0 if it requests none of the type."""
        quantities, within = self.quantities, self.within
        first = 0
        if quantity:
            first = bisect_left(quantities, quantity)
            if first == len(quantities) or quantities[first] != quantity:
                quantities.insert(first, quantity)
                within.insert(first + 1, within[first])
            first += 1
        for at in range(first, len(within)):
            within[at] |= bit

    def remove(self, bit: int, quantity: int) -> None:
        quantities, within = self.quantities, self.within
        for at in range(len(within)):
            within[at] &= ~bit
        if quantity:
            at = bisect_left(quantities, quantity)
            if within[at] == within[at + 1]:  # no other shape requests this quantity
                del quantities[at], within[at + 1]


class Fitting:
    """Shapes, by their bits for a node now (``Shape.allocate``). ``every`` has all of them."""

    __slots__ = ("_number", "_types", "every")

    def __init__(self) -> None:
        self.every = 0
        self._number = 0
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
            self._types.append(_Type(at, self.every))
        for each in self._types:
            each.add(bit, requested.get(each.position, 0))
        self.every |= bit
        self._number += 1
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

    def within(self, free: Any) -> int:
        """The bits of the shapes that fit in these quantities."""
        found = self.every
        for each in self._types:
            found &= each.within[bisect_right(each.quantities, free[each.position])]
        return found
