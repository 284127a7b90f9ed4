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

from quadriga.fsm import Lifecycle, ignored, row, unbounded

__all__ = ["LIFECYCLES", "SHIM_APPLICATION", "SHIM_TASK"]

# -- application -------------------------------------------------------------------------------

NEW, SUBMITTED, ACCEPTED, RESERVING = "New", "Submitted", "Accepted", "Reserving"
RESUMING, RUNNING, COMPLETED = "Resuming", "Running", "Completed"
REJECTED, FAILING, FAILED = "Rejected", "Failing", "Failed"
KILLING, KILLED = "Killing", "Killed"

SUBMIT, ACCEPT, REJECT, RUN = "submit", "accept", "reject", "run"
TRY_RESERVE, UPDATE_RESERVATION = "try_reserve", "update_reservation"
RESUME, TASK_COMPLETED = "resume", "task_completed"
RELEASE_ALLOCATION, RELEASE_ASK = "release_allocation", "release_ask"
COMPLETE, FAIL, KILL, DIE = "complete", "fail", "kill", "die"
RESTART = "restart"

_GIVING = (RUNNING, FAILING, RESUMING)
_SERVED = (ACCEPTED, RESERVING, RESUMING, RUNNING)

# fmt: off
SHIM_APPLICATION = Lifecycle(
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

PENDING, SCHEDULING, ALLOCATED, BOUND = "Pending", "Scheduling", "Allocated", "Bound"

INIT, ALLOCATE, BIND, FORGET = "init", "allocate", "bind", "forget"

#: states in which a pod waits for a place that it has asked for
WAITS = frozenset({PENDING, SCHEDULING})
#: states in which a pod takes up room on its node
ON_NODE = frozenset({ALLOCATED, BOUND, KILLING})
#: states in which a pod needs no place, or not any more
PLACED = ON_NODE | {KILLED, COMPLETED}

_UNPLACED = (NEW, PENDING, SCHEDULING)
_ASKED = (PENDING, SCHEDULING, ALLOCATED, BOUND)

# fmt: off
SHIM_TASK = Lifecycle(
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
        row(REJECT,   _UNPLACED,                        REJECTED),
        row(FAIL,     (*_UNPLACED, REJECTED, ALLOCATED), FAILED),
        row(FORGET,   (PENDING, SCHEDULING, ALLOCATED), NEW),
        row(COMPLETE, (*_UNPLACED, ALLOCATED, BOUND, KILLING, KILLED, REJECTED, FAILED), COMPLETED),
    ),
)
# fmt: on

#: the simulated resource manager's lifecycles by name
LIFECYCLES = {lifecycle.name: lifecycle for lifecycle in (SHIM_APPLICATION, SHIM_TASK)}
