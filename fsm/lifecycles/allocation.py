"""The lifecycle of an allocation: resources of a node held for one ask.

An allocation is Planned from the decision until the accounting has it, usually for a moment only. The
real allocation of a gang member on another node than its placeholder stays Planned, on that node,
until the placeholder is gone (X18). The resource manager may end an allocation at any time
(Completed). The scheduler cannot end it alone: it requests the release (Releasing, with a reason:
timeout, preemption or replacement), and the confirmation of the resource manager, of the same kind,
ends it (R3). A release is requested only once (R5), unless no confirmation comes: then the request is
repeated after a minute and again at growing intervals (S4).
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from quadriga.base.times import MINUTE, SECOND
from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.lifecycles.effects import RequestRelease, StartTimer
from quadriga.fsm.table import STAYS, Effect, Fired, Info, Tone, ignored, row, unbounded, within

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

#: The reasons for which the scheduler releases an allocation.
TIMEOUT: Final = "timeout"
PREEMPTION: Final = "preemption"
REPLACEMENT: Final = "replacement"
REASONS: Final = (PREEMPTION, REPLACEMENT, TIMEOUT)

#: The name of the timer for the run limit of an ask's allocations (X17).
RUN_LIMIT: Final = "run_limit"

#: States in which the allocation takes room on its node but is not yet counted for its application.
AHEAD: Final[frozenset[State]] = frozenset({PLANNED})
#: States in which the allocation is counted for its application.
HELD: Final[frozenset[State]] = frozenset({ALLOCATED, RELEASING})
#: States in which the release has been requested and is not confirmed.
ASKED_BACK: Final[frozenset[State]] = frozenset({RELEASING})
#: States of an allocation that is or was counted for its application.
ONCE_HELD: Final = (ALLOCATED, RELEASING, REPLACED, EXPIRED, PREEMPTED, COMPLETED)
#: States of an allocation whose pod ended by itself: its run time predicts others (Q11).
RAN_TO_ITS_END: Final[frozenset[State]] = frozenset({COMPLETED})
#: States in which the scheduler may request the release: once, and not again (R5, V6).
RELEASABLE: Final[frozenset[State]] = frozenset({ALLOCATED})
#: States in which the resource manager may resize the allocation in place (2.20).
RESIZABLE: Final[frozenset[State]] = frozenset({ALLOCATED})


class AllocationFacts(Protocol):
    """What the guards read."""

    state: State

    @property
    def key(self) -> str: ...
    @property
    def run_limit(self) -> int: ...  # ns; 0: no limit
    @property
    def reason(self) -> str | None: ...  # of the release that is not confirmed


# -- guards ------------------------------------------------------------------------------------


def has_run_limit(allocation: AllocationFacts, info: Info) -> bool:
    """X17: the ask limits how long each of its allocations may last."""
    return allocation.run_limit > 0


def unconfirmed(allocation: AllocationFacts, info: Info) -> bool:
    """S4: the timer of the state has fired, so the confirmation is late."""
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
ALLOCATION: Final[Lifecycle[State, Trigger, AllocationFacts]] = Lifecycle(
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

#: The tone of each state on the pages.
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
