"""The lifecycle of an ask: a request for one or more allocations of one size.

A message of the resource manager creates the ask. It leaves Initial at once, to Pending or to
Rejected. It is Parked while the ask of a gang member waits for the release of a placeholder: the
scheduler does not choose it a second time, so it has at most one replacement in progress (G29). The
same key sent again while the ask is pending changes the number of allocations left (I17); after
Allocated the same key is a new ask. The reason of a rejection is recorded with the transition, not in
the state.
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from quadriga.base.times import MINUTE
from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.table import STAYS, Info, Tone, ignored, row, unbounded, within

State = Literal["Initial", "Pending", "Parked", "Allocated", "Rejected"]
Trigger = Literal["submit", "reject", "allocate", "park", "unpark", "update"]

INITIAL: Final = "Initial"
PENDING: Final = "Pending"
PARKED: Final = "Parked"
ALLOCATED: Final = "Allocated"
REJECTED: Final = "Rejected"

#: States in which a replacement is in progress (G29).
IN_REPLACEMENT: Final[frozenset[State]] = frozenset({PARKED})

SUBMIT: Final = "submit"
REJECT: Final = "reject"
ALLOCATE: Final = "allocate"
PARK: Final = "park"
UNPARK: Final = "unpark"
UPDATE: Final = "update"


class AskFacts(Protocol):
    """What the guards read."""

    state: State

    @property
    def key(self) -> str: ...
    @property
    def pending(self) -> int: ...  # allocations left, including the current one


def repeats_remain(ask: AskFacts, info: Info) -> bool:
    """X13: one ask may request several allocations."""
    return ask.pending > 1


# fmt: off
ASK: Final[Lifecycle[State, Trigger, AskFacts]] = Lifecycle(
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

#: The tone of each state on the pages.
TONES: Final[dict[State, Tone]] = ASK.total("TONES", {
    INITIAL:   "wait",
    PENDING:   "wait",
    PARKED:    "wait",
    ALLOCATED: "good",
    REJECTED:  "bad",
})
# fmt: on
