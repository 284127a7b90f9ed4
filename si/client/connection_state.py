"""The lifecycle of a connection, as the resource manager (RM) sees it; the scheduler's side is I6.

    NEW ──────────▶ CONNECTED ◀──────▶ AWAY
                        ▲ │              │
                        │ ▼              │
                      FORGOTTEN ◀────────┘         and from everywhere to CLOSED

AWAY: the connection is lost. Requests wait here; the scheduler has paused the RM and keeps its
messages for a limited time.

FORGOTTEN: the scheduler has dropped the RM, which must register again and report all its state (I7,
I43).

The RM may register in every state but CLOSED.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from transitions import Machine, MachineError

from quadriga.si import RequestError

NEW, CONNECTED, AWAY = "New", "Connected", "Away"
FORGOTTEN, CLOSED = "Forgotten", "Closed"

STATES: Final = (NEW, CONNECTED, AWAY, FORGOTTEN, CLOSED)

REGISTER, LOSE, RESUME, FORGET, CLOSE = "register", "lose", "resume", "forget", "close"

#: states in which the scheduler does not know the resource manager
UNKNOWN: Final = (NEW, FORGOTTEN)

#: states in which the scheduler knows the resource manager, as far as the client can tell
KNOWN: Final = (CONNECTED, AWAY)

_OPEN: Final = (NEW, CONNECTED, AWAY, FORGOTTEN)

# fmt: off
TABLE: Final = (
    #  trigger   from                to
    (REGISTER,  _OPEN,              CONNECTED),
    (LOSE,      CONNECTED,          AWAY),
    (LOSE,      AWAY,               None),       # a failed attempt to reconnect
    (RESUME,    AWAY,               CONNECTED),
    (FORGET,    (CONNECTED, AWAY),  FORGOTTEN),
    (FORGET,    FORGOTTEN,          None),
    (CLOSE,     _OPEN,              CLOSED),
    (CLOSE,     CLOSED,             None),       # closing twice is legal
)
# fmt: on

_MACHINE: Final = Machine(
    model=None,
    states=[*STATES],
    initial=NEW,
    auto_transitions=False,
    transitions=[
        {"trigger": trigger, "source": list(source) if isinstance(source, tuple) else source,
         "dest": target}
        for trigger, source, target in TABLE
    ],
)  # fmt: skip


class ConnectionState:
    """`state` is one of `STATES`; `changed` is called with every new state and its reason."""

    def __init__(self, changed: Callable[[str, str], None]) -> None:
        self.state = NEW
        self._changed = changed

    def fire(self, trigger: str, why: str = "") -> None:
        """Fire a trigger. Raises `transitions.MachineError` if the table has no row for it."""
        before = self.state
        event = _MACHINE.events[trigger]
        if before not in event.transitions:
            raise MachineError(f"a connection that is {before} cannot {trigger}")
        target = event.transitions[before][0].dest
        if target is not None and target != before:
            self.state = target
            self._changed(target, why)


_log = logging.getLogger("quadriga.client")


class Watcher:
    """Logs the notifications; override its methods to handle them. They are called between the
    callbacks, in order."""

    def changed(self, state: str, why: str) -> None:
        """The connection is now ``Connected``, ``Away`` or ``Forgotten`` (`connection_state`).

        After ``Forgotten`` no messages follow until the resource manager registers again and
        reports all its state (I7, I43). It may do so within this method.
        """
        level = logging.ERROR if state == FORGOTTEN else logging.INFO
        _log.log(level, "the connection to the scheduler is %s%s", state, why and f": {why}")

    def refused(self, request: Any, error: RequestError) -> None:
        """The scheduler has refused a request as a whole and applied nothing of it."""
        _log.error("refused: %s", error)
