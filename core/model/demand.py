"""Demand: what asks wait for, known at every level of the tree, best child first.

Demand is a set of bits: asks of some shape want a node, or a reservation, or a gang member wants its
placeholder. Every level (queue, lane, application) knows for each bit which of its children wait for
it, in a heap by the children's sort keys, and tells the level above only when the first child starts
to wait and when the last one stops. The next decision is found by walking down from the root along
the best child for any bit that is feasible. Asks that cannot be served are never looked at, and
nothing is ever sorted. A level with few waiting children has no heaps: comparing them is cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any, Final

from quadriga.core.model.lazy_heap import Key, LazyHeap

__all__ = ["EVERY_BIT", "FEW", "Key", "Level", "Ranking", "bits_of"]

#: all demand, also of shapes that do not exist yet
EVERY_BIT: Final = -1

#: a level with at most this many waiting children compares them and has no heaps
FEW: Final = 8


def bits_of(mask: int) -> Iterator[int]:
    """The single bits of a mask, lowest first."""
    while mask:
        bit = mask & -mask
        yield bit
        mask ^= bit


class Ranking(LazyHeap):
    """The children that wait for one bit, by their ranks.

    Ranks mostly grow (more is allocated, a share is larger), so entries surface early, never late.
    """

    __slots__ = ()

    def key_of(self, item: Any) -> Key:
        rank: Key = item.make_rank()
        return rank

    def first(self) -> Any:
        """The child with the smallest rank. There must be one."""
        entry = self._heap[0]
        child = entry[2]
        if child.rank is entry[0] and self._numbers.get(child) == entry[1]:
            return child  # the usual case
        return super().first()

    def tied(self, length: int) -> list[Any]:
        """The best child and all whose ranks begin with the same ``length`` parts."""
        best = self.first()
        if len(self._numbers) == 1:
            return [best]
        heap = self._heap
        head = heap[0][0][:length]
        # an entry's old key is at most its child's present one: larger than the best means no tie
        if all(entry[0][:length] > head for entry in heap[1:3]):
            return [best]
        found: list[Any] = []
        kept: list[tuple[Key, int, Any]] = []
        while self._numbers and len(found) < len(self._numbers):
            child = super().first()
            if child is None or child.rank[:length] != head:
                break
            found.append(child)
            kept.append(heappop(self._heap))
        for entry in kept:
            heappush(self._heap, entry)
        return found


class Level:
    """A level of the tree: its waiting children by bit, and the demand that it passes upwards.

    ``demand_below`` has the bits that some child waits for. ``blocked`` bits are not passed on: there
    is no quota for them here, or the application may not be served at all (``EVERY_BIT``). ``demand``
    is the rest, which the level above knows. ``few`` are the children that wait for anything while
    they are few; ``None``: they are in the heaps of ``waiting``, by bit, until no child waits.
    """

    __slots__ = ("above", "blocked", "demand", "demand_below", "few", "rank", "waiting")

    #: whether the walk down the tree ends here
    is_application = False

    def __init__(self) -> None:
        self.above: Level | None = None
        self.few: dict[Any, None] | None = {}
        self.waiting: dict[int, Any] = {}
        self.demand_below = 0
        self.blocked = 0
        self.demand = 0
        #: the sort key; ``None``: it has changed and must be made anew
        self.rank: Key | None = None

    def make_rank(self) -> Key:
        """Make the sort key anew, remember and return it."""
        raise NotImplementedError

    # -- demand ----------------------------------------------------------------------------------

    def announce(self, child: Any, bits: int) -> None:
        """The child, whose own demand is set already, starts to wait for these bits."""
        few = self.few
        if few is None:
            self._enter(child, bits)
        else:
            few[child] = None
            if len(few) > FEW:
                self.few = None
                for each in few:
                    self._enter(each, each.demand)
        self._add_demand(bits)

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
        """The child, whose own demand is set already, no longer waits for these bits."""
        few = self.few
        if few is not None:
            if not child.demand:
                few.pop(child, None)
            gone = bits & self.demand_below
            for each in few:
                gone &= ~each.demand
                if not gone:  # the usual case
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
        self._drop_demand(gone)

    def _add_demand(self, bits: int) -> None:
        """Some child waits for these bits."""
        if fresh := bits & ~self.demand_below:
            self.demand_below |= fresh
            self.demand = self.demand_below & ~self.blocked
            self._announce_above(fresh & ~self.blocked)

    def _drop_demand(self, bits: int) -> None:
        """No child waits for these bits any longer."""
        if bits:
            self.demand_below &= ~bits
            self.demand = self.demand_below & ~self.blocked
            self._withdraw_above(bits & ~self.blocked)

    def block(self, bits: int) -> None:
        """Stop passing on these bits."""
        fresh = bits & ~self.blocked
        self.blocked |= bits
        self.demand = self.demand_below & ~self.blocked
        self._withdraw_above(self.demand_below & fresh)

    def unblock(self, bits: int) -> None:
        """Pass these bits on again."""
        freed = self.blocked & bits
        self.blocked &= ~bits
        self.demand = self.demand_below & ~self.blocked
        self._announce_above(self.demand_below & freed)

    def stops(self) -> int:
        """The bits for which no child may be chosen, even where other bits lead to the child."""
        return self.blocked

    def _announce_above(self, bits: int) -> None:
        if bits and self.above is not None:
            self.above.announce(self, bits)

    def _withdraw_above(self, bits: int) -> None:
        if bits and self.above is not None:
            self.above.withdraw(self, bits)

    # -- order -----------------------------------------------------------------------------------

    def touch(self) -> None:
        """The rank may have become smaller: be ranked anew for all demand."""
        self.rank = None
        if self.above is not None:
            self.above.rerank(self, self.demand)

    def rerank(self, child: Any, bits: int) -> None:
        """The rank of a child that waits for these bits may have become smaller."""
        if self.few is None:
            for bit in bits_of(bits):
                self.waiting[bit].add(child)

    def reorder(self) -> None:
        """The children have new ranks, which cannot be compared with the old ones: rank all anew."""
        for bit, ranking in self.waiting.items():
            fresh = self.waiting[bit] = Ranking()
            for child in ranking:
                fresh.add(child)

    def best(self, feasible: int) -> Any:
        """The first child in order among those that wait for a feasible bit, or ``None``."""
        wanted = self.demand & feasible
        if not wanted:
            return None
        few = self.few
        if few is not None and len(few) == 1:
            return next(iter(few))
        found = None
        if few is not None:
            least: Key = ()
            for child in few:
                if child.demand & wanted:
                    rank = child.rank or child.make_rank()
                    if found is None or rank < least:
                        found, least = child, rank
            return found
        if not wanted & (wanted - 1):
            return self.waiting[wanted].first()
        for bit in bits_of(wanted):
            child = self.waiting[bit].first()
            if found is None or (
                child is not found
                and (child.rank or child.make_rank()) < (found.rank or found.make_rank())
            ):
                found = child
        return found
