"""A heap whose entries are checked only when they surface.

Sort keys of queues, applications and asks change far more often than one of them is first. So an entry
is not moved when its item's key grows: it surfaces too early, and is corrected then. Where a key
shrinks, the item is added again. An item that is discarded leaves its entry behind, which is dropped
when it surfaces.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush, heapreplace
from typing import Any, Final

__all__ = ["Key", "LazyHeap"]

#: a sort key: smaller comes first
Key = tuple[Any, ...]

#: the heap is rebuilt when it has this many entries more than twice its items
_SLACK: Final = 8


class LazyHeap:
    """Items by their keys, smallest first. Among equal keys the item that was added first is first.

    An item may remember its key in ``rank``, which is ``None`` while the key is not known. Then a
    subclass says what it is (``key_of``).
    """

    __slots__ = ("_count", "_heap", "_numbers")

    def __init__(self) -> None:
        #: (key when it was entered, number of the entry, item)
        self._heap: list[tuple[Key, int, Any]] = []
        #: the number of the one entry of each item that counts
        self._numbers: dict[Any, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._numbers)

    def key_of(self, item: Any) -> Key:
        """The key of the item now."""
        raise NotImplementedError

    def add(self, item: Any) -> None:
        """Add the item, or tell that its key may have become smaller."""
        key, numbers = item.rank, self._numbers
        if key is None:
            key = self.key_of(item)
        self._count += 1
        numbers[item] = self._count
        heappush(self._heap, (key, self._count, item))
        if len(self._heap) > 2 * len(numbers) + _SLACK:
            self._heap = sorted(entry for entry in self._heap if numbers.get(entry[2]) == entry[1])

    def discard(self, item: Any) -> None:
        """The item is no longer here."""
        self._numbers.pop(item, None)

    def first(self) -> Any:
        """The item with the smallest key, or ``None``. Its entry is now on top of the heap."""
        heap, numbers = self._heap, self._numbers
        while heap:
            entry = heap[0]
            item = entry[2]
            if numbers.get(item) != entry[1]:
                heappop(heap)
                continue
            key = item.rank
            if key is None:
                key = self.key_of(item)
            if key is entry[0] or key == entry[0]:
                return item
            self._count += 1
            numbers[item] = self._count
            heapreplace(heap, (key, self._count, item))
        return None
