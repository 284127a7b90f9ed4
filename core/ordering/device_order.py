"""The order of nodes that have devices, such as GPUs: what an allocation would strand comes first (5.7).

A device is stranded if its node has too little of something else left for an ask to use it: a GPU on a
node without free vcores. How much a device takes is not known beforehand. What the node has for each
device that is smallest for its devices is a measure: no node is built with less. So the usable devices of
a node are at most its free vcores divided by the fewest vcores for a device on any node, and the same for
the other weighted types. Of the free devices, those that are not usable are stranded.

The node with the lowest score comes first. In this order, which is not strict, the score consists of

- the devices that the allocation strands;
- the free devices of the node. Nodes without any come first, so asks for no device leave devices alone;
- the other room of the node, counted in devices: the least first.

Unlike that of other policies, this score depends on the ask, because what is stranded does. A change of a
node costs one score for each shape that is looked for later. See D340.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from quadriga.core.model.node import Node
    from quadriga.core.ordering.free import Matrix
    from quadriga.core.ordering.scores import Column
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.resources.vectors import Vector

#: weight of a stranded device against a free one, and of that against the other room
_WEIGHT: Final = 1024.0

#: for a type of device: its index, the amount that is one device, and for each other type how much of the
#: type one unit of it is enough for
Device = tuple[int, float, tuple[tuple[int, float], ...]]


def devices_among(
    sizes: Iterable[Vector], devices: Mapping[int, int], others: Iterable[int]
) -> tuple[Device, ...]:
    """The devices (indexes of types, and what is one of them) that nodes of these sizes have, with what they
    need of the other types at least."""
    found, sizes = [], list(sizes)
    for device, one in devices.items():
        with_it: Any = [
            size for size in sizes if size[device] > 0
        ]  # Any: see ``policies.used_share``
        if with_it:
            least = []
            for at in others:
                if shares := [size[device] / size[at] for size in with_it if size[at] > 0]:
                    least.append((at, max(shares)))
            found.append((device, float(one), tuple(least)))
    return tuple(found)


class DeviceOrder:
    """The scores of a partition's nodes by its ``devices``."""

    __slots__ = ("_on_nodes", "devices")

    def __init__(self, devices: tuple[Device, ...]) -> None:
        self.devices = devices
        #: for each device which nodes have any, in node order, once that is asked for
        self._on_nodes: list[npt.NDArray[np.bool_]] | None = None

    def resized(self) -> None:
        """Nodes came, went or have another capacity."""
        self._on_nodes = None

    def score(self, node: Node, shape: Shape, by_node: float) -> float:
        """The score of a node that has room for the shape; ``by_node`` is that of the node alone."""
        vector, available, total = shape.vector, node.available, node.total
        known = len(vector)
        stranded = left = 0.0
        least = inf
        has_devices = False
        for device, one, others in self.devices:
            if not total[device]:
                continue
            has_devices = True
            free = float(max(available[device], 0))
            after = free - vector[device] if device < known else free
            usable = usable_after = inf
            for at, enough_for in others:
                room = available[at] * enough_for
                usable = min(usable, room)
                if at < known:
                    room = (available[at] - vector[at]) * enough_for
                usable_after = min(usable_after, room)
            usable = max(usable, 0.0)
            lost = max(after - max(usable_after, 0.0), 0.0) - max(free - usable, 0.0)
            stranded += lost / one
            left += free / one
            least = min(least, usable / one)
        room = max(by_node, 0.0)  # negative where more is used than there is
        if not has_devices:
            return room / (1.0 + room)
        if least < inf:
            room = least
        return (stranded * _WEIGHT + left + 1.0) * _WEIGHT + room / (1.0 + room)

    def scores(
        self, shape: Shape, nodes: list[Node], free_amounts: Matrix, by_node: Column
    ) -> Column:
        """The scores of all nodes, in node order, as ``score`` has them; ``by_node`` are those of the nodes
        alone, infinite where nodes take nothing."""
        if self._on_nodes is None:
            self._on_nodes = [
                np.array([node.total[device] > 0 for node in nodes], dtype=np.bool_)
                for device, _, _ in self.devices
            ]
        vector, number = shape.vector, len(nodes)
        known = len(vector)
        stranded, left, least = np.zeros(number), np.zeros(number), np.full(number, inf)
        has_devices = np.zeros(number, dtype=np.bool_)
        for (device, one, others), on_nodes in zip(self.devices, self._on_nodes, strict=True):
            free = np.maximum(free_amounts[:, device], 0).astype(np.float64)
            after = free - vector[device] if device < known else free
            usable, usable_after = np.full(number, inf), np.full(number, inf)
            for at, enough_for in others:
                room = free_amounts[:, at] * enough_for
                usable = np.minimum(usable, room)
                if at < known:
                    room = (free_amounts[:, at] - vector[at]) * enough_for
                usable_after = np.minimum(usable_after, room)
            usable = np.maximum(usable, 0.0)
            more = np.maximum(after - np.maximum(usable_after, 0.0), 0.0)
            more -= np.maximum(free - usable, 0.0)
            stranded += np.where(on_nodes, more / one, 0.0)
            left += np.where(on_nodes, free / one, 0.0)
            least = np.where(on_nodes, np.minimum(least, usable / one), least)
            has_devices |= on_nodes
        takes = by_node < inf
        known_room = np.where(takes, np.maximum(by_node, 0.0), 0.0)
        room = np.where(least < inf, least, known_room)
        scores = (stranded * _WEIGHT + left + 1.0) * _WEIGHT + room / (1.0 + room)
        scores = np.where(has_devices, scores, known_room / (1.0 + known_room))
        return np.where(takes, scores, inf)
