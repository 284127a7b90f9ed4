"""The node ordering policies: one function each, in one table (5.7).

A policy gives an open, unreserved node a score. The node with the lowest score is chosen first, and
among equal scores the one with the lowest id. See D139.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from quadriga.core.model.node import Node


def used_share(node: Node) -> float:
    """The weighted mean of the used shares of the resource types: emptier nodes first."""
    shares, available = 0.0, node.available
    whole: Any  # compiled code would round the quotient of two typed integers twice
    for at, weight, whole in node.weighed:
        free: float = available[at] / whole
        shares += weight * (1 - free)
    return shares / node.weight if shares else 0.0


def free_share(node: Node) -> float:
    """The complement of ``used_share``: fuller nodes first."""
    return 1 - used_share(node)


def room_left(node: Node) -> float:
    """What is free in absolute terms: nodes with the least room first (best fit). What an ask takes
    is the same on every node, so this is also the order of what would be left after it."""
    room, available = 0.0, node.available
    most: Any  # see above
    for at, weight, most in node.weighed:
        free: float = available[at] / most
        room += weight * free
    return room


class NodePolicy(NamedTuple):
    """A score function. ``fills_evenly`` says that an allocation raises the score of its node, so that
    the next ask is likely to get another of the best nodes. ``absolute`` says that amounts count as
    shares of the largest node of the partition instead of shares of their own node, ``devices`` that
    devices come first on nodes that have any (``DeviceOrder``)."""

    score: Callable[[Node], float]
    fills_evenly: bool
    absolute: bool = False
    devices: bool = False


#: policies by their name in the configuration (``nodesortpolicy.type``)
NODE_POLICIES: Final[dict[str, NodePolicy]] = {
    "fair":       NodePolicy(used_share, fills_evenly=True),
    "binpacking": NodePolicy(free_share, fills_evenly=False),
    "bestfit":    NodePolicy(room_left, fills_evenly=False, absolute=True, devices=True),
}  # fmt: skip
