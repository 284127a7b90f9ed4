"""Which nodes would make an ask, or all members of a gang, start (Q15)."""

from __future__ import annotations

from heapq import heappushpop, nsmallest
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from quadriga.core.explain.rivals import amounts
from quadriga.core.gangs.plan import could_start
from quadriga.core.model.node import Node
from quadriga.core.ordering.lending import lends
from quadriga.core.ordering.room import room_for
from quadriga.core.resources.units import WHOLE, NodeUnits
from quadriga.core.resources.vectors import rounded_up
from quadriga.core.topology import domains

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from quadriga.core.explain.free_nodes import FreeNodes
    from quadriga.core.explain.rivals import Rival, Rivals
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.resources.vectors import Totals
    from quadriga.core.runtime.stepwise import Steps

#: at most this many numbers of further nodes are tried for a gang of different members
_MOST_TRIED: Final = 8

#: the predicates are asked about at most this many of the nodes that lack room
_MOST_ASKED: Final = 100

Parts = list[tuple["Shape", int]]


def node_change(
    now: int,
    ask: Ask,
    parts: Parts,
    members: list[AskGroup],
    demand: dict[int, int],
    rivals: Rivals,
    free: FreeNodes | None,
    accepts: Callable[[Node], bool],
    condition: str,
) -> Steps[str | None]:
    """The change of nodes that is needed, as an order; ``None`` if none is.

    ``parts`` are the shapes that are placed, each with its number, and ``demand`` is their sum. The ask requires a
    node or may use the ``free`` ones. Nodes that the predicates do not accept have no room. A new node has to meet
    the ``condition``, if there is one.
    """
    partition = ask.app.partition
    if free is None:
        return _on_required_node(ask, parts[0][0], rivals)
    if members and domains.is_local(members):
        own = [each.node for each in ask.app.reservations if each.node.reservation is each]
        return domains.remedy(partition, members, [node for node in own if node.open])
    size = _with_units(partition, _largest(parts, len(partition.registry)))
    nodes = _Usable(free, ask, parts[0][0], bool(members), now)
    yield
    number, short = 0, size
    for every in (False, False, True):  # a larger node may be of use to more rivals
        competing = [each for each in rivals.all if every or each.fits or _fits(each.shape, size)]
        short = _short_of_capacity(partition, demand, competing)
        idle = sum(each.number for each in rivals.all) - sum(each.number for each in competing)
        kept = min(idle, _unreserved(partition))
        number = yield from _missing(ask, parts, members, nodes, accepts, competing, kept, size)
        larger = [
            max(value, rounded_up(name, -(-lack // (number or 1))))
            for name, value, lack in zip(partition.registry.names, size, short, strict=True)
        ]
        larger = _with_units(partition, larger)
        if larger == size:
            break
        size = larger
    words = partition.registry.words
    if not number and not any(short):
        return None
    if number and not members:
        one = yield from _one_node(ask, parts[0][0], nodes, accepts, number, rivals)
        if isinstance(one, str):
            return one
        if one is not None:
            number, size = 1, one
    if number <= 1:
        return f"add a node with {words(size)}{condition}"
    return f"add {number} nodes with {words(size)} each{condition}"


def _one_node(
    ask: Ask,
    shape: Shape,
    nodes: _Usable,
    accepts: Callable[[Node], bool],
    number: int,
    rivals: Rivals,
) -> Steps[str | Totals | None]:
    """More room on one node, or the size of one new node, for the ask and all rivals, if these ask for less
    than it."""
    partition = ask.app.partition
    first = amounts(rivals.all, len(partition.registry))
    if any(first[at] > value for at, value in shape.need):
        return None
    short = _short_of_capacity(partition, dict(shape.need), rivals.all)
    size = [0] * len(first)
    for at, value in shape.need:
        size[at] = max(value + first[at], short[at])
    nearest = None
    if number == 1 and not shape.shares:
        nearest = yield from _nearest(shape, nodes, accepts)
    if nearest is None:
        return _with_units(partition, size)
    more = [0] * len(first)
    for at, value in shape.need:
        more[at] = max(0, value + first[at] - nearest.available[at], short[at])
    return f"{partition.registry.words(more)} more free on node {nearest.node_id}"


def _nearest(shape: Shape, nodes: _Usable, accepts: Callable[[Node], bool]) -> Steps[Node | None]:
    """The node that lacks the smallest share of what the ask needs."""

    def distance(node: Node) -> tuple[float, str]:
        return max((v - node.available[at]) / v for at, v in shape.need), node.node_id

    free = nodes.free
    share = np.where(free.large, free.missing, inf)
    if len(share) > _MOST_ASKED:
        share[share > np.partition(share, _MOST_ASKED)[_MOST_ASKED]] = inf
    first = np.flatnonzero(share < inf)
    first = first[share[first].argsort(kind="stable")][:_MOST_ASKED]
    able = [free.nodes[at] for at in first.tolist()]
    able += [node for node in nodes.others if shape.fits(node.total)]
    for node in nsmallest(_MOST_ASKED, able, key=distance):
        yield
        if accepts(node):
            return node
    return None


class _Usable:
    """The nodes that the ask may use, whatever room they have; for ``whole`` the members of its gang: those that
    are free, and ``others``."""

    def __init__(self, free: FreeNodes, ask: Ask, shape: Shape, whole: bool, now: int) -> None:
        self.free = free
        self.others = [
            node
            for node in free.kept
            if node.reservation is not None
            and (
                node.reservation.ask is ask
                or (whole and node.reservation.ask.app is ask.app)
                or (not whole and lends(node, shape, now))
            )
        ]

    def room(self, shape: Shape, most: int) -> Iterator[tuple[Node, int]]:
        """Yield the nodes with room for the shape, and for how many; for ``most`` if it is nothing."""
        for node in self.others:
            number = room_for(shape, node.available) if shape.need else most
            if number:
                yield node, number
        yield from self.free.room(shape, most)


def _unreserved(partition: Partition) -> int:
    """The number of nodes that may still be reserved (Q7)."""
    nodes = len(partition.nodes)
    most = partition.reservation_bounds.limit(nodes)
    return max(0, nodes if most is None else most - partition.reservation_bounds.count)


def _fits(shape: Shape, size: Totals) -> bool:
    return shape.required_node == "" and shape.fits(size)


def _largest(parts: Parts, types: int) -> Totals:
    """The size of a node that each of the shapes fits."""
    size = [0] * types
    for shape, _ in parts:
        for at, value in shape.need:
            size[at] = max(size[at], value)
    return size


def _with_units(partition: Partition, size: Totals) -> Totals:
    """The size of a node with whole devices of the shared types (Q14)."""
    registry = partition.registry
    if not registry.shared:
        return size
    whole = registry.without_units(size)
    for at in registry.shared:
        whole[at] = min(-(-whole[at] // WHOLE), registry.bounds.devices) * WHOLE
    return registry.with_units(tuple(whole))


def _short_of_capacity(
    partition: Partition, demand: dict[int, int], rivals: Sequence[Rival]
) -> Totals:
    """What all nodes together lack for the demand and the rivals: the max of root."""
    root = partition.root
    short = [0] * len(partition.registry)
    first = amounts(rivals, len(short))
    for at, limit in root.limits:
        if demand.get(at):
            short[at] = max(0, demand[at] + first[at] - (limit - root.allocated[at]))
    return short


def _missing(
    ask: Ask,
    parts: Parts,
    members: list[AskGroup],
    nodes: _Usable,
    accepts: Callable[[Node], bool],
    rivals: Sequence[Rival],
    kept: int,
    size: Totals,
) -> Steps[int]:
    """The number of further nodes of this size that is certainly enough. Other rivals, which find no room, may
    reserve as many nodes as are ``kept``, but none of these."""
    wanted = sum(number for _, number in parts)
    first = sum(each.number for each in rivals)
    if len(parts) == 1:
        return (yield from _missing_of_shape(parts[0][0], wanted, nodes, accepts, rivals, kept))
    if first or kept:
        return wanted + first
    own = [each.node for each in ask.app.reservations if each.node.reservation is each]
    own = [node for node in own if node.open]
    partition = ask.app.partition
    number = wanted - could_start(partition, members, own)
    for _ in range(_MOST_TRIED):
        if not 0 < number < wanted:
            break
        if could_start(partition, members, own, _new_nodes(partition, number, size)) == wanted:
            return number
        number += 1
        yield
    return wanted if number else 0


def _missing_of_shape(
    shape: Shape,
    wanted: int,
    nodes: _Usable,
    accepts: Callable[[Node], bool],
    rivals: Sequence[Rival],
    kept: int,
) -> Steps[int]:
    """As ``_missing``, for one shape.

    A rival makes at most one node useless, and takes on it at most the room of as many asks of the shape as
    cover what it asks for.
    """
    first = sum(each.number for each in rivals)
    taken = 0
    for each in rivals:
        sizes = dict(each.shape.need)
        covered = max((-(-sizes.get(at, 0) // value) for at, value in shape.need), default=0)
        taken += each.number * covered
    room: list[int] = []
    largest = [0] * kept  # a heap: the room of the nodes that may be reserved
    short = wanted + taken
    sums: Totals | None = None
    for node, number in nodes.room(shape, wanted):
        yield
        if accepts(node):
            sums = sums or amounts(rivals, len(node.available))
            room.append(number)
            short -= heappushpop(largest, number)
            free = node.available
            if short <= 0 or (
                not kept
                and not shape.shares
                and all(free[at] >= value * wanted + sums[at] for at, value in shape.need)
            ):
                return 0
    room.sort()
    left = room[: max(0, len(room) - first - kept)]
    by_nodes = max(0, first - max(0, len(room) - kept)) + wanted - sum(left)
    return max(0, min(by_nodes, short))


def _new_nodes(partition: Partition, number: int, size: Totals) -> list[Node]:
    """Nodes that are not there, for a plan."""
    found = []
    for at in range(number):
        node = Node(f"new node {at}", partition, {}, list(size))
        node.open = True
        node.units = NodeUnits() if partition.registry.shared else None
        node.position = len(partition.nodes) + at
        partition.node_index.weigh(node)
        found.append(node)
    return found


def _on_required_node(ask: Ask, shape: Shape, rivals: Rivals) -> str | None:
    partition, node_id = ask.app.partition, ask.required_node
    words = partition.registry.words
    node = partition.nodes.get(node_id)
    first = amounts(
        (each for each in rivals.all if each.shape.required_node in ("", node_id)),
        len(partition.registry),
    )
    size = [0] * len(first)
    for at, value in shape.need:
        free = node.available[at] if node is not None else 0
        size[at] = max(0, value + first[at] - free)
    if node is None:
        return f"add node {node_id} with {words(size)}"
    return f"{words(size)} more free on node {node_id}" if any(size) else None
