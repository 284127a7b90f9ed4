"""The plan of a gang: a node for each of its outstanding members, or none for any of them (Q2).

A plan charges the nodes member by member, so that the node order is the one that any other allocation
would see. Large members are placed before small ones. If one of them finds no node, the nodes are
refunded and nothing has changed; where the order was the reason, other nodes are tried
(``gang_packing``). Nothing else reads the nodes meanwhile.

What a member costs does not grow with the number of nodes: the room of all nodes is counted in advance
only for a gang that is large enough to be worth it, and otherwise only if the plan has failed.

Members that may not use every node, and gangs that have nodes of their own, are planned on a list of the
nodes in question (``_Attempt``), and the nodes are charged when the plan is carried out.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from heapq import heapify, heappop, heapreplace
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from quadriga.core.model import accounting
from quadriga.core.ordering.room import room_for
from quadriga.core.resources.units import choose, give
from quadriga.core.runtime.remote_predicates import first_allowed, look_ahead
from quadriga.core.steps.accepted_nodes import known_refusals
from quadriga.core.topology.domains import fit, is_local, words_of
from quadriga.core.topology.packing import MOST_NODES, pack
from quadriga.si.remote_predicates import ANSWER_PENDING

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node, NodeOrder
    from quadriga.core.model.partition import Partition
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.runtime.kernel import Kernel
    from quadriga.si.known_refusals import KnownRefusals

#: one member: its ask, and its node
Place = tuple["Ask", "Node"]

#: a node that an ask may be placed on: its score, its position, and the node
Candidate = tuple[float, int, "Node"]

#: the room of all nodes is counted in advance if there are at most this many nodes for each member
_NODES_COUNTED: Final = 4

#: domains are searched at most this often for nodes that predicates accept
_MOST_REFUSED: Final = 16


class Lack(NamedTuple):
    """The members of one shape for which no node has room, and the number of them."""

    shape: Shape
    number: int


class Plan(NamedTuple):
    """``places`` are in the order of the asks; empty if the plan failed. ``charged`` says that their
    nodes are charged.

    ``lacks`` has the shapes without enough room. If it is empty as well, predicates refused a member or
    have not answered yet. ``crowded``: there is room for the members of each shape, but not for all
    members together.
    """

    places: list[Place]
    lacks: list[Lack]
    crowded: bool = False
    charged: bool = False

    @property
    def missing(self) -> int:
        """The number of members without a place."""
        return sum(lack.number for lack in self.lacks)


def refund(plan: Plan) -> None:
    """The plan is not carried out: refund the nodes."""
    if plan.charged:
        for ask, node in plan.places:
            assert ask.group is not None
            accounting.charge_planned(node, ask.group.shape, -1)


def make_plan(
    kernel: Kernel, partition: Partition, groups: list[AskGroup], kept: Iterable[Node] = ()
) -> Plan:
    """Plan all pending asks of these groups. ``kept`` are nodes that only this gang may use."""
    own = list(kept)
    groups = _large_first(partition, groups)
    members = _members_of(groups)
    if groups[0].app.gang.local and is_local(groups):
        return _plan_in_domains(kernel, partition, groups, members, own)
    predicate = kernel.predicates.get(partition.rm.rm_id)
    if own or predicate is not None or not all(_is_plain(g.shape, partition) for g in groups):
        lacks = _count_lacks(partition, groups, members, own)
        if lacks:
            return Plan([], lacks)
        return _Attempt(partition, own, predicate).run(groups, members)
    nodes = len(partition.node_index.nodes)
    counts_first = nodes <= _NODES_COUNTED * sum(map(len, members))
    if counts_first and (lacks := _count_lacks(partition, groups, members, own)):
        return Plan([], lacks)
    plan = _place(partition, groups, members)
    if plan.crowded and not counts_first:
        if lacks := _count_lacks(partition, groups, members, own):
            return Plan([], lacks)
    if plan.crowded and (packed := _pack(partition, groups, members, own)):
        return Plan(packed, plan.lacks)
    return plan


def could_start(
    partition: Partition,
    groups: list[AskGroup],
    kept: Iterable[Node] = (),
    more: Iterable[Node] = (),
) -> int:
    """The number of members of these groups that nodes have room for now, or that they would have with
    ``more`` nodes. Nothing is charged, and predicates are not asked."""
    groups = _large_first(partition, groups)
    members = _members_of(groups)
    if groups[0].app.gang.local and is_local(groups):
        own = [*kept, *more]
        found = fit(partition, groups, own=own)
        return sum(map(len, members)) if found.shortage is None else found.shortage.ready
    attempt = _Attempt(partition, [*kept, *more], None)
    if attempt.run(groups, members).places:
        return sum(map(len, members))
    return attempt.placed


def _large_first(partition: Partition, groups: list[AskGroup]) -> list[AskGroup]:
    if len(groups) < 2:
        return groups
    capacity = partition.capacity
    return sorted(
        groups,
        key=lambda group: (-_size(group.shape, capacity), group.rank or group.make_rank()),
    )


def _members_of(groups: list[AskGroup]) -> list[list[Ask]]:
    return [[ask for ask in group.asks.values() for _ in range(ask.pending)] for group in groups]


def _is_plain(shape: Shape, partition: Partition) -> bool:
    """Whether asks of the shape may use every node that has room and is not reserved."""
    return bool(shape.need) and not (
        shape.required_node or (shape.runtime and partition.reservations)
    )


def _size(shape: Shape, capacity: list[int]) -> float:
    """The largest share of the partition's capacity that the shape asks for."""
    shares: Any = [value / capacity[at] for at, value in shape.need if capacity[at]]
    share: float = max(shares, default=0.0)
    return share


def _count_lacks(
    partition: Partition, groups: list[AskGroup], members: list[list[Ask]], own: list[Node]
) -> list[Lack]:
    """Count the members of each shape for which all nodes together have no room."""
    lacks = []
    for group, asks in zip(groups, members, strict=True):
        shape = group.shape
        short = len(asks) - partition.node_index.room(shape)
        for node in own:
            if short <= 0:
                break
            short -= room_for(shape, node.available)
        if short > 0:
            lacks.append(Lack(shape, short))
    return lacks


def _place(partition: Partition, groups: list[AskGroup], members: list[list[Ask]]) -> Plan:
    """Place each member on the best node, and charge the nodes; refund them if a member has none."""
    index = partition.node_index
    best, charge, packs = index.best, accounting.charge_planned, index.packs
    feasible = index.feasible
    places: list[Place] = []
    lacks: list[Lack] = []
    charged: list[tuple[Node, Shape, int]] = []
    for group, asks in zip(groups, members, strict=True):
        shape, at, end = group.shape, 0, len(asks)
        while at < end:
            node = best(shape)
            if node is None:
                lacks.append(Lack(shape, end - at))
                break
            number = min(end - at, room_for(shape, node.available)) if packs else 1
            charge(node, shape, number)
            charged.append((node, shape, number))
            if number == 1:
                places.append((asks[at], node))
            else:
                places.extend(zip(asks[at : at + number], repeat(node)))
            at += number
    if lacks:
        for node, shape, number in reversed(charged):
            charge(node, shape, -number)
        index.plan_undone(feasible)
        return Plan([], lacks, crowded=True)
    if len(groups) > 1:
        places.sort(key=_by_arrival)
    return Plan(places, lacks, charged=True)


def _by_arrival(place: Place) -> int:
    return place[0].seq


def _pack(
    partition: Partition, groups: list[AskGroup], members: list[list[Ask]], own: list[Node]
) -> list[Place]:
    """Search for other nodes for the members; return no places if none were found. Members of one
    shape only need no search."""
    if len(groups) < 2:
        return []
    index = partition.node_index
    nodes = dict.fromkeys(own)
    for group in groups:
        nodes.update(dict.fromkeys(index.first(group.shape, MOST_NODES)))
    rooms = sorted(nodes, key=index.position)[:MOST_NODES]
    asks = [ask for each in members for ask in each]
    shapes = [group.shape for group, each in zip(groups, members, strict=True) for _ in each]
    barred = {
        group.shape: [
            at for at, node in enumerate(rooms) if not _may_use(index, node, group.shape, own)
        ]
        for group in groups
    }
    found = pack(shapes, [list(node.available) for node in rooms], barred)
    if found is None:
        return []
    places = [(ask, rooms[at]) for ask, at in zip(asks, found, strict=True)]
    return sorted(places, key=_by_arrival)


def _may_use(index: NodeOrder, node: Node, shape: Shape, own: list[Node]) -> bool:
    """Whether members of the shape may use the node: it is the gang's own, or takes them (Q2)."""
    if node in own:
        return shape.required_node in ("", node.node_id)
    return index.takes(node, shape)


def _plan_in_domains(
    kernel: Kernel,
    partition: Partition,
    groups: list[AskGroup],
    members: list[list[Ask]],
    own: list[Node],
) -> Plan:
    """Plan members that want something of their domains (Q13). Where predicates refuse nodes, the domains are
    searched again without these."""
    predicate = kernel.predicates.get(partition.rm.rm_id)
    barred: dict[AskGroup, set[int]] = {}
    if predicate is not None:
        for group in groups:
            known = known_refusals(predicate, group.head, partition.node_index)
            barred[group] = set(np.flatnonzero(known.numbers).tolist()) if known else set()
    found = fit(partition, groups, own=own)
    if (short := found.shortage) is not None:
        groups[0].app.gang.shortage = words_of(partition, short)
        lack = Lack(groups[0].shape, short.number - short.ready)
        # more room in a domain may let it have the least number of members, or those of another shape
        return Plan([], [lack], crowded=len(groups) > 1 or any(map(_wants_least, groups)))
    if predicate is None:
        return Plan(_assigned(found.places, groups, members), [])
    for _ in range(_MOST_REFUSED):
        if any(barred.values()):
            found = fit(partition, groups, own=own, barred=barred)
        refused = False
        places = _assigned(found.places, groups, members)
        for at, (ask, node) in enumerate(places):
            said = predicate(ask.ask_key, node.node_id, True)
            if said is ANSWER_PENDING:
                look_ahead(predicate, ask, (other for _, other in places[at + 1 :]))
                return Plan([], [])
            if said is not None and ask.group is not None:
                barred[ask.group].add(partition.node_index.position(node))
                refused = True
        if not refused:
            return Plan(places, [])
    return Plan([], [])


def _wants_least(group: AskGroup) -> bool:
    rules = group.shape.locality or ()
    return any(rule is not None and rule.least > 1 for rule in rules)


def _assigned(
    places: list[tuple[AskGroup, Node, int]], groups: list[AskGroup], members: list[list[Ask]]
) -> list[Place]:
    """The members in order on the nodes that were found for them."""
    waiting = {group: iter(asks) for group, asks in zip(groups, members, strict=True)}
    found = [(next(waiting[group]), node) for group, node, n in places for _ in range(n)]
    return sorted(found, key=_by_arrival)


class _Attempt:
    """One plan in the making that charges nothing: the free amounts of a node are reduced member by
    member, and are put back at the end."""

    __slots__ = ("_own", "_partition", "_places", "_predicate", "_taken")

    def __init__(self, partition: Partition, own: list[Node], predicate: Any) -> None:
        self._partition = partition
        self._own = own
        self._predicate = predicate
        self._places: list[Place] = []
        #: what each node that the plan uses had free at the beginning
        self._taken: dict[Node, list[int]] = {}

    def run(self, groups: list[AskGroup], members: list[list[Ask]]) -> Plan:
        """Place the groups one after the other."""
        complete = True
        lacks: list[Lack] = []
        for group in groups:  # scores that the index keeps must not see amounts that the plan takes
            self._partition.node_index.first(group.shape, 1)
        try:
            for group, asks in zip(groups, members, strict=True):
                left = self._place(group.shape, asks)
                complete = complete and not left
                if left and self._predicate is None:
                    lacks.append(Lack(group.shape, left))
        finally:
            for node, available in self._taken.items():
                node.available[:] = available
        if not complete:  # a search for other nodes would ask predicates about too many of them
            packed = (
                _pack(self._partition, groups, members, self._own)
                if self._predicate is None
                else []
            )
            return Plan(packed, lacks, crowded=not packed)
        return Plan(sorted(self._places, key=_by_arrival), lacks)

    @property
    def placed(self) -> int:
        """The number of members that the last attempt has placed."""
        return len(self._places)

    def _place(self, shape: Shape, asks: list[Ask]) -> int:
        """Place asks of one shape on the best nodes; return the number of those left over."""
        if self._predicate is not None:
            return self._place_accepted(self._predicate, shape, asks)
        heap = self._candidates(shape, len(asks))
        heapify(heap)
        for at, ask in enumerate(asks):
            if not heap:
                return len(asks) - at
            _, position, node = heap[0]
            self._take(node, shape, ask)
            if shape.fits(node.available):
                heapreplace(heap, (self._score(node, shape), position, node))
            else:
                heappop(heap)
        return 0

    def _place_accepted(self, predicate: Any, shape: Shape, asks: list[Ask]) -> int:
        """As ``_place``, each ask on the best node that the predicates accept for it."""
        candidates = self._candidates(shape, len(self._partition.node_index.nodes))
        candidates.sort()
        left = 0
        for ask in asks:
            at = _first_accepted(predicate, ask, candidates, self._partition.node_index)
            if at < 0:
                left += 1
                continue
            _, position, node = candidates.pop(at)
            self._take(node, shape, ask)
            if shape.fits(node.available):
                insort(candidates, (self._score(node, shape), position, node))
        return left

    def _take(self, node: Node, shape: Shape, ask: Ask) -> None:
        """Note the place, and reduce what is free there."""
        available = node.available
        if node not in self._taken:
            self._taken[node] = list(available)
        for at, value in shape.need:
            available[at] -= value
        if shape.shares:
            give(available, choose(shape.shares, available), -1)
        self._places.append((ask, node))

    def _score(self, node: Node, shape: Shape) -> float:
        return self._partition.node_index.policy_score(node, shape)

    def _candidates(self, shape: Shape, number: int) -> list[Candidate]:
        """The best nodes for this number of asks, in no order."""
        index, taken = self._partition.node_index, self._taken
        nodes = dict.fromkeys(self._own)
        nodes.update((node, None) for node in taken if index.takes(node, shape))
        nodes.update(dict.fromkeys(index.first(shape, number + len(taken))))
        required = shape.required_node
        return [
            (self._score(node, shape), index.position(node), node)
            for node in nodes
            if shape.fits(node.available) and required in ("", node.node_id)
        ]


def _first_accepted(
    predicate: Any, ask: Ask, candidates: list[Candidate], node_index: NodeOrder
) -> int:
    """The index of the first node that the predicates accept for this ask; -1 if there is none, or if
    their answer is pending."""
    allowed = first_allowed(predicate, ask, (node for _, _, node in candidates))
    known: KnownRefusals | None = None
    for at, (_, position, node) in enumerate(candidates):
        if allowed is not None:
            if node is allowed:
                return at
            continue
        if known is not None and known.numbers[position]:
            continue
        said = predicate(ask.ask_key, node.node_id, True)
        if said is None:
            return at
        if said is ANSWER_PENDING:
            behind = (other for _, _, other in islice(candidates, at + 1, None))
            look_ahead(predicate, ask, behind)
            return -1
        if known is None:
            known = known_refusals(predicate, ask, node_index)
    return -1
