"""The lifecycle of a pending placeholder (K72, K80).

It exists from the decision to create a placeholder until its pod is seen in the watch. It is Waiting for its
turn, which is at once, or later if the group has lost too many; then it is Creating until the API server has
answered. A name that is taken is replaced by another one. A create that is refused is the end of a Soft gang; a
Hard one retries (K202). After the end of the gang the pod is not wanted any more (Abandoned); if it appears all
the same, it is deleted.
"""

from __future__ import annotations

from typing import Final, Literal

from quadriga.base.times import MINUTE, SECOND
from quadriga.fsm import Entity, Lifecycle, ignored, row, within
from quadriga.fsm.table import STAYS, Effect, Fired, Tone
from quadriga.k8s.lifecycles.effects import (
    CancelCreate,
    CreateAgain,
    CreatePod,
    NoPlaceholders,
    constant,
)

State = Literal["Waiting", "Creating", "Created", "Seen", "Refused", "Abandoned"]
Trigger = Literal["create", "created", "name_taken", "refused", "seen", "missed", "abandon"]

WAITING: Final = "Waiting"
CREATING: Final = "Creating"
CREATED: Final = "Created"
SEEN: Final = "Seen"
REFUSED: Final = "Refused"
ABANDONED: Final = "Abandoned"

CREATE: Final = "create"
CREATED_: Final = "created"
NAME_TAKEN: Final = "name_taken"
REFUSED_: Final = "refused"
SEEN_: Final = "seen"
MISSED: Final = "missed"
ABANDON: Final = "abandon"

#: States of a placeholder whose turn has not come.
WAITS: Final[frozenset[State]] = frozenset({WAITING})
#: States of a placeholder whose pod may still appear.
OPEN: Final = (WAITING, CREATING, CREATED)
#: States of a placeholder that the API server has accepted.
ALLOWED: Final[frozenset[State]] = frozenset({CREATED, SEEN})
#: States of a pending placeholder that has ended.
OVER: Final[frozenset[State]] = frozenset({SEEN, REFUSED, ABANDONED})

create = constant("create", CreatePod())
cancel = constant("cancel", CancelCreate())


def give_up(placeholder: Entity, fired: Fired) -> tuple[Effect, ...]:
    """Report to the application that the placeholder was refused."""
    return (NoPlaceholders(fired.info["reason"], fired.info["group"]),)


def create_another(placeholder: Entity, fired: Fired) -> tuple[Effect, ...]:
    """Cancel the request that had no effect in time, and create another placeholder of the group."""
    return (CancelCreate(), CreateAgain(fired.info["group"]))


# fmt: off
PLACEHOLDER: Final[Lifecycle[State, Trigger]] = Lifecycle(
    "k8s-placeholder",
    initial=WAITING,
    final=(SEEN, REFUSED, ABANDONED),
    lasts={
        WAITING:  within(60 * SECOND, then=CREATE),
        CREATING: within(2 * MINUTE, then=MISSED),
        CREATED:  within(60 * SECOND, then=MISSED),
    },
    rows=(
        #   trigger      from                         to         emit
        row(CREATE,      WAITING,                     CREATING,  emit=create),
        row(CREATED_,    CREATING,                    CREATED),
        row(NAME_TAKEN,  CREATING,                    STAYS,     emit=create),
        row(REFUSED_,    CREATING,                    REFUSED,   emit=give_up),
        row(SEEN_,       (CREATING, CREATED),         SEEN),
        row(MISSED,      (CREATING, CREATED),         ABANDONED, emit=create_another),
        row(ABANDON,     CREATING,                    ABANDONED, emit=cancel),
        row(ABANDON,     (WAITING, CREATED),          ABANDONED),
        ignored(NAME_TAKEN, CREATED,                  why="only a second answer could say so"),
    ),
)

#: The tone of each state on the pages.
TONES: Final[dict[State, Tone]] = PLACEHOLDER.total("TONES", {
    WAITING:   "wait",
    CREATING:  "wait",
    CREATED:   "good",
    SEEN:      "done",
    REFUSED:   "bad",
    ABANDONED: "done",
})
# fmt: on
