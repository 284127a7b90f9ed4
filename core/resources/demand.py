"""Demand: what asks wait for, known at every level of the tree, best child first.

Demand is a set of bits. A bit says that asks of a shape wait for a node or a reservation, or that a gang
member waits for a placeholder. Every level (queue, lane, application) keeps a heap of its waiting
children for each bit, by rank, and notifies the level above only when the first child starts to wait
and when the last one stops. A decision walks down from the root along the best child for any feasible
bit. It never visits asks that cannot be served and sorts nothing. A level with few waiting children has
no heaps, because comparing the children is cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush, heapreplace
from typing import Any, Final

from quadriga.core.resources.lazy_heap import Key, LazyHeap

__all__ = ["EVERY_BIT", "MAX_COMPARED", "MAX_UNHEAPED", "Key", "Level", "Ranking", "bits_of"]

#: all demand, including shapes that do not exist yet
EVERY_BIT: Final = -1

#: at most this many waiting children are compared without heaps
MAX_UNHEAPED: Final = 8
#: the first children for at most this many bits are compared one by one
MAX_COMPARED: Final = 32


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


class _BitOrder:
    """Bits in the order of the first child that waits for each (D350).

    No entry of a ``known`` bit is later than its first child. Ranks mostly grow, so entries are corrected when
    they surface. Bits that are not feasible when they surface leave, and enter again when they are.
    """

    __slots__ = ("_heap", "known")

    def __init__(self) -> None:
        self.known = 0
        #: rank of the first child at the time of entry, and bit; also of bits that are known no longer
        self._heap: list[tuple[Key, int]] = []

    def first(self, demand: int, waiting: dict[int, Any]) -> Any:
        """The first child that waits for any of these bits, each of which has a heap."""
        heap = self._heap
        if len(heap) > 2 * (MAX_COMPARED + self.known.bit_count()):
            heap.clear()
            self.known = 0
        for bit in bits_of(demand & ~self.known):
            child = waiting[bit].first()
            heappush(heap, (child.rank or waiting[bit].key_of(child), bit))
        self.known |= demand
        while True:
            key, bit = heap[0]
            if not bit & demand:
                heappop(heap)
                self.known &= ~bit
                continue
            child = waiting[bit].first()
            rank = child.rank or waiting[bit].key_of(child)
            if rank == key:
                return child
            heapreplace(heap, (rank, bit))


class Level:
    """A level of the tree: its waiting children by bit, and the demand that it passes upwards."""

    __slots__ = (
        "above",
        "bit_order",
        "blocked",
        "demand",
        "demand_below",
        "few",
        "rank",
        "waiting",
    )

    #: whether the walk down the tree ends at this level
    is_application = False

    def __init__(self) -> None:
        self.above: Level | None = None
        #: the waiting children; ``None`` if they are too many and are in ``waiting``
        self.few: dict[Any, None] | None = {}
        #: heaps of the waiting children by bit, while ``few`` is ``None``
        self.waiting: dict[int, Any] = {}
        #: these bits in order, once they are many
        self.bit_order: _BitOrder | None = None
        #: bits that some child waits for
        self.demand_below = 0
        #: bits not passed upwards, for lack of quota or because the level is closed (``EVERY_BIT``)
        self.blocked = 0
        #: bits passed upwards: ``demand_below`` without ``blocked``
        self.demand = 0
        #: the sort key; ``None`` if it has changed and must be computed
        self.rank: Key | None = None

    def make_rank(self) -> Key:
        """Compute, store and return the rank."""
        raise NotImplementedError

    # -- demand ----------------------------------------------------------------------------------

    def announce(self, child: Any, bits: int) -> None:
        """A child starts to wait for these bits; its own demand is already set."""
        few = self.few
        if few is None:
            self._enter(child, bits)
        else:
            few[child] = None
            if len(few) > MAX_UNHEAPED:
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
        if self.bit_order is not None:
            self.bit_order.known &= ~bits

    def new_ranking(self, bit: int) -> Any:
        """An empty heap for the children that wait for the bit."""
        return Ranking()

    def withdraw(self, child: Any, bits: int) -> None:
        """A child no longer waits for these bits; its own demand is already set."""
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
                self.bit_order = None
        self._drop_demand(gone)

    def _add_demand(self, bits: int) -> None:
        """Some child waits for these bits."""
        if fresh := bits & ~self.demand_below:
            self.demand_below |= fresh
            self.demand = self.demand_below & ~self.blocked
            self._announce_above(fresh & ~self.blocked)

    def _drop_demand(self, bits: int) -> None:
        """No child waits for these bits."""
        if bits:
            self.demand_below &= ~bits
            self.demand = self.demand_below & ~self.blocked
            self._withdraw_above(bits & ~self.blocked)

    def block(self, bits: int) -> None:
        """Stop passing these bits upwards."""
        fresh = bits & ~self.blocked
        self.blocked |= bits
        self.demand = self.demand_below & ~self.blocked
        self._withdraw_above(self.demand_below & fresh)

    def unblock(self, bits: int) -> None:
        """Pass these bits upwards again."""
        freed = self.blocked & bits
        self.blocked &= ~bits
        self.demand = self.demand_below & ~self.blocked
        self._announce_above(self.demand_below & freed)

    def stops(self) -> int:
        """The bits for which no child may be chosen, even if other bits lead to the child."""
        return self.blocked

    def _announce_above(self, bits: int) -> None:
        if bits and self.above is not None:
            self.above.announce(self, bits)

    def _withdraw_above(self, bits: int) -> None:
        if bits and self.above is not None:
            self.above.withdraw(self, bits)

    # -- order -----------------------------------------------------------------------------------

    def touch(self) -> None:
        """The rank may have become smaller: enter it in the heaps above for all demand."""
        self.rank = None
        if self.above is not None:
            self.above.rerank(self, self.demand)

    def rerank(self, child: Any, bits: int) -> None:
        """The rank of a child that waits for these bits may have become smaller."""
        if self.few is None:
            for bit in bits_of(bits):
                self.waiting[bit].add(child)
            if self.bit_order is not None:
                self.bit_order.known &= ~bits

    def reorder(self) -> None:
        """Rebuild the heaps: the new ranks of the children cannot be compared with the old ones."""
        self.bit_order = None
        for bit, ranking in self.waiting.items():
            fresh = self.waiting[bit] = self.new_ranking(bit)
            for child in ranking:
                fresh.add(child)

    def best(self, feasible: int) -> Any:
        """The first child in order that waits for a feasible bit, or ``None``."""
        demand = self.demand & feasible
        if not demand:
            return None
        few = self.few
        if few is not None and len(few) == 1:
            return next(iter(few))
        found = None
        if few is not None:
            least: Key = ()
            for child in few:
                if child.demand & demand:
                    rank = child.rank or child.make_rank()
                    if found is None or rank < least:
                        found, least = child, rank
            return found
        if not demand & (demand - 1):
            return self.waiting[demand].first()
        if demand.bit_count() > MAX_COMPARED:
            return self.first_by_bit(demand)
        for bit in bits_of(demand):
            child = self.waiting[bit].first()
            if found is None or (
                child is not found
                and (child.rank or child.make_rank()) < (found.rank or found.make_rank())
            ):
                found = child
        return found

    def first_by_bit(self, demand: int) -> Any:
        """The first child that waits for any of these bits, which are many."""
        order = self.bit_order
        if order is None:
            order = self.bit_order = _BitOrder()
        return order.first(demand, self.waiting)
