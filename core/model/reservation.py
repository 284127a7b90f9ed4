"""A reservation: a node kept for an ask that fits on no node yet (2.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node

__all__ = ["Reservation"]


class Reservation:
    """``node`` is kept for one repeat of ``ask`` since ``made`` (ns)."""

    __slots__ = ("ask", "made", "node")

    def __init__(self, ask: Ask, node: Node, made: int) -> None:
        self.ask = ask
        self.node = node
        self.made = made
