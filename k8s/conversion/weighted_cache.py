"""A cache that is bounded by the size of its keys, not by their number (Q16).

What is parsed from a text takes memory in proportion to it. A bound on the number of entries alone would let a
few hundred large texts fill the memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class WeightedCache(Generic[K, V]):
    """A least recently used cache of values made from keys. It is not thread-safe."""

    def __init__(self) -> None:
        self._found: OrderedDict[K, tuple[V, int]] = OrderedDict()
        #: sum over all entries
        self.weight = 0

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: K, weight: int, most: int, make: Callable[[], V]) -> V:
        """Return the value of the key, made if it is missing. ``weight`` is that of the entry, ``most`` the
        limit of all entries together: a heavier one is not kept."""
        entry = self._found.get(key)
        if entry is not None:
            self._found.move_to_end(key)
            return entry[0]
        value = make()
        if weight <= most:
            self._found[key] = value, weight
            self.weight += weight
        self._shrink(most)
        return value

    def _shrink(self, most: int) -> None:
        """Drop the least recently used entries."""
        while self.weight > most:
            _, (_, weight) = self._found.popitem(last=False)
            self.weight -= weight

    def clear(self) -> None:
        """Drop all entries."""
        self._found.clear()
        self.weight = 0
