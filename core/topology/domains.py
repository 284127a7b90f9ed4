"""Where the members of a gang fit that declares a topology (Q13): the search of ``topology.search`` for the
nodes of a partition, with what they have free now or would have free at another time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from quadriga.core.ordering.policies import NODE_POLICIES
from quadriga.core.ordering.room import fits_empty, room_for
from quadriga.core.topology.members import positions_of_members, update_levels
from quadriga.core.topology.packing import MOST_NODES, pack
from quadriga.core.topology.search import Part, Rooms, Search, Shortage

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.resources.levels import Numbers
    from quadriga.core.resources.shapes import Shape


class Fit(NamedTuple):
    """So many members of each part on each node: all of them or none. The key of a part are its asks.
    ``shortage`` says what the best domain has if there are none."""

    places: list[tuple[Part, Node, int]]
    shortage: Shortage | None


def words_of(partition: Partition, short: Shortage) -> str:
    """The shortage in words; empty if the nodes of the whole partition have too little room."""
    if short.unknown:
        known = ", ".join(partition.levels.labels) or "none"
        return f"{short.level} is no level of the partition, whose levels are: {known}"
    if not short.level:
        return ""
    text = f"no {short.level} has room for {short.number} members at once"
    return text + (f"; the best, {short.domain}, has {short.ready} now" if short.ready else "")


def remedy(partition: Partition, members: Sequence[AskGroup], own: Iterable[Node]) -> str | None:
    """What has to be changed for all these members to fit, as an order; ``None`` if they do."""
    short = fit(partition, members, own=own).shortage
    if short is None:
        return None
    if short.unknown:
        return f"declare the level {short.level} in the topology of the partition"
    where = f" in one {short.level}" if short.level else ""
    return f"make room for {short.number} members of its gang at once{where}"


def is_local(members: Iterable[AskGroup]) -> bool:
    """Whether the members have to be placed by domains."""
    return any(group.shape.locality is not None for group in members)


def required_domains(partition: Partition, members: Sequence[AskGroup]) -> Numbers | None:
    """The number of each node's domain of the level that the members require, in node order, negative for a node
    without one; ``None`` if they require no level that is declared."""
    update_levels(partition)
    for group in members:
        for rule in group.shape.locality or ():
            if rule is not None and (level := partition.levels.number(rule.required)) is not None:
                return partition.levels.domains(level, len(partition.node_index.nodes))
    return None


def fit(
    partition: Partition,
    members: Sequence[AskGroup],
    free: Mapping[Node, Sequence[int]] | None = None,
    *,
    own: Iterable[Node] = (),
    barred: Mapping[Ask, Collection[int]] | None = None,
) -> Fit:
    """Find nodes for all pending asks of these groups of one gang, large ones first, or for none. Nothing is
    changed.

    Without ``free`` it is for now: nodes have free what they have, reserved ones are left out, and ``own``
    are nodes that only this gang may use. With ``free`` only its nodes are used, whatever they have at
    present, and it has their amounts by type at another time; domains that have more room now come first.
    ``barred`` has the positions of nodes that an ask may not use. Members of a group that may use the same nodes
    are a part, and those that may use the fewest come first.
    """
    index, app = partition.node_index, members[0].app
    if not index.nodes:
        return Fit([], Shortage("", sum(group.pending for group in members)))
    update_levels(partition)
    rule = next((found.gang for group in members if (found := group.shape.locality)), None)
    parts: dict[Part, Collection[int]] = {}
    for group in members:
        locality, task_group = group.shape.locality, group.kind.task_group
        own_rule = None if locality is None else locality.group
        if barred is None:
            asks = group.asks.values()
            parts[Part(asks, group.shape, group.pending, task_group, own_rule)] = ()
            continue
        alike: dict[frozenset[int], list[Ask]] = {}
        for ask in group.asks.values():
            alike.setdefault(frozenset(barred[ask]), []).append(ask)
        for refused in sorted(alike, key=len, reverse=True):
            some = alike[refused]
            number = sum(ask.pending for ask in some)
            parts[Part(some, group.shape, number, task_group, own_rule)] = refused
    rooms = _rooms_now(partition, list(own)) if free is None else _rooms_then(partition, free)
    search = Search(
        partition.levels,
        rooms,
        index.scores(),
        packs=not NODE_POLICIES[partition.config.node_sort_policy].fills_evenly,
        running=positions_of_members(app),
        ready=None if free is None else _rooms_now(partition, list(own)).room_of,
        barred=parts,
        pack=pack,
        most_packed=MOST_NODES,
    )
    shares = search.run(list(parts), rule)
    places = [(part, index.nodes[position], number) for part, position, number in shares]
    if not places:
        return Fit([], search.shortage or Shortage("", sum(part.number for part in parts)))
    return Fit(places, None)


def fits_empty_cluster(partition: Partition, members: Sequence[AskGroup]) -> bool:
    """Whether the open nodes could hold all pending asks of these groups of one gang if nothing ran there. Where no
    domain matters, each group is looked at alone."""
    nodes = partition.node_index.nodes
    if not is_local(members):
        return all(fits_empty(nodes, group.shape, group.pending) for group in members)
    empty = {
        node: [total - occupied for total, occupied in zip(node.total, node.occupied, strict=True)]
        for node in nodes
        if node.open
    }
    return bool(fit(partition, members, empty).places)


def _rooms_now(partition: Partition, own: list[Node]) -> Rooms:
    index = partition.node_index

    def room_of(shape: Shape) -> Numbers:
        room: Numbers = index.room_by_position(shape)
        if own:
            room = room.copy()
            for node in own:
                usable = shape.required_node in ("", node.node_id)
                room[index.position(node)] = room_for(shape, node.available) if usable else 0
        return room

    def free(position: int) -> Sequence[int]:
        node = index.nodes[position]
        return node.available if node.beside is None or node in own else node.beside

    return Rooms(free, room_of)


def _rooms_then(partition: Partition, free: Mapping[Node, Sequence[int]]) -> Rooms:
    index = partition.node_index

    def room_of(shape: Shape) -> Numbers:
        room = np.zeros(len(index.nodes), dtype=np.int64)
        for node, amounts in free.items():
            if shape.required_node in ("", node.node_id):
                room[index.position(node)] = room_for(shape, amounts)
        return room

    return Rooms(lambda position: free[index.nodes[position]], room_of)
