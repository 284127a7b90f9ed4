"""The lifecycle of a gang: when its members get their places (1.8).

A gang is Queued until all its outstanding members can be placed in one step; then it is Placed. A gang
that has waited too long is Gathering: its start is planned, and what does not end before keeps off the
nodes of the plan. Only one gang of a partition gathers at a time, so gangs never wait for one another. If
its start comes no nearer, it abandons the plan and is Queued again, behind the others.

After a Soft timeout the members are placed as ordinary asks, but still in one step (Q5): the gang is
Queued once more. A queue may also let its gangs start with a part of their members
(``gang.admission``); such a gang is Placed with its first placeholder.
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.lifecycles.effects import FreeNodes, StartTimer
from quadriga.fsm.table import STAYS, Effect, Fired, Info, Tone, ignored, row, unbounded

State = Literal["Queued", "Gathering", "Placed", "Ended"]
Trigger = Literal["gather", "abandon", "place", "requeue", "end"]

QUEUED: Final = "Queued"
GATHERING: Final = "Gathering"
PLACED: Final = "Placed"
ENDED: Final = "Ended"

GATHER: Final = "gather"
ABANDON: Final = "abandon"
PLACE: Final = "place"
REQUEUE: Final = "requeue"
END: Final = "end"

#: The name of the timer of a gathering gang.
PATIENCE: Final = "patience"

#: States of a gang whose members are placed in one step or not at all.
WAITS: Final[frozenset[State]] = frozenset({QUEUED, GATHERING})
#: States of the one gang whose start is planned.
KEEPS_NODES: Final[frozenset[State]] = frozenset({GATHERING})
#: States of a gang whose members have got their places.
HAS_PLACES: Final[frozenset[State]] = frozenset({PLACED})


class GangFacts(Protocol):
    """What the guards and emitters read."""

    state: State

    @property
    def key(self) -> str: ...
    @property
    def gained(self) -> bool: ...  # its start is nearer than when its timer started
    @property
    def patience(self) -> int: ...  # ns; 0: no limit


def has_gained(gang: GangFacts, info: Info) -> bool:
    """Q3: a gang gives up only when it has gained nothing for the whole time."""
    return gang.gained


def start_patience(gang: GangFacts, fired: Fired) -> tuple[Effect, ...]:
    return (StartTimer(PATIENCE, gang.patience),) if gang.patience else ()


def free_nodes(gang: GangFacts, fired: Fired) -> tuple[Effect, ...]:
    return (FreeNodes(fired.info.get("reason") or ""),)


# fmt: off
GANG: Final[Lifecycle[State, Trigger, GangFacts]] = Lifecycle(
    "gang",
    initial=QUEUED,
    final=(ENDED,),
    lasts={
        QUEUED:    unbounded(PLACE),
        GATHERING: unbounded(PLACE),
        PLACED:    unbounded(END),
    },
    rows=(
        #   trigger   from                 to          guard             emit
        row(GATHER,   QUEUED,              GATHERING,                    emit=start_patience),
        row(ABANDON,  GATHERING,           STAYS,      when=has_gained,  emit=start_patience),
        row(ABANDON,  GATHERING,           QUEUED,                       emit=free_nodes),
        row(PLACE,    QUEUED,              PLACED),
        row(PLACE,    GATHERING,           PLACED,                       emit=free_nodes),
        ignored(PLACE, PLACED,             why="more placeholders of a gang that has its places"),
        ignored(REQUEUE, QUEUED,           why="it is queued already"),
        row(REQUEUE,  GATHERING,           QUEUED,                       emit=free_nodes),
        row(REQUEUE,  PLACED,              QUEUED),
        row(END,      (QUEUED, PLACED),    ENDED),
        row(END,      GATHERING,           ENDED,                        emit=free_nodes),
    ),
)

#: The tone of each state on the pages.
TONES: Final[dict[State, Tone]] = GANG.total("TONES", {
    QUEUED:    "wait",
    GATHERING: "wait",
    PLACED:    "good",
    ENDED:     "done",
})
# fmt: on
