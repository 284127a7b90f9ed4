"""The free nodes of a partition as arrays: an explanation compares an ask with all of them at once."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from quadriga.core.resources.units import room_of_nodes
from quadriga.core.runtime.stepwise import chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quadriga.core.model.node import Node, NodeOrder
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.resources.vectors import Vector
    from quadriga.core.runtime.stepwise import Steps


class FreeNodes:
    """``free`` says by position which of the ``nodes`` take new allocations of any ask (``Node.free``), ``large``
    which of these are large enough for the shape, and ``scores`` are the scores of those with room for it. All is
    a copy of one moment, as decisions may be made while it is used."""

    def __init__(self, index: NodeOrder, shape: Shape) -> None:
        rows, self.free = index.amounts()
        self._rows, self.nodes = rows.copy(), index.nodes.copy()
        self.scores = index.scores(shape)
        self.sizes = index.sizes().copy()
        self.large = self.free
        self.large_sizes: set[Vector] = set()

    @classmethod
    def read(cls, index: NodeOrder, shape: Shape) -> Steps[FreeNodes]:
        """The free nodes as they are after these steps."""
        yield from index.amounts_in_steps()
        found = cls(index, shape)
        yield
        large = found.large_sizes
        for sizes in chunks(found.sizes):
            large.update(size for size in sizes if shape.fits(size))
            yield
        if len(large) < len(found.sizes):
            each: list[bool] = []
            for nodes in chunks(found.nodes):
                each += [tuple(node.total) in large for node in nodes]
                yield
            found.large = found.free & np.array(each, dtype=bool)
        return found

    def others(self) -> list[Node]:
        """The nodes that are not free."""
        return [self.nodes[at] for at in np.flatnonzero(~self.free).tolist()]

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
