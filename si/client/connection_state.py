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

from collections.abc import Callable
from typing import Final

from transitions import Machine, MachineError

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
