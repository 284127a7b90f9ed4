"""The gang of an application: its size and its progress (X16, G21)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.model.resources import Vector
    from quadriga.core.model.task_group import TaskGroup
    from quadriga.core.model.timer import Timer

__all__ = ["Gang"]


class Gang:
    """Every application has one; ``size`` is ``None`` if the application is no gang."""

    __slots__ = (
        "announced",
        "gated",
        "hard",
        "lost",
        "over",
        "size",
        "started",
        "task_groups",
        "timeout",
        "timer",
    )

    def __init__(self) -> None:
        #: sum of all placeholders by type, as announced with the application, else of the placeholder
        #: asks so far (X35)
        self.size: Vector | None = None
        #: the size was announced with the application
        self.announced = False
        #: the style is Hard, not Soft
        self.hard = False
        #: time (ns) after which placeholders expire; 0: never
        self.timeout = 0
        self.timer: Timer | None = None
        #: task groups by name
        self.task_groups: dict[str, TaskGroup] = {}
        #: the first placeholder has been allocated; headroom is reserved for the rest (X16)
        self.started = False
        #: the quota has no room for the whole gang (X16)
        self.gated = False
        #: the placeholders timed out softly, and the application is an ordinary one since (X9)
        self.over = False
        #: amounts of placeholders that the resource manager stopped (S5)
        self.lost: Vector = ()
