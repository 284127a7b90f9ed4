"""The free nodes of a partition as arrays: an explanation compares an ask with all of them at once."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from quadriga.core.ordering.free import room_by_row
from quadriga.core.runtime.stepwise import Steps, chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quadriga.core.model.node import Node, NodeOrder
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.resources.vectors import Vector

#: ``lacks`` tells this many types apart
MOST_TYPES: Final = 60


class FreeNodes:
    """All is a copy of one moment, as decisions may be made while it is used; arrays are by position."""

    def __init__(self, index: NodeOrder, shape: Shape) -> None:
        #: ``free``: the node takes new allocations of any ask (``Node.free``)
        rows, self.free = index.amounts()
        self._rows, self.nodes = rows.copy(), index.nodes.copy()
        self.sizes = index.sizes().copy()
        #: the sizes that are large enough for the shape, and the free nodes that have one of them
        self.large_sizes: set[Vector] = set()
        self.large = self.free
        #: of free nodes with room for the shape
        self.scores = index.scores(shape)
        #: the types that each node lacks, as bits of the place of a type in the shape
        self.lacks = np.zeros(len(self.nodes), dtype=np.int64)
        #: the largest share that it lacks of what the shape asks for of a type; less than 0 if none
        self.missing = np.full(len(self.nodes), -inf)
        #: nodes that are not free, and those of them that are reserved
        self.others: list[Node] = []
        self.kept: list[Node] = []

    @classmethod
    def read(cls, index: NodeOrder, shape: Shape) -> Steps[FreeNodes]:
        """The free nodes as they are after the first of these steps."""
        yield from index.amounts_in_steps()
        found = cls(index, shape)
        yield
        for sizes in chunks(found.sizes):
            found.large_sizes.update(size for size in sizes if shape.fits(size))
            yield
        if len(found.large_sizes) < len(found.sizes):
            large: list[bool] = []
            for nodes in chunks(found.nodes):
                large += [tuple(node.total) in found.large_sizes for node in nodes]
                yield
            found.large = found.free & np.array(large, dtype=bool)
        for bit, (at, value) in enumerate(shape.need if found.nodes else ()):
            free = found._rows[:, at]
            found.lacks[free < value] |= 1 << min(bit, MOST_TYPES)
            share = (value - free.astype(np.float64)) / value
            np.maximum(found.missing, share, out=found.missing)
            yield
        for positions in chunks(np.flatnonzero(~found.free).tolist()):
            others = [found.nodes[at] for at in positions]
            found.others += others
            found.kept += [node for node in others if node.open and node.reservation is not None]
            yield
        return found

    def room(self, shape: Shape, most: int) -> Iterator[tuple[Node, int]]:
        """Yield the free nodes with room for the shape, and for how many; for ``most`` if it is nothing."""
        room = room_by_row(self._rows, shape) if shape.need else np.full(len(self.nodes), most)
        for at in np.flatnonzero(self.free & (room > 0)).tolist():
            yield self.nodes[at], room.item(at)
