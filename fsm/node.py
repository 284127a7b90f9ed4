"""The life of a node, as the resource manager reports it.

A node arrives and is accepted or rejected at once. Draining stops new allocations and leaves what
runs there alone; decommissioning ends what runs there and the node. Capacity and attributes may
change in both living states without changing the state. Unlike YuniKorn, which silently ignores
them, illegal actions are errors and are answered (X20).
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from quadriga.fsm.effects import CloseNode, EmptyNode, OpenNode
from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.table import Effect, Fired, Info, Tone, ignored, row, unbounded

State = Literal["New", "Schedulable", "Draining", "Removed", "Rejected"]
Trigger = Literal["accept", "reject", "drain", "schedule", "update", "decommission"]

NEW: Final = "New"
SCHEDULABLE: Final = "Schedulable"
DRAINING: Final = "Draining"
REMOVED: Final = "Removed"
REJECTED: Final = "Rejected"

#: states in which it takes new allocations
OPEN: Final[frozenset[State]] = frozenset({SCHEDULABLE})
#: states of a node that keeps what it has and gets nothing more
CLOSED: Final[frozenset[State]] = frozenset({DRAINING})
#: states of a node that no longer counts, nor what ran there
GONE: Final[frozenset[State]] = frozenset({REMOVED, REJECTED})
#: states of those that were never part of a partition
TURNED_AWAY: Final[frozenset[State]] = frozenset({REJECTED})

ACCEPT: Final = "accept"
REJECT: Final = "reject"
DRAIN: Final = "drain"
SCHEDULE: Final = "schedule"
UPDATE: Final = "update"
DECOMMISSION: Final = "decommission"


class NodeFacts(Protocol):
    """What the guards look at."""

    state: State

    @property
    def key(self) -> str: ...


def created_draining(node: NodeFacts, info: Info) -> bool:
    """CREATE_DRAIN of SI 1.4."""
    return bool(info.get("draining"))


def open_node(node: NodeFacts, fired: Fired) -> tuple[Effect, ...]:
    return (OpenNode(),)


def close_node(node: NodeFacts, fired: Fired) -> tuple[Effect, ...]:
    return (CloseNode(),)


def empty_node(node: NodeFacts, fired: Fired) -> tuple[Effect, ...]:
    return (CloseNode(), EmptyNode())


# fmt: off
NODE: Final[Lifecycle[State, Trigger]] = Lifecycle(
    "node",
    initial=NEW,
    final=(REJECTED, REMOVED),
    lasts={
        NEW:         unbounded(ACCEPT),
        SCHEDULABLE: unbounded(DECOMMISSION),
        DRAINING:    unbounded(DECOMMISSION),
    },
    rows=(
        #   trigger        from                     to            guard                   emit
        row(ACCEPT,        NEW,                     DRAINING,     when=created_draining,  emit=close_node),
        row(ACCEPT,        NEW,                     SCHEDULABLE,                          emit=open_node),
        row(REJECT,        NEW,                     REJECTED),
        row(DRAIN,         SCHEDULABLE,             DRAINING,                             emit=close_node),
        ignored(DRAIN,     DRAINING,                why="it is draining already"),
        row(SCHEDULE,      DRAINING,                SCHEDULABLE,                          emit=open_node),
        ignored(UPDATE,    (SCHEDULABLE, DRAINING), why="capacity and attributes change, not the life"),
        row(DECOMMISSION,  (SCHEDULABLE, DRAINING), REMOVED,                              emit=empty_node),
    ),
)

#: How the pages show it.
TONES: Final[dict[State, Tone]] = NODE.total("TONES", {
    NEW:         "wait",
    SCHEDULABLE: "good",
    DRAINING:    "wait",
    REMOVED:     "done",
    REJECTED:    "bad",
})
# fmt: on
