"""The values that nodes have for a label, as numbers, so that a filter can check all nodes at once (K137)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quadriga.k8s.objects import Node

Numbers = npt.NDArray[np.int32]


class TopologyValues:
    """The values of one label."""

    __slots__ = ("key", "numbers", "of_node")

    def __init__(self, key: str) -> None:
        self.key = key
        #: a number for each value, from 1
        self.numbers: dict[str, int] = {}
        #: by the node's index the number of its value; 0 without the label or the node
        self.of_node: Numbers = np.zeros(0, np.int32)

    def set(self, index: int, node: Node | None) -> None:
        """Set the value of the node with this index; ``None`` if the node is gone."""
        if index >= len(self.of_node):
            self.of_node = _longer(self.of_node, 2 * index + 64)
        value = None if node is None else node.metadata.labels.get(self.key)
        numbers = self.numbers
        number = 0 if value is None else numbers.setdefault(value, len(numbers) + 1)
        self.of_node[index] = number

    def of(self, length: int) -> Numbers:
        """Return ``of_node`` with this length, which is larger than any node's index."""
        if len(self.of_node) < length:
            self.of_node = _longer(self.of_node, length)
        return self.of_node[:length]


def _longer(numbers: Numbers, length: int) -> Numbers:
    found: Numbers = np.zeros(length, np.int32)
    found[: len(numbers)] = numbers
    return found
