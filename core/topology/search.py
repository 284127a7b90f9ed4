"""Which domains and nodes the members of a gang get (Q13).

The levels that a rule allows are tried from the narrowest one on. Of the domains of one level the gang gets
one that its members run in already, else the one with the least room of those that have enough: larger
ones stay for larger gangs. Where a wider domain is needed, its members get as few domains of the preferred
level as possible, and the last of these is the one with the least room that is enough. For members of one
shape that is exact. Members of several shapes are placed one shape after the other, large ones first, in
each domain that has room for each shape, until they all fit.

Within a domain members go to as few nodes as possible where the node order packs, else to as many. See D336.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from quadriga.core.ordering.room import room_for
from quadriga.core.resources.levels import NO_DOMAIN, WHOLE, Levels, Numbers
from quadriga.core.resources.locality import MAX_MEMBERS, Rule
from quadriga.core.resources.shapes import Shape
from quadriga.core.resources.units import choose, give
from quadriga.core.topology.packing import Member

#: at most this many domains of one level are tried for members of several shapes
_MOST_TRIED: Final = 64


@dataclass(slots=True, eq=False)
class Part:
    """So many members of one shape and task group that may use the same nodes. ``key`` is for the caller."""

    key: Any
    shape: Shape
    number: int
    task_group: str
    rule: Rule | None


class Share(NamedTuple):
    """So many members of a part go to the node at a position."""

    part: Part
    position: int
    number: int


@dataclass(slots=True)
class Shortage:
    """Why the members fit in no domain that their rule allows: the best domain has room for ``ready`` of the
    ``number`` members. ``unknown``: the level is not declared."""

    level: str
    number: int
    domain: str = ""
    ready: int = 0
    unknown: bool = False


@dataclass(slots=True)
class Rooms:
    """What nodes have free, by position. ``free`` is not changed; ``room_of`` returns for how many members
    of a shape each node has room now."""

    free: Callable[[int], Sequence[int]]
    room_of: Callable[[Shape], Numbers]
    _rooms: dict[Shape, Numbers] = field(default_factory=dict)
    _before: dict[Shape, Numbers] = field(default_factory=dict)
    _left: dict[int, list[int]] = field(default_factory=dict)
    _taken: list[tuple[int, list[int]]] = field(default_factory=list)

    def of(self, shape: Shape) -> Numbers:
        """The room of each node with what was taken so far; it must not be changed."""
        if shape not in self._rooms:
            before = self._before[shape] = self.room_of(shape)
            rooms = self._rooms[shape] = before.copy()
            for position in self._left:
                self._count(shape, rooms, position)
        return self._rooms[shape]

    def left(self, position: int) -> list[int]:
        """What the node has left."""
        if position not in self._left:
            self._left[position] = list(self.free(position))
        return self._left[position]

    def take(self, position: int, shape: Shape, number: int) -> None:
        """Take the room for so many members."""
        left = self.left(position)
        self._taken.append((position, list(left)))
        for at, value in shape.need:
            left[at] -= value * number
        for _ in range(number if shape.shares else 0):
            give(left, choose(shape.shares, left), -1)
        self._recount(position)

    def give_back(self) -> None:
        """Give back what was taken last."""
        position, self._left[position] = self._taken.pop()
        self._recount(position)

    def _recount(self, position: int) -> None:
        for shape, rooms in self._rooms.items():
            self._count(shape, rooms, position)

    def _count(self, shape: Shape, rooms: Numbers, position: int) -> None:
        if self._before[shape][position]:
            rooms[position] = room_for(shape, self._left[position])


#: returns the index of a room for each member, or ``None``: a search for members of several kinds
Pack = Callable[[Sequence[Member], list[list[int]]], list[int] | None]


@dataclass(slots=True, eq=False)
class Search:
    """One search. ``scores`` are those of the node order, by position. ``running`` has the positions of the
    members that run already, by task group, and ``barred`` those that a part may not use. Where the rooms are
    those of another time, ``ready`` has those of now. ``pack`` searches a domain of few nodes for other places if
    members of several shapes do not fit in order. ``shortage`` is the rule that no domain could keep."""

    levels: Levels
    rooms: Rooms
    scores: Any
    packs: bool
    running: Mapping[str, Sequence[int]]
    barred: Mapping[Part, Collection[int]]
    ready: Callable[[Shape], Numbers] | None
    pack: Pack
    most_packed: int
    shortage: Shortage | None = None
    _shares: list[Share] = field(default_factory=list)
    #: the rooms of now for the part that is being placed
    _now: Numbers | None = None

    @property
    def _nodes(self) -> int:
        return len(self.scores)

    def run(self, parts: Sequence[Part], rule: Rule | None) -> list[Share]:
        """Places for all members of all parts, or none. ``rule`` is that of the whole gang."""
        units: dict[Any, list[Part]] = {}
        for part in sorted(parts, key=lambda part: part.rule is None):
            units.setdefault(part.task_group if part.rule else part, []).append(part)
        every = np.ones(self._nodes, dtype=bool)
        running = [position for each in self.running.values() for position in each]
        if rule is None:
            fits = all(self._place_unit(unit, every) for unit in units.values())
        elif len(parts) == 1 and parts[0].rule is None:
            counted = list(self.running.get(parts[0].task_group, ()))
            fits = self._place(parts[0], rule, running, every, counted)
        else:
            fits = self._try_domains(list(units.values()), rule, running, every, self._place_unit)
        return self._shares if fits else []

    # -- several parts -----------------------------------------------------------------------------

    def _place_unit(self, parts: list[Part], within: Any, outer: Rule | None = None) -> bool:
        """Place the parts of one task group that has a rule, or a part that has none. ``outer`` is the rule
        of the gang, which has its domain."""
        part = parts[0]
        running = list(self.running.get(part.task_group, ()))
        if part.rule is None and outer is None:
            return self._place(part, Rule(), [], within)
        if part.rule is None:
            return self._place_part([part], within, outer)
        if len(parts) == 1:
            return self._place(part, part.rule, running, within)
        units = [[each] for each in parts]
        return self._try_domains(units, part.rule, running, within, self._place_part)

    def _place_part(self, parts: list[Part], within: Any, rule: Rule | None) -> bool:
        """Place one of the parts that the rule is for. It has its domain: what is left are the bound, and the
        domains of the preferred level that are in use already."""
        assert rule is not None
        (part,) = parts
        near = [share.position for share in self._shares]
        counted = [
            at for own, at, n in self._shares if own.task_group == part.task_group for _ in range(n)
        ]
        for name, positions in self.running.items():
            near += positions
            counted += positions if name == part.task_group else ()
        return self._place(part, rule._replace(required=""), near, within, counted)

    def _try_domains(
        self,
        units: list[list[Part]],
        rule: Rule,
        running: list[int],
        within: Any,
        place: Callable[[list[Part], Any, Rule], bool],
    ) -> bool:
        """Place all units in one domain that the rule allows."""
        parts = [part for unit in units for part in unit]
        inside = self._inside(rule, running, within)
        number = sum(part.number for part in parts)
        for level in self._levels_of(rule, number):
            domains = self.levels.domains(level, self._nodes)
            rooms = []
            for part in parts:
                room = self._room(part, inside)
                counted = self.running.get(part.task_group, ())
                rooms.append(self._capacity(level, part.rule or rule, room, counted))
            numbers = [part.number for part in parts]
            enough = np.logical_and.reduce([r >= n for r, n in zip(rooms, numbers, strict=True)])
            ready = sum(map(np.minimum, rooms, numbers))
            placed: dict[int, int] = {}
            for domain in islice(
                self._in_order(parts[0], rooms[0], enough, level, running), _MOST_TRIED
            ):
                here = inside & (domains == domain)
                before = len(self._shares)
                if all(place(unit, here, rule) for unit in units) and self._has_least(rule, before):
                    return True
                placed[domain] = sum(share.number for share in self._shares[before:])
                self._undo(before)
                alike = not rule.bounded and all(part.rule in (None, rule) for part in parts)
                if alike and self._pack_in(parts, here):
                    return True
            for domain, some in placed.items():
                ready[domain] = some
            self._note(level, number, ready)
        return False

    def _has_least(self, rule: Rule, before: int) -> bool:
        """Whether each domain that has members of a task group has enough of them."""
        level = self.levels.number(rule.bounded)
        if level is None or rule.least == 1:
            return True
        domains = self.levels.domains(level, self._nodes)
        counts: dict[tuple[str, int], int] = {}
        for part, position, number in self._shares[before:]:
            key = part.task_group, int(domains[position])
            counts[key] = counts.get(key, 0) + number
        for name, positions in self.running.items():
            for position in positions:
                if (key := (name, int(domains[position]))) in counts:
                    counts[key] += 1
        return all(count >= rule.least for count in counts.values())

    def _pack_in(self, parts: list[Part], within: Any) -> bool:
        """Search the nodes of a domain for places for members of several shapes."""
        members = [part for part in parts for _ in range(part.number)]
        rooms = [self._room(part, within) for part in parts]
        useful = [int(at) for at in np.flatnonzero(sum(rooms))]
        if len(parts) < 2 or len(useful) > self.most_packed:
            return False
        free = [list(self.rooms.left(at)) for at in useful]
        kinds = {
            part: Member(part.shape, {index for index, at in enumerate(useful) if not room[at]})
            for part, room in zip(parts, rooms, strict=True)
        }
        found = self.pack([kinds[part] for part in members], free)
        for part, index in zip(members, found or (), strict=bool(found)):
            self._take(part, useful[index], 1)
        return found is not None

    # -- one part ----------------------------------------------------------------------------------

    def _place(
        self,
        part: Part,
        rule: Rule,
        running: list[int],
        within: Any,
        counted: list[int] | None = None,
    ) -> bool:
        """Place the members of one shape by the rule. ``running`` are the positions that its domain has to
        keep to, ``counted`` of those that count for its bound."""
        counted = running if counted is None else counted
        if rule.bounded and self.levels.number(rule.bounded) is None:
            self.shortage = Shortage(rule.bounded, part.number, unknown=True)
            return False
        inside = self._inside(rule, running, within)
        room = self._room(part, inside)
        self._now = None if self.ready is None else self.ready(part.shape)
        for level in self._levels_of(rule, part.number):
            domains = self.levels.domains(level, self._nodes)
            capacity = self._capacity(level, rule, room, counted)
            self._note(level, part.number, np.minimum(capacity, part.number))
            order = self._in_order(part, capacity, capacity >= part.number, level, running)
            best: tuple[tuple[int, int], list[tuple[int, int]]] | None = None
            for domain in islice(order, _MOST_TRIED):
                at = np.flatnonzero((domains == domain) & (room > 0))
                found = self._in_domain(at, room, part.number, rule, level, running, counted)
                if found is not None and (best is None or self._spread_of(found, rule) < best[0]):
                    best = self._spread_of(found, rule), found
                    if best[0] == (0, 1):
                        break
            if best is not None:
                for position, number in best[1]:
                    self._take(part, position, number)
                return True
        return False

    def _spread_of(self, found: list[tuple[int, int]], rule: Rule) -> tuple[int, int]:
        """The number of members in no domain of the preferred level, and of those domains that have some."""
        preferred = self.levels.number(rule.preferred)
        if preferred is None:
            return 0, 1
        domains = self.levels.domains(preferred, self._nodes)
        within = {int(domains[position]) for position, _ in found}
        outside = sum(number for position, number in found if domains[position] < 0)
        return outside, len(within - {NO_DOMAIN})

    def _room(self, part: Part, within: Any) -> Numbers:
        """The room for members of the part on each node that they may use."""
        room: Numbers = np.where(within, self.rooms.of(part.shape), 0)
        if barred := self.barred.get(part):
            room[list(barred)] = 0
        return room

    def _levels_of(self, rule: Rule, number: int) -> list[int]:
        """The levels to try, from the narrowest one on."""
        widest = WHOLE
        if rule.required:
            level = self.levels.number(rule.required)
            if level is None:
                self.shortage = Shortage(rule.required, number, unknown=True)
                return []
            widest = level
        preferred = self.levels.number(rule.preferred)
        narrowest = widest if preferred is None else max(widest, preferred)
        return list(range(narrowest, widest - 1, -1))

    def _inside(self, rule: Rule, running: list[int], within: Any) -> Any:
        """The nodes that the rule allows beside its running members."""
        level = self.levels.number(rule.required)
        if level is None:
            return within
        domains = self.levels.domains(level, self._nodes)
        inside = within & (domains >= 0)
        if len(used := _domains_of(running, domains)):
            inside &= np.isin(domains, used)
        return inside

    def _capacity(self, level: int, rule: Rule, room: Numbers, counted: Sequence[int]) -> Any:
        """For how many members each domain of the level has room, with the bound of the rule."""
        domains = self.levels.domains(level, self._nodes)
        bound = self.levels.number(rule.bounded)
        found = _sums(domains, room, self.levels.size(level))
        if bound is None:
            return found
        inner, size = self.levels.domains(bound, self._nodes), self.levels.size(bound)
        there = np.bincount(_domains_of(counted, inner), minlength=size + 1)
        if bound < level:
            outer = self.levels.parents(level, bound)
            return np.where(outer < 0, 0, np.minimum(found, rule.most - there[outer]))
        there = there[:size]
        each = np.minimum(_sums(inner, room, size), rule.most - there)
        each = np.where(each >= np.maximum(1, rule.least - there), each, 0)
        return _sums(self.levels.parents(bound, level), each, self.levels.size(level))

    def _in_order(
        self, part: Part, capacity: Any, enough: Any, level: int, running: Sequence[int]
    ) -> Iterator[int]:
        """The domains that have enough: those of running members, those that have more room now, then those
        with the least room."""
        found = np.flatnonzero(enough)
        domains = self.levels.domains(level, self._nodes)
        used = np.isin(found, _domains_of(running, domains))
        ready: Any = np.zeros(len(found), dtype=np.int64)
        if self.ready is not None:
            rooms = _sums(domains, self.ready(part.shape), self.levels.size(level))
            ready = np.minimum(rooms[found], part.number)
        yield from map(int, found[np.lexsort((found, capacity[found], -ready, ~used))])

    def _in_domain(
        self,
        at: Numbers,
        room: Numbers,
        number: int,
        rule: Rule,
        level: int,
        running: list[int],
        counted: list[int],
    ) -> list[tuple[int, int]] | None:
        """Spread the members over the nodes of one domain: over the narrower levels of the rule, then over
        nodes."""
        bound = self.levels.number(rule.bounded)
        narrow = [] if bound is None else [_Level(bound, rule.least, rule.most, counted)]
        preferred = self.levels.number(rule.preferred)
        if preferred is not None and level < preferred != bound:
            both = sorted([*narrow, _Level(preferred, 1, MAX_MEMBERS, running)])
            if (found := self._spread(at, room, number, both)) is not None:
                return found
        return self._spread(at, room, number, narrow)

    def _spread(
        self, at: Numbers, room: Numbers, number: int, levels: Sequence[_Level]
    ) -> list[tuple[int, int]] | None:
        """Spread members over as few domains as possible of the first level, each with ``least`` to ``most``
        of them, and within each domain over the next level."""
        if not levels:
            return self._over_nodes(at, room, number)
        known = self._capacities(at, room, levels)
        known.sort(key=lambda each: (each.domain < 0, not each.used, -each.capacity, each.domain))
        capacities = [each.capacity for each in known if each.domain >= 0]
        used = sum(each.used for each in known)
        most = sum(capacities)
        if most < number and len(capacities) < len(known):
            # the rest goes to nodes without a domain
            numbers: list[int] | None = [*capacities, number - most]
        else:
            numbers = split(capacities, number, levels[0].least, used)
            known = known[: len(capacities)]
        found: list[tuple[int, int]] = []
        for each, part in zip(known, numbers or (), strict=numbers is not None):
            inside = self._spread(each.at, room, part, levels[1:]) if part else []
            if inside is None:
                return None
            found += inside
        return found or None

    def _over_nodes(self, at: Numbers, room: Numbers, number: int) -> list[tuple[int, int]] | None:
        """Nodes with numbers of members: first those that have room now, where the rooms are of another time."""
        if self._now is None:
            return over_nodes(at, room, self.scores, number, packs=self.packs)
        now, rest = np.minimum(room, self._now), room.copy()
        first = min(number, int(now[at].sum()))
        found = Counter(dict(over_nodes(at, now, self.scores, first, packs=self.packs) or ()))
        for position, members in found.items():
            rest[position] -= members
        more = over_nodes(at, rest, self.scores, number - first, packs=self.packs)
        found.update(dict(more or ()))
        return None if more is None else sorted(found.items())

    def _capacities(self, at: Numbers, room: Numbers, levels: Sequence[_Level]) -> list[_Capacity]:
        """The domains of the first level that may get members, with the bounds of all these levels."""
        level, least, most, running = levels[0]
        domains = self.levels.domains(level, self._nodes)
        own = Counter(_domains_of(running, domains).tolist())
        known = []
        for domain, here in _by_domain(at, domains):
            if domain < 0 and most < MAX_MEMBERS:
                continue
            capacity = int(room[here].sum())
            if levels[1:]:
                capacity = sum(e.capacity for e in self._capacities(here, room, levels[1:]))
            capacity = min(most - own[domain], capacity)
            if capacity >= max(1, least - own[domain]):
                known.append(_Capacity(domain, capacity, own[domain] > 0, here))
        return known

    def _take(self, part: Part, position: int, number: int) -> None:
        self._shares.append(Share(part, position, number))
        self.rooms.take(position, part.shape, number)

    def _undo(self, before: int) -> None:
        for _ in self._shares[before:]:
            self.rooms.give_back()
        del self._shares[before:]

    def _note(self, level: int, number: int, ready: Any) -> None:
        """Remember how many of so many members the best domain of the level is ready for."""
        best = int(np.argmax(ready)) if len(ready) else 0
        most = int(ready[best]) if len(ready) else 0
        if most < number:
            label = self.levels.labels[level] if level >= 0 else ""
            name = self.levels.name(level, best) if most else ""
            self.shortage = Shortage(label, number, name, most)


class _Level(NamedTuple):
    """Each domain of the level gets ``least`` to ``most`` members with those that run there."""

    level: int
    least: int
    most: int
    running: list[int]


class _Capacity(NamedTuple):
    """A domain may get so many members, on the nodes at these positions. ``used``: it has some already."""

    domain: int
    capacity: int
    used: bool
    at: Numbers


def _sums(domains: Numbers, room: Numbers, size: int) -> Numbers:
    """The sum of the room by domain. Floats are exact up to 2**53 members."""
    inside = domains >= 0
    found = np.bincount(domains[inside], weights=room[inside], minlength=size)
    return found.astype(np.int64)


def _domains_of(positions: Sequence[int], domains: Numbers) -> Numbers:
    """The domains of the nodes at these positions, those that have one."""
    found = domains[np.array(positions, dtype=np.int64)]
    return found[found >= 0]


def _by_domain(at: Numbers, domains: Numbers) -> Iterator[tuple[int, Numbers]]:
    """The positions of each domain."""
    order = np.argsort(domains[at], kind="stable")
    found = domains[at][order]
    for here in np.split(at[order], np.flatnonzero(np.diff(found)) + 1):
        if len(here):
            yield int(domains[here[0]]), here


def split(capacities: list[int], number: int, least: int, used: int) -> list[int] | None:
    """Numbers of members for as few domains as possible with these capacities, largest first; ``None`` if
    there are none. Each domain gets none or at least ``least``; the first ``used`` ones have some already."""
    numbers = [0] * len(capacities)
    left = number
    for at in range(used):
        numbers[at] = min(capacities[at], left)
        left -= numbers[at]
    rest = capacities[used:]
    few = total = 0
    while left > total:
        if few == len(rest):
            return None
        total += rest[few]
        few += 1
    if few * least > left:
        return None
    if few and least == 1:  # the last one: the smallest that is enough
        over = left - (total - rest[few - 1])
        last = max(at for at in range(few - 1, len(rest)) if rest[at] >= over)
        last = rest.index(rest[last], few - 1)
        numbers[used : used + few - 1] = rest[: few - 1]
        numbers[used + last] = over
        return numbers
    for at in range(few):
        numbers[used + at] = min(rest[at], left - least * (few - at - 1))
        left -= numbers[used + at]
    return numbers


def over_nodes(
    at: Numbers, room: Numbers, scores: Any, number: int, *, packs: bool
) -> list[tuple[int, int]] | None:
    """Nodes at these positions with numbers of members: as few nodes as possible with ``packs``, and the
    last of them is the one with the least room that is enough. Otherwise as many as possible. Of equal nodes
    the one with the lower score, then the lower position comes first. ``room`` and ``scores`` are those of
    all nodes."""
    if packs:
        order = at[np.lexsort((at, scores[at], -room[at]))]
        numbers = split(room[order].tolist(), number, 1, 0)
    else:
        order = at[np.lexsort((at, scores[at]))]
        numbers = _evenly(room[order].tolist(), number)
    if numbers is None:
        return None
    return [(each, n) for each, n in zip(order.tolist(), numbers, strict=True) if n]


def _evenly(rooms: list[int], number: int) -> list[int] | None:
    """The first rooms get one each, then again, until all are placed."""
    if sum(rooms) < number:
        return None
    numbers = [0] * len(rooms)
    waiting = list(range(len(rooms)))
    while number:
        for index in waiting[:number]:
            numbers[index] += 1
        number -= min(number, len(waiting))
        waiting = [index for index in waiting if numbers[index] < rooms[index]]
    return numbers
