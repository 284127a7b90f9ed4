"""Child queues of equal rank: the first of them is known without looking at all of them (5.4).

Among them the exact share decides, then strictly more pending, then the name. "More" is a partial order over
several types, so the first one depends on all. A tree over the names says for each range of names which of them
is first there; a queue that changes costs one path through the tree. Decisions change one queue or two.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from quadriga.core.resources.demand import Ranking

if TYPE_CHECKING:
    from quadriga.core.model.queue import Queue
    from quadriga.core.resources.demand import Key
    from quadriga.core.resources.vectors import Totals

__all__ = ["FirstOfTied", "Siblings", "Tied", "exceeds"]


def exceeds(pending: Totals, most: Totals, reached: bool) -> bool:
    """Whether a queue with this pending has more than each of those before it. ``most`` is the largest amount
    of them by type, ``reached`` whether one of them has all of that."""
    if pending == most:
        return not reached
    return not any(map(int.__lt__, pending, most))


class Tied:
    """The children that wait for one bit and have this rank; each came up as the best one in its heap."""

    __slots__ = ("members", "rank", "trees")

    def __init__(self, rank: Key) -> None:
        self.rank = rank
        self.members: dict[Queue, None] = {}
        self.trees: list[FirstOfTied] = []

    def mark(self, child: Queue) -> None:
        """The child joins or leaves."""
        for tree in self.trees:
            tree.changed[child] = None


class Siblings(Ranking):
    """The child queues that wait for one bit. Those of equal rank that come up leave the heap and stay tied until
    they change."""

    __slots__ = ("_ranks", "_ties")

    def __init__(self) -> None:
        super().__init__()
        self._ties: dict[Key, Tied] = {}
        #: a heap of the ranks of these, and of some that are gone
        self._ranks: list[Key] = []

    def add(self, item: Any) -> None:
        self._leave(item)
        super().add(item)

    def discard(self, item: Any) -> None:
        self._leave(item)
        super().discard(item)

    def _leave(self, child: Queue) -> None:
        tied = child.tied.pop(self, None)
        if tied is not None:
            del tied.members[child]
            tied.mark(child)
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
            tied.mark(first)
            first = self.first()
        return tied


class _Range:
    """The queues of least share in a range of names: the first of them, and the largest pending of all."""

    __slots__ = ("first", "most", "reached")

    def __init__(self, first: Queue, most: Totals, reached: bool) -> None:
        self.first = first
        self.most = most
        self.reached = reached


def _joined(left: _Range, right: _Range) -> _Range:
    """Two adjacent ranges as one."""
    one, other = left.first.share, right.first.share
    if one != other and one[0] * other[1] != other[0] * one[1]:
        return left if one[0] * other[1] < other[0] * one[1] else right
    after = exceeds(right.first.pending, left.most, left.reached)
    most = list(map(max, left.most, right.most))
    reached = (left.reached and most == left.most) or (right.reached and most == right.most)
    return _Range(right.first if after else left.first, most, reached)


class FirstOfTied:
    """The first child of some groups of tied ones. ``slots`` numbers the names of all children in order."""

    __slots__ = ("_nodes", "_size", "_slots", "changed", "groups")

    def __init__(self, groups: tuple[Tied, ...], slots: dict[str, int]) -> None:
        self.groups = groups
        self._slots = slots
        self._size = 1 << len(slots).bit_length()
        #: a binary tree: the nodes below ``at`` are 2 ``at`` and 2 ``at`` + 1
        self._nodes: dict[int, _Range] = {}
        #: children that may have joined, changed or left since the tree was brought up to date
        self.changed: dict[Queue, None] = {}
        for group in groups:
            self.changed.update(group.members)
            group.trees.append(self)

    def first(self) -> Queue | None:
        """The first child; ``None`` if one has no slot."""
        nodes, touched = self._nodes, set()
        for child in self.changed:
            slot = self._slots.get(child.name, -1)
            if slot < 0:
                return None
            at = self._size + slot
            if any(child in group.members for group in self.groups):
                nodes[at] = _Range(child, list(child.pending), True)
            else:
                nodes.pop(at, None)
            touched.add(at >> 1)
        self.changed.clear()
        while touched and 0 not in touched:
            for at in touched:
                left, right = nodes.get(2 * at), nodes.get(2 * at + 1)
                if left is not None and right is not None:
                    nodes[at] = _joined(left, right)
                elif left is not None or right is not None:
                    nodes[at] = left or right  # type: ignore[assignment]
                else:
                    del nodes[at]
            touched = {at >> 1 for at in touched}
        return nodes[1].first
