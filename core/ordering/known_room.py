"""What is known of room on nodes without a search.

Most shapes fit any free node with enough room; a table answers for all of these at once (``fitting``). For
the others more matters: a node that they require, or until when a reserved node is lent.

When a search finds no node for a shape, no node has room for it but those that gain room afterwards. As
long as these are few, there is nothing else to look at. So in a long backlog a node that gains room and is
taken again costs no search for each shape that would have fitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from quadriga.core.ordering.fitting import Fitting

if TYPE_CHECKING:
    from quadriga.core.model.node import Node
    from quadriga.core.resources.shapes import Shape

#: at most this many nodes are remembered that have gained room
_FEW: Final = 8


class KnownRoom:
    """Shapes are bits for a node now (``Shape.allocate``). ``others`` are the shapes that are not in the
    table."""

    __slots__ = ("_refilled", "_table", "others", "refilled_now", "searched")

    def __init__(self) -> None:
        self._table = Fitting()
        self.others: dict[Shape, None] = {}
        #: shapes for which a search has found no node; since then no others than ``_refilled`` gained room
        self.searched = 0
        self._refilled: dict[Node, None] = {}
        #: the shapes with room on ``_refilled``; -1 if that is to be found out, as a node has changed since
        self.refilled_now = 0

    def add(self, shape: Shape) -> None:
        """Asks of this shape wait."""
        if shape.required_node or shape.runtime or shape.shares or not self._table.add(shape):
            self.others[shape] = None

    def forget(self, shape: Shape) -> None:
        """No ask has this shape any more."""
        self.searched &= ~shape.allocate
        self._table.remove(shape)
        self.others.pop(shape, None)

    def nothing_found(self, shape: Shape) -> None:
        """A search has found no node for the shape."""
        self.searched |= shape.allocate & self._table.every

    def node_gained(self, node: Node, feasible: int) -> None:
        """The node has gained room; ``feasible`` are the shapes that had some before, as far as is known."""
        if not self.searched & feasible:  # the nodes that gained room earlier have none left
            self._refilled.clear()
        elif len(self._refilled) >= _FEW:
            self.searched &= ~feasible
            self._refilled.clear()
        self._refilled[node] = None

    def node_removed(self, node: Node) -> None:
        self._refilled.pop(node, None)
        self.refilled_now = -1

    def without_room(self) -> int:
        """Shapes that certainly have room on no node."""
        searched = self.searched
        if searched and self.refilled_now < 0:
            self.refilled_now = 0
            for node in self._refilled:
                if node.free:
                    self.refilled_now |= self._table.within(node.available)
        return searched & ~self.refilled_now

    @property
    def table(self) -> int:
        """The shapes of the table."""
        return self._table.every

    def missing(self, feasible: int) -> int:
        """Shapes of the table without these."""
        return self._table.every & ~feasible

    def within(self, amounts: Any) -> int:
        """Shapes of the table that fit in these amounts, by type."""
        return self._table.within(amounts)
