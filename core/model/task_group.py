"""A task group of a gang: members with the same resources, each with a placeholder first."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from quadriga.core.model.resources import Vector

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation

__all__ = ["TaskGroup"]


class TaskGroup:
    """Numbers of placeholders: ``count = pending + allocated + replaced + timed_out`` at all times (V4)."""

    __slots__ = (
        "_in_order",
        "_replaceable",
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
        #: by the UUID of a real allocation, the instant (ns) at which the placeholder that it replaced
        #: was allocated (2.14)
        self.stood_in: dict[str, int] = {}
        self._replaceable: OrderedDict[Allocation, int] = OrderedDict()
        self._in_order = True

    @property
    def can_replace(self) -> bool:
        """Whether real asks of this group wait for a placeholder, which is either allocated and not being
        released, or still pending (G27, X36)."""
        return bool(self._replaceable) or self.pending > 0

    @property
    def available(self) -> OrderedDict[Allocation, int]:
        """The placeholders that are not being released, oldest ask first."""
        if not self._in_order:
            self._replaceable = OrderedDict(
                sorted(self._replaceable.items(), key=lambda item: item[1])
            )
            self._in_order = True
        return self._replaceable

    def landed(self, placeholder: Allocation) -> None:
        """Count a placeholder that was allocated or recovered."""
        self.pending -= 1
        self.allocated += 1
        self.offer(placeholder)

    def offer(self, placeholder: Allocation) -> None:
        """Make the placeholder available for replacement."""
        order = placeholder.ask.seq
        if self._replaceable and self._in_order:
            self._in_order = next(reversed(self._replaceable.values())) <= order
        self._replaceable[placeholder] = order

    def take(self, placeholder: Allocation) -> None:
        """Remove a placeholder that is being released or has ended."""
        self._replaceable.pop(placeholder, None)
