"""The lifecycle of a queue, and of a partition, which has the same table.

The configuration drives it. A queue that is no longer configured drains: its applications go on, new
applications are rejected (X33), and the queue is removed when it is empty. If it is configured again
before that, it is restored. A queue created by placement is removed in the same way as soon as it is
empty (2.9). A stopped queue keeps its applications and schedules none of them.
"""

from __future__ import annotations

from typing import Final, Literal

from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.lifecycles.effects import Forget
from quadriga.fsm.table import Effect, Entity, Fired, Tone, ignored, row, unbounded

State = Literal["Active", "Draining", "Stopped", "Removed"]
Trigger = Literal["remove", "stop", "start", "restore", "removed"]

ACTIVE: Final = "Active"
DRAINING: Final = "Draining"
STOPPED: Final = "Stopped"
REMOVED: Final = "Removed"

REMOVE: Final = "remove"
STOP: Final = "stop"
START: Final = "start"
RESTORE: Final = "restore"
REMOVED_: Final = "removed"

#: States in which new applications and nodes are accepted (2.4, X33).
ADMITS: Final[frozenset[State]] = frozenset({ACTIVE})
#: States in which nothing is allocated.
HALTED: Final[frozenset[State]] = frozenset({STOPPED})


def forget(queue: Entity, fired: Fired) -> tuple[Effect, ...]:
    return (Forget(),)


# fmt: off
QUEUE: Final[Lifecycle[State, Trigger]] = Lifecycle(
    "queue",
    initial=ACTIVE,
    final=(REMOVED,),
    lasts={
        ACTIVE:   unbounded(REMOVE),
        DRAINING: unbounded(REMOVED_),
        STOPPED:  unbounded(START),
    },
    rows=(
        #   trigger     from                 to         emit
        row(REMOVE,     ACTIVE,              DRAINING),
        ignored(REMOVE, DRAINING,            why="it is draining already"),
        row(STOP,       ACTIVE,              STOPPED),
        ignored(STOP,   STOPPED,             why="it is stopped already"),
        row(START,      STOPPED,             ACTIVE),
        ignored(START,  ACTIVE,              why="it is active already"),
        row(RESTORE,    DRAINING,            ACTIVE),
        row(REMOVED_,   (DRAINING, STOPPED), REMOVED,   emit=forget),
    ),
)

#: The tone of each state on the pages.
TONES: Final[dict[State, Tone]] = QUEUE.total("TONES", {
    ACTIVE:   "good",
    DRAINING: "wait",
    STOPPED:  "bad",
    REMOVED:  "done",
})
# fmt: on
