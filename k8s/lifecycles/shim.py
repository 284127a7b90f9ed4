"""The lifecycles of the shim and of its recovery (section 9).

The shim is Waiting until it holds the lease, and fills its caches meanwhile. With the lease it is Syncing until
every reflector has delivered its first list, then Recovering until the core knows the cluster, and then
Serving. A core that was restarted makes it recover again, from the caches (K151). It is Stopped when the lease
is lost or when something makes no progress; the process then ends, and another one starts.

A recovery has four steps, so that no ask is decided before everything that runs is counted (K141): register;
submit the applications of all live pods; create all nodes, draining; report their pods. Each step waits for the
answers of the core, at most 60 s without progress (K142).
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from quadriga.base.times import SECOND
from quadriga.fsm import Entity, Lifecycle, ignored, row, unbounded, within
from quadriga.fsm.table import Effect, Fired, Info, Tone
from quadriga.k8s.lifecycles.effects import Recover, Serve, StopProcess, constant

RecoveryState = Literal["Registering", "Submitting", "Creating", "Reporting", "Recovered"]
RecoveryTrigger = Literal["progress", "done"]

# fmt: off
State = Literal[
    "Waiting", "Syncing", "Recovering", "Recovering_Registering", "Recovering_Submitting", "Recovering_Creating",
    "Recovering_Reporting", "Recovering_Recovered", "Serving", "Stopped",
]
Trigger = Literal["lead", "synced", "progress", "done", "serve", "forgotten", "stall", "lose"]
# fmt: on

WAITING: Final = "Waiting"
SYNCING: Final = "Syncing"
RECOVERING: Final = "Recovering"
SERVING: Final = "Serving"
STOPPED: Final = "Stopped"

REGISTERING: Final = "Registering"
SUBMITTING: Final = "Submitting"
CREATING: Final = "Creating"
REPORTING: Final = "Reporting"
RECOVERED: Final = "Recovered"

LEAD: Final = "lead"
SYNCED: Final = "synced"
PROGRESS: Final = "progress"
DONE: Final = "done"
SERVE: Final = "serve"
FORGOTTEN: Final = "forgotten"
STALL: Final = "stall"
LOSE: Final = "lose"

#: States in which nothing is sent to the core or to the API server.
SILENT: Final[frozenset[State]] = frozenset({WAITING, SYNCING, STOPPED})
#: States in which changes of objects are handled as they come; before, they wait.
SERVES: Final[frozenset[State]] = frozenset({SERVING})
#: States of a recovery under way.
RECOVERS: Final[frozenset[State]] = frozenset(
    {
        "Recovering_Registering",
        "Recovering_Submitting",
        "Recovering_Creating",
        "Recovering_Reporting",
        "Recovering_Recovered",
    }
)
#: The state of a recovery whose steps are all done.
ENDS_RECOVERY: Final[frozenset[State]] = frozenset({"Recovering_Recovered"})
#: States in which the core has not answered the registration.
REGISTERS: Final[frozenset[State]] = frozenset({"Recovering_Registering"})
#: States of a shim whose process ends.
ENDED: Final[frozenset[State]] = frozenset({STOPPED})
#: the states of the steps of a recovery, by step
STEPS: Final[dict[RecoveryState, State]] = {
    "Registering": "Recovering_Registering",
    "Submitting": "Recovering_Submitting",
    "Creating": "Recovering_Creating",
    "Reporting": "Recovering_Reporting",
}


class ShimFacts(Protocol):
    """The facts that guards read."""

    state: State

    @property
    def key(self) -> str: ...
    @property
    def has_synced(self) -> bool: ...  # every reflector has delivered its first list


def has_synced(shim: ShimFacts, info: Info) -> bool:
    """Every reflector has delivered its first list."""
    return shim.has_synced


def begin(recovery: Entity, fired: Fired) -> tuple[Effect, ...]:
    """Begin the step of the recovery that the new state names."""
    return (Recover(str(fired.target).rpartition("_")[2]),)


register = constant("register", Recover(REGISTERING))
serve = constant("serve", Serve())


def stop(shim: ShimFacts, fired: Fired) -> tuple[Effect, ...]:
    """End the process with code 1 and the reason."""
    return (StopProcess(1, fired.info["reason"]),)


# fmt: off
RECOVERY: Final[Lifecycle[RecoveryState, RecoveryTrigger]] = Lifecycle(
    "k8s-recovery",
    initial=REGISTERING,
    final=(RECOVERED,),
    lasts={
        REGISTERING: within(60 * SECOND),
        SUBMITTING:  within(60 * SECOND),
        CREATING:    within(60 * SECOND),
        REPORTING:   within(60 * SECOND),
    },
    rows=(
        #   trigger   from         to           emit
        row(DONE,     REGISTERING, SUBMITTING,  emit=begin),
        row(DONE,     SUBMITTING,  CREATING,    emit=begin),
        row(DONE,     CREATING,    REPORTING,   emit=begin),
        row(DONE,     REPORTING,   RECOVERED),
        row(PROGRESS, SUBMITTING,  SUBMITTING),
        row(PROGRESS, CREATING,    CREATING),
        row(PROGRESS, REPORTING,   REPORTING),
    ),
)

SHIM: Final[Lifecycle[State, Trigger, ShimFacts]] = Lifecycle(
    "k8s-shim",
    initial=WAITING,
    final=(STOPPED,),
    lasts={
        WAITING: unbounded(LEAD),
        SYNCING: unbounded(SYNCED),
        RECOVERING: unbounded(SERVE),
        **{state: within(60 * SECOND, then=STALL) for state in STEPS.values()},
        "Recovering_Recovered": within(60 * SECOND, then=STALL),
        SERVING: unbounded(LOSE),
    },
    rows=(
        #   trigger      from                         to           guard             emit
        row(LEAD,        WAITING,                     RECOVERING,  when=has_synced,  emit=register),
        row(LEAD,        WAITING,                     SYNCING),
        ignored(LEAD,    (SYNCING, RECOVERING, SERVING), why="it holds the lease already"),
        ignored(SYNCED,  WAITING,                     why="the caches are filled before the lease is held"),
        row(SYNCED,      SYNCING,                     RECOVERING,                    emit=register),
        ignored(SYNCED,  (RECOVERING, SERVING),       why="a later list changes nothing"),
        row(SERVE,       "Recovering_Recovered",      SERVING,                       emit=serve),
        row(FORGOTTEN,   (RECOVERING, SERVING),       RECOVERING,                    emit=register),
        ignored(FORGOTTEN, (WAITING, SYNCING),        why="the core has not been told anything"),
        row(STALL,       RECOVERING,                  STOPPED,                       emit=stop),
        row(LOSE,        (WAITING, SYNCING, RECOVERING, SERVING), STOPPED,           emit=stop),
    ),
    inside={RECOVERING: RECOVERY},
)

#: The tone of each state on the pages.
TONES: Final[dict[State, Tone]] = SHIM.total("TONES", {
    WAITING: "wait",
    SYNCING: "wait",
    "Recovering_Registering": "wait",
    "Recovering_Submitting": "wait",
    "Recovering_Creating": "wait",
    "Recovering_Reporting": "wait",
    "Recovering_Recovered": "wait",
    SERVING: "good",
    STOPPED: "bad",
})
# fmt: on
