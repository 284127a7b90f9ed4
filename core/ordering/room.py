"""Room for many: how many asks of a shape all nodes together have room for (Q2).

A gang that lacks nodes waits until there is room for all its members. For each size of members that such
gangs lack, the number that fits each node is kept up to date: one number for asks of any run time, and a
second one for those that end before the planned start (Q9). A gang whose number is not reached cannot start,
and is not looked at. Where room in all does not tell, because members of several sizes want the same nodes or all
want one domain, the gang waits until nodes have gained room: each against what it had when the gang failed, so
that what other nodes lost meanwhile does not hide it.

Gangs that are alike and wait for the same wait in one line, so that room costs one attempt however many they
are. The first in order is tried; the others only after it, if it does not wait again (D322).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, Final

from quadriga.core.model.gang import Line, RoomWanted
from quadriga.core.resources.shapes import START_GANG
from quadriga.core.resources.units import room as room_of_units

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.node import Node
    from quadriga.core.resources.shapes import Need, Shape


def room_for(shape: Shape, available: Any) -> int:
    """The number of asks of this shape that fit in these free quantities; 0 for a shape of nothing."""
    room = 0
    if shape.shares and not (room := room_of_units(shape.shares, available)):
        return 0
    for at, value in shape.need:  # a plain loop, and mostly there is none
        of_type = available[at] // value
        if of_type <= 0:
            return 0
        if not room or of_type < room:
            room = of_type
    return room


def fits_empty(nodes: Iterable[Node], shape: Shape, number: int) -> bool:
    """Whether so many asks of this shape fit if nothing of this scheduler ran on the open nodes."""
    for node in nodes:
        if node.node_id == shape.required_node or (node.open and not shape.required_node):
            pairs = zip(node.total, node.occupied, strict=True)
            number -= room_for(shape, [total - occupied for total, occupied in pairs])
            if number <= 0:
                return True
    return number <= 0


def room_on(node: Node, shape: Shape, longest: int) -> int:
    """The number of asks of this shape that the node has room for now, where nodes of the planned start are lent
    for this time (ns); 0 on a reserved node."""
    for_all, lent = _rooms(node, shape)
    return for_all + lent if 0 < shape.runtime <= longest else for_all


def _rooms(node: Node, shape: Shape) -> tuple[int, int]:
    """The room of the node for asks of this shape however long they run, and more for those that end before the
    planned start."""
    if shape.required_node:
        return (room_for(shape, node.available) if _takes_who_requires_it(node, shape) else 0), 0
    if not node.open or node.reservation is not None:
        return 0, 0
    room = room_for(shape, node.available)
    if node.beside is None or not room:
        return room, 0
    for_all = min(room, room_for(shape, node.beside))
    return for_all, room - for_all


def _takes_who_requires_it(node: Node, shape: Shape) -> bool:
    """Whether it is the node that the shape requires, which may drain, and is not kept for others."""
    kept = node.reservation
    mine = kept is None or not kept.ask.required_node
    return mine and node.node_id == shape.required_node


#: what one line keeps of nodes that have changed; beyond that it is tried
_MOST_CHANGED: Final = 4096
#: more than all nodes have room for
_NEVER: Final = 1 << 62


#: what a node has for asks of one shape, however long they run, and for those that end before the planned start
_Measured = tuple[tuple[int, ...], tuple[int, ...]]


class _Gain:
    """What single nodes have gained since a line failed."""

    __slots__ = ("_lends", "_more", "_of_node", "gained")

    def __init__(self, shape: Shape, more: int) -> None:
        self._more = more
        #: lent room counts as gained, as it may not have been lent before
        self._lends = shape.runtime > 0
        #: what each node that has changed had when the line failed, and what it has gained since
        self._of_node: dict[Node, tuple[tuple[int, ...], int]] = {}
        self.gained = 0

    @property
    def is_enough(self) -> bool:
        return self.gained >= self._more or len(self._of_node) > _MOST_CHANGED

    def change(self, node: Node, before: _Measured, after: _Measured) -> None:
        first, counted = self._of_node.get(node) or (before[0], 0)
        gained = sum(
            [max(0, now - was) for now, was in zip(after[self._lends], first, strict=True)]
        )
        self._of_node[node] = first, gained
        self.gained += gained - counted

    def remove(self, node: Node) -> None:
        _, counted = self._of_node.pop(node, ((), 0))
        self.gained -= counted


class _Count:
    """The room for asks of this size, and the lines that wait for more: with the number that they need, or until
    nodes have gained. ``mixed``: the amounts are looked at instead, of nodes with room for one."""

    __slots__ = (
        "_amounts",
        "_nothing",
        "gains",
        "least",
        "most",
        "of_node",
        "shape",
        "synced",
        "total",
        "waiting",
    )

    def __init__(self, shape: Shape, mixed: bool, nodes: Iterable[Node], synced: int) -> None:
        self.shape = shape
        #: how much of what nodes lost is counted
        self.synced = synced
        self.waiting: dict[tuple[Line, Shape], int] = {}
        self.gains: dict[tuple[Line, Shape], _Gain] = {}
        self.least = _NEVER
        units = [at for of, _, _ in shape.shares for at in of.positions]
        self._amounts = [*(at for at, _ in shape.need), *units] if mixed else []
        self._nothing = (0,) * len(self._amounts or (shape,))
        self.of_node = {node: self._measure(node) for node in nodes}
        self.total = sum([for_all[0] for for_all, _ in self.of_node.values()])
        #: with further ones if they end before the planned start
        self.most = sum([most[0] for _, most in self.of_node.values()])

    def _measure(self, node: Node) -> _Measured:
        for_all, lent = _rooms(node, self.shape)
        if not self._amounts:
            return (for_all,), (for_all + lent,)
        free, beside = node.available, node.beside
        most = tuple([free[at] for at in self._amounts]) if for_all + lent else self._nothing
        if beside is None or self.shape.required_node:
            return most, most
        kept = [min(free[at], beside[at]) for at in self._amounts]
        return (tuple(kept) if for_all else self._nothing), most

    def count(self, node: Node) -> None:
        """Count the node anew."""
        before = self.of_node.get(node) or (self._nothing, self._nothing)
        after = self.of_node[node] = self._measure(node)
        self.total += after[0][0] - before[0][0]
        self.most += after[1][0] - before[1][0]
        for gain in self.gains.values():
            gain.change(node, before, after)

    def remove(self, node: Node) -> None:
        for_all, most = self.of_node.pop(node, (self._nothing, self._nothing))
        self.total -= for_all[0]
        self.most -= most[0]
        for gain in self.gains.values():
            gain.remove(node)

    def reached(self, longest: int) -> list[Line]:
        """The lines whose number is reached."""
        found = []
        if self.most >= self.least:
            for (line, shape), number in self.waiting.items():
                if number <= (self.most if 0 < shape.runtime <= longest else self.total):
                    found.append(line)
        return found

    def gained(self) -> list[Line]:
        """The lines for which nodes have gained enough."""
        return [line for (line, _), gain in self.gains.items() if gain.is_enough]

    def sync(self, lost: list[Node]) -> None:
        """Count the nodes that lost room."""
        for node in dict.fromkeys(lost[self.synced :]):
            if node in self.of_node:  # it is not gone
                self.count(node)
        self.synced = len(lost)


#: lines for which nodes have gained enough that are tried at one instant. Their attempts are dear, and after most
#: releases something has been gained; the others are tried in later rounds
_MOST_TRIED: Final = 2
#: nodes that lost room are counted when there are this many of them
_MOST_LOST: Final = 4096


class RoomWatch:
    """The gangs of a partition that wait for room, by the size of the members that lack it: what they need, and
    the node that they require."""

    __slots__ = ("_due", "_idle", "_lines", "_lost", "_now", "_number", "counts", "tried")

    def __init__(self) -> None:
        self.counts: dict[tuple[Need, str, bool], _Count] = {}
        #: those of them for which no line waits: they are kept while gangs are tried
        self._idle: dict[tuple[Need, str, bool], None] = {}
        #: nodes that lost room; it is counted when it matters
        self._lost: list[Node] = []
        self._lines: dict[Hashable, Line] = {}
        #: lines for which nodes have gained enough, and how many of them were tried at this instant
        self._due: dict[Line, None] = {}
        self._now, self._number = -1, 0
        #: gangs that are to be tried for the lines that they come from
        self.tried: dict[Application, Line] = {}

    def wait(
        self,
        app: Application,
        alike: Hashable,
        wanted: tuple[RoomWanted, ...],
        nodes: Iterable[Node],
    ) -> None:
        """Retry the gang, or one before it that is ``alike`` and waits for the same, when these nodes have some
        of the room that is wanted."""
        line = self.tried.pop(app, None)
        key = alike, app.gang.missing, wanted
        if line is None or line.key[0] != alike:
            if line is not None:  # the others of its former line wait for something else
                self.tried[app] = line
            self._leave(app)
            line = Line(key)
        line.key = key
        line.add(app)
        app.gang.line = line
        self._open(line, nodes)

    def _open(self, line: Line, nodes: Iterable[Node]) -> None:
        """The line waits from now on, as one line with another that waits for the same."""
        for shape, number, gained, mixed in line.key[2]:
            key = shape.need, shape.required_node, mixed
            count = self.counts.get(key)
            if key in self._idle:
                del self._idle[key]
                count = self.counts[key] = self.counts.pop(key)  # last, like a new one
            if count is None:
                count = self.counts[key] = _Count(shape, mixed, nodes, len(self._lost))
            if gained:
                count.sync(self._lost)
                count.gains[line, shape] = _Gain(shape, number)
            else:
                count.waiting[line, shape] = number
                count.least = min(count.waiting.values())
        kept = self._lines[line.key] = self._merged(line, self._lines.get(line.key))
        if kept is not line:  # it would fail now, too
            self._due.pop(kept, None)
            for shape, number, gained, mixed in line.key[2]:
                if gained:
                    gains = self.counts[shape.need, shape.required_node, mixed].gains
                    gains[kept, shape] = _Gain(shape, number)

    def _merged(self, line: Line, other: Line | None) -> Line:
        """One line of both, as they wait for the same."""
        if other is None:
            return line
        if len(line) > len(other):
            line, other = other, line
        for app in line:
            other.add(app)
            app.gang.line = other
        self._stop_counting(line)
        return other

    def forget(self, app: Application) -> None:
        """The gang no longer waits for room."""
        self._leave(app)
        self.attempted(app)

    def attempted(self, app: Application) -> None:
        """The attempt of the gang is over. Unless it waits again, the next gang of its line is tried."""
        line = self.tried.pop(app, None)
        if line is not None:
            self._try_first(line)
        if not self.tried:
            for key in self._idle:
                del self.counts[key]
            self._idle.clear()

    @property
    def waits(self) -> bool:
        """Whether `pass_on` may find something."""
        return bool(self.tried or self._due)

    def pass_on(self, now: int) -> bool:
        """Try the next gangs of the lines whose first one is not to be placed any longer, and of those that are
        due. Return whether there is any."""
        gone = [app for app in self.tried if not app.demand & START_GANG]
        for app in gone:
            self.attempted(app)
        return self._try_due(now) or bool(gone)

    def _try_due(self, now: int) -> bool:
        if now != self._now:
            self._now, self._number = now, 0
        found = False
        while self._due and self._number < _MOST_TRIED:
            self._number += 1
            self._try_first(next(iter(self._due)))
            found = True
        return found

    def changed(self, node: Node) -> None:
        """The node has less room, or more that nobody waits for."""
        self._lost.append(node)
        if len(self._lost) > _MOST_LOST:
            for count in self.counts.values():
                count.sync(self._lost)
                count.synced = 0
            self._lost.clear()

    def removed(self, node: Node) -> None:
        """The node is gone."""
        for count in self.counts.values():
            count.remove(node)

    def gained(self, node: Node, longest: int, now: int) -> None:
        """The node has more room, or takes new allocations again: retry the gangs that may start now. Nodes of
        the planned start are lent for this time (ns)."""
        for count in list(self.counts.values()):
            count.count(node)
            if count.most >= count.least:
                count.sync(self._lost)
                for line in count.reached(longest):
                    self._try_first(line)
            if count.gained():
                count.sync(self._lost)
                self._due.update(dict.fromkeys(count.gained()))
        self._try_due(now)

    def _try_first(self, line: Line) -> None:
        first: Application | None = line.first()
        self._close(line)
        if first is not None:
            self.tried[first] = line
            first.gang.try_again()  # it leaves the line

    def _leave(self, app: Application) -> None:
        line = app.gang.line
        if line is not None:
            app.gang.line = None
            line.discard(app)
            if not line:
                self._close(line)

    def _close(self, line: Line) -> None:
        """The line waits no longer."""
        if self._lines.get(line.key) is line:
            del self._lines[line.key]
            self._stop_counting(line)

    def _stop_counting(self, line: Line) -> None:
        self._due.pop(line, None)
        for shape, _, gained, mixed in line.key[2]:
            key = shape.need, shape.required_node, mixed
            count = self.counts.get(key)
            if count is None or (line, shape) not in (count.gains if gained else count.waiting):
                continue
            if gained:
                del count.gains[line, shape]
            else:
                del count.waiting[line, shape]
                count.least = min(count.waiting.values(), default=_NEVER)
            if not count.waiting and not count.gains:
                self._idle[key] = None
