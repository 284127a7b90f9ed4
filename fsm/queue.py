"""The life of a queue, and of a partition, which follows the same table.

The configuration drives it. A queue that is no longer configured drains: what runs in it goes on,
new applications are turned away (X33), and it is removed when it is empty. If it is configured again
before that it is restored. A queue that placement made goes the same way as soon as it is empty (2.9).
A stopped queue keeps its applications and serves none of them.
"""

from __future__ import annotations

from typing import Final, Literal

from quadriga.fsm.effects import Forget
from quadriga.fsm.lifecycle import Lifecycle
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

#: states in which new applications and nodes are taken (2.4, X33)
ADMITS: Final[frozenset[State]] = frozenset({ACTIVE})
#: states in which nothing is placed
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

#: How the pages show it.
TONES: Final[dict[State, Tone]] = QUEUE.total("TONES", {
    ACTIVE:   "good",
    DRAINING: "wait",
    STOPPED:  "bad",
    REMOVED:  "done",
})
# fmt: on
