"""The life of an allocation: resources of a node held for one ask.

It is Planned for the moment between the decision and its entry into the books; only the real
allocation of a gang member that goes to another node than its placeholder stays Planned, on that
node, until the placeholder is gone (X18). The resource manager ends it at any time (Completed). The
scheduler cannot end it alone: it asks for it back (Releasing, with a reason: timeout, preemption or
replacement) and the resource manager's confirmation, of the same kind, ends it (R3). It is never
asked for twice (R5), except that a confirmation that does not come is asked for again, after a
minute and then at growing intervals (S4).
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from quadriga.fsm.effects import RequestRelease, StartTimer
from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.table import (
    MINUTE,
    SECOND,
    STAYS,
    Effect,
    Fired,
    Info,
    Tone,
    ignored,
    row,
    unbounded,
    within,
)

# fmt: off
State = Literal[
    "Planned", "Allocated", "Releasing", "Discarded", "Completed", "Preempted", "Expired",
    "Replaced",
]
Trigger = Literal["allocate", "discard", "complete", "release", "confirm"]
# fmt: on

PLANNED: Final = "Planned"
ALLOCATED: Final = "Allocated"
RELEASING: Final = "Releasing"
DISCARDED: Final = "Discarded"
COMPLETED: Final = "Completed"
PREEMPTED: Final = "Preempted"
EXPIRED: Final = "Expired"
REPLACED: Final = "Replaced"

ALLOCATE: Final = "allocate"
DISCARD: Final = "discard"
COMPLETE: Final = "complete"
RELEASE: Final = "release"
CONFIRM: Final = "confirm"

#: why the scheduler wants an allocation back
TIMEOUT: Final = "timeout"
PREEMPTION: Final = "preemption"
REPLACEMENT: Final = "replacement"
REASONS: Final = (PREEMPTION, REPLACEMENT, TIMEOUT)

#: timer name: the run limit of an ask's allocations (X17)
RUN_LIMIT: Final = "run_limit"

#: states in which it takes room on its node, and its application has something else there or not yet
AHEAD: Final[frozenset[State]] = frozenset({PLANNED})
#: states in which it holds resources of its application
HELD: Final[frozenset[State]] = frozenset({ALLOCATED, RELEASING})
#: states in which the resource manager is asked to give it back
ASKED_BACK: Final[frozenset[State]] = frozenset({RELEASING})
#: states that it may enter once its application holds it
ONCE_HELD: Final = (ALLOCATED, RELEASING, REPLACED, EXPIRED, PREEMPTED, COMPLETED)
#: the others
NEVER_HELD: Final[frozenset[State]] = frozenset({PLANNED, DISCARDED})
#: states in which the scheduler may ask for it back; not twice (R5, V6)
RELEASABLE: Final[frozenset[State]] = frozenset({ALLOCATED})
#: states in which the resource manager may change its size in place (2.20)
RESIZABLE: Final[frozenset[State]] = frozenset({ALLOCATED})


class AllocationFacts(Protocol):
    """What the guards look at."""

    state: State

    @property
    def key(self) -> str: ...
    @property
    def run_limit(self) -> int: ...  # ns; 0: never
    @property
    def reason(self) -> str | None: ...  # of the release in flight


# -- guards ------------------------------------------------------------------------------------


def has_run_limit(allocation: AllocationFacts, info: Info) -> bool:
    """X17: the ask limited how long each of its allocations may last."""
    return allocation.run_limit > 0


def unconfirmed(allocation: AllocationFacts, info: Info) -> bool:
    """S4: the watchdog's timer fired and no confirmation has come."""
    return bool(info.get("timer"))


def timed_out(allocation: AllocationFacts, info: Info) -> bool:
    return allocation.reason == TIMEOUT


def preempted(allocation: AllocationFacts, info: Info) -> bool:
    return allocation.reason == PREEMPTION


# -- emitters ----------------------------------------------------------------------------------

_REQUEST_RELEASE = (RequestRelease(),)


def request_release(allocation: AllocationFacts, fired: Fired) -> tuple[Effect, ...]:
    return _REQUEST_RELEASE


def run_limit(allocation: AllocationFacts, fired: Fired) -> tuple[Effect, ...]:
    return (StartTimer(RUN_LIMIT, allocation.run_limit),)


# fmt: off
ALLOCATION: Final[Lifecycle[State, Trigger]] = Lifecycle(
    "allocation",
    initial=PLANNED,
    final=(DISCARDED, COMPLETED, PREEMPTED, EXPIRED, REPLACED),
    lasts={
        PLANNED:   within(30 * MINUTE),
        ALLOCATED: unbounded(COMPLETE),
        RELEASING: within(60 * SECOND, then=RELEASE, backoff_to=10 * MINUTE),
    },
    rows=(
        #   trigger      from                    to          guard                emit
        row(ALLOCATE,    PLANNED,                ALLOCATED,  when=has_run_limit,  emit=run_limit),
        row(ALLOCATE,    PLANNED,                ALLOCATED),
        row(DISCARD,     PLANNED,                DISCARDED),
        row(COMPLETE,    (ALLOCATED, RELEASING), COMPLETED),
        row(RELEASE,     ALLOCATED,              RELEASING,                       emit=request_release),
        row(RELEASE,     RELEASING,              STAYS,      when=unconfirmed,    emit=request_release),
        ignored(RELEASE, RELEASING,              why="asked for already (R5)"),
        row(CONFIRM,     RELEASING,              EXPIRED,    when=timed_out),
        row(CONFIRM,     RELEASING,              PREEMPTED,  when=preempted),
        row(CONFIRM,     RELEASING,              REPLACED),
    ),
)

#: How the pages show it.
TONES: Final[dict[State, Tone]] = ALLOCATION.total("TONES", {
    PLANNED:   "wait",
    ALLOCATED: "good",
    RELEASING: "wait",
    DISCARDED: "done",
    COMPLETED: "done",
    PREEMPTED: "bad",
    EXPIRED:   "done",
    REPLACED:  "done",
})
# fmt: on
