"""The candidates for asks of one leaf and priority, found once for all of them (5.9, D318).

They stay true for as long as nothing is decided but to evict some of them for such asks. Any other change
of a state, and a reservation that is cancelled, ends them; so does the call of the scheduler.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from quadriga.core.preemption.candidates import (
    NO_GANG,
    Candidate,
    evictable,
    gathers,
    holds_any,
    holds_members,
    leaves_for,
    of_application,
)
from quadriga.core.preemption.on_nodes import Offer, lowest_index, may_use, offer_on
from quadriga.core.preemption.shortfall import Evicted, add_to
from quadriga.fsm.lifecycles import allocation as allocation_fsm

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import LeafQueue, Queue
    from quadriga.core.preemption.candidates import Leaf
    from quadriga.core.preemption.queue_snapshot import Snapshots
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.runtime.kernel import Kernel

#: the node's offer is at least so good: the order of an offer, the number of times that the candidates on the
#: node have changed, and what the order is
_Entry = tuple[int, int, str, int, int]
_UNKNOWN: Final = 0
_BOUND: Final = 1
_EXACT: Final = 2
#: candidates are kept for this many pairs of a leaf and a priority
_KEPT: Final = 16


def known_candidates(kernel: Kernel, ask: Ask, snapshots: Snapshots) -> KnownCandidates:
    """The candidates for this ask as they are now."""
    failures, count = ask.app.partition.failed_preemptions, kernel.journal.count
    every = failures.candidates
    if not isinstance(every, _Evictable) or not every.continues(count):
        every = failures.candidates = _Evictable(count)
    own = ask.app.queue
    leaves = list(leaves_for(own, ask.priority, ask.vector, snapshots))
    known = every.known.get((own, ask.priority))
    if known is None or known.leaves != leaves:
        if len(every.known) >= _KEPT:
            del every.known[next(iter(every.known))]
        known = every.known[own, ask.priority] = KnownCandidates(leaves, every)
    return known


def expect_evicted(partition: Partition, victims: tuple[Allocation, ...]) -> None:
    """These will be evicted next."""
    every = partition.failed_preemptions.candidates
    if isinstance(every, _Evictable):
        every.expected = victims


class _Evictable:
    """What may be evicted in a partition when the journal has ``count`` records, by leaf."""

    __slots__ = ("_by_leaf", "_count", "expected", "known", "ranks")

    def __init__(self, count: int) -> None:
        self._count = count
        self.expected: tuple[Allocation, ...] = ()
        self._by_leaf: dict[LeafQueue, list[Allocation]] = {}
        #: of allocations of gangs
        self.ranks: dict[Allocation, tuple[int, int, int]] = {}
        #: by the leaf of the asks and their priority
        self.known: dict[tuple[Queue, int], KnownCandidates] = {}

    def continues(self, count: int) -> bool:
        """Whether nothing is recorded since but the release of the allocations that were to be evicted."""
        gone, releasable = self.expected, allocation_fsm.RELEASABLE
        if count != self._count + len(gone):
            return False
        for victim in gone:
            if victim.state in releasable or victim.ask.app.gang.size is not None:
                return False  # a gang that has lost a member has another rank
        for known in self.known.values():
            for victim in gone:
                known.remove(victim)
        self._count, self.expected = count, ()
        return True

    def in_leaf(self, leaf: LeafQueue) -> list[Allocation]:
        found = self._by_leaf.get(leaf)
        if found is None:
            found = self._by_leaf[leaf] = []
            for app in leaf.apps.values():
                if holds_members(app):
                    members = list(of_application(app))
                    self.ranks.update((each.allocation, each.gang) for each in members)
                    found += [each.allocation for each in members]
                elif not gathers(app):
                    found += evictable(app)
        return found


class KnownCandidates:
    """The candidates in these leaves: their ``number``, and their ``totals`` by leaf and type."""

    __slots__ = (
        "_changes",
        "_found",
        "_heaps",
        "_here",
        "_in_order",
        "_most",
        "_nodes",
        "_ranks",
        "_rooms",
        "_spared",
        "leaves",
        "number",
        "totals",
    )

    def __init__(self, leaves: list[Leaf], every: _Evictable) -> None:
        self.leaves = leaves
        self._ranks = every.ranks
        self.number = 0
        self.totals: dict[Queue, list[int]] = {}
        #: by leaf, also those that were evicted since
        self._found: list[list[Allocation]] = []
        self._in_order: list[Allocation] | None = None
        here: defaultdict[Node, list[Allocation]] = defaultdict(list)
        for leaf, most, kept in leaves:
            found = [
                each
                for each in every.in_leaf(leaf)
                if each.state in allocation_fsm.RELEASABLE  # not evicted since
                and (most is None or each.ask.kind.priority <= most)
                and not (kept and holds_any(each.vector, kept))
            ]
            for each in found:
                here[each.node].append(each)
            self.number += len(found)
            self._found.append(found)
            self.totals[leaf] = total = [0] * len(leaf.allocated)
            for vector, times in Counter([each.vector for each in found]).items():
                add_to(total, vector, times)
        self._here = dict(here)
        self._nodes = {node.node_id: node for node in sorted(here, key=lambda each: each.node_id)}
        #: how often the candidates on a node have changed
        self._changes: dict[str, int] = {}
        #: by type, the most that candidates may have on one node
        every_type = zip(*(node.allocated for node in here), strict=True)
        self._most = [max(amounts) for amounts in every_type]
        #: by shape, what is known of the offers of nodes; exact offers only while ``_spared``
        self._heaps: dict[Shape, list[_Entry]] = {}
        #: by shape, the nodes with room
        self._rooms: dict[Shape, list[Node]] = {}
        self._spared = True

    def remove(self, victim: Allocation) -> None:
        """The allocation is evicted, if it is one of these."""
        node = victim.node
        here = self._here.get(node)
        if here is None or victim not in here:
            return
        here.remove(victim)
        self.number -= 1
        add_to(self.totals[victim.ask.app.queue], victim.vector, -1)
        entry = self._changed(node.node_id)
        for heap in self._heaps.values():
            heappush(heap, entry)

    def _changed(self, node_id: str) -> _Entry:
        changes = self._changes[node_id] = self._changes.get(node_id, 0) + 1
        return 0, 0, node_id, changes, _UNKNOWN

    def in_order(self, snapshots: Snapshots) -> Iterator[Candidate]:
        """The candidates in the order of ``willing_first``."""
        if self._in_order is None:
            every = [self._candidate(each, snapshots) for found in self._found for each in found]
            every.sort(key=lambda each: each.willing_first)
            self._in_order = [each.allocation for each in every]
        for allocation in self._in_order:
            if allocation.state in allocation_fsm.RELEASABLE:
                yield self._candidate(allocation, snapshots)

    def _candidate(self, allocation: Allocation, snapshots: Snapshots) -> Candidate:
        leaf = snapshots.of(allocation.ask.app.queue)
        return Candidate(allocation, leaf, self._ranks.get(allocation, NO_GANG))

    # -- offers of nodes -------------------------------------------------------------------------

    def offers(
        self, ask: Ask, shape: Shape, snapshots: Snapshots, *, nodes_tried: bool
    ) -> Generator[Offer, None, None]:
        """The offers of nodes for the ask, the best first, to be closed at the end.

        Nodes that drain, or that are reserved for another ask, are left out; so are nodes with enough room
        if all nodes have just been tried.
        """
        if not nodes_tried:
            for node in self._with_room(ask, shape):
                if may_use(node, ask):
                    yield Offer(node, -1, ())
        heap = self._heap(ask, shape, snapshots)
        ready: list[tuple[tuple[int, int, str], Offer]] = []
        seen: list[_Entry] = []
        try:
            while heap or ready:
                if ready and (not heap or ready[0][0] < heap[0][:3]):
                    yield heappop(ready)[1]
                    continue
                entry = heappop(heap)
                _, _, node_id, changes, known = entry
                node = self._nodes[node_id]
                if changes != self._changes.get(node_id, 0) or not may_use(node, ask):
                    continue  # one with a new reservation is left out until that is cancelled
                here = self._here[node]
                if known == _UNKNOWN:
                    if not shape.fits(node.available):
                        index = lowest_index(node, shape, here)
                        heappush(heap, (index, 0, node_id, changes, _BOUND))
                    continue
                candidates = [self._candidate(each, snapshots) for each in here]
                offer = offer_on(node, shape, candidates, node.available, Evicted())
                if offer is not None:
                    heappush(ready, (offer.order, offer))
                if not self._spared:
                    seen.append(entry)
                elif offer is not None:
                    seen.append((*offer.order, changes, _EXACT))
        finally:
            for entry in seen:
                heappush(heap, entry)

    def _with_room(self, ask: Ask, shape: Shape) -> list[Node]:
        """The open nodes with room for the shape, by id."""
        found = self._rooms.get(shape)
        if found is None:
            nodes = ask.app.partition.nodes.values()
            found = [each for each in nodes if each.open and shape.fits(each.available)]
            found.sort(key=lambda each: each.node_id)
            self._rooms[shape] = found
        return found

    def _heap(self, ask: Ask, shape: Shape, snapshots: Snapshots) -> list[_Entry]:
        """What is known of the offers of nodes for the shape."""
        spared = self._are_spared(snapshots)
        if spared != self._spared:
            self._spared = spared
            self._heaps.clear()
        heap = self._heaps.get(shape)
        if heap is None:
            changes = self._changes
            heap = [(0, 0, each, changes.get(each, 0), _UNKNOWN) for each in self._nodes]
            self._heaps[shape] = heap
        if ask.reservations:
            for each in ask.app.reservations:
                if each.ask is ask and each.node in self._here:
                    heappush(heap, self._changed(each.node.node_id))
        return heap

    def _are_spared(self, snapshots: Snapshots) -> bool:
        """Whether every queue has its guarantee without all that it has on any one node: then offers do not
        depend on guarantees."""
        most = self._most
        guards = {guard for leaf in self.totals for guard in snapshots.of(leaf).guards}
        return all(guard.keeps_guarantee(most, tuple(most)) for guard in guards)
