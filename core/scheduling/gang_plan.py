"""The plan of a gang: a node for each of its outstanding members, or none for any of them (Q2).

A plan takes room from the nodes only while it is made: the free amounts of a node are reduced member by
member, so that the node policy sees what it would see, and are put back at the end. Large members are
placed before small ones; where that fails for lack of room, other nodes are tried (``gang_packing``).
Nothing else reads the nodes meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heapreplace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from quadriga.core.ordering.room import room_for
from quadriga.core.runtime.remote_predicates import first_allowed, look_ahead
from quadriga.core.scheduling.gang_packing import MOST_NODES, pack
from quadriga.si.remote_predicates import ANSWER_PENDING

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.shapes import Shape
    from quadriga.core.runtime.kernel import Kernel

__all__ = ["Lack", "Place", "Plan", "make_plan"]

#: one member: its ask, and its node
Place = tuple["Ask", "Node"]


class Lack(NamedTuple):
    """The members of one shape for which no node has room, and the number of them."""

    shape: Shape
    number: int


class Plan(NamedTuple):
    """``places`` are in the order of the asks; empty if the plan failed.

    ``lacks`` has the shapes without enough room. If it is empty as well, predicates refused a member or
    have not answered yet. ``crowded``: there is room for the members of each shape, but not for all
    members together.
    """

    places: list[Place]
    lacks: list[Lack]
    crowded: bool = False

    @property
    def missing(self) -> int:
        """The number of members without a place."""
        return sum(lack.number for lack in self.lacks)


def make_plan(
    kernel: Kernel, partition: Partition, groups: Iterable[AskGroup], kept: Iterable[Node] = ()
) -> Plan:
    """Plan all pending asks of these groups. ``kept`` are nodes that only this gang may use."""
    capacity = partition.capacity
    largest_first = sorted(
        groups, key=lambda group: (-_size(group.shape, capacity), group.rank or group.make_rank())
    )
    own = list(kept)
    lacks = []
    for group in largest_first:
        shape = group.shape
        short = group.pending - partition.node_index.room(shape)
        for node in own:
            if short <= 0:
                break
            short -= room_for(shape, node.available)
        if short > 0:
            lacks.append(Lack(shape, short))
    if lacks:
        return Plan([], lacks)
    return _Attempt(kernel, partition, own).run(largest_first)


def _size(shape: Shape, capacity: list[int]) -> float:
    """The largest share of the partition's capacity that the shape asks for."""
    shares: Any = [value / capacity[at] for at, value in shape.need if capacity[at]]
    share: float = max(shares, default=0.0)
    return share


class _Attempt:
    """One plan in the making."""

    __slots__ = ("_kernel", "_own", "_partition", "_places", "_taken")

    def __init__(self, kernel: Kernel, partition: Partition, own: list[Node]) -> None:
        self._kernel = kernel
        self._partition = partition
        self._own = own
        self._places: list[Place] = []
        #: what each node that the plan uses had free at the beginning
        self._taken: dict[Node, list[int]] = {}

    def run(self, groups: list[AskGroup]) -> Plan:
        """Place the groups one after the other."""
        complete = True
        lacks: list[Lack] = []
        for group in groups:  # scores that the index keeps must not see amounts that the plan takes
            self._partition.node_index.first(group.shape, 1)
        try:
            for group in groups:
                asks = [ask for ask in group.asks.values() for _ in range(ask.pending)]
                left = self._place(group.shape, asks)
                complete = complete and not left
                if left and self._predicate is None:
                    lacks.append(Lack(group.shape, left))
        finally:
            for node, available in self._taken.items():
                node.available[:] = available
        if not complete and not self._pack(groups):
            return Plan([], lacks, crowded=True)
        self._places.sort(key=lambda place: place[0].seq)
        return Plan(self._places, lacks)

    def _pack(self, groups: list[AskGroup]) -> bool:
        """Search for other nodes for the members. Members of one shape only need none, and predicates
        are not asked for every node."""
        if len(groups) < 2 or self._predicate is not None:
            return False
        index = self._partition.node_index
        nodes = dict.fromkeys(self._own)
        for group in groups:
            nodes.update(dict.fromkeys(index.first(group.shape, MOST_NODES)))
        rooms = sorted(nodes, key=lambda node: node.position)[:MOST_NODES]
        asks = [ask for group in groups for ask in group.asks.values() for _ in range(ask.pending)]
        shapes = [group.shape for group in groups for _ in range(group.pending)]
        found = pack(shapes, [list(node.available) for node in rooms], [n.node_id for n in rooms])
        if found is None:
            return False
        self._places = [(ask, rooms[at]) for ask, at in zip(asks, found, strict=True)]
        return True

    @property
    def _predicate(self) -> Any:
        return self._kernel.predicates.get(self._partition.rm.rm_id)

    def _place(self, shape: Shape, asks: list[Ask]) -> int:
        """Place asks of one shape on the best nodes; return the number of those left over."""
        need, predicate, index = shape.need, self._predicate, self._partition.node_index
        heap = self._candidates(shape, len(asks) if predicate is None else len(index.nodes))
        left = 0
        for ask in asks:
            if predicate is not None:
                self._bring_accepted_first(predicate, ask, heap)
            if not heap:
                left += 1
                continue
            _, position, node = heap[0]
            available = node.available
            if node not in self._taken:
                self._taken[node] = list(available)
            for at, value in need:
                available[at] -= value
            self._places.append((ask, node))
            if shape.fits(available):
                heapreplace(heap, (index.policy_score(node), position, node))
            else:
                heappop(heap)
            if predicate is not None:
                heap = self._candidates(shape, len(index.nodes))
        return left

    def _candidates(self, shape: Shape, number: int) -> list[tuple[float, int, Node]]:
        """A heap of the best nodes for this number of asks: (score, position, node)."""
        index, taken = self._partition.node_index, self._taken
        nodes = dict.fromkeys(self._own)
        nodes.update(dict.fromkeys(taken))
        nodes.update(dict.fromkeys(index.first(shape, number + len(taken))))
        required = shape.required_node
        heap = [
            (index.policy_score(node), node.position, node)
            for node in nodes
            if shape.fits(node.available) and required in ("", node.node_id)
        ]
        heapify(heap)
        return heap

    def _bring_accepted_first(
        self, predicate: Any, ask: Ask, heap: list[tuple[float, int, Node]]
    ) -> None:
        """Leave in the heap only the first node that the predicates accept for this ask."""
        nodes = [node for _, _, node in sorted(heap)]
        accepted = first_allowed(predicate, ask, nodes)
        if accepted is None:
            for at, node in enumerate(nodes):
                said = predicate(ask.ask_key, node.node_id, True)
                if said is None:
                    accepted = node
                    break
                if said is ANSWER_PENDING:
                    look_ahead(predicate, ask, islice(nodes, at + 1, None))
                    break
        heap[:] = [entry for entry in heap if entry[2] is accepted]
