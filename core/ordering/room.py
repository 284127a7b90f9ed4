"""Room for many: how many asks of a shape all nodes together have room for (Q2).

A gang that lacks nodes waits until there may be room for all its members. For each shape that such a
gang lacks, the number of its asks that fit each node is known as of the last count. When a node gains
room, its number rises; it does not fall when the node loses room. So the sum never is too low, and a
gang whose number it has not reached cannot start. The next attempt counts anew.

Gangs that are alike and have failed with the same room wait in one line, so that room costs one attempt
however many they are. The first in order is tried; the others only after it, if it does not wait again (D322).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from quadriga.core.model.gang import Line
from quadriga.core.resources.shapes import START_GANG
from quadriga.core.resources.units import room as room_of_units

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.node import Node
    from quadriga.core.resources.shapes import Shape


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


class _Count:
    """The room for one shape, and the lines that wait for more, each with the number that it needs."""

    __slots__ = ("least", "of_node", "total", "waiting")

    def __init__(self, of_node: dict[Node, int]) -> None:
        self.waiting: dict[Line, int] = {}
        self.least = 0
        self.recount(of_node)

    def recount(self, of_node: dict[Node, int]) -> None:
        self.of_node = of_node
        self.total = sum(of_node.values())


class RoomWatch:
    """The gangs of a partition that wait for room, by the shape that they lack."""

    __slots__ = ("_counts", "_lines", "tried")

    def __init__(self) -> None:
        self._counts: dict[Shape, _Count] = {}
        self._lines: dict[Hashable, Line] = {}
        #: gangs that are to be tried for the lines that they come from
        self.tried: dict[Application, Line] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def wait(
        self,
        app: Application,
        alike: Hashable,
        numbers: tuple[tuple[Shape, int], ...],
        rooms: Iterable[dict[Node, int]],
    ) -> None:
        """Retry the gang, or one before it that is ``alike`` and waits for the same, when nodes may have room
        for one of these numbers of asks; ``rooms`` are the present numbers of each node that has any."""
        line = self.tried.pop(app, None)
        key = alike, app.gang.missing, numbers
        if line is None or line.key[0] != alike:
            if line is not None:  # the others of its former line wait for something else
                self.tried[app] = line
            self._leave(app)
            line = Line(key)
        line.key = key
        line.add(app)
        app.gang.line = line
        for (shape, _), room in zip(numbers, rooms, strict=True):
            count = self._counts.get(shape)
            if count is None:
                self._counts[shape] = _Count(room)
            else:
                count.recount(room)
        self._open(line)

    def wait_alone(self, app: Application) -> None:
        """The gang is no longer like the others of its line."""
        line = app.gang.line
        if line is None or app not in line or line.key[0] is app:
            return
        app.gang.missing = line.key[1]
        if self._lines.get(line.key) is not line:  # it is tried for, and will be by itself
            app.gang.try_again()
        else:
            own = app.gang.line = Line((app, line.key[1], line.key[2]))
            own.add(app)
            self._open(own)
            line.discard(app)
            if not line:
                self._close(line)

    def _open(self, line: Line) -> None:
        """The line waits from now on, as one line with another that waits for the same."""
        for shape, number in line.key[2]:
            count = self._counts[shape]
            count.waiting[line] = number
            count.least = min(count.waiting.values())
        self._lines[line.key] = self._merged(line, self._lines.get(line.key))

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

    def pass_on(self) -> bool:
        """Try the next gangs of the lines whose first one is not to be placed any longer. Return whether there
        is any."""
        gone = [app for app in self.tried if not app.demand & START_GANG]
        for app in gone:
            self.attempted(app)
        return bool(gone)

    def gained(self, node: Node) -> None:
        """The node has more room, or takes new allocations again: retry the gangs that may start now."""
        for shape, count in list(self._counts.items()):
            if shape.required_node and shape.required_node != node.node_id:
                continue
            room = room_for(shape, node.available)
            more = room - count.of_node.get(node, 0)
            if more > 0:
                count.of_node[node] = room
                count.total += more
                if count.total >= count.least:
                    for line in [e for e, number in count.waiting.items() if number <= count.total]:
                        self._try_first(line)

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
        for shape, count in list(self._counts.items()):
            if line in count.waiting:
                del count.waiting[line]
                if count.waiting:
                    count.least = min(count.waiting.values())
                else:
                    del self._counts[shape]
