"""Names of application states and triggers on the wire (X1, X34).

The canonical names are the lifecycle's own. YuniKorn calls the same states and events differently,
and its shims compare the names. Event records carry numbers and need no dialect.
"""

from __future__ import annotations

from enum import Enum

from quadriga.fsm import application as life
from quadriga.si import EventRecord

__all__ = ["EVENT_DETAIL", "Dialect"]

_YUNIKORN_STATES = {
    life.WAITING: "Completing",
    life.KILLING: "Failing",
    life.KILLED: "Failed",
}

_YUNIKORN_EVENTS = {
    life.ASK: "runApplication",
    life.RUN: "runApplication",
    life.RESUMED: "runApplication",
    life.WAIT: "completeApplication",
    life.COMPLETE: "completeApplication",
    life.KILL: "failApplication",
    life.KILLED_: "failApplication",
    life.PLACEHOLDER_TIMEOUT: "resumeApplication",  # not seen: its reason is told instead
    life.REJECT: "rejectApplication",
    life.EXPIRE: "expireApplication",
}

#: the number that an event record of the state change carries (I41, 2.20)
EVENT_DETAIL = {
    life.NEW: EventRecord.APP_NEW,
    life.ACCEPTED: EventRecord.APP_ACCEPTED,
    life.STARTING: EventRecord.APP_STARTING,
    life.RUNNING: EventRecord.APP_RUNNING,
    life.WAITING: EventRecord.APP_COMPLETING,
    life.COMPLETED: EventRecord.APP_COMPLETED,
    life.KILLING: EventRecord.APP_FAILING,
    life.KILLED: EventRecord.APP_FAILED,
    life.REJECTED: EventRecord.APP_REJECT,
    life.RESUMING: EventRecord.APP_RESUMING,
    life.EXPIRED: EventRecord.APP_EXPIRED,
}


class Dialect(Enum):
    """Whose names a resource manager is told."""

    QUADRIGA = "quadriga"
    YUNIKORN = "yunikorn"

    def state(self, state: str) -> str:
        """The name of a state, for example in UpdatedApplication.state."""
        return _YUNIKORN_STATES.get(state, state) if self is Dialect.YUNIKORN else state

    def message(self, message: str) -> str:
        """The name of a trigger where one is the message; a reason stays as it is."""
        return _YUNIKORN_EVENTS.get(message, message) if self is Dialect.YUNIKORN else message
