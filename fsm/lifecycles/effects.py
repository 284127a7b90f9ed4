"""The effects of the seven tables. The core's dispatcher has one handler for each of them.

An effect states what must happen in terms of the scheduler, not how. This package knows neither the
protocol nor the accounting.
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
    "FreeNodes",
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
    """Send the new state to the resource manager. ``message`` is the reason, or else the trigger (X34)."""

    state: str
    message: str


@dataclass(frozen=True, slots=True)
class StartTimer(Effect):
    """Start the timer ``name``, which fires after ``ns`` whatever states the entity enters until then."""

    name: str
    ns: int


@dataclass(frozen=True, slots=True)
class Fire(Effect):
    """Fire another trigger of the same entity after the effects before this one."""

    trigger: str


@dataclass(frozen=True, slots=True)
class ReleaseAsks(Effect):
    """Reject the pending asks of the application, or only those for placeholders (G46)."""

    placeholders_only: bool
    message: str


@dataclass(frozen=True, slots=True)
class ReleasePlaceholders(Effect):
    """Request the release of every placeholder with TIMEOUT (G46, G51).

    ``completes``: the application completes when the last release is confirmed (X26).
    """

    message: str
    completes: bool = False


@dataclass(frozen=True, slots=True)
class ReleaseAllocations(Effect):
    """Request the release of every allocation and placeholder with TIMEOUT."""

    message: str


@dataclass(frozen=True, slots=True)
class StartedRunning(Effect):
    """The application counts as running in its queue and in all queues above it (V5)."""


@dataclass(frozen=True, slots=True)
class StoppedRunning(Effect):
    """The application no longer counts as running."""


@dataclass(frozen=True, slots=True)
class LeaveQueue(Effect):
    """The application has ended: it leaves its queue, and its id is free again (G50, G54, G55)."""


@dataclass(frozen=True, slots=True)
class Forget(Effect):
    """Nothing refers to the entity any more: delete its record."""


@dataclass(frozen=True, slots=True)
class RequestRelease(Effect):
    """Send the release of this allocation to the resource manager, for the first time or again."""


@dataclass(frozen=True, slots=True)
class OpenNode(Effect):
    """The node may receive new allocations."""


@dataclass(frozen=True, slots=True)
class CloseNode(Effect):
    """The node receives no new allocations; its allocations go on."""


@dataclass(frozen=True, slots=True)
class EmptyNode(Effect):
    """The node is gone: its allocations end and its reservations are cancelled (M7)."""


@dataclass(frozen=True, slots=True)
class FreeNodes(Effect):
    """The gang no longer gathers: the nodes that it keeps are free again, and another gang may gather.

    ``reason`` says why it gave them up; it is empty if the gang was placed or has ended.
    """

    reason: str = ""


@dataclass(frozen=True, slots=True)
class DropState(Effect):
    """Forget all partitions, applications and nodes of the resource manager (I7, I6)."""
