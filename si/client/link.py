"""The life of a connection, as the resource manager (RM) sees it; the other end of I6.

    NEW ──────────▶ CONNECTED ◀──────▶ AWAY
                        ▲ │              │
                        │ ▼              │
                      FORGOTTEN ◀────────┘         and from everywhere to CLOSED

While the connection is AWAY what is to be sent waits, and the scheduler, which has only paused the
RM, keeps what it has to say. It waits for so long; then it has FORGOTTEN the RM, which has to
register anew and report all its state (I7, I43). Registering is legal always, until it is CLOSED.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from transitions import Machine, MachineError

__all__ = [
    "AWAY",
    "CLOSED",
    "CONNECTED",
    "FORGOTTEN",
    "KNOWN",
    "NEW",
    "STATES",
    "TABLE",
    "UNKNOWN",
    "Link",
]

NEW, CONNECTED, AWAY = "New", "Connected", "Away"
FORGOTTEN, CLOSED = "Forgotten", "Closed"

STATES: Final = (NEW, CONNECTED, AWAY, FORGOTTEN, CLOSED)

REGISTER, LOSE, RESUME, FORGET, CLOSE = "register", "lose", "resume", "forget", "close"

#: the scheduler does not know the resource manager, or not any more
UNKNOWN: Final = (NEW, FORGOTTEN)

#: the scheduler knows it, as far as can be told from here
KNOWN: Final = (CONNECTED, AWAY)

_OPEN: Final = (NEW, CONNECTED, AWAY, FORGOTTEN)

# fmt: off
TABLE: Final = (
    #  trigger   from                to
    (REGISTER,  _OPEN,              CONNECTED),
    (LOSE,      CONNECTED,          AWAY),
    (LOSE,      AWAY,               None),       # a try to come back that failed
    (RESUME,    AWAY,               CONNECTED),
    (FORGET,    (CONNECTED, AWAY),  FORGOTTEN),
    (FORGET,    FORGOTTEN,          None),
    (CLOSE,     _OPEN,              CLOSED),
    (CLOSE,     CLOSED,             None),       # closing twice is no mistake
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


class Link:
    """`state` is one of the five; `told` hears of every change, with the reason for it."""

    def __init__(self, told: Callable[[str, str], None]) -> None:
        self.state = NEW
        self._told = told

    def fire(self, trigger: str, why: str = "") -> None:
        """Go where the table says. Raises `transitions.MachineError` where it says nothing."""
        before = self.state
        event = _MACHINE.events[trigger]
        if before not in event.transitions:
            raise MachineError(f"a connection that is {before} cannot {trigger}")
        target = event.transitions[before][0].dest
        if target is not None and target != before:
            self.state = target
            self._told(target, why)
