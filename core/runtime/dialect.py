"""Names of application states and triggers on the wire (X1, X34).

The canonical names are those of the lifecycle. YuniKorn has other names for the same states and events,
and its shims compare the names. Event records carry numbers and need no dialect.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from quadriga.fsm import APPLICATION
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.si import EventRecord

_STATES: Final[dict[str, str]] = dict(application_fsm.YUNIKORN_STATES.items())
_EVENTS: Final[dict[str, str]] = dict(application_fsm.YUNIKORN_EVENTS.items())
_NUMBERS: Final[dict[str, int]] = dict(EventRecord.ChangeDetail.items())


def _number(state: application_fsm.State) -> int:
    """The protocol names its numbers after YuniKorn's states. A state of our own has none."""
    if state in application_fsm.TURNED_AWAY:
        return EventRecord.APP_REJECT
    return _NUMBERS.get(f"APP_{_STATES[state].upper()}", EventRecord.DETAILS_NONE)


#: the number that an event record of the state change carries (I41, 2.20)
EVENT_DETAIL: Final = {state: _number(state) for state in APPLICATION.states}


class Dialect(Enum):
    """The names of states and triggers that a resource manager gets: ours or YuniKorn's."""

    QUADRIGA = "quadriga"
    YUNIKORN = "yunikorn"

    def state(self, state: str) -> str:
        """The name of a state, for example in UpdatedApplication.state."""
        return _STATES[state] if self is Dialect.YUNIKORN else state

    def message(self, message: str) -> str:
        """The name of a trigger, if the message is one; any other text is unchanged."""
        return _EVENTS.get(message, message) if self is Dialect.YUNIKORN else message


#: each dialect by its name: faster than ``Dialect(name)``
DIALECTS: Final = {dialect.value: dialect for dialect in Dialect}
