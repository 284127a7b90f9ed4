"""Which node to reserve: the one that an ask would fit most tightly (5.7)."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from quadriga.core.model.node import Node
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.resources.vectors import Totals


def reservable_amounts(node: Node) -> Totals:
    """What the node has for an ask that reserves it, as if everything that runs there had ended (Q7)."""
    if node.partition.reservation_bounds.share is None:  # as in YuniKorn
        return node.total
    return [total - occupied for total, occupied in zip(node.total, node.occupied, strict=True)]


def could_reserve(node: Node, shape: Shape) -> bool:
    """Whether an ask of the shape may reserve the node."""
    if shape.required_node:
        return node.node_id == shape.required_node
    if not node.free or node.barred:
        return False
    if node.partition.reservation_bounds.share is None:  # as in YuniKorn
        return shape.fits(node.total)
    total, occupied = node.total, node.occupied
    for at, value in shape.need:  # as if everything that runs there had ended (Q7)
        if total[at] - occupied[at] < value:
            return False
    return not shape.shares or shape.fits(reservable_amounts(node))


def fit_in_score(node: Node, shape: Shape) -> float:
    """FitInScore (5) of the shape on the node: low is a tight fit."""
    vector, score = shape.vector, 0.0
    free: Any  # see ``policies.used_share``
    for at, free in enumerate(node.available):
        if free > 0:
            asked = vector[at] if at < len(vector) else 0
            if asked <= 0:
                score += 1.0
            elif free > asked:
                score += (free - asked) / free
    return score


def _score(node: Node, shape: Shape) -> float:
    return fit_in_score(node, shape) if could_reserve(node, shape) else inf


class ReservableNodes:
    """The FitInScores of one shape in node order, infinite for nodes that it may not reserve. ``synced`` is
    the length of the log of changed positions when they were brought up to date."""

    __slots__ = ("_scores", "synced")

    def __init__(self) -> None:
        self._scores: npt.NDArray[np.float64] | None = None
        self.synced = 0

    def clear(self) -> None:
        """Too much has changed: compute all scores anew."""
        self._scores = None

    def best(
        self, shape: Shape, nodes: list[Node], log: list[int], values: npt.NDArray[np.float64]
    ) -> Node | None:
        """The node with the lowest score, among equals the first by its score for an allocation
        (``values``); ``None`` if there is none."""
        scores = self._scores
        if scores is None:
            scores = self._scores = np.array([_score(node, shape) for node in nodes], np.float64)
        else:
            for position in dict.fromkeys(log[self.synced :]):
                scores[position] = _score(nodes[position], shape)
        self.synced = len(log)
        low = scores.min(initial=inf)
        if low == inf:
            return None
        tied = np.flatnonzero(scores == low)
        # in a full cluster many nodes are equal
        first = values[tied].argmin() if len(tied) > 1 else 0
        node: Node = nodes[tied[first]]
        return node
