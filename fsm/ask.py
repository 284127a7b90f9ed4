"""The life of an ask: a request for one or more allocations of one size.

It is created by the resource manager's message and leaves Initial at once, to Pending or to
Rejected. While a gang member's ask waits for a placeholder to be given up it is Parked: nothing
picks it a second time, and there is at most one replacement in flight for it (G29). The same key
sent again while it is pending changes what is still to be allocated (I17); after Allocated the same
key is a new ask. Whether it was the scheduler, the resource manager or a timeout that rejected it is
recorded with the transition, not in the state.
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.table import MINUTE, STAYS, Info, Tone, ignored, row, unbounded, within

State = Literal["Initial", "Pending", "Parked", "Allocated", "Rejected"]
Trigger = Literal["submit", "reject", "allocate", "park", "unpark", "update"]

INITIAL: Final = "Initial"
PENDING: Final = "Pending"
PARKED: Final = "Parked"
ALLOCATED: Final = "Allocated"
REJECTED: Final = "Rejected"

#: states in which a replacement for it is in flight (G29)
IN_REPLACEMENT: Final[frozenset[State]] = frozenset({PARKED})

SUBMIT: Final = "submit"
REJECT: Final = "reject"
ALLOCATE: Final = "allocate"
PARK: Final = "park"
UNPARK: Final = "unpark"
UPDATE: Final = "update"


class AskFacts(Protocol):
    """What the guards look at."""

    state: State

    @property
    def key(self) -> str: ...
    @property
    def pending(self) -> int: ...  # repeats still to be allocated, the present one included


def repeats_remain(ask: AskFacts, info: Info) -> bool:
    """X13: one ask may stand for several allocations."""
    return ask.pending > 1


# fmt: off
ASK: Final[Lifecycle[State, Trigger]] = Lifecycle(
    "ask",
    initial=INITIAL,
    final=(ALLOCATED, REJECTED),
    lasts={
        INITIAL: unbounded(SUBMIT),
        PENDING: unbounded(ALLOCATE),
        PARKED:  within(30 * MINUTE),
    },
    rows=(
        #   trigger     from                         to         guard
        row(SUBMIT,     INITIAL,                     PENDING),
        row(REJECT,     (INITIAL, PENDING, PARKED),  REJECTED),
        row(ALLOCATE,   PENDING,                     STAYS,     when=repeats_remain, why="more of it to allocate"),
        row(ALLOCATE,   PENDING,                     ALLOCATED),
        row(ALLOCATE,   PARKED,                      PENDING,   when=repeats_remain),
        row(ALLOCATE,   PARKED,                      ALLOCATED),
        row(PARK,       PENDING,                     PARKED),
        row(UNPARK,     PARKED,                      PENDING),
        ignored(UPDATE, (PENDING, PARKED),           why="the numbers change, not the life"),
    ),
)

#: How the pages show it.
TONES: Final[dict[State, Tone]] = ASK.total("TONES", {
    INITIAL:   "wait",
    PENDING:   "wait",
    PARKED:    "wait",
    ALLOCATED: "good",
    REJECTED:  "bad",
})
# fmt: on
