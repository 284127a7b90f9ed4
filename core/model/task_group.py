"""A task group of a gang: members with the same resources, each with a placeholder first."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from quadriga.core.model.resources import Vector

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation

__all__ = ["TaskGroup"]


class TaskGroup:
    """``count = pending + allocated + replaced + timed_out`` at all times (V4).

    ``available`` holds the placeholders that nobody has asked back, oldest ask first.
    """

    __slots__ = (
        "_in_order",
        "_waiting",
        "allocated",
        "count",
        "min_resource",
        "name",
        "pending",
        "replaced",
        "stood_in",
        "timed_out",
    )

    def __init__(self, name: str, min_resource: Vector) -> None:
        self.name = name
        self.min_resource = min_resource
        self.count = 0
        self.pending = 0
        self.allocated = 0
        self.replaced = 0
        self.timed_out = 0
        #: when the placeholder was allocated (ns) whose place a real allocation took, by that one's
        #: UUID: asked for is what stood in for it (2.14)
        self.stood_in: dict[str, int] = {}
        self._waiting: OrderedDict[Allocation, int] = OrderedDict()
        self._in_order = True

    @property
    def can_replace(self) -> bool:
        """Whether real asks of this group wait for a placeholder: one that nobody has asked back, or
        that is still to be placed (G27, X36)."""
        return bool(self._waiting) or self.pending > 0

    @property
    def available(self) -> OrderedDict[Allocation, int]:
        if not self._in_order:
            self._waiting = OrderedDict(sorted(self._waiting.items(), key=lambda item: item[1]))
            self._in_order = True
        return self._waiting

    def landed(self, placeholder: Allocation) -> None:
        """A placeholder was allocated (or recovered)."""
        self.pending -= 1
        self.allocated += 1
        self.offer(placeholder)

    def offer(self, placeholder: Allocation) -> None:
        """The placeholder may be replaced."""
        order = placeholder.ask.seq
        if self._waiting and self._in_order:
            self._in_order = next(reversed(self._waiting.values())) <= order
        self._waiting[placeholder] = order

    def take(self, placeholder: Allocation) -> None:
        """A placeholder is asked back or gone."""
        self._waiting.pop(placeholder, None)
