"""The lifecycle of a task: one pod with our scheduler name, real or a placeholder (K37).

A task is New until its application allows it to be asked for, or Gated while the pod has scheduling gates. It
is Asked until the core chooses a node, Binding until the API server has confirmed that, and then Bound. A pod
that is found with a node is Recovering until the core has confirmed it. The core takes an allocation back by a
release; the pod is deleted and the task is Releasing until it is gone. It is Ended when its pod has succeeded,
has failed or is deleted, which is always final: only then does the core learn that the allocation has ended, with
the type of the release if the core asked for it (K39).

It is driven by the watch of pods, the messages of the core and the outcomes of binds, each of which may be
late. An allocation that arrives too late is given back (K111). A failed bind returns the task to Asked and not
to a failure (K108). A pod that the core rejects is Failed; it is retried after a while. A running pod that the
core rejects, or whose application has ended in the core, is Failed too and counts as foreign (K96, K143).
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from quadriga.base.times import MINUTE, SECOND
from quadriga.fsm import Lifecycle, ignored, not_, row, unbounded, within
from quadriga.fsm.table import STAYS, Effect, Fired, Info, Tone
from quadriga.k8s.lifecycles.effects import (
    AbandonAssumption,
    AnnouncePlaceholder,
    AskAgain,
    BindPod,
    CancelBind,
    ConfirmRelease,
    DeletePod,
    GiveBack,
    Reconcile,
    RefuseNode,
    ReleaseAsk,
    ReleaseForeign,
    ReportForeign,
    ReportPod,
    Say,
    SendAsk,
    Warn,
    constant,
)

# fmt: off
State = Literal[
    "New", "Gated", "Asked", "Recovering", "Binding", "Bound", "Releasing", "Failed", "Ended",
]
Trigger = Literal[
    "gate", "ungate", "ask", "recover", "allocated", "bound", "elsewhere", "bind_failed",
    "ask_released", "release", "discard", "resized", "rejected", "again", "node_lost", "withdraw",
    "forgotten", "overdue", "ended",
]
# fmt: on

NEW: Final = "New"
GATED: Final = "Gated"
ASKED: Final = "Asked"
RECOVERING: Final = "Recovering"
BINDING: Final = "Binding"
BOUND: Final = "Bound"
RELEASING: Final = "Releasing"
FAILED: Final = "Failed"
ENDED: Final = "Ended"

GATE: Final = "gate"
UNGATE: Final = "ungate"
ASK: Final = "ask"
RECOVER: Final = "recover"
ALLOCATED: Final = "allocated"
BOUND_: Final = "bound"
ELSEWHERE: Final = "elsewhere"
BIND_FAILED: Final = "bind_failed"
ASK_RELEASED: Final = "ask_released"
RELEASE: Final = "release"
DISCARD: Final = "discard"
RESIZED: Final = "resized"
REJECTED: Final = "rejected"
AGAIN: Final = "again"
NODE_LOST: Final = "node_lost"
WITHDRAW: Final = "withdraw"
FORGOTTEN: Final = "forgotten"
OVERDUE: Final = "overdue"
ENDED_: Final = "ended"

#: States of a task without a node (K34).
UNPLACED: Final = (NEW, GATED, ASKED, FAILED)
#: States of a task that is not asked for and may be once its application allows it.
WAITS: Final[frozenset[State]] = frozenset({NEW})
#: States of a task whose pod is checked again: it may have lost its gates, or have a node.
LOOKED_AT: Final[frozenset[State]] = frozenset({NEW, GATED})
#: States of a task for which the core looks for a node (K155).
SOUGHT: Final[frozenset[State]] = frozenset({ASKED})
#: States of a task that has a node, in the core or in the cluster.
PLACED: Final = (RECOVERING, BINDING, BOUND, RELEASING)
#: States of a task that the core is known to have asks or allocations of.
STARTED: Final[frozenset[State]] = frozenset({ASKED, BINDING, BOUND, RELEASING})
#: States of a task that is on its node.
ON_NODE: Final[frozenset[State]] = frozenset({BOUND})
#: States of a task that is reported as an existing allocation when the core restarts (K141, K151).
REPORTED: Final[frozenset[State]] = frozenset({RECOVERING, BINDING, RELEASING})
#: States of a task that waits for the core to confirm its node.
UNCONFIRMED: Final[frozenset[State]] = frozenset({RECOVERING})
#: States of a task whose bind has not ended.
BINDS: Final[frozenset[State]] = frozenset({BINDING})
#: States of a task whose node is chosen here: another node in the watch was chosen by another process.
EXPECTS_NODE: Final[frozenset[State]] = frozenset({ASKED, BINDING})
#: States of a task that is found with a node that was not chosen here.
FINDS_NODE: Final[frozenset[State]] = frozenset({NEW, FAILED})
#: States of a placeholder that is lost if it ends: the core has not released it (K80).
LOSES: Final[frozenset[State]] = frozenset({NEW, ASKED, RECOVERING, BINDING, BOUND, FAILED})
#: States of a task whose pod has terminated.
GONE: Final[frozenset[State]] = frozenset({ENDED})
#: States of a task whose pod is terminating.
LEAVING: Final[frozenset[State]] = frozenset({RELEASING})
#: States of a task that is retried after a while, with growing pauses.
TRIES_AGAIN: Final[frozenset[State]] = frozenset({FAILED})
#: States of a task whose size the core knows (K85).
SIZED: Final[frozenset[State]] = frozenset({ASKED, BINDING, BOUND, RECOVERING})

#: termination types of the protocol (TerminationType)
STOPPED_BY_RM: Final = 1
TIMEOUT: Final = 2
PREEMPTED_BY_SCHEDULER: Final = 3
PLACEHOLDER_REPLACED: Final = 4


class TaskFacts(Protocol):
    """The facts that guards and emitters read."""

    state: State

    @property
    def key(self) -> str: ...
    @property
    def is_placeholder(self) -> bool: ...
    @property
    def group(self) -> str: ...  # task group of a gang; "" for none
    @property
    def node(self) -> str: ...  # chosen by the core, or of the pod; "" for none
    @property
    def uuid(self) -> str: ...  # of the allocation; "" if the core has given none
    @property
    def release_type(self) -> int: ...  # of the release that the core requested; 0 for none
    @property
    def is_foreign(self) -> bool: ...  # the core rejected it and counts it as foreign (K143)
    @property
    def app_has_ended(self) -> bool: ...  # its application no longer exists in the core
    @property
    def may_try_again(self) -> bool: ...  # it has no node, and its application asks for such pods


# -- guards ------------------------------------------------------------------------------------


def blocked(task: TaskFacts, info: Info) -> bool:
    """A check of the pod has failed (K88)."""
    return bool(info.get("blocked_reason"))


def refused(task: TaskFacts, info: Info) -> bool:
    """The check before the assumption has failed (K100)."""
    return bool(info.get("refusal"))


def same_allocation(task: TaskFacts, info: Info) -> bool:
    """It is the allocation that the task has already: the core has confirmed a new size (K85), or a report."""
    return bool(task.uuid == info["uuid"] if task.uuid else task.node == info["node"])


def is_placeholder(task: TaskFacts, info: Info) -> bool:
    """The task is a placeholder."""
    return task.is_placeholder


def may_try_again(task: TaskFacts, info: Info) -> bool:
    """The pod has no node, and its application asks for such pods."""
    return task.may_try_again


def has_allocation(task: TaskFacts, info: Info) -> bool:
    """The core has given the pod an allocation; it drops that with its node while a bind is under way (K97)."""
    return bool(task.uuid)


def is_foreign(task: TaskFacts, info: Info) -> bool:
    """The core counts the pod as foreign (K143)."""
    return task.is_foreign


def app_has_ended(task: TaskFacts, info: Info) -> bool:
    """Its application no longer exists in the core, but the pod still uses its node (K96)."""
    return task.app_has_ended


# -- emitters ----------------------------------------------------------------------------------

_SEND_ASK = (SendAsk(),)
_REPORT = (ReportPod(),)
_ANNOUNCE = (AnnouncePlaceholder(),)
_DELETE = (DeletePod(),)
_DELETE_PREEMPTED = (DeletePod(preempted=True),)
_DELETE_TIMED_OUT = (
    Say(
        "GangScheduling",
        "PlaceholderTimeOut",
        "a placeholder is deleted because the gang did not get all its placeholders in time",
        warning=True,
        originator=True,
    ),
    DeletePod(),
)
_QUEUED = (SendAsk(), Say("Scheduling", "Scheduling", "the pod waits in its queue for a node"))
_STEP_EVENTS: Final = {"bind": "PodBindFailure", "volumes": "PodVolumesBindFailure"}


def say_gated(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """Record which scheduling gates hold the pod (K89)."""
    note = f"the pod is not scheduled while it has scheduling gates: {fired.info['gates']}"
    return (Say("Scheduling", "Scheduling", note),)


def ask(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """Send the ask, and record that the pod waits in its queue."""
    if task.group and not task.is_placeholder:
        note = f"the pod belongs to task group {task.group}"
        return (*_QUEUED, Say("GangScheduling", "TaskGroupMatch", note))
    return _QUEUED


send_ask = constant("send_ask", *_SEND_ASK)


def say_blocked_reason(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """Record why the pod is not asked for, such as a missing claim (K88)."""
    blocked_reason = fired.info["blocked_reason"]
    if fired.info.get("unread"):  # it passes by itself, so nothing is wrong
        return (Say("Scheduling", "Scheduling", blocked_reason),)
    return (Say("FailedScheduling", "Scheduling", blocked_reason, warning=True),)


report = constant("report", *_REPORT)
bind = constant("bind", BindPod())


def announce(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """Announce a placeholder that has a node to its application."""
    return _ANNOUNCE if task.is_placeholder else ()


def say_scheduled(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """Record that the pod is bound."""
    return (Say("Scheduled", "Binding", f"the pod is bound to node {task.node}"),)


def assume_failed(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """Nothing was assumed and nothing written (K100, K108)."""
    info = fired.info
    reason = "AssumePodError" if task.is_placeholder else "AssumePodFailed"
    note = f"node {info['node']} can no longer take the pod: {info['refusal']}"
    return (
        Say(reason, "Scheduling", note, warning=True),
        RefuseNode(info["node"]),
        AskAgain(info["uuid"]),
    )


def bind_failed(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """The bind has failed: ask again and refuse the node for a while (K108, K110)."""
    note = f"the pod could not be bound to node {task.node}: {fired.info['reason']}"
    return (
        Say(_STEP_EVENTS[fired.info.get("step", "bind")], "Binding", note, warning=True),
        AbandonAssumption(),
        RefuseNode(task.node),
        AskAgain(task.uuid),
    )


def give_back(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """The driver has assumed it already (K111)."""
    return (AbandonAssumption(), GiveBack(fired.info["uuid"]))


def give_second_back(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """The task has another allocation, which stays."""
    return (GiveBack(fired.info["uuid"]),)


def release_elsewhere(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """Our allocation is released first, so that the core does not count the pod on two nodes."""
    unassume = (AbandonAssumption(),) if fired.source == BINDING else ()
    ours = (GiveBack(task.uuid),) if task.uuid else ()  # the report satisfies a pending ask
    return (*unassume, *ours, *_REPORT)


unassume = constant("unassume", CancelBind(), AbandonAssumption())
delete_timed_out = constant("delete_timed_out", *_DELETE_TIMED_OUT)
delete = constant("delete", *_DELETE)


def delete_for(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """A victim of preemption gets the reason (K113)."""
    if fired.info["type"] == TIMEOUT and task.is_placeholder:
        return _DELETE_TIMED_OUT
    if fired.info["type"] != PREEMPTED_BY_SCHEDULER:
        return _DELETE
    note = "the pod is preempted because another pod needs its room"
    return (Say("Preempted", "Preempting", note), *_DELETE_PREEMPTED)


take_back = constant("take_back", ReleaseAsk(), DeletePod())
release_ask = constant("release_ask", ReleaseAsk())


def say_rejected(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """Record that the core has rejected the pod."""
    note = f"the scheduler does not accept the pod: {fired.info['reason']}"
    return (Say("TaskRejected", "Scheduling", note, warning=True),)


def report_foreign(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """Count the running pod as foreign because the core has rejected it (K143)."""
    note = f"the running pod is not counted in its queue: {fired.info['reason']}"
    return (Say("TaskRejected", "Recovery", note, warning=True), ReportForeign())


count_as_foreign = constant(
    "count_as_foreign",
    Say(
        "TaskRejected",
        "Recovery",
        "the running pod is not counted in its queue: its application has ended",
        warning=True,
    ),
    ReportForeign(),
)


#: in this order in one message, so that its resources are never free in between
report_as_own = constant("report_as_own", ReportPod(), ReleaseForeign())
reconcile = constant("reconcile", Reconcile())


def resize(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """Send the new amounts in the ask, or in the report of the allocation (K85)."""
    return _SEND_ASK if fired.source == ASKED else _REPORT


def warn_and_delete(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """Warn, and delete the pod again (K79)."""
    warning = f"pod {task.key} is not gone long after it was deleted; it is deleted again"
    return (Warn(warning), *_DELETE)


def warn_and_cancel(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """Warn, and cancel the bind."""
    warning = f"the bind of pod {task.key} to node {task.node} has taken too long"
    return (Warn(warning), CancelBind())


def confirm(task: TaskFacts, fired: Fired) -> tuple[Effect, ...]:
    """The type is that of the core's release, else stopped (K39)."""
    return (ConfirmRelease(task.release_type or STOPPED_BY_RM),)


stopped = constant("stopped", ConfirmRelease(STOPPED_BY_RM))


# fmt: off
TASK: Final[Lifecycle[State, Trigger, TaskFacts]] = Lifecycle(
    "k8s-task",
    initial=NEW,
    final=(ENDED,),
    lasts={
        NEW:        unbounded(ASK),
        GATED:      unbounded(UNGATE),
        ASKED:      unbounded(ALLOCATED),
        RECOVERING: unbounded(ALLOCATED),
        BINDING:    within(130 * SECOND, then=OVERDUE, backoff_to=10 * MINUTE),
        BOUND:      unbounded(ENDED_),
        RELEASING:  within(90 * SECOND, then=OVERDUE, backoff_to=10 * MINUTE),
        FAILED:     within(30 * SECOND, then=AGAIN, backoff_to=10 * MINUTE),
    },
    rows=(
        #   trigger                  from                            to          guard, emit
        row(GATE,                 NEW,                            GATED,      emit=say_gated),
        row(UNGATE,               GATED,                          NEW,        emit=reconcile),
        row(ASK,                  NEW,                            STAYS,      when=blocked,  emit=say_blocked_reason),
        row(ASK,                  NEW,                            ASKED,      emit=ask),
        row(ASK,                  ASKED,                          STAYS,      emit=send_ask),
        row(RECOVER, (NEW, GATED, FAILED), FAILED, when=app_has_ended, emit=count_as_foreign),
        row(RECOVER,              FAILED,                  RECOVERING, when=is_foreign, emit=report_as_own),
        row(RECOVER,              (NEW, GATED, FAILED),           RECOVERING, emit=report),
        row(RECOVER,              RECOVERING,                     STAYS,      emit=report),

        row(ALLOCATED,            ASKED,                          STAYS,      when=refused,     emit=assume_failed),
        row(ALLOCATED,            ASKED,                          BINDING,    emit=bind),
        row(ALLOCATED,            RECOVERING,                     BOUND,      emit=announce),
        row(ALLOCATED, (BINDING, BOUND, RELEASING), STAYS, when=same_allocation, why="the core confirms a report"),
        row(ALLOCATED,            (BINDING, BOUND),               STAYS,      emit=give_second_back),
        row(ALLOCATED,            (NEW, GATED, RELEASING, FAILED), STAYS,      emit=give_back),
        row(BOUND_,               BINDING,                        RECOVERING, when=not_(has_allocation), emit=report),
        row(BOUND_,               BINDING,                        BOUND,      emit=(say_scheduled, announce)),
        ignored(BOUND_,           (NEW, GATED, ASKED, RECOVERING, BOUND, RELEASING, FAILED),
                                  why="the watch and the reply both tell it"),
        row(ELSEWHERE,            (ASKED, BINDING),               RECOVERING, emit=release_elsewhere),
        ignored(ELSEWHERE,        (NEW, GATED, RECOVERING, BOUND, RELEASING, FAILED), why="the watch has told it"),
        row(BIND_FAILED,          BINDING,                        ASKED,      emit=bind_failed),
        ignored(BIND_FAILED,      (NEW, GATED, ASKED, RECOVERING, BOUND, RELEASING, FAILED),
                                  why="it is not bound by that any more"),

        row(ASK_RELEASED,         ASKED,                     RELEASING, when=is_placeholder, emit=delete_timed_out),
        row(ASK_RELEASED,         ASKED,                          NEW),
        ignored(ASK_RELEASED,     (NEW, GATED, RECOVERING, BINDING, BOUND, RELEASING, FAILED),
                                  why="it has no ask any more"),
        row(RELEASE,              (BINDING, BOUND, RECOVERING),   RELEASING,  emit=delete_for),
        ignored(RELEASE,          (NEW, GATED, ASKED, RELEASING, FAILED), why="the allocation is given up already"),
        row(DISCARD,              ASKED,                          RELEASING,  emit=take_back),
        row(DISCARD,              (NEW, GATED, RECOVERING, BINDING, BOUND, FAILED), RELEASING,  emit=delete),
        ignored(DISCARD,          RELEASING,                      why="it is being deleted"),
        row(WITHDRAW,             ASKED,                          NEW,        emit=release_ask),
        ignored(WITHDRAW,         (NEW, GATED, RECOVERING, BINDING, BOUND, RELEASING, FAILED), why="there is no ask"),

        row(RESIZED,              (ASKED, BINDING, BOUND, RECOVERING), STAYS,      emit=resize),
        ignored(RESIZED,          (NEW, GATED, RELEASING, FAILED), why="the core does not count it"),
        row(REJECTED,             ASKED,                          FAILED,     emit=say_rejected),
        row(REJECTED,             RECOVERING,                     FAILED,     emit=report_foreign),
        ignored(REJECTED,         (NEW, GATED, BINDING, BOUND, RELEASING, FAILED),
                                  why="it belongs to an ask that is over"),
        row(AGAIN,                FAILED,                         NEW,        when=may_try_again, emit=reconcile),
        ignored(AGAIN,            FAILED,
                                  why="it has a node, or its application is not live"),
        row(NODE_LOST,            BINDING,                        STAYS,      emit=unassume),
        row(NODE_LOST,            BOUND,                          RECOVERING),
        ignored(NODE_LOST,        (NEW, GATED, ASKED, RECOVERING, RELEASING, FAILED),
                                  why="it is not on that node, or leaves it"),
        row(FORGOTTEN,            (ASKED, FAILED),                NEW),
        row(FORGOTTEN,            BOUND,                          RECOVERING),
        ignored(FORGOTTEN,        (NEW, GATED, RECOVERING, BINDING, RELEASING),
                                  why="it is reported anew where it has a node"),
        row(OVERDUE,              BINDING,                        STAYS,      emit=warn_and_cancel),
        row(OVERDUE,              RELEASING,                      STAYS,      emit=warn_and_delete),

        row(ENDED_,               ASKED,                          ENDED,      emit=release_ask),
        row(ENDED_,               RELEASING,                      ENDED,      when=has_allocation, emit=confirm),
        row(ENDED_,               FAILED,                         ENDED,      when=is_foreign,  emit=stopped),
        row(ENDED_,               (BINDING, BOUND, RECOVERING),   ENDED,      emit=stopped),
        row(ENDED_,               (NEW, GATED, RELEASING, FAILED), ENDED),
    ),
)

#: The tone of each state on the pages.
TONES: Final[dict[State, Tone]] = TASK.total("TONES", {
    NEW:        "wait",
    GATED:      "wait",
    ASKED:      "wait",
    RECOVERING: "wait",
    BINDING:    "wait",
    BOUND:      "good",
    RELEASING:  "wait",
    FAILED:     "bad",
    ENDED:      "done",
})
# fmt: on
