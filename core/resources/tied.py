"""Child queues of equal rank: the first of them is known without looking at all of them (5.4).

Among them the exact share decides, then strictly more pending, then the name. "More" is a partial order over
several types, so the first one depends on all. A tree over the names says for each range of names which of them
is first there; a queue that changes costs one path through the tree. Decisions change one queue or two.
"""

from __future__ import annotations

from functools import reduce
from heapq import heappop, heappush
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from quadriga.core.resources.demand import Ranking, bits_of

if TYPE_CHECKING:
    from quadriga.core.resources.demand import Key
    from quadriga.core.resources.vectors import Totals


#: children are gathered if at most this many wait for a bit on average
_SPARSE: Final = 4


class Tied:
    """The children that wait for one bit and have this rank; each came up as the best one in its heap."""

    __slots__ = ("members", "rank")

    def __init__(self, rank: Key) -> None:
        self.rank = rank
        self.members: dict[Any, None] = {}


class Siblings(Ranking):
    """The child queues that wait for one bit. Those of equal rank that come up leave the heap and stay tied until
    they change. ``log`` is told who joins and leaves."""

    __slots__ = ("_log", "_ranks", "_ties")

    def __init__(self, log: list[Any]) -> None:
        super().__init__()
        self._log = log
        self._ties: dict[Key, Tied] = {}
        #: a heap of the ranks of these, and of some that are gone
        self._ranks: list[Key] = []

    def add(self, item: Any) -> None:
        if item.tied:
            self._leave(item)
        super().add(item)

    def discard(self, item: Any) -> None:
        self._leave(item)
        super().discard(item)

    def _leave(self, child: Any) -> None:
        tied = child.tied.pop(self, None)
        if tied is not None:
            self._log.append(child)
            del tied.members[child]
            if not tied.members:
                del self._ties[tied.rank]

    def best(self, *, alone: bool = True) -> Any:
        """The best child, or ``Tied`` if it is not the only one of its rank, or may not stay ``alone``."""
        ties, ranks, heap = self._ties, self._ranks, self._heap
        while ranks and ranks[0] not in ties:
            heappop(ranks)
        first = self.first()
        if ranks and (first is None or ranks[0] < first.rank):
            return ties[ranks[0]]
        rank = first.rank
        tied = ties.get(rank)
        if tied is None:
            # the key of an entry never exceeds the present key of its child: a larger one rules out a tie
            if alone and not [1 for entry in heap[1:3] if entry[0] <= rank]:
                return first
            tied = ties[rank] = Tied(rank)
            heappush(ranks, rank)
        while first is not None and first.rank == rank:
            heappop(heap)
            self._numbers[first] = 0
            tied.members[first] = None
            first.tied[self] = tied
            self._log.append(first)
            first = self.first()
        return tied


class Gathered(Siblings):
    """The child queues that wait for any of many bits (D350)."""

    __slots__ = ("bits",)

    def __init__(self, log: list[Any]) -> None:
        super().__init__(log)
        self.bits = 0

    def gather(self, bits: int, waiting: dict[int, Any]) -> bool:
        """Have the children that wait for these bits, each of which has a heap. Return False, and change nothing,
        if that takes longer than to look at each bit."""
        changed = [waiting[bit] for bit in bits_of(bits ^ self.bits) if bit in waiting]
        if sum(map(len, changed)) > _SPARSE * bits.bit_count():
            return False
        self.bits = bits
        for child in chain.from_iterable(changed):
            if not child.demand & bits:
                self.discard(child)
            elif child not in self:
                self.add(child)
        return True

    def clear(self) -> None:
        """Have none."""
        for child in list(self):
            self.discard(child)
        self.bits = 0


#: the queues of least share in a range of names: the first of them, the largest pending of all by type, and whether
#: one of them has all of that
_Range = tuple[Any, "Totals", bool]


def _joined(left: _Range, right: _Range) -> _Range:
    """Two adjacent ranges as one. First is the last queue that has more than each before it."""
    (first, most, reached), (second, more, also) = left, right
    (one, whole), (other, of) = first.share, second.share
    if one * of != other * whole:
        return left if one * of < other * whole else right
    both = list(map(max, most, more))
    full = (reached and both == most) or (also and both == more)
    return (second if exceeds(second.pending, most, reached) else first), both, full


def exceeds(pending: Totals, most: Totals, reached: bool = True) -> bool:
    """Whether this is more than each of some amounts: ``most`` of each type, which one of them has ``reached``."""
    return not reached if pending == most else not any(map(int.__lt__, pending, most))


def first_in_order(queues: list[Any]) -> Any:
    """The first of these queues of equal rank, which are in the order of their names."""
    return reduce(_joined, [(queue, queue.pending, True) for queue in queues])[0]


def first_of(queues: list[Any]) -> Any:
    """The first of some children of one parent (5.4)."""
    if len(queues) == 1:
        return queues[0]
    best: Any = None
    head: Key = ()
    tied: list[Any] | None = None
    for queue in queues:
        rank = queue.rank or queue.make_rank()
        if best is None or rank < head:
            best, head, tied = queue, rank, None
        elif rank == head:
            tied = [best] if tied is None else tied
            tied.append(queue)
    return best if tied is None else _first_of_tied(tied)


def _first_of_tied(tied: list[Any]) -> Any:
    """The first of queues with equal ranks: by exact share, then by more pending, then by name."""
    if len(tied) > 2:
        return first_in_order(sorted(tied, key=attrgetter("name")))
    first, second = tied
    used, most = first.share[0] * second.share[1], second.share[0] * first.share[1]
    if used != most:
        return first if used < most else second
    if second.name < first.name:
        first, second = second, first
    return second if exceeds(second.pending, first.pending) else first


class FirstOfTied:
    """The first child of some groups of tied ones. ``slots`` numbers the names of all children in order."""

    __slots__ = ("_groups", "_nodes", "_size", "_slots", "_synced")

    def __init__(self, groups: tuple[Tied, ...], slots: dict[str, int]) -> None:
        self._groups = groups
        self._slots = slots
        self._size = 1 << len(slots).bit_length()
        #: a binary tree: the nodes below ``at`` are 2 ``at`` and 2 ``at`` + 1
        self._nodes: dict[int, _Range] = {}
        #: the length of the log when the tree was brought up to date
        self._synced = -1

    def first(self, log: list[Any]) -> Any:
        """The first child; ``log`` has those that have joined or left."""
        nodes, groups, touched = self._nodes, self._groups, set()
        late = log[self._synced :]
        if self._synced < 0:
            late = [child for group in groups for child in group.members]
        self._synced = len(log)
        for child in dict.fromkeys(late):
            at = self._size + self._slots[child.name]
            if any(child in group.members for group in groups):
                nodes[at] = child, list(child.pending), True
            elif nodes.pop(at, None) is None:
                continue
            touched.add(at >> 1)
        while touched and 0 not in touched:
            for at in touched:
                below = [nodes[each] for each in (2 * at, 2 * at + 1) if each in nodes]
                if below:
                    nodes[at] = reduce(_joined, below)
                else:
                    del nodes[at]
            touched = {at >> 1 for at in touched}
        return nodes[1][0]
