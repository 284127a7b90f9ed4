"""The free nodes of a partition as arrays: an explanation compares an ask with all of them at once."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from quadriga.core.resources.units import room_of_nodes

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from quadriga.core.model.node import Node, NodeOrder
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.resources.vectors import Vector


class FreeNodes:
    """``free`` says by position which of the ``nodes`` take new allocations of any ask (``Node.free``). It is of
    this moment, like all that is computed from it."""

    def __init__(self, index: NodeOrder) -> None:
        self._rows, self.free = index.amounts()
        self._sizes: Counter[Vector] = index.sizes()
        self.nodes: list[Node] = index.nodes

    def others(self) -> Iterator[Node]:
        """The nodes that are not free."""
        return (self.nodes[at] for at in np.flatnonzero(~self.free).tolist())

    def large(self, shape: Shape) -> Any:
        """Which free nodes are large enough for the shape."""
        large = {size for size in self._sizes if shape.fits(size)}
        if len(large) == len(self._sizes):
            return self.free
        return self.free & np.array([tuple(node.total) in large for node in self.nodes], dtype=bool)

    def _free(self, at: int) -> Any:
        """What each node has free of a type."""
        return self._rows[:, at] if self.nodes else np.zeros(0, dtype=np.int64)

    def lacking(self, shape: Shape) -> Iterator[tuple[int, Any]]:
        """Yield each type that the shape asks for, with which nodes lack some of it."""
        for at, value in shape.need:
            yield at, self._free(at) < value

    def missing_share(self, shape: Shape) -> Any:
        """The largest share that each node lacks of what the shape asks for of a type; less than 0 if none."""
        share = np.full(len(self.nodes), -inf)
        for at, value in shape.need:
            np.maximum(share, (value - self._free(at).astype(np.float64)) / value, out=share)
        return share

    def room(self, shape: Shape, most: int) -> Iterator[tuple[Node, int]]:
        """Yield the free nodes with room for the shape, and for how many; for ``most`` if it is nothing."""
        room = np.full(len(self.nodes), most if not shape.need else np.iinfo(np.int64).max)
        for at, value in shape.need:
            np.minimum(room, self._free(at) // value, out=room)
        if shape.shares and self.nodes:
            np.minimum(room, room_of_nodes(shape.shares, self._rows), out=room)
        for at in np.flatnonzero(self.free & (room > 0)).tolist():
            yield self.nodes[at], room.item(at)
