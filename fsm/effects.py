"""What the six tables can cause. The core's dispatcher has one handler for each of these.

Effects name what must happen in the scheduler's words, not how: the fsm package knows neither the
protocol nor the books.
"""

from __future__ import annotations

from dataclasses import dataclass

from quadriga.fsm.table import Effect

__all__ = [
    "CloseNode",
    "DropState",
    "EmptyNode",
    "Fire",
    "Forget",
    "LeaveQueue",
    "OpenNode",
    "ReleaseAsks",
    "ReleasePlaceholders",
    "ReleaseAllocations",
    "RequestRelease",
    "StartTimer",
    "StoppedRunning",
    "StartedRunning",
    "Update",
]


@dataclass(frozen=True, slots=True)
class Update(Effect):
    """Tell the resource manager the new state. ``message`` is the reason, else the trigger (X34)."""

    state: str
    message: str


@dataclass(frozen=True, slots=True)
class StartTimer(Effect):
    """Have ``name`` happen to the entity after ``ns``, whatever states it enters meanwhile."""

    name: str
    ns: int


@dataclass(frozen=True, slots=True)
class Fire(Effect):
    """Fire another trigger at the same entity, after the effects before this one."""

    trigger: str


@dataclass(frozen=True, slots=True)
class ReleaseAsks(Effect):
    """Reject the application's pending asks (only placeholders' where told so) and say so (G46)."""

    placeholders_only: bool
    message: str


@dataclass(frozen=True, slots=True)
class ReleasePlaceholders(Effect):
    """Ask the resource manager for every placeholder back, with TIMEOUT (G46, G51).

    ``completes``: the application completes when the last one is confirmed gone (X26).
    """

    message: str
    completes: bool = False


@dataclass(frozen=True, slots=True)
class ReleaseAllocations(Effect):
    """Ask the resource manager for every allocation back, placeholder or not, with TIMEOUT."""

    message: str


@dataclass(frozen=True, slots=True)
class StartedRunning(Effect):
    """The application counts as running in its queue and all above (V5)."""


@dataclass(frozen=True, slots=True)
class StoppedRunning(Effect):
    """The application no longer counts as running."""


@dataclass(frozen=True, slots=True)
class LeaveQueue(Effect):
    """The application has ended: out of its queue, its id is free (G50, G54, G55)."""


@dataclass(frozen=True, slots=True)
class Forget(Effect):
    """Nothing refers to the entity any more: drop the record of it."""


@dataclass(frozen=True, slots=True)
class RequestRelease(Effect):
    """Send (or send again) this allocation's release to the resource manager."""


@dataclass(frozen=True, slots=True)
class OpenNode(Effect):
    """The node may take new allocations."""


@dataclass(frozen=True, slots=True)
class CloseNode(Effect):
    """The node takes no new allocations; what runs there goes on."""


@dataclass(frozen=True, slots=True)
class EmptyNode(Effect):
    """The node is gone: its allocations end and its reservations fall (M7)."""


@dataclass(frozen=True, slots=True)
class DropState(Effect):
    """Forget all partitions, applications and nodes of the resource manager (I7, I6)."""
