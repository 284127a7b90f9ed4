"""Who waits for what, best first, at every level of the tree.

A *want* is a bit: some shape of ask wants a node, or a reservation, or a gang member wants its
placeholder. Every level (queue, application) knows for each bit which of its children wait for it,
in a heap by the children's own sort keys, and tells its parent only of the first that starts to wait
and the last that stops. To find the next decision, walk down from the root along the best child for
any bit that can be served now. Nobody who cannot be served is looked at, and nothing is ever sorted.
A level of which only a few children wait has no heaps: a look at each of them is cheaper.

Keys only grow on the hot path (more allocated, a larger share), so a heap entry with an old key
surfaces too early, never too late, and is corrected then. Where a key shrinks, ``touch`` says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush, heapreplace
from typing import Any, Final

__all__ = ["EVERY_BIT", "FEW", "Level", "Ranking", "bits_of"]

#: all wants, also those that do not exist yet
EVERY_BIT: Final = -1

#: up to so many waiting children a look at each is cheaper than the heaps
FEW: Final = 8

Key = tuple[Any, ...]


def bits_of(mask: int) -> Iterator[int]:
    """The single bits of a mask, lowest first."""
    while mask:
        bit = mask & -mask
        yield bit
        mask ^= bit


class Ranking:
    """The children that wait for one bit, smallest key first."""

    __slots__ = ("_count", "_heap", "_live")

    def __init__(self) -> None:
        self._heap: list[tuple[Key, int, Any]] = []
        #: the number of each child's own entry
        self._live: dict[Any, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._live)

    def add(self, child: Any) -> None:
        """Let the child wait here, or wait here with its new key."""
        key = child.rank if child.rank is not None else child.make_rank()
        self._count += 1
        self._live[child] = self._count
        heappush(self._heap, (key, self._count, child))
        if len(self._heap) > 2 * len(self._live) + 8:
            live = self._live
            self._heap = sorted(entry for entry in self._heap if live.get(entry[2]) == entry[1])

    def discard(self, child: Any) -> None:
        self._live.pop(child, None)

    def top(self) -> Any:
        """The child with the smallest key. There must be one."""
        entry = self._heap[0]
        child = entry[2]
        if child.rank is entry[0] and self._live.get(child) == entry[1]:
            return child  # as most times
        return self._surface()

    def tied(self, length: int) -> list[Any]:
        """The best child and all whose keys begin with the same ``length`` parts."""
        best = self.top()
        if len(self._live) == 1:
            return [best]
        heap = self._heap
        head = heap[0][0][:length]
        # an entry's old key is at most its child's present one: larger than the best means no tie
        if all(entry[0][:length] > head for entry in heap[1:3]):
            return [best]
        found: list[Any] = []
        kept: list[tuple[Key, int, Any]] = []
        while self._live and len(found) < len(self._live):
            child = self._surface()
            if child is None or (child.rank or child.make_rank())[:length] != head:
                break
            found.append(child)
            kept.append(heappop(self._heap))
        for entry in kept:
            heappush(self._heap, entry)
        return found

    def _surface(self) -> Any:
        """Bring the best child's entry to the top of the heap; ``None`` if no entry is left there.

        Entries of children that wait no longer are dropped, those with an old key renewed.
        """
        heap, live = self._heap, self._live
        while heap:
            entry = heap[0]
            child = entry[2]
            if live.get(child) != entry[1]:
                heappop(heap)
                continue
            key = child.rank
            if key is entry[0]:
                return child
            if key is None:
                key = child.make_rank()
            self._count += 1
            live[child] = self._count
            heapreplace(heap, (key, self._count, child))
        return None


class Level:
    """A level of the tree: its waiting children by bit, and what it passes on to its parent.

    ``mask`` has the bits that some child waits for. ``blocked`` bits are not passed on: no quota
    for them here, or the application may not be served at all (``EVERY_BIT``). ``offered`` is the
    rest, the bits that the parent knows of. ``few`` are the
    children that wait for anything, while they are few; ``None``: they are in the heaps of
    ``waiting``, by bit, until nobody waits any more.
    """

    __slots__ = ("above", "blocked", "few", "mask", "offered", "rank", "waiting")

    #: whether the walk down the tree ends here
    is_application = False

    def __init__(self) -> None:
        self.above: Level | None = None
        self.few: dict[Any, None] | None = {}
        self.waiting: dict[int, Any] = {}
        self.mask = 0
        self.blocked = 0
        self.offered = 0
        self.rank: Key | None = None

    def make_rank(self) -> Key:
        """Make the sort key anew, remember and return it."""
        raise NotImplementedError

    def announce(self, child: Any, bits: int) -> None:
        """The child, which knows it already, starts to wait for these bits."""
        few = self.few
        if few is None:
            self._enter(child, bits)
        else:
            few[child] = None
            if len(few) > FEW:
                self.few = None
                for each in few:
                    self._enter(each, each.offered)
        self._wanted(bits)

    def _enter(self, child: Any, bits: int) -> None:
        waiting = self.waiting
        for bit in bits_of(bits):
            ranking = waiting.get(bit)
            if ranking is None:
                ranking = waiting[bit] = self.new_ranking(bit)
            ranking.add(child)

    def new_ranking(self, bit: int) -> Any:
        """An empty heap for the children that wait for the bit."""
        return Ranking()

    def withdraw(self, child: Any, bits: int) -> None:
        """The child, which knows it already, no longer waits for these bits."""
        few = self.few
        if few is not None:
            if not child.offered:
                few.pop(child, None)
            gone = bits & self.mask
            for each in few:
                gone &= ~each.offered
                if not gone:  # as most times
                    return
        else:
            gone = 0
            waiting = self.waiting
            for bit in bits_of(bits):
                ranking = waiting.get(bit)
                if ranking is not None:
                    ranking.discard(child)
                    if ranking:
                        continue
                    del waiting[bit]
                gone |= bit
            if not waiting:
                self.few = {}
        self._unwanted(gone)

    def _wanted(self, bits: int) -> None:
        """Somebody below waits for these bits."""
        if fresh := bits & ~self.mask:
            self.mask |= fresh
            self.offered = self.mask & ~self.blocked
            self._pass_on(fresh & ~self.blocked)

    def _unwanted(self, bits: int) -> None:
        """Nobody below waits for these bits any more."""
        if bits:
            self.mask &= ~bits
            self.offered = self.mask & ~self.blocked
            self._take_back(bits & ~self.blocked)

    def reorder(self) -> None:
        """The order of the children goes by other keys now, and they have forgotten their old ones:
        rank them all anew."""
        for bit, ranking in self.waiting.items():
            fresh = self.waiting[bit] = Ranking()
            for child in ranking:
                fresh.add(child)

    def block(self, bits: int) -> None:
        """Stop passing on these bits."""
        fresh = bits & ~self.blocked
        self.blocked |= bits
        self.offered = self.mask & ~self.blocked
        self._take_back(self.mask & fresh)

    def unblock(self, bits: int) -> None:
        """Pass these bits on again."""
        freed = self.blocked & bits
        self.blocked &= ~bits
        self.offered = self.mask & ~self.blocked
        self._pass_on(self.mask & freed)

    def stops(self) -> int:
        """The bits that nobody below may be chosen for, even where other bits lead there."""
        return self.blocked

    def touch(self) -> None:
        """The key may have become smaller: be ranked anew for every bit passed on."""
        self.rank = None
        if self.above is not None:
            self.above.rerank(self, self.offered)

    def rerank(self, child: Any, bits: int) -> None:
        """The key of a child that waits for these bits may have become smaller."""
        if self.few is None:
            for bit in bits_of(bits):
                self.waiting[bit].add(child)

    def best(self, able: int) -> Any:
        """The first child in order among those that wait for a bit of ``able``, or ``None``."""
        wanted = self.offered & able
        if not wanted:
            return None
        few = self.few
        if few is not None and len(few) == 1:
            return next(iter(few))
        found = None
        if few is not None:
            least: Key = ()
            for child in few:
                if child.offered & wanted:
                    rank = child.rank or child.make_rank()
                    if found is None or rank < least:
                        found, least = child, rank
            return found
        if not wanted & (wanted - 1):
            return self.waiting[wanted].top()
        for bit in bits_of(wanted):
            child = self.waiting[bit].top()
            if found is None or (
                child is not found
                and (child.rank or child.make_rank()) < (found.rank or found.make_rank())
            ):
                found = child
        return found

    def _pass_on(self, bits: int) -> None:
        if bits and self.above is not None:
            self.above.announce(self, bits)

    def _take_back(self, bits: int) -> None:
        if bits and self.above is not None:
            self.above.withdraw(self, bits)
