"""The lifecycle of a node, as the resource manager reports it.

A new node is accepted or rejected at once. Draining stops new allocations and leaves those on the node
alone. Decommissioning ends the node and everything on it. Capacity and attributes may change in both
living states without a change of state. An illegal action is an error and is answered; YuniKorn
ignores it silently (X20).
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.lifecycles.effects import CloseNode, EmptyNode, OpenNode
from quadriga.fsm.table import Effect, Fired, Info, Tone, ignored, row, unbounded

State = Literal["New", "Schedulable", "Draining", "Removed", "Rejected"]
Trigger = Literal["accept", "reject", "drain", "schedule", "update", "decommission"]

NEW: Final = "New"
SCHEDULABLE: Final = "Schedulable"
DRAINING: Final = "Draining"
REMOVED: Final = "Removed"
REJECTED: Final = "Rejected"

#: States of a node that may receive new allocations.
OPEN: Final[frozenset[State]] = frozenset({SCHEDULABLE})
#: States of a node that keeps its allocations and receives no new ones.
CLOSED: Final[frozenset[State]] = frozenset({DRAINING})
#: States of a node that is not counted any more, nor are its allocations.
GONE: Final[frozenset[State]] = frozenset({REMOVED, REJECTED})
#: States of a node that was never part of a partition.
TURNED_AWAY: Final[frozenset[State]] = frozenset({REJECTED})

ACCEPT: Final = "accept"
REJECT: Final = "reject"
DRAIN: Final = "drain"
SCHEDULE: Final = "schedule"
UPDATE: Final = "update"
DECOMMISSION: Final = "decommission"


class NodeFacts(Protocol):
    """What the guards read."""

    state: State

    @property
    def key(self) -> str: ...


def created_draining(node: NodeFacts, info: Info) -> bool:
    """The node was created with CREATE_DRAIN of SI 1.4."""
    return bool(info.get("draining"))


def open_node(node: NodeFacts, fired: Fired) -> tuple[Effect, ...]:
    return (OpenNode(),)


def close_node(node: NodeFacts, fired: Fired) -> tuple[Effect, ...]:
    return (CloseNode(),)


def empty_node(node: NodeFacts, fired: Fired) -> tuple[Effect, ...]:
    return (CloseNode(), EmptyNode())


# fmt: off
NODE: Final[Lifecycle[State, Trigger, NodeFacts]] = Lifecycle(
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

#: The tone of each state on the pages.
TONES: Final[dict[State, Tone]] = NODE.total("TONES", {
    NEW:         "wait",
    SCHEDULABLE: "good",
    DRAINING:    "wait",
    REMOVED:     "done",
    REJECTED:    "bad",
})
# fmt: on
