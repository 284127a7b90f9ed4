"""The plan of a gang: a node for each of its outstanding members, or none for any of them (Q2).

A plan charges the nodes member by member, so that the node order is the one that any other allocation
would see (D337). Large members are placed before small ones. If one of them finds no node, the nodes are
refunded and nothing has changed; where the order was the reason, other nodes are tried
(``gang_packing``). Nothing else reads the nodes meanwhile.

What a member costs does not grow with the number of nodes: the room of all nodes is counted in advance
only for a gang that is large enough to be worth it, and otherwise only if the plan has failed.

Members that may not use every node, and gangs that have nodes of their own, are planned on a list of the
nodes in question (``_Attempt``), and the nodes are charged when the plan is carried out.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable
from heapq import heapify, heappop, heapreplace
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from quadriga.core.model import accounting
from quadriga.core.ordering.room import room_for
from quadriga.core.resources.units import choose, give
from quadriga.core.runtime.remote_predicates import first_allowed, look_ahead
from quadriga.core.steps.refused import known_refusals
from quadriga.core.topology.domains import fit, is_local, words_of
from quadriga.core.topology.packing import MOST_NODES, Member, pack
from quadriga.si.predicates import ANSWER_PENDING

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node, NodeOrder
    from quadriga.core.model.partition import Partition
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.resources.vectors import Totals
    from quadriga.core.runtime.kernel import Kernel
    from quadriga.core.topology.search import Part
    from quadriga.si.predicates import KnownRefusals

#: one member: its ask, and its node
Place = tuple["Ask", "Node"]

#: a node that an ask may be placed on: its score, its position, and the node
Candidate = tuple[float, int, "Node"]

#: the room of all nodes is counted in advance if there are at most this many nodes for each member
_NODES_COUNTED: Final = 4

#: domains are searched at most this often for nodes that predicates accept, as if all members of a group were refused
#: what one of them is; after that, for so many members in all, by what each of them is
_MOST_REFUSED: Final = 16
_MOST_REFUSED_EACH: Final = 256
#: without a topology, so many further questions find out whether asks that are placed could go elsewhere for others
_MOST_QUESTIONS: Final = 256
#: of the nodes for a gang, twice as many as it has members and these are looked at first
_FEW: Final = 16


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


def fit_in(
    partition: Partition, groups: list[AskGroup], free: dict[Node, Totals]
) -> dict[Node, Totals] | None:
    """What all pending asks of these groups need of each node, if they fit when the nodes have these amounts
    free; ``None`` if they do not. The first nodes are taken first."""
    groups = _large_first(partition, groups)
    left: dict[Node, Totals] = {}
    if is_local(groups):
        for part, node, number in fit(partition, groups, free).places:
            _take_from(left.setdefault(node, list(free[node])), part.shape, number)
        return _used(free, left) if left else None
    for group in groups:
        shape, missing = group.shape, group.pending
        for node, amounts in free.items():
            if shape.required_node not in ("", node.node_id):
                continue
            number = (
                min(missing, room_for(shape, left.get(node, amounts))) if shape.need else missing
            )
            if number:
                _take_from(left.setdefault(node, list(amounts)), shape, number)
                missing -= number
                if not missing:
                    break
        if missing:
            return _pack_in(groups, free) if len(groups) > 1 else None
    return _used(free, left)


def _take_from(room: Totals, shape: Shape, number: int) -> None:
    """This number of members of the shape use the room."""
    for at, value in shape.need:
        room[at] -= value * number
    for _ in range(number if shape.shares else 0):
        give(room, choose(shape.shares, room), -1)


def _pack_in(groups: list[AskGroup], free: dict[Node, Totals]) -> dict[Node, Totals] | None:
    """As ``fit_in``, if a search finds other nodes for the members."""
    nodes = [node for node, room in free.items() if any(g.shape.fits(room) for g in groups)]
    del nodes[MOST_NODES:]
    members: list[Member] = []
    kinds: dict[Shape, Member] = {}
    for group in groups:
        required = group.shape.required_node
        barred = {at for at, node in enumerate(nodes) if required not in ("", node.node_id)}
        members += [kinds.setdefault(group.shape, Member(group.shape, barred))] * group.pending
    rooms = [list(free[node]) for node in nodes]
    found = pack(members, rooms)
    if found is None:
        return None
    return _used(free, {nodes[at]: rooms[at] for at in sorted(set(found))})


def _used(free: dict[Node, Totals], left: dict[Node, Totals]) -> dict[Node, Totals]:
    return {
        node: [before - after for before, after in zip(free[node], room, strict=True)]
        for node, room in left.items()
    }


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
    if not shape.need or shape.required_node or partition.node_index.planned is not None:
        return False
    return not (shape.runtime and partition.reservations)


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
            short -= room_for(shape, node.available) - partition.node_index.room_on(node, shape)
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


def _in_order(places: list[Place]) -> list[Place]:
    """The places by arrival. With shares of devices they stay as they were planned, and so the same units are
    chosen when they are charged (Q14)."""
    if any(ask.kind.requires.shares for ask, _ in places):
        return places
    return sorted(places, key=_by_arrival)


def _by_arrival(place: Place) -> int:
    return place[0].seq


def _pack(
    partition: Partition,
    groups: list[AskGroup],
    members: list[list[Ask]],
    own: Collection[Node],
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
    packed: list[Member] = []
    kinds: dict[Shape, Member] = {}
    for group, each in zip(groups, members, strict=True):
        shape = group.shape
        barred = {at for at, node in enumerate(rooms) if not _may_use(index, node, shape, own)}
        packed += [kinds.setdefault(shape, Member(shape, barred))] * len(each)
    found = pack(packed, [list(node.available) for node in rooms])
    if found is None:
        return []
    places = [(ask, rooms[at]) for ask, at in zip(asks, found, strict=True)]
    return sorted(places, key=_by_arrival)


def _may_use(index: NodeOrder, node: Node, shape: Shape, own: Collection[Node]) -> bool:
    """Whether members of the shape may use the node: it is the gang's own, or takes them (Q2). What is beside a
    planned start is left out."""
    if node in own:
        return shape.required_node in ("", node.node_id)
    return index.takes(node, shape) and (node.beside is None or _is_lent(index, shape))


def _is_lent(index: NodeOrder, shape: Shape) -> bool:
    """Whether members of the shape are expected to end before the planned start."""
    return index.planned is not None and index.planned.lends(shape, index.now)


def _plan_in_domains(
    kernel: Kernel,
    partition: Partition,
    groups: list[AskGroup],
    members: list[list[Ask]],
    own: list[Node],
) -> Plan:
    """Plan members that want something of their domains (Q13). Where predicates refuse nodes, the domains are
    searched again without these (D299)."""
    found = fit(partition, groups, own=own)
    if (short := found.shortage) is not None:
        groups[0].app.gang.shortage = words_of(partition, short)
        lack = Lack(groups[0].shape, short.number - short.ready)
        # more room in a domain may let it have the least number of members, or those of another shape
        return Plan([], [lack], crowded=len(groups) > 1 or any(map(_wants_least, groups)))
    predicate = kernel.predicates.get(partition.rm.rm_id)
    if predicate is None:
        return Plan(_assigned(found.places), [])
    refused: dict[Ask, set[int]] = {ask: set() for asks in members for ask in asks}
    for alike in (True, False):
        asked = [group.head for group in groups] if alike else refused
        for ask in asked:
            if (known := known_refusals(predicate, ask, partition.node_index)) is not None:
                refused[ask].update(np.flatnonzero(known.numbers).tolist())
        for _ in range(_MOST_REFUSED if alike else _MOST_REFUSED_EACH // len(refused) + 1):
            barred: dict[Ask, set[int]] = dict(refused)
            for asks in members if alike else []:
                barred.update(dict.fromkeys(asks, set().union(*map(refused.__getitem__, asks))))
            places = _assigned(fit(partition, groups, own=own, barred=barred).places)
            accepted = _ask_for(predicate, places, refused, partition)
            if accepted is None or (accepted and places):
                return Plan(places if accepted else [], [])
            if not places:
                break
    return Plan([], [])


def _ask_for(
    predicate: Any, places: list[Place], refused: dict[Ask, set[int]], partition: Partition
) -> bool | None:
    """Whether the predicates accept all places, and note the others; ``None`` if an answer is pending."""
    accepted = True
    for at, (ask, node) in enumerate(places):
        said = predicate(ask.ask_key, node.node_id, True)
        if said is ANSWER_PENDING:
            look_ahead(predicate, ask, (other for _, other in places[at + 1 :]))
            return None
        if said is not None:
            refused[ask].add(partition.node_index.position(node))
            accepted = False
    return accepted


def _wants_least(group: AskGroup) -> bool:
    rules = group.shape.locality or ()
    return any(rule is not None and rule.least > 1 for rule in rules)


def _assigned(places: list[tuple[Part, Node, int]]) -> list[Place]:
    """The members in order on the nodes that were found for them."""
    parts = {part: (ask for ask in part.key for _ in range(ask.pending)) for part, _, _ in places}
    return _in_order([(next(parts[part]), node) for part, node, n in places for _ in range(n)])


class _Attempt:
    """One plan in the making that charges nothing: the free amounts of a node are reduced member by
    member, and are put back at the end."""

    __slots__ = ("_own", "_partition", "_places", "_predicate", "_taken")

    def __init__(self, partition: Partition, own: list[Node], predicate: Any) -> None:
        self._partition = partition
        self._own = dict.fromkeys(own)
        self._predicate = predicate
        self._places: list[Place] = []
        #: what each node that the plan uses had free at the beginning, and beside a planned start
        self._taken: dict[Node, tuple[list[int], list[int] | None]] = {}

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
            for node, (available, beside) in self._taken.items():
                node.available[:], node.beside = available, beside
        if not complete:  # a search for other nodes would ask predicates about too many of them
            packed = (
                _pack(self._partition, groups, members, self._own)
                if self._predicate is None
                else []
            )
            return Plan(packed, lacks, crowded=not packed)
        return Plan(_in_order(self._places), lacks)

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
            if self._fits(node, shape):
                heapreplace(heap, (self._score(node, shape), position, node))
            else:
                heappop(heap)
        return 0

    def _place_accepted(self, predicate: Any, shape: Shape, asks: list[Ask]) -> int:
        """As ``_place``, each ask on the best node that the predicates accept for it."""
        nodes = len(self._partition.node_index.nodes)
        plain = not self._own and _is_plain(shape, self._partition)
        few = 2 * len(asks) + _FEW
        # where answers may be pending, all nodes are asked about together
        some = plain and few < nodes and not hasattr(predicate, "awaits")
        candidates = sorted(self._candidates(shape, few if some else nodes))
        spots = _Spots(predicate, shape, candidates, len(self._places), some=some)
        return sum([not (self._put(spots, ask) or self._displace(spots, ask)) for ask in asks])

    def _put(self, spots: _Spots, ask: Ask) -> bool:
        """Place the ask on the best node that accepts it, if there is one."""
        shape, candidates = spots.shape, spots.candidates
        index = self._partition.node_index
        at = _first_accepted(spots.predicate, ask, candidates, index)
        # a node that has not changed is the last one of those that were looked at, or before it
        if spots.some and (at < 0 or all(each[2] in self._taken for each in candidates[at:])):
            candidates[:] = sorted(self._candidates(shape, len(index.nodes)))
            spots.some = False
            at = _first_accepted(spots.predicate, ask, candidates, index)
        if at < 0:
            return False
        candidate = candidates.pop(at)
        _, position, node = candidate
        self._take(node, shape, ask)
        spots.taken.append(candidate)
        if self._fits(node, shape):
            insort(candidates, (self._score(node, shape), position, node))
        return True

    def _displace(self, spots: _Spots, ask: Ask) -> bool:
        """Place the ask where another one of its shape would be, which goes elsewhere, perhaps in the place of a third:
        the first asks may have taken the only nodes that accept the later ones."""
        for at, candidate in enumerate(spots.taken) if spots.candidates else ():
            if at in spots.moved or not spots.questions:
                continue
            spots.questions -= 1
            if _first_accepted(spots.predicate, ask, [candidate], self._partition.node_index) < 0:
                continue
            spots.moved.add(at)
            other, node = self._places[spots.first + at]
            if self._put(spots, other) or self._displace(spots, other):
                self._places[spots.first + at] = (ask, node)
                spots.moved.clear()
                return True
        return False

    def _take(self, node: Node, shape: Shape, ask: Ask) -> None:
        """Note the place, and reduce what is free there."""
        available, index = node.available, self._partition.node_index
        if node not in self._taken:
            self._taken[node] = list(available), node.beside
            node.beside = node.beside and list(node.beside)
        for at, value in shape.need:
            available[at] -= value
            if node.beside is not None and not _is_lent(index, shape):
                node.beside[at] -= value
        if shape.shares:
            give(available, choose(shape.shares, available), -1)
            if node.beside is not None and not _is_lent(index, shape):
                give(node.beside, choose(shape.shares, node.beside), -1)
        self._places.append((ask, node))

    def _fits(self, node: Node, shape: Shape) -> bool:
        """Whether another member of the shape may go to the node."""
        if node in self._own:
            return shape.fits(node.available)
        return self._partition.node_index.takes(node, shape)

    def _score(self, node: Node, shape: Shape) -> float:
        return self._partition.node_index.policy_score(node, shape)

    def _candidates(self, shape: Shape, number: int) -> list[Candidate]:
        """The best nodes for this number of asks, in no order. Nodes that are reserved for others are not lent to
        gangs: their room comes and goes without a word to those that wait for it."""
        index, taken = self._partition.node_index, self._taken
        nodes = dict.fromkeys(self._own)
        nodes.update((node, None) for node in taken if index.takes(node, shape))
        nodes.update(dict.fromkeys(index.first(shape, number + len(taken))))
        nodes.update((node, None) for node in index.lent(shape) if node.reservation is None)
        required = shape.required_node
        return [
            (self._score(node, shape), index.position(node), node)
            for node in nodes
            if required in ("", node.node_id) and self._fits(node, shape)
        ]


class _Spots:
    """The nodes for asks of one shape: those with room, the best first, and those that asks have taken."""

    __slots__ = ("candidates", "first", "moved", "predicate", "questions", "shape", "some", "taken")

    def __init__(
        self, predicate: Any, shape: Shape, candidates: list[Candidate], first: int, *, some: bool
    ) -> None:
        self.predicate = predicate
        self.shape = shape
        self.candidates = candidates
        #: whether only the first of them were looked at
        self.some = some
        #: one for each place of the plan from ``first`` on
        self.taken: list[Candidate] = []
        self.first = first
        #: indices of the places that were tried for the ask in turn
        self.moved: set[int] = set()
        #: further nodes for which the predicates may be asked
        self.questions = _MOST_QUESTIONS


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
