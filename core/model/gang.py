"""What an application knows of its gang: how large it is, and how far it has got (X16, G21)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.model.resources import Vector
    from quadriga.core.model.task_group import TaskGroup
    from quadriga.core.model.timer import Timer

__all__ = ["Gang"]


class Gang:
    """Every application has one; ``size`` is ``None`` where the application is no gang."""

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
        #: the sum of all placeholders: announced with the application, or else the sum of the
        #: placeholder asks so far (X35)
        self.size: Vector | None = None
        self.announced = False
        #: the style is Hard, not Soft
        self.hard = False
        #: placeholders may wait for this long (ns); 0: without end
        self.timeout = 0
        self.timer: Timer | None = None
        #: by name
        self.task_groups: dict[str, TaskGroup] = {}
        #: the first placeholder has been allocated; headroom is reserved for the rest (X16)
        self.started = False
        #: the quota has no room for the whole gang at present (X16)
        self.gated = False
        #: the placeholders timed out softly: from now on this is an ordinary application (X9)
        self.over = False
        #: placeholders that the resource manager took away (S5)
        self.lost: Vector = ()
