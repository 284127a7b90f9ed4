"""A heap whose entries are checked only when they surface.

The sort keys of queues, applications and asks change far more often than the first item is read. So an
entry stays where it is when the key of its item grows; it surfaces too early and is corrected then. If
the key shrinks, the caller adds the item again. The entry of a discarded item is dropped when it
surfaces.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush, heapreplace
from typing import Any, Final

#: a sort key; smaller comes first
Key = tuple[Any, ...]

#: a heap has at most this many entries more than twice its items; beyond, it is rebuilt
_SLACK: Final = 8


class LazyHeap:
    """Items by their keys, smallest first. Among equal keys the item added first is first.

    An item stores its key in ``rank``, or ``None`` there; then ``key_of`` of the subclass computes it.
    """

    __slots__ = ("_count", "_heap", "_numbers")

    def __init__(self) -> None:
        #: entries: key at the time of entry, number of the entry, item
        self._heap: list[tuple[Key, int, Any]] = []
        #: number of the valid entry of each item
        self._numbers: dict[Any, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._numbers)

    def __contains__(self, item: object) -> bool:
        return item in self._numbers

    def key_of(self, item: Any) -> Key:
        """The present key of the item."""
        raise NotImplementedError

    def add(self, item: Any) -> None:
        """Add the item, or enter it again because its key may have become smaller."""
        key, numbers = item.rank, self._numbers
        if key is None:
            key = self.key_of(item)
        self._count += 1
        numbers[item] = self._count
        heappush(self._heap, (key, self._count, item))
        if len(self._heap) > 2 * len(numbers) + _SLACK:
            self._heap = sorted(entry for entry in self._heap if numbers.get(entry[2]) == entry[1])

    def discard(self, item: Any) -> None:
        """Remove the item."""
        self._numbers.pop(item, None)

    def renew(self) -> None:
        """Rebuild the heap: the new keys cannot be compared with the old ones."""
        items = list(self._numbers)
        self._numbers.clear()
        self._heap.clear()
        for item in items:
            self.add(item)

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
            if key is entry[0]:  # the usual case
                return item
            if key is None:
                key = self.key_of(item)
            if key == entry[0]:
                return item
            self._count += 1
            numbers[item] = self._count
            heapreplace(heap, (key, self._count, item))
        return None
