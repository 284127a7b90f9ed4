"""The lifecycle of an application.

An application arrives as New and stays so until its first ask makes it Accepted. The "accepted" of the
protocol (AcceptedApplication) only confirms the request (X34). The application runs once it has what
it needs: an ordinary application its first allocation, a gang all its placeholders. In a queue sorted
``stateaware`` it passes through Starting first (X15). When it has neither an ask nor a real allocation
left, it is Waiting, and half a minute later Completed, unless a new ask makes it run again.

A gang that does not get its placeholders in time ends or gives them back, depending on its style. Hard:
the application is Killing, and Killed when the last placeholder is confirmed. Soft: it is Resuming
while the placeholders are released, then Accepted, and continues as an ordinary application. A running
application gives back the placeholders that no member has replaced in time (X38). Leftover
placeholders do not keep an application from Waiting, but it completes only after they are released
(G43, X26).

The guards enforce these rules (X47). ``run`` does nothing before the application has what it needs.
``wait`` and ``complete`` do nothing while an ask or a real allocation is left, and ``killed`` does nothing
while anything is left. The style of the gang, not the caller, decides the effect of
``placeholder_timeout``.

YuniKorn's events run, complete and fail are split here, so that every trigger has one meaning. Some
triggers are legal and do nothing: further asks and allocations of a running application, and a kill
or a timeout of an application that is ending already.
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from quadriga.base.times import HOUR, MINUTE, SECOND
from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.lifecycles.effects import (
    Fire,
    Forget,
    LeaveQueue,
    ReleaseAllocations,
    ReleaseAsks,
    ReleasePlaceholders,
    StartedRunning,
    StartTimer,
    StoppedRunning,
    Update,
)
from quadriga.fsm.table import (
    STAYS,
    Effect,
    Fired,
    Info,
    Tone,
    any_of,
    ignored,
    not_,
    row,
    unbounded,
    within,
)

# fmt: off
State = Literal[
    "New", "Accepted", "Starting", "Running", "Waiting", "Resuming", "Killing", "Completed",
    "Killed", "Rejected", "Expired",
]
Trigger = Literal[
    "reject", "ask", "run", "wait", "complete", "placeholder_timeout", "resumed", "kill",
    "killed", "expire",
]
# fmt: on

NEW: Final = "New"
ACCEPTED: Final = "Accepted"
STARTING: Final = "Starting"
RUNNING: Final = "Running"
WAITING: Final = "Waiting"
RESUMING: Final = "Resuming"
KILLING: Final = "Killing"
COMPLETED: Final = "Completed"
KILLED: Final = "Killed"
REJECTED: Final = "Rejected"
EXPIRED: Final = "Expired"

REJECT: Final = "reject"
ASK: Final = "ask"
RUN: Final = "run"
WAIT: Final = "wait"
COMPLETE: Final = "complete"
PLACEHOLDER_TIMEOUT: Final = "placeholder_timeout"
RESUMED: Final = "resumed"
KILL: Final = "kill"
KILLED_: Final = "killed"
EXPIRE: Final = "expire"

#: Names of timers that belong to no state.
RUN_LIMIT: Final = "run_limit"
GANG_WAIT: Final = "gang_wait"

#: States in which an application counts as running against maxapplications (V5).
COUNTED: Final[frozenset[State]] = frozenset({STARTING, RUNNING})
#: States of a gang before it has all its placeholders.
BEFORE_RUNNING: Final[frozenset[State]] = frozenset({NEW, ACCEPTED})
#: States in which a gang holds placeholders and waits for the rest of them.
GATHERS: Final[frozenset[State]] = frozenset({ACCEPTED})
#: States in which a stateaware queue serves only one application at a time (2.9).
STATEAWARE_TURN: Final[frozenset[State]] = frozenset({ACCEPTED, STARTING})
#: States in which the asks of an application are scheduled; in Waiting it has none.
SERVED: Final[frozenset[State]] = frozenset({ACCEPTED, STARTING, RUNNING})
#: States of an application that a stateaware queue schedules always (2.9).
RUNS_FREELY: Final[frozenset[State]] = frozenset({RUNNING})
#: States of an application that keeps the one turn of a stateaware queue (2.9).
KEEPS_TURN: Final[frozenset[State]] = frozenset({STARTING})
#: States in which a real allocation fires ``run``.
RUNS_ON_ALLOCATION: Final[frozenset[State]] = SERVED | {WAITING}
#: States in which a placeholder timeout only releases leftover placeholders (X38).
GIVES_BACK_ON_TIMEOUT: Final[frozenset[State]] = COUNTED | {WAITING}
#: States in which every placeholder is released.
GIVES_BACK: Final[frozenset[State]] = frozenset({RESUMING})
#: States of an application that has not ended, in the order of REST.
LIVING: Final = (NEW, ACCEPTED, STARTING, RUNNING, WAITING, KILLING, RESUMING)
#: States of an ended application whose summary is kept until it expires.
RECORDED: Final = (COMPLETED, KILLED, REJECTED)
#: States of an ended application, which holds nothing (V8).
ENDED: Final[frozenset[State]] = frozenset({*RECORDED, EXPIRED})
#: States in which no member of a gang gets a place any more.
GANG_OVER: Final[frozenset[State]] = ENDED | {KILLING}
#: States of an application that was never in a queue.
TURNED_AWAY: Final[frozenset[State]] = frozenset({REJECTED})
#: States in which an application has nothing left to do; it may have leftover placeholders.
IDLE: Final[frozenset[State]] = ENDED | {WAITING}


class ApplicationFacts(Protocol):
    """What the guards and emitters read."""

    state: State

    @property
    def key(self) -> str: ...
    @property
    def starts_aware(self) -> bool: ...  # in a stateaware queue, without the tag that opts out
    @property
    def has_asks(self) -> bool: ...  # pending or parked
    @property
    def has_allocations(self) -> bool: ...  # real ones
    @property
    def has_placeholders(self) -> bool: ...  # until the last release is confirmed
    @property
    def gathers(self) -> bool: ...  # a gang that lacks placeholders
    @property
    def gang_complete(self) -> bool: ...  # a gang that holds all its placeholders
    @property
    def hard(self) -> bool: ...  # the style of the gang is Hard, not Soft
    @property
    def run_limit(self) -> int: ...  # ns; 0: no limit
    @property
    def started(self) -> bool: ...  # was in Starting or Running before
    @property
    def gang_wait_limit(self) -> int: ...  # ns; 0: no limit, or not a gang


# -- guards ------------------------------------------------------------------------------------


def has_work(app: ApplicationFacts, info: Info) -> bool:
    """G40: an application waits and completes only when it has neither an ask nor a real allocation left."""
    return app.has_asks or app.has_allocations


def has_allocation(app: ApplicationFacts, info: Info) -> bool:
    """An application without a gang runs with its first real allocation, and only that or an ask ends Waiting."""
    return app.has_allocations


def gang_complete(app: ApplicationFacts, info: Info) -> bool:
    """G21: a gang runs with all its placeholders."""
    return app.gang_complete


def time_is_up(app: ApplicationFacts, info: Info) -> bool:
    """A gang stays Starting until one of its members runs or the time limit of Starting ends."""
    return bool(info.get("timer"))


def gathers(app: ApplicationFacts, info: Info) -> bool:
    """G45: only a gang that lacks placeholders can time out."""
    return app.gathers


def is_hard(app: ApplicationFacts, info: Info) -> bool:
    """I21: after a placeholder timeout a Hard gang fails, and a Soft one continues without placeholders."""
    return app.hard


def in_stateaware_queue(app: ApplicationFacts, info: Info) -> bool:
    """X15: only there, Starting comes before Running."""
    return app.starts_aware


def first_replacement(app: ApplicationFacts, info: Info) -> bool:
    """The first real allocation of a gang does not end Starting; the second one does."""
    return bool(info.get("first_replacement"))


def placeholders_left(app: ApplicationFacts, info: Info) -> bool:
    """G43: completion waits until every placeholder is released."""
    return app.has_placeholders


def anything_left(app: ApplicationFacts, info: Info) -> bool:
    """G48: a killed application ends when all its asks and allocations are gone."""
    return app.has_asks or app.has_placeholders or app.has_allocations


# -- emitters ----------------------------------------------------------------------------------


def update(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    return (Update(fired.target, fired.info.get("reason") or fired.trigger),)


def started_running(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    return (StartedRunning(),)


def stopped_running(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    return (StoppedRunning(),) if fired.source in COUNTED else ()


def run_limit(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    """X17: the limit counts from the first entry into Starting or Running and does not restart."""
    return (StartTimer(RUN_LIMIT, app.run_limit),) if app.run_limit and not app.started else ()


def gang_wait(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    """S3: a queue may limit how long a gang waits for its first placeholder."""
    return (StartTimer(GANG_WAIT, app.gang_wait_limit),) if app.gang_wait_limit else ()


def give_back_leftovers(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    text = "releasing placeholders on application completion"
    return (ReleasePlaceholders(text, completes=True),)


def give_back_unclaimed(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    """X38: release the placeholders that no member has replaced in time."""
    return (ReleasePlaceholders("releasing allocated placeholders on placeholder timeout"),)


def give_back_gang(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    """X29: after a Soft timeout only placeholders and their asks are released."""
    return (
        ReleaseAsks(True, "releasing placeholder asks on placeholder timeout"),
        ReleasePlaceholders("releasing allocated placeholders on placeholder timeout"),
    )


def give_back_everything(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    reason = fired.info.get("reason") or fired.trigger
    return (
        ReleaseAsks(False, f"releasing asks of a killed application: {reason}"),
        ReleaseAllocations(f"releasing allocations of a killed application: {reason}"),
    )


def check_resumed(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    return (Fire(RESUMED),)


def check_killed(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    return (Fire(KILLED_),)


def leave_queue(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    return (LeaveQueue(),)


def forget(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    return (Forget(),)


# -- the table -----------------------------------------------------------------------------------

_KILLABLE: Final = (NEW, ACCEPTED, STARTING, RUNNING, WAITING, RESUMING)
_STARTS = (run_limit, started_running, update)
_KILLS = (give_back_everything, stopped_running, update, check_killed)
_ASKED: Final = (ACCEPTED, STARTING, RUNNING, RESUMING)
_BUSY: Final = (ACCEPTED, STARTING, RUNNING)
_RUNS: Final = (STARTING, RUNNING, WAITING)
_GOES: Final = (RESUMING, KILLING)

_CAN_RUN: Final = any_of(has_allocation, gang_complete)
_LEAVES_START: Final = any_of(has_allocation, time_is_up)

# fmt: off
APPLICATION: Final[Lifecycle[State, Trigger, ApplicationFacts]] = Lifecycle(
    "application",
    initial=NEW,
    final=(EXPIRED,),
    lasts={
        NEW:       unbounded(ASK),
        ACCEPTED:  unbounded(RUN),
        STARTING:  within(5 * MINUTE, then=RUN),
        RUNNING:   unbounded(WAIT),
        WAITING:   within(30 * SECOND, then=COMPLETE),
        RESUMING:  within(30 * MINUTE),
        KILLING:   within(30 * MINUTE),
        COMPLETED: within(72 * HOUR, then=EXPIRE),
        KILLED:    within(72 * HOUR, then=EXPIRE),
        REJECTED:  within(72 * HOUR, then=EXPIRE),
    },
    rows=(
        #   trigger              from                           to          guard                      emit
        row(REJECT,              NEW,                           REJECTED),
        row(ASK,                 NEW,                           ACCEPTED,                              emit=(update, gang_wait)),
        row(ASK,                 WAITING,                       RUNNING,                               emit=_STARTS),
        ignored(ASK,             _ASKED,                        why="it is served already"),
        row(RUN,                 ACCEPTED,                      STAYS,      when=not_(_CAN_RUN),       why="it has no allocation, and its gang is not complete"),
        row(RUN,                 ACCEPTED,                      STARTING,   when=in_stateaware_queue,  emit=_STARTS),
        row(RUN,                 ACCEPTED,                      RUNNING,                               emit=_STARTS),
        row(RUN,                 STARTING,                      STAYS,      when=not_(_LEAVES_START),  why="no member of the gang runs yet"),
        row(RUN,                 STARTING,                      STAYS,      when=first_replacement,    why="one member runs, the gang does not yet"),
        row(RUN,                 STARTING,                      RUNNING,                               emit=update),
        row(RUN,                 WAITING,                       STAYS,      when=not_(has_allocation), why="nothing of it runs"),
        row(RUN,                 WAITING,                       RUNNING,                               emit=_STARTS),
        ignored(RUN,             RUNNING,                       why="another allocation of a running application"),
        row(WAIT,                _BUSY,                         STAYS,      when=has_work,             why="an ask or a real allocation is left"),
        row(WAIT,                _BUSY,                         WAITING,                               emit=(stopped_running, update)),
        row(COMPLETE,            WAITING,                       STAYS,      when=has_work,             why="an ask or a real allocation is left"),
        row(COMPLETE,            WAITING,                       STAYS,      when=placeholders_left,    emit=give_back_leftovers),
        row(COMPLETE,            WAITING,                       COMPLETED,                             emit=(leave_queue, update)),
        row(KILL,                _KILLABLE,                     KILLING,                               emit=_KILLS),
        ignored(KILL,            KILLING,                       why="it is dying already"),
        row(KILLED_,             KILLING,                       STAYS,      when=anything_left,        why="an ask is left, or an allocation is not confirmed gone"),
        row(KILLED_,             KILLING,                       KILLED,                                emit=(leave_queue, update)),
        row(PLACEHOLDER_TIMEOUT, ACCEPTED,                      STAYS,      when=not_(gathers),        why="it is no gang that lacks placeholders"),
        row(PLACEHOLDER_TIMEOUT, ACCEPTED,                      KILLING,    when=is_hard,              emit=_KILLS),
        row(PLACEHOLDER_TIMEOUT, ACCEPTED,                      RESUMING,                              emit=(give_back_gang, update, check_resumed)),
        row(PLACEHOLDER_TIMEOUT, _RUNS,                         STAYS,                                 emit=give_back_unclaimed),
        ignored(PLACEHOLDER_TIMEOUT, _GOES,                     why="it gives its placeholders back already"),
        row(RESUMED,             RESUMING,                      STAYS,      when=placeholders_left,    why="the last placeholder is not confirmed gone"),
        row(RESUMED,             RESUMING,                      ACCEPTED,                              emit=update),
        row(EXPIRE,              RECORDED,                      EXPIRED,                               emit=(forget, update)),
    ),
)

# -- what depends on the state -------------------------------------------------------------------

#: The trigger to fire when an ask or an allocation of the application is gone.
AFTER_REMOVAL: Final[dict[State, Trigger | None]] = APPLICATION.total("AFTER_REMOVAL", {
    NEW:       None,
    ACCEPTED:  WAIT,
    STARTING:  WAIT,
    RUNNING:   WAIT,
    WAITING:   COMPLETE,
    RESUMING:  RESUMED,
    KILLING:   KILLED_,
    COMPLETED: None,
    KILLED:    None,
    REJECTED:  None,
    EXPIRED:   None,
})

#: The triggers that end an application which the resource manager removes (X31).
TO_ITS_END: Final[dict[State, tuple[Trigger, ...]]] = APPLICATION.total("TO_ITS_END", {
    NEW:       (KILL,),
    ACCEPTED:  (WAIT, COMPLETE),
    STARTING:  (WAIT, COMPLETE),
    RUNNING:   (WAIT, COMPLETE),
    WAITING:   (COMPLETE,),
    RESUMING:  (KILL,),
    KILLING:   (KILLED_,),
    COMPLETED: (),
    KILLED:    (),
    REJECTED:  (),
    EXPIRED:   (),
})

#: The tone of each state on the pages.
TONES: Final[dict[State, Tone]] = APPLICATION.total("TONES", {
    NEW:       "wait",
    ACCEPTED:  "wait",
    STARTING:  "wait",
    RUNNING:   "good",
    WAITING:   "done",
    RESUMING:  "wait",
    KILLING:   "bad",
    COMPLETED: "done",
    KILLED:    "bad",
    REJECTED:  "bad",
    EXPIRED:   "done",
})

#: YuniKorn's names of the states, in the order of its metrics (X1). A state that YuniKorn does not have
#: keeps its own name.
YUNIKORN_STATES: Final[dict[State, str]] = APPLICATION.total("YUNIKORN_STATES", {
    NEW:       "New",
    ACCEPTED:  "Accepted",
    STARTING:  "Starting",
    RUNNING:   "Running",
    RESUMING:  "Resuming",
    WAITING:   "Completing",
    COMPLETED: "Completed",
    KILLING:   "Failing",
    KILLED:    "Failed",
    REJECTED:  "Rejected",
    EXPIRED:   "Expired",
})

#: YuniKorn's names of the events; an update without a reason has this name as its message (X34).
YUNIKORN_EVENTS: Final[dict[Trigger, str]] = {
    ASK:       "runApplication",
    RUN:       "runApplication",
    RESUMED:   "runApplication",
    WAIT:      "completeApplication",
    COMPLETE:  "completeApplication",
    KILL:      "failApplication",
    KILLED_:   "failApplication",
    REJECT:    "rejectApplication",
    EXPIRE:    "expireApplication",
    PLACEHOLDER_TIMEOUT: "resumeApplication",  # not seen: its reason is told instead
}
# fmt: on
