"""Lifecycles of applications and pods in the simulated resource manager (RM).

They are the lifecycles of YuniKorn's Kubernetes shim, with its names of states and triggers, so the
scheduler receives in virtual time what it receives in a cluster. An *application* is submitted,
accepted by the scheduler, and runs. A gang reserves first: it asks only for placeholders, and runs
when enough of them run. A *task* is one pod, a placeholder or a real one: it is asked for,
allocated, bound to a node (its containers run), and completed when the pod has ended for any
reason.

Triggers come from the scheduler's answers and from virtual time, never from the other lifecycle.
Messages that only confirm an expected development are ignored on purpose.

Three things are our own. First, the shim cannot receive the release of a placeholder while it
reserves, because YuniKorn sends the new state first; in the message order of the gang design (X8)
releases come first, so they are legal here. Second, a release demanded by the scheduler takes the
pod through Killing, so the time that a pod takes to stop is a state of its own. Third, an
application and a waiting pod can start over when the scheduler or the resource manager restarts
(I7, I8).
"""

# Not compiled: it does not run for every message.

from __future__ import annotations

from typing import Final, Literal

from quadriga.fsm import Lifecycle, ignored, row, unbounded

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

#: states in which the scheduler may reject an ask of the application
ASKS: Final[frozenset[ApplicationState]] = frozenset({RESERVING, RUNNING})
#: states in which the application has placeholders and does not run yet
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

#: states in which a pod waits for an allocation
WAITS: Final[frozenset[TaskState]] = frozenset({PENDING, SCHEDULING})
#: states in which a pod has no allocation
UNPLACED: Final = (NEW, PENDING, SCHEDULING)
#: states in which a pod has an allocation and is not being stopped
HOLDS: Final = (ALLOCATED, BOUND)
#: states in which a pod has an allocation or may still get one
WANTED: Final[frozenset[TaskState]] = frozenset({*UNPLACED, *HOLDS})
#: states in which a pod occupies resources of its node
ON_NODE: Final[frozenset[TaskState]] = frozenset({ALLOCATED, BOUND, KILLING})
#: states in which a pod needs no further allocation
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

#: name -> lifecycle of the simulated resource manager
LIFECYCLES: dict[str, Lifecycle] = {
    lifecycle.name: lifecycle for lifecycle in (SHIM_APPLICATION, SHIM_TASK)
}
