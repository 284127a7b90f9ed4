"""The lifecycle of a node as the shim sees it (K94, K97).

A node is Creating until the core has accepted or rejected it. It is Closed while no new pods may be placed
there, because its pods are being reported or it is cordoned; else it is Open. A Rejected node is offered again
when it changes. It is Removed with its object.
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from quadriga.base.times import MINUTE, SECOND
from quadriga.fsm import Lifecycle, ignored, row, unbounded, within
from quadriga.fsm.table import STAYS, Effect, Fired, Info, Tone
from quadriga.k8s.lifecycles.effects import (
    CloseNode,
    CreateNode,
    DropNode,
    OpenNode,
    ReportPodsOfNode,
    SayNode,
    UpdateNode,
    Warn,
    constant,
)

State = Literal["New", "Creating", "Closed", "Open", "Rejected", "Removed"]
# fmt: off
Trigger = Literal[
    "create", "accepted", "rejected", "open", "close", "changed", "removed", "forgotten", "overdue",
]
# fmt: on

NEW: Final = "New"
CREATING: Final = "Creating"
CLOSED: Final = "Closed"
OPEN: Final = "Open"
REJECTED: Final = "Rejected"
REMOVED: Final = "Removed"

CREATE: Final = "create"
ACCEPTED: Final = "accepted"
REJECTED_: Final = "rejected"
OPEN_: Final = "open"
CLOSE: Final = "close"
CHANGED: Final = "changed"
REMOVED_: Final = "removed"
FORGOTTEN: Final = "forgotten"
OVERDUE: Final = "overdue"

#: States of a node that the core knows: its pods are reported.
KNOWN: Final[frozenset[State]] = frozenset({CLOSED, OPEN})
#: States of a node that accepts new pods.
OPENED: Final[frozenset[State]] = frozenset({OPEN})
#: States of a node that is offered again when it changes.
OFFERED_AGAIN: Final[frozenset[State]] = frozenset({REJECTED})
#: States of a node whose answer from the core is due.
UNANSWERED: Final[frozenset[State]] = frozenset({CREATING})


class NodeFacts(Protocol):
    """The facts that guards read."""

    state: State

    @property
    def key(self) -> str: ...
    @property
    def is_cordoned(self) -> bool: ...


def may_open(node: NodeFacts, info: Info) -> bool:
    """No recovery is under way, because all nodes open at its end (K141), and the node is not cordoned."""
    return bool(info["serving"]) and not node.is_cordoned


def is_cordoned(node: NodeFacts, info: Info) -> bool:
    """The node is cordoned."""
    return node.is_cordoned


_SAY_DELETED = (SayNode("NodeDeleted", "the scheduler has removed the node"),)


create = constant("create", CreateNode())
report = constant(
    "report", SayNode("NodeAccepted", "the scheduler has accepted the node"), ReportPodsOfNode()
)
open_node = constant("open_node", OpenNode())
close_node = constant("close_node", CloseNode())
update = constant("update", UpdateNode())
drop = constant("drop", DropNode(), *_SAY_DELETED)
say_deleted = constant("say_deleted", *_SAY_DELETED)


def say_rejected(node: NodeFacts, fired: Fired) -> tuple[Effect, ...]:
    """Record that the core has rejected the node."""
    note = f"the scheduler does not accept the node: {fired.info['reason']}"
    return (SayNode("NodeRejected", note, warning=True),)


def warn_rejected(node: NodeFacts, fired: Fired) -> tuple[Effect, ...]:
    """Warn that the core has refused a change of the node."""
    return (Warn(f"the core refused a change of node {node.key}: {fired.info['reason']}"),)


def warn(node: NodeFacts, fired: Fired) -> tuple[Effect, ...]:
    """Warn that the core has not answered."""
    return (Warn(f"the core has not answered for node {node.key}"),)


# fmt: off
NODE: Final[Lifecycle[State, Trigger, NodeFacts]] = Lifecycle(
    "k8s-node",
    initial=NEW,
    final=(REMOVED,),
    lasts={
        NEW:      unbounded(CREATE),
        CREATING: within(60 * SECOND, then=OVERDUE, backoff_to=10 * MINUTE),
        CLOSED:   unbounded(OPEN_),
        OPEN:     unbounded(REMOVED_),
        REJECTED: unbounded(CHANGED),
    },
    rows=(
        #   trigger         from                      to        guard             emit
        row(CREATE,         NEW,                      CREATING,                   emit=create),
        row(ACCEPTED,       CREATING,                 OPEN,     when=may_open,    emit=(report, open_node)),
        row(ACCEPTED,       CREATING,                 CLOSED,                     emit=report),
        ignored(ACCEPTED,   (NEW, CLOSED, OPEN, REJECTED), why="the answer to an earlier node of this name"),
        row(REJECTED_,      CREATING,                 REJECTED,                   emit=say_rejected),
        row(REJECTED_,      (CLOSED, OPEN),           STAYS,                      emit=warn_rejected),
        ignored(REJECTED_,  (NEW, REJECTED),          why="the answer to an earlier node of this name"),
        row(OPEN_,          CLOSED,                   STAYS,    when=is_cordoned, why="it is cordoned"),
        row(OPEN_,          CLOSED,                   OPEN,                       emit=open_node),
        ignored(OPEN_,      (NEW, CREATING, OPEN, REJECTED), why="it is open, or opens when it is accepted"),
        row(CLOSE,          OPEN,                     CLOSED,                     emit=close_node),
        ignored(CLOSE,      (NEW, CREATING, CLOSED, REJECTED), why="it is not open"),
        row(CHANGED,        (CREATING, CLOSED, OPEN), STAYS,                      emit=update),
        row(CHANGED,        REJECTED,                 CREATING,                   emit=create),
        ignored(CHANGED,    NEW,                      why="it is created as it is now"),
        row(REMOVED_,       (CREATING, CLOSED, OPEN), REMOVED,                    emit=drop),
        row(REMOVED_,       (NEW, REJECTED),          REMOVED,                    emit=say_deleted),
        row(FORGOTTEN,      (CREATING, CLOSED, OPEN, REJECTED), NEW),
        ignored(FORGOTTEN,  NEW,                      why="the core has not been told of it"),
        row(OVERDUE,        CREATING,                 STAYS,                      emit=warn),
    ),
)

#: The tone of each state on the pages.
TONES: Final[dict[State, Tone]] = NODE.total("TONES", {
    NEW:      "wait",
    CREATING: "wait",
    CLOSED:   "wait",
    OPEN:     "good",
    REJECTED: "bad",
    REMOVED:  "done",
})
# fmt: on
