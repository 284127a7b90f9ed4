"""Room for many: how many asks of a shape all nodes together have room for (Q2).

A gang that lacks nodes waits until there may be room for all its members. For each shape that such a
gang lacks, the number of its asks that fit each node is known as of the last count. When a node gains
room, its number rises; it does not fall when the node loses room. So the sum never is too low, and a
gang whose number it has not reached cannot start. The next attempt counts anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.node import Node
    from quadriga.core.resources.shapes import Shape


def room_for(shape: Shape, available: Any) -> int:
    """The number of asks of this shape that fit in these free quantities; 0 for a shape of nothing."""
    room = 0
    for at, value in shape.need:  # a plain loop, and mostly there is none
        of_type = available[at] // value
        if of_type <= 0:
            return 0
        if not room or of_type < room:
            room = of_type
    return room


class _Count:
    """The room for one shape, and the gangs that wait for more, each with the number that it needs."""

    __slots__ = ("least", "of_node", "total", "waiting")

    def __init__(self, of_node: dict[Node, int]) -> None:
        self.waiting: dict[Application, int] = {}
        self.least = 0
        self.recount(of_node)

    def recount(self, of_node: dict[Node, int]) -> None:
        self.of_node = of_node
        self.total = sum(of_node.values())


class RoomWatch:
    """The gangs of a partition that wait for room, by the shape that they lack."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[Shape, _Count] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def wait(self, app: Application, shape: Shape, number: int, room: dict[Node, int]) -> None:
        """Retry the gang when nodes may have room for this number of asks of the shape; ``room`` is the
        present number of each node that has any."""
        count = self._counts.get(shape)
        if count is None:
            count = self._counts[shape] = _Count(room)
        else:
            count.recount(room)
        count.waiting[app] = number
        count.least = min(count.waiting.values())

    def forget(self, app: Application) -> None:
        """The gang no longer waits for room."""
        for shape, count in list(self._counts.items()):
            if app in count.waiting:
                del count.waiting[app]
                if count.waiting:
                    count.least = min(count.waiting.values())
                else:
                    del self._counts[shape]

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
                    self._retry(shape, count)

    def _retry(self, shape: Shape, count: _Count) -> None:
        ready = [app for app, number in count.waiting.items() if number <= count.total]
        for app in ready:
            del count.waiting[app]
        if count.waiting:
            count.least = min(count.waiting.values())
        else:
            del self._counts[shape]
        for app in ready:
            app.gang.try_again()
