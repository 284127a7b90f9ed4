"""The lives of an application and of a pod in the simulated resource manager (RM).

They are those of the Kubernetes shim of YuniKorn, with its names for states and triggers, so that
the scheduler meets in virtual time what it meets in a cluster. An *application* is submitted,
accepted by the scheduler, and runs. A gang first reserves: it asks for placeholders only, and runs
when enough of them run. A *task* is one pod, placeholder or real: it asks, is allocated, bound to a
node (its containers run), and completed when the pod is gone, in whatever way.

Who drives them: the scheduler's answers and the passing of virtual time, never each other. What is
deliberately ignored: news that only say that something which is expected goes on.

Three things are ours. The shim cannot hear of the release of a placeholder while it reserves, because
YuniKorn tells it of the new state first; in the order of the gang design (X8) releases come first,
so here they are legal. And a release asked for by the scheduler takes the pod through Killing, so
that the time a pod takes to stop is a state one can see. And an application and a pod that waits can
begin anew, as they do where the scheduler or the resource manager starts again (I7, I8).
"""

from __future__ import annotations

from typing import Final, Literal

from quadriga.fsm import Lifecycle, ignored, row, unbounded

__all__ = ["LIFECYCLES", "SHIM_APPLICATION", "SHIM_TASK"]

# -- application -------------------------------------------------------------------------------

# fmt: off
ApplicationState = Literal[
    "New", "Submitted", "Accepted", "Reserving", "Resuming", "Running", "Rejected", "Failing",
    "Killing", "Completed", "Failed", "Killed",
]
ApplicationTrigger = Literal[
    "submit", "accept", "reject", "try_reserve", "update_reservation", "run", "resume",
    "task_completed", "release_allocation", "release_ask", "complete", "fail", "kill", "die",
    "restart",
]
# fmt: on

NEW: Final = "New"
SUBMITTED: Final = "Submitted"
ACCEPTED: Final = "Accepted"
RESERVING: Final = "Reserving"
RESUMING: Final = "Resuming"
RUNNING: Final = "Running"
COMPLETED: Final = "Completed"
REJECTED: Final = "Rejected"
FAILING: Final = "Failing"
FAILED: Final = "Failed"
KILLING: Final = "Killing"
KILLED: Final = "Killed"

SUBMIT: Final = "submit"
ACCEPT: Final = "accept"
REJECT: Final = "reject"
RUN: Final = "run"
TRY_RESERVE: Final = "try_reserve"
UPDATE_RESERVATION: Final = "update_reservation"
RESUME: Final = "resume"
TASK_COMPLETED: Final = "task_completed"
RELEASE_ALLOCATION: Final = "release_allocation"
RELEASE_ASK: Final = "release_ask"
COMPLETE: Final = "complete"
FAIL: Final = "fail"
KILL: Final = "kill"
DIE: Final = "die"
RESTART: Final = "restart"

#: states in which the scheduler may refuse an ask of it
ASKS: Final[frozenset[ApplicationState]] = frozenset({RESERVING, RUNNING})
#: states in which it has placeholders and does not run yet
GATHERS: Final[frozenset[ApplicationState]] = frozenset({RESERVING, RESUMING})

_GIVING: Final = (RUNNING, FAILING, RESUMING)
_SERVED: Final = (ACCEPTED, RESERVING, RESUMING, RUNNING)

# fmt: off
SHIM_APPLICATION: Final[Lifecycle[ApplicationState, ApplicationTrigger]] = Lifecycle(
    "shim-application",
    initial=NEW,
    final=(COMPLETED, FAILED, KILLED),
    lasts={
        NEW:       unbounded(SUBMIT),
        SUBMITTED: unbounded(ACCEPT),
        ACCEPTED:  unbounded(RUN),
        RESERVING: unbounded(RUN),
        RESUMING:  unbounded(RUN),
        RUNNING:   unbounded(COMPLETE),
        REJECTED:  unbounded(FAIL),
        FAILING:   unbounded(FAIL),
        KILLING:   unbounded(DIE),
    },
    rows=(
        #   trigger                  from                             to
        row(SUBMIT,                  NEW,                             SUBMITTED),
        row(ACCEPT,                  SUBMITTED,                       ACCEPTED),
        row(REJECT,                  SUBMITTED,                       REJECTED),
        row(TRY_RESERVE,             ACCEPTED,                        RESERVING),
        ignored(UPDATE_RESERVATION,  RESERVING,                       why="one more placeholder runs"),
        row(RUN,                     (ACCEPTED, RESERVING, RESUMING), RUNNING),
        ignored(RUN,                 RUNNING,                         why="it runs already"),
        row(RESUME,                  RESERVING,                       RESUMING),
        ignored(TASK_COMPLETED,      RESUMING,                        why="one more placeholder is gone"),
        ignored(RELEASE_ALLOCATION,  _GIVING,                         why="the pod is stopped, not the application"),
        ignored(RELEASE_ALLOCATION,  RESERVING,                       why="the update comes after the releases (X8)"),
        row(RELEASE_ASK,             (ACCEPTED, RESERVING),           RUNNING),
        ignored(RELEASE_ASK,         _GIVING,                         why="the pod is stopped, not the application"),
        row(COMPLETE,                RUNNING,                         COMPLETED),
        row(FAIL,                    (SUBMITTED, ACCEPTED, RESERVING, RUNNING), FAILING),
        row(FAIL,                    (FAILING, REJECTED),             FAILED),
        row(KILL,                    (ACCEPTED, RESERVING, RUNNING),  KILLING),
        row(DIE,                     KILLING,                         KILLED),
        row(RESTART,                 _SERVED,                         SUBMITTED),
        ignored(RESTART,             SUBMITTED,                       why="it is submitted again"),
    ),
)
# fmt: on

# -- task --------------------------------------------------------------------------------------

# fmt: off
TaskState = Literal[
    "New", "Pending", "Scheduling", "Allocated", "Bound", "Killing", "Killed", "Rejected",
    "Failed", "Completed",
]
TaskTrigger = Literal[
    "init", "submit", "allocate", "bind", "kill", "die", "reject", "fail", "forget", "complete",
]
# fmt: on

PENDING: Final = "Pending"
SCHEDULING: Final = "Scheduling"
ALLOCATED: Final = "Allocated"
BOUND: Final = "Bound"

INIT: Final = "init"
ALLOCATE: Final = "allocate"
BIND: Final = "bind"
FORGET: Final = "forget"

#: states in which a pod waits for a place that it has asked for
WAITS: Final[frozenset[TaskState]] = frozenset({PENDING, SCHEDULING})
#: states in which a pod has no place
UNPLACED: Final = (NEW, PENDING, SCHEDULING)
#: states in which a pod holds its place, and is not being stopped
HOLDS: Final = (ALLOCATED, BOUND)
#: states in which a pod has its place, or may yet get one
WANTED: Final[frozenset[TaskState]] = frozenset({*UNPLACED, *HOLDS})
#: states in which a pod takes up room on its node
ON_NODE: Final[frozenset[TaskState]] = frozenset({ALLOCATED, BOUND, KILLING})
#: states in which a pod needs no place, or not any more
PLACED: Final[frozenset[TaskState]] = ON_NODE | {KILLED, COMPLETED}

_ASKED: Final = (PENDING, SCHEDULING, ALLOCATED, BOUND)

# fmt: off
SHIM_TASK: Final[Lifecycle[TaskState, TaskTrigger]] = Lifecycle(
    "shim-task",
    initial=NEW,
    final=(COMPLETED,),
    lasts={
        NEW:        unbounded(INIT),
        PENDING:    unbounded(SUBMIT),
        SCHEDULING: unbounded(ALLOCATE),
        ALLOCATED:  unbounded(BIND),
        BOUND:      unbounded(COMPLETE),
        KILLING:    unbounded(DIE),
        KILLED:     unbounded(COMPLETE),
        REJECTED:   unbounded(COMPLETE),
        FAILED:     unbounded(COMPLETE),
    },
    rows=(
        #   trigger  from                               to
        row(INIT,     NEW,                              PENDING),
        row(SUBMIT,   PENDING,                          SCHEDULING),
        row(ALLOCATE, SCHEDULING,                       ALLOCATED),
        row(BIND,     ALLOCATED,                        BOUND),
        row(KILL,     _ASKED,                           KILLING),
        row(DIE,      KILLING,                          KILLED),
        row(REJECT,   UNPLACED,                         REJECTED),
        row(FAIL,     (*UNPLACED, REJECTED, ALLOCATED), FAILED),
        row(FORGET,   (PENDING, SCHEDULING, ALLOCATED), NEW),
        row(COMPLETE, (*UNPLACED, ALLOCATED, BOUND, KILLING, KILLED, REJECTED, FAILED), COMPLETED),
    ),
)
# fmt: on

#: the simulated resource manager's lifecycles by name
LIFECYCLES: dict[str, Lifecycle] = {
    lifecycle.name: lifecycle for lifecycle in (SHIM_APPLICATION, SHIM_TASK)
}
