"""The lifecycle of an application in the shim (K32).

The pods that name one application id are one application. It is New until one of its pods may be scheduled,
Submitted until the core has answered, and then Running. If the core has just rejected its id, it is Held for a
while first; if the core rejects it and its pods would only be recreated, it is Held again. The gang of a
PodGroup is Held until enough of its pods exist, and Placing until the core has placed these together; so is a
gang with task groups that needs no placeholders (D356). Any other gang with task groups is Reserving first,
until every task group has all its placeholders on nodes. A gang that does not get there is Resuming, either
because the core says so (Soft timeout) or because a placeholder was refused: its placeholders are deleted, and
it continues as an ordinary application. The core completes (Completed) or kills it (Failing, Failed), or
rejects it (Rejected); it is Removed with its last pod.

It is driven by its pods and by the messages of the core. Releases delete pods and never change the state of the
application (K27). A failure is legal in every state that may still change (K28). Late messages that no longer
mean anything are listed as ignored. See D273.
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from quadriga.base.times import MINUTE, SECOND
from quadriga.fsm import Lifecycle, ignored, row, unbounded, within
from quadriga.fsm.table import STAYS, Effect, Fired, Info, Tone
from quadriga.k8s.lifecycles.effects import (
    AddApplication,
    AskForPods,
    CreateAgain,
    CreateMissing,
    DeletePlaceholders,
    DropWaitingPlaceholders,
    FailPods,
    HasEnded,
    MarkResumed,
    ReleasePod,
    RemoveApplication,
    Say,
    TryPlaceholderAgain,
    Warn,
    constant,
)

# fmt: off
State = Literal[
    "New", "Held", "Submitted", "Placing", "Reserving", "Resuming", "Running", "Rejected", "Completed",
    "Failing", "Failed", "Removed",
]
Trigger = Literal[
    "submit", "again", "accept", "reject", "placeholder_bound", "placeholder_lost", "placeholders_failed",
    "member_placed", "withdraw", "resume", "settled", "release", "idle", "complete", "fail", "failed", "forget",
    "forgotten", "overdue",
]
# fmt: on

NEW: Final = "New"
HELD: Final = "Held"
SUBMITTED: Final = "Submitted"
PLACING: Final = "Placing"
RESERVING: Final = "Reserving"
RESUMING: Final = "Resuming"
RUNNING: Final = "Running"
REJECTED: Final = "Rejected"
COMPLETED: Final = "Completed"
FAILING: Final = "Failing"
FAILED: Final = "Failed"
REMOVED: Final = "Removed"

SUBMIT: Final = "submit"
AGAIN: Final = "again"
ACCEPT: Final = "accept"
REJECT: Final = "reject"
PLACEHOLDER_BOUND: Final = "placeholder_bound"
PLACEHOLDER_LOST: Final = "placeholder_lost"
PLACEHOLDERS_FAILED: Final = "placeholders_failed"
MEMBER_PLACED: Final = "member_placed"
WITHDRAW: Final = "withdraw"
RESUME: Final = "resume"
SETTLED: Final = "settled"
RELEASE: Final = "release"
IDLE: Final = "idle"
COMPLETE: Final = "complete"
FAIL: Final = "fail"
FAILED_: Final = "failed"
FORGET: Final = "forget"
FORGOTTEN: Final = "forgotten"
OVERDUE: Final = "overdue"

#: States of an application that a new pod joins (K60). In the others the pod waits for its end.
JOINED: Final = (NEW, HELD, SUBMITTED, PLACING, RESERVING, RESUMING, RUNNING)
JOINABLE: Final[frozenset[State]] = frozenset(JOINED)
#: States in which the core knows the application.
IN_CORE: Final = (PLACING, RESERVING, RESUMING, RUNNING, FAILING)
#: States in which the core has received the application, whether it has answered or not.
TOLD: Final = (SUBMITTED, PLACING, RESERVING, RESUMING, RUNNING, FAILING)
#: States of a gang without placeholders that the core has to place as a whole (K204).
GATHERS: Final[frozenset[State]] = frozenset({SUBMITTED, PLACING})
#: States of an application that is checked again when its pods have changed.
LOOKED_AT: Final[frozenset[State]] = frozenset({NEW, HELD, SUBMITTED, PLACING})
#: States in which only its chosen members are asked for.
ASKS_CHOSEN: Final[frozenset[State]] = frozenset({PLACING})
#: States of a gang that stops waiting when a member gets a node by other means (K146).
WAITS_FOR_MEMBERS: Final[frozenset[State]] = frozenset({PLACING, RESERVING})
#: States in which real pods are asked for.
ASKS_REAL: Final[frozenset[State]] = frozenset({RUNNING})
#: States in which placeholders are created and asked for.
ASKS_PLACEHOLDERS: Final[frozenset[State]] = frozenset({RESERVING})
#: States in which a placeholder that has no node yet is not needed any more.
NEEDS_NO_PLACEHOLDER: Final[frozenset[State]] = frozenset(
    {RESUMING, RUNNING, REJECTED, COMPLETED, FAILING, FAILED, REMOVED}
)
#: States in which no placeholder is needed, with or without a node.
DROPS_PLACEHOLDERS: Final[frozenset[State]] = frozenset(
    {RESUMING, REJECTED, COMPLETED, FAILING, FAILED, REMOVED}
)
#: States of a gang whose time limit depends on its placeholder timeout.
WAITS_FOR_PLACEHOLDERS: Final[frozenset[State]] = frozenset({RESERVING, RESUMING})
#: States in which the core has not received the application.
UNTOLD: Final[frozenset[State]] = frozenset({NEW, HELD})
#: States of an application that was not submitted.
UNSUBMITTED: Final[frozenset[State]] = frozenset({NEW})
#: States in which the core has the asks that were sent; in others it drops them by itself.
HAS_ASKS: Final[frozenset[State]] = frozenset({PLACING, RESERVING, RUNNING})
#: States in which the reason is reported to pods that are not asked for.
SAYS_WHY: Final[frozenset[State]] = frozenset({HELD, PLACING, RESERVING})
#: States of an application that is submitted again later.
HOLDS: Final[frozenset[State]] = frozenset({HELD})
#: States in which the end of the last placeholder settles the application.
SETTLES: Final[frozenset[State]] = frozenset({RESUMING})
#: States in which the core has not answered the submission.
UNANSWERED: Final[frozenset[State]] = frozenset({SUBMITTED})
#: States of an application that has ended and is forgotten with its last pod.
ENDED: Final = (REJECTED, COMPLETED, FAILED)
#: States of an application that has completed: pods without a node came too late for it (K60).
DONE: Final[frozenset[State]] = frozenset({COMPLETED})
#: States in which an application waits for the core to say that it has ended.
ENDING: Final[frozenset[State]] = frozenset({FAILING})
#: States of an application that no longer exists.
GONE: Final[frozenset[State]] = frozenset({REMOVED})

#: what the core's reason of a failure contains after a placeholder timeout, in any dialect (K34)
TIMED_OUT: Final = "ResourceReservationTimeout"
#: start of the reason of an application that the core rejected
REJECTED_PREFIX: Final = "ApplicationRejected"

_GANG: Final = "GangScheduling"


class ApplicationFacts(Protocol):
    """The facts that guards and emitters read."""

    state: State

    @property
    def key(self) -> str: ...
    @property
    def is_gang(self) -> bool: ...  # it has task groups that still count
    @property
    def hard(self) -> bool: ...
    @property
    def timeout_over(self) -> bool: ...  # older than its placeholder timeout, at a start (K77)
    @property
    def has_started(self) -> bool: ...  # a real pod has a node, or was asked for
    @property
    def groups_full(self) -> bool: ...  # each group has minMember bound placeholders (K74)
    @property
    def has_placeholders(self) -> bool: ...
    @property
    def has_followers(self) -> bool: ...  # pods wait for its end (K60, K200)
    @property
    def has_pods(self) -> bool: ...  # pods other than those that wait for its end (K60)
    @property
    def delay(self) -> int: ...  # ns for which it is not submitted (K60, Q16)
    @property
    def would_come_again(self) -> bool: ...  # a controller recreates its pods when they fail (K60)
    @property
    def core_has_pods(self) -> bool: ...  # the core has had asks or allocations, and completes it
    @property
    def core_waits(self) -> bool: ...  # the core still waits for the placeholders of a gang
    @property
    def places_whole(self) -> bool: ...  # no placeholders, no member has a node or ask (K204)


# -- guards ------------------------------------------------------------------------------------


def has_to_wait(app: ApplicationFacts, info: Info) -> bool:
    """Its submission is delayed (K60, Q16)."""
    return app.delay > 0


def would_come_again(app: ApplicationFacts, info: Info) -> bool:
    """Its pods would only be recreated (K60)."""
    return app.would_come_again


def timed_out_hard(app: ApplicationFacts, info: Info) -> bool:
    """A Hard gang is older than its placeholder timeout, and no member has started (K77)."""
    return app.is_gang and app.timeout_over and app.hard and not app.has_started


def is_hard(app: ApplicationFacts, info: Info) -> bool:
    """The gang is Hard: it never continues as single pods (K202)."""
    return app.hard


def reserves(app: ApplicationFacts, info: Info) -> bool:
    """It is a gang, none of its members is placed, and it has time left (K145, K146)."""
    return app.is_gang and not app.timeout_over and not app.has_started


def places_whole(app: ApplicationFacts, info: Info) -> bool:
    """Its members are placed together (K204)."""
    return app.places_whole


def timed_out_soft(app: ApplicationFacts, info: Info) -> bool:
    """A gang is older than its placeholder timeout, and no member has started (K77)."""
    return app.is_gang and app.timeout_over and not app.has_started


def groups_full(app: ApplicationFacts, info: Info) -> bool:
    """Each group has minMember bound placeholders (K74)."""
    return app.groups_full


def has_placeholders(app: ApplicationFacts, info: Info) -> bool:
    """Some of its placeholders are left."""
    return app.has_placeholders


def core_waits(app: ApplicationFacts, info: Info) -> bool:
    """The core still waits for the gang: when the last placeholder is gone, it must learn of it (K72)."""
    return app.core_waits


def ends_at_once(app: ApplicationFacts, info: Info) -> bool:
    """The core would never complete it (K178), or its next members cannot wait for that (K200, K204)."""
    return not app.core_has_pods or app.has_followers or app.places_whole


def has_pods(app: ApplicationFacts, info: Info) -> bool:
    """It has pods other than those that wait for its end."""
    return app.has_pods


# -- emitters ----------------------------------------------------------------------------------


add = constant("add", AddApplication())
add_as_ordinary = constant("add_as_ordinary", RemoveApplication(), AddApplication(gang=False))
remove = constant("remove", RemoveApplication(), DeletePlaceholders())
withdraw = constant("withdraw", RemoveApplication())
create = constant("create", CreateMissing())


def create_again(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    """Create another placeholder for the group of one that was lost (K80)."""
    return (CreateAgain(fired.info["group"]),)


ask = constant("ask", AskForPods())
start = constant("start", DropWaitingPlaceholders(), AskForPods())
ask_again = constant("ask_again", AskForPods(again=True))
timeout_over = constant(
    "timeout_over",
    Say(
        _GANG,
        "PlaceholderTimeout",
        "the placeholder timeout is over, so no placeholders are created",
        warning=True,
    ),
    DeletePlaceholders(),
    AskForPods(),
)


delete_placeholders = constant("delete_placeholders", DeletePlaceholders())


def say_allocated(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    """Record that a placeholder has a node."""
    info = fired.info
    note = f"placeholder {info['name']} of task group {info['group']} is on node {info['node']}"
    return (Say(_GANG, "PlaceholderAllocated", note),)


say_complete = constant(
    "say_complete",
    Say(_GANG, "GangReservationComplete", "every task group has all its placeholders on nodes"),
    AskForPods(),
)


def try_again(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    """Record that a placeholder was refused, and create it again later (K202)."""
    note = f"a placeholder could not be created, and is tried again: {fired.info['reason']}"
    say = Say(_GANG, "PlaceholderCreateFailed", note, warning=True)
    return (say, TryPlaceholderAgain(fired.info["group"]))


def fail_refused(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    """It ends as at its timeout, which the core has not seen because it has not had all asks (K202)."""
    reason = f"{TIMED_OUT}: a placeholder could not be created: {fired.info['reason']}"
    return (RemoveApplication(), DeletePlaceholders(), FailPods(reason), HasEnded())


def give_up_gang(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    """Continue as an ordinary application because a placeholder was refused (K202)."""
    note = (
        f"a placeholder could not be created, so the gang goes on as an ordinary application: "
        f"{fired.info['reason']}"
    )
    say = Say(_GANG, "PlaceholderCreateFailed", note, warning=True)
    return (say, MarkResumed(), DeletePlaceholders())


def resume(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    """Continue as an ordinary application after the Soft timeout (K76)."""
    note = (
        "the gang did not get all its placeholders in time and goes on as an ordinary application: "
        f"{fired.info['reason']}"
    )
    say = Say(_GANG, "GangSchedulingFailed", note, warning=True)
    return (say, MarkResumed(), DeletePlaceholders())


def release_pod(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    """Release the allocation of a pod that is gone."""
    return (ReleasePod(fired.info["key"], fired.info["type"]),)


def fail_pods(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    """Pods that have a node are left alone (K34, K35)."""
    return (DeletePlaceholders(), FailPods(fired.info["reason"]))


def reject_pods(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    """Fail the pods of a rejected application, and delete its placeholders (K34)."""
    return (DeletePlaceholders(), FailPods(f"{REJECTED_PREFIX}: {fired.info['reason']}"))


def fail_at_start(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    """The core has not seen any of it time out, so it is removed there (K77)."""
    reason = f"{TIMED_OUT}: the placeholder timeout was over before any placeholder was created"
    return (RemoveApplication(), DeletePlaceholders(), FailPods(reason), HasEnded())


def warn(app: ApplicationFacts, fired: Fired) -> tuple[Effect, ...]:
    """Warn that the state lasts longer than expected."""
    return (Warn(f"application {app.key} has been {fired.source} for longer than expected"),)


# fmt: off
APPLICATION: Final[Lifecycle[State, Trigger, ApplicationFacts]] = Lifecycle(
    "k8s-application",
    initial=NEW,
    final=(REMOVED,),
    lasts={
        NEW:       unbounded(SUBMIT),
        HELD:      within(SECOND, then=AGAIN),
        SUBMITTED: within(60 * SECOND, then=OVERDUE, backoff_to=10 * MINUTE),
        PLACING:   within(60 * MINUTE, then=WITHDRAW),
        RESERVING: within(16 * MINUTE, then=OVERDUE, backoff_to=60 * MINUTE),
        RESUMING:  within(16 * MINUTE, then=OVERDUE, backoff_to=60 * MINUTE),
        RUNNING:   unbounded(COMPLETE),
        REJECTED:  unbounded(FORGET),
        COMPLETED: unbounded(FORGET),
        FAILING:   within(60 * SECOND, then=OVERDUE, backoff_to=10 * MINUTE),
        FAILED:    unbounded(FORGET),
    },
    rows=(
        #   trigger                  from                            to          guard, emit
        row(SUBMIT,               NEW,                            HELD,       when=has_to_wait),
        row(SUBMIT,               NEW,                            SUBMITTED,  emit=add),
        ignored(SUBMIT,           (HELD, SUBMITTED, *IN_CORE, *ENDED), why="it was submitted with its first pod"),
        row(AGAIN,                HELD,                           SUBMITTED,  emit=add),
        row(ACCEPT, SUBMITTED, FAILING, when=timed_out_hard, emit=fail_at_start),
        row(ACCEPT,               SUBMITTED,                      PLACING,    when=places_whole, emit=ask),
        row(ACCEPT,               SUBMITTED,                      RESERVING,  when=reserves,    emit=create),
        row(ACCEPT,               SUBMITTED,                      RUNNING,    when=timed_out_soft, emit=timeout_over),
        row(ACCEPT,               SUBMITTED,                      RUNNING,    emit=ask),
        row(REJECT, SUBMITTED, HELD, when=would_come_again, emit=reject_pods),
        row(REJECT,               SUBMITTED,                      REJECTED,   emit=reject_pods),

        row(PLACEHOLDER_BOUND, RESERVING, RUNNING, when=groups_full, emit=(say_allocated, say_complete)),
        row(PLACEHOLDER_BOUND,    (RESERVING, RESUMING, RUNNING, FAILING), STAYS,      emit=say_allocated),
        ignored(PLACEHOLDER_BOUND, (NEW, HELD, SUBMITTED, PLACING, *ENDED),
                                  why="it says nothing about a gang that has not begun or is over"),
        row(PLACEHOLDER_LOST,     RESERVING,                      STAYS,      emit=create_again),
        ignored(PLACEHOLDER_LOST, (NEW, HELD, SUBMITTED, PLACING, RESUMING, RUNNING, FAILING, *ENDED),
                                  why="no placeholder is missing"),
        row(PLACEHOLDERS_FAILED,  RESERVING,                      FAILING,    when=timed_out_hard, emit=fail_refused),
        row(PLACEHOLDERS_FAILED,  RESERVING,                      STAYS,      when=is_hard,     emit=try_again),
        row(PLACEHOLDERS_FAILED,  RESERVING,                      RESUMING,   emit=give_up_gang),
        ignored(PLACEHOLDERS_FAILED, (NEW, HELD, SUBMITTED, PLACING, RESUMING, RUNNING, FAILING, *ENDED),
                                  why="no placeholder is missing"),
        row(MEMBER_PLACED,        (PLACING, RESERVING),           RUNNING,    emit=start),
        ignored(MEMBER_PLACED,    (NEW, HELD, SUBMITTED, RESUMING, RUNNING, FAILING, *ENDED),
                                  why="it waits for no gang"),
        row(WITHDRAW,             (SUBMITTED, PLACING),           HELD,       emit=withdraw),
        row(RESUME,               (RESERVING, RUNNING),           RESUMING,   emit=resume),
        ignored(RESUME,           (NEW, HELD, SUBMITTED, PLACING, RESUMING, FAILING, *ENDED),
                                  why="it is no gang any more"),
        row(SETTLED,              RESUMING,                       STAYS,      when=has_placeholders,
                                  why="other placeholders are left"),
        row(SETTLED,              RESUMING,                       SUBMITTED,  when=core_waits,  emit=add_as_ordinary),
        row(SETTLED,              RESUMING,                       RUNNING,    emit=ask_again),
        ignored(SETTLED,          (NEW, HELD, SUBMITTED, PLACING, RESERVING, RUNNING, FAILING, *ENDED),
                                  why="nothing waits for the end of placeholders"),

        row(RELEASE,              (*TOLD, *ENDED),                STAYS,      emit=release_pod),
        row(IDLE,                 (NEW, HELD),                    REMOVED,    emit=delete_placeholders),
        row(IDLE,                 (SUBMITTED, PLACING, RESERVING, RESUMING), REMOVED,    emit=remove),
        row(IDLE,                 RUNNING,                        REMOVED,    when=ends_at_once, emit=remove),
        row(IDLE,                 (RUNNING, FAILING),             STAYS,      emit=delete_placeholders),
        ignored(IDLE,             ENDED,                          why="it is forgotten with its last pod"),
        row(COMPLETE,             (PLACING, RESERVING, RESUMING, RUNNING), COMPLETED,  emit=delete_placeholders),
        ignored(COMPLETE,         (NEW, HELD, SUBMITTED, FAILING, *ENDED),
                                  why="it has ended, or the one of this id before it has"),
        row(FAIL,                 JOINED,                         FAILING,    emit=fail_pods),
        ignored(FAIL,             (FAILING, *ENDED),              why="it has failed or ended already"),
        row(FAILED_,              JOINED,                         FAILED,     emit=fail_pods),
        row(FAILED_,              (FAILING, REJECTED),            FAILED),
        ignored(FAILED_,          (COMPLETED, FAILED),            why="it has ended already"),
        row(FORGET,               ENDED,                          STAYS,      when=has_pods,
                                  why="some of its pods have not ended"),
        row(FORGET,               ENDED,                          REMOVED),
        ignored(FORGET,           (NEW, HELD, SUBMITTED, *IN_CORE),     why="it has not ended"),

        row(FORGOTTEN, (SUBMITTED, PLACING, RUNNING), NEW, when=places_whole),
        row(FORGOTTEN,            (SUBMITTED, PLACING, RESERVING, RESUMING, RUNNING), SUBMITTED, emit=add),
        row(FORGOTTEN,            FAILING,                        FAILED),
        row(FORGOTTEN,            HELD,                           NEW),
        ignored(FORGOTTEN,        (NEW, *ENDED),                  why="the core need not know it"),
        row(OVERDUE,              (SUBMITTED, RESERVING),         STAYS,      emit=warn),
        row(OVERDUE,              RESUMING,                       STAYS,      emit=(warn, delete_placeholders)),
        row(OVERDUE,              FAILING,                        STAYS,      when=has_pods,
                                  why="some of its pods have not ended"),
        row(OVERDUE,              FAILING,                        FAILED),
    ),
)

#: The tone of each state on the pages.
TONES: Final[dict[State, Tone]] = APPLICATION.total("TONES", {
    NEW:       "wait",
    HELD:      "wait",
    SUBMITTED: "wait",
    PLACING:   "wait",
    RESERVING: "wait",
    RESUMING:  "wait",
    RUNNING:   "good",
    REJECTED:  "bad",
    COMPLETED: "done",
    FAILING:   "bad",
    FAILED:    "bad",
    REMOVED:   "done",
})
# fmt: on
