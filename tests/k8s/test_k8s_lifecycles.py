"""The shim's tables: every row, every illegal pair, and what ours does where the reference is wrong (K27 to
K39)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, get_args

import pytest

from quadriga.fsm import InvalidTransition, Lifecycle, Row, Timers, path_to, tour
from quadriga.fsm.pytest_plugin import track
from quadriga.fsm.table import MINUTE, SECOND
from quadriga.k8s.lifecycles import (
    APPLICATION,
    LIFECYCLES,
    PLACEHOLDER,
    RECOVERY,
    REFLECTOR,
    SHIM,
    TASK,
)
from quadriga.k8s.lifecycles import application as application_fsm
from quadriga.k8s.lifecycles import effects as all_effects
from quadriga.k8s.lifecycles import task as task_fsm
from quadriga.k8s.lifecycles.effects import (
    AbandonAssumption,
    AddApplication,
    AnnouncePlaceholder,
    AskAgain,
    AskForPods,
    BindPod,
    CancelBind,
    ConfirmRelease,
    CreateAgain,
    CreateMissing,
    CreatePod,
    DeletePlaceholders,
    DeletePod,
    DropWaitingPlaceholders,
    FailPods,
    GiveBack,
    HasEnded,
    MarkResumed,
    Reconsider,
    Recover,
    RefuseNode,
    ReleaseAsk,
    ReleaseForeign,
    ReleasePod,
    RemoveApplication,
    ReportForeign,
    ReportPod,
    Say,
    SendAsk,
    Serve,
    StopProcess,
    Warn,
)

for lifecycle in LIFECYCLES.values():
    track(lifecycle)

ROWS = [(each, row) for each in LIFECYCLES.values() for row in each.rows]
ILLEGAL = [
    (each, state, trigger)
    for each in LIFECYCLES.values()
    for state in each.states
    for trigger in each.triggers()
    if not each.allows(state, trigger)
]

#: what every emitter may read
INFO: Mapping[str, Any] = {
    "group": "workers",
    "name": "tg-1",
    "node": "n1",
    "uuid": "u-0",
    "key": "pod-1",
    "type": task_fsm.TIMEOUT,
    "reason": "because",
    "gates": "quota/wait",
    "obstacle": "",
    "refusal": "",
    "serving": True,
}


@dataclass
class Thing:
    """An application, a task, or whatever else has a lifecycle here."""

    state: str
    key: str = "thing"
    is_gang: bool = False
    hard: bool = False
    timeout_over: bool = False
    has_started: bool = False
    groups_full: bool = False
    has_placeholders: bool = False
    has_pods: bool = True
    core_waits: bool = False
    core_has_pods: bool = True
    would_come_again: bool = False
    delay: int = 0
    is_placeholder: bool = False
    group: str = ""
    node: str = ""
    uuid: str = ""
    release_type: int = 0
    is_foreign: bool = False
    app_has_ended: bool = False
    may_try_again: bool = False
    has_version: bool = False
    has_synced: bool = False
    is_cordoned: bool = False
    history: dict[str, str] = field(default_factory=dict)


#: facts and information with which the guard of this name agrees, and with which it does not
AGREES: dict[str, dict[str, Any]] = {
    "was_turned_down": {"delay": SECOND},
    "would_come_again": {"would_come_again": True},
    "timed_out_hard": {"is_gang": True, "timeout_over": True, "hard": True},
    "reserves": {"is_gang": True},
    "timed_out_soft": {"is_gang": True, "timeout_over": True},
    "groups_full": {"groups_full": True},
    "unaware": {"core_waits": True},
    "none_left": {},
    "has_no_pods": {"has_pods": False},
    "core_has_none": {"core_has_pods": False},
    "obstructed": {"info": {"obstacle": "claim data is missing"}},
    "refused": {"info": {"refusal": "port 80 is taken"}},
    "same_allocation": {"uuid": "u-0"},
    "is_placeholder": {"is_placeholder": True},
    "may_try_again": {"may_try_again": True},
    "has_allocation": {"uuid": "u-0"},
    "is_foreign": {"is_foreign": True},
    "app_has_ended": {"app_has_ended": True},
    "is_unknown_there": {},
    "has_version": {"has_version": True},
    "may_open": {"info": {"serving": True}},
    "is_cordoned": {"is_cordoned": True},
    "has_synced": {"has_synced": True},
}
REFUSES: dict[str, dict[str, Any]] = {
    "none_left": {"has_placeholders": True},
    "may_open": {"is_cordoned": True},
    "unaware": {},
    "core_has_none": {"core_has_pods": True},
    "is_unknown_there": {"uuid": "u-0"},
    "same_allocation": {"uuid": "u-9"},
}


def prepared(lifecycle: Lifecycle, row: Row) -> tuple[Thing, dict[str, Any]]:
    """A thing for which exactly this row is taken."""
    facts: dict[str, Any] = {}
    for other in lifecycle.rows_from(row.source, row.trigger):
        if other is row:
            break
        facts.update(REFUSES.get(other.guard.__name__, {}))  # type: ignore[union-attr]
    if row.guard is not None:
        facts.update(AGREES[row.guard.__name__])
    info = {**INFO, **facts.pop("info", {})}
    return Thing(str(row.source), **facts), info


@pytest.mark.parametrize(("lifecycle", "row"), ROWS, ids=str)
def test_every_row_leads_where_it_says(lifecycle: Lifecycle, row: Row) -> None:
    thing, info = prepared(lifecycle, row)
    assert lifecycle.choose(thing, row.trigger, info) is row
    effects = lifecycle.fire(thing, row.trigger, **info)
    assert thing.state == (row.target or row.source)
    assert {type(each).__name__ for each in effects} <= set(all_effects.__all__)


@pytest.mark.parametrize(("lifecycle", "state", "trigger"), ILLEGAL, ids=str)
def test_everything_else_is_refused(lifecycle: Lifecycle, state: str, trigger: str) -> None:
    thing = Thing(state)
    with pytest.raises(InvalidTransition):
        lifecycle.fire(thing, trigger, **INFO)
    assert thing.state == state


@pytest.mark.parametrize(
    "name", ["application", "task", "node", "placeholder", "reflector", "shim"]
)
def test_the_types_name_every_state_and_trigger_of_the_table(name: str) -> None:
    module = import_module(f"quadriga.k8s.lifecycles.{name}")
    table = LIFECYCLES[f"k8s-{name}"]
    assert sorted(get_args(module.State)) == sorted([*table.states, *table.composites])
    assert sorted(get_args(module.Trigger)) == sorted(table.triggers())
    assert set(module.TONES) == set(table.states)


@pytest.mark.parametrize("lifecycle", LIFECYCLES.values(), ids=lambda each: each.name)
def test_a_walk_takes_every_row(lifecycle: Lifecycle) -> None:
    assert {step for walk in tour(lifecycle) for step in walk} == set(lifecycle.rows)


@pytest.mark.parametrize("lifecycle", [APPLICATION, TASK], ids=lambda each: each.name)
def test_what_arrives_late_is_never_an_error(lifecycle: Lifecycle) -> None:
    """Messages of the core and events of pods may arrive in every state that is not final."""
    own = {  # fired by the shim itself, which asks the table first
        application_fsm.ACCEPT, application_fsm.REJECT, application_fsm.OVERDUE,
        task_fsm.GATE, task_fsm.UNGATE, task_fsm.ASK, task_fsm.RECOVER, task_fsm.AGAIN,
    }  # fmt: skip
    heard = set(lifecycle.triggers()) - own - {application_fsm.RELEASE}
    for state in set(lifecycle.states) - set(lifecycle.final):
        assert heard <= set(lifecycle.triggers(state)), state


def fired(lifecycle: Lifecycle, thing: Thing, trigger: str, **info: Any) -> tuple[Any, ...]:
    return lifecycle.fire(thing, trigger, **info)


# -- applications ------------------------------------------------------------------------------


def test_k32_an_ordinary_application_runs_when_it_is_accepted() -> None:
    app = Thing("New")
    assert fired(APPLICATION, app, "submit") == (AddApplication(),)
    assert fired(APPLICATION, app, "accept") == (AskForPods(),)
    assert app.state == "Running"
    assert fired(APPLICATION, app, "complete") == (DeletePlaceholders(),)
    app.has_pods = False
    assert fired(APPLICATION, app, "forget") == ()
    assert app.state == "Removed"


def test_k32_a_gang_reserves_until_every_group_is_full() -> None:
    app = Thing("Submitted", is_gang=True)
    assert fired(APPLICATION, app, "accept") == (CreateMissing(),)
    assert app.state == "Reserving"
    first = fired(APPLICATION, app, "placeholder_bound", name="tg-1", group="w", node="n1")
    assert [each.action for each in first] == ["PlaceholderAllocated"]
    assert app.state == "Reserving"
    app.groups_full = True
    last = fired(APPLICATION, app, "placeholder_bound", name="tg-2", group="w", node="n2")
    assert [getattr(each, "action", each) for each in last] == [
        "PlaceholderAllocated",
        "GangReservationComplete",
        AskForPods(),
    ]
    assert app.state == "Running"


@pytest.mark.parametrize("state", ["Submitted", "Reserving", "Resuming"])
def test_k27_a_release_never_changes_the_state(state: str) -> None:
    app = Thing(state, is_gang=True)
    effects = fired(APPLICATION, app, "release", key="pod-1", type=task_fsm.PREEMPTED_BY_SCHEDULER)
    assert effects == (ReleasePod("pod-1", task_fsm.PREEMPTED_BY_SCHEDULER),)
    assert app.state == state


def test_k146_a_member_that_somebody_else_placed_starts_the_gang() -> None:
    app = Thing("Reserving", is_gang=True)
    assert fired(APPLICATION, app, "member_placed") == (DropWaitingPlaceholders(), AskForPods())
    assert app.state == "Running"


@pytest.mark.parametrize("state", ["New", "Submitted", "Reserving", "Resuming", "Running"])
def test_k28_a_failure_is_legal_before_every_end(state: str) -> None:
    app = Thing(state)
    assert fired(APPLICATION, app, "fail", reason="killed by hand") == (
        DeletePlaceholders(),
        FailPods("killed by hand"),
    )
    assert app.state == "Failing"


def test_k29_failing_and_failed_are_two_triggers() -> None:
    app = Thing("Failing")
    assert fired(APPLICATION, app, "fail", reason="again") == ()
    assert app.state == "Failing"
    assert fired(APPLICATION, app, "failed", reason="") == ()
    assert app.state == "Failed"


def test_k29_completed_waits_for_the_last_pod() -> None:
    app = Thing("Running")
    fired(APPLICATION, app, "complete")
    assert fired(APPLICATION, app, "forget") == ()
    assert app.state == "Completed"
    app.has_pods = False
    fired(APPLICATION, app, "forget")
    assert app.state == "Removed"


@pytest.mark.parametrize("state", ["Reserving", "Running"])
def test_k29_resuming_is_obeyed_while_reserving_and_while_running(state: str) -> None:
    app = Thing(state, is_gang=True, has_placeholders=True)
    said, *rest = fired(APPLICATION, app, "resume", reason="ResourceReservationTimeout")
    assert isinstance(said, Say)
    assert (said.action, said.warning) == ("GangSchedulingFailed", True)
    assert rest == [MarkResumed(), DeletePlaceholders()]
    assert fired(APPLICATION, app, "settled") == ()
    assert app.state == "Resuming"
    app.has_placeholders = False
    assert fired(APPLICATION, app, "settled") == (AskForPods(again=True),)
    assert app.state == "Running"


def test_k60_an_id_that_was_turned_down_is_submitted_after_a_while() -> None:
    app = Thing("New", delay=4 * SECOND)
    assert fired(APPLICATION, app, "submit") == ()
    assert app.state == "Held"
    assert fired(APPLICATION, app, "submit") == ()
    assert fired(APPLICATION, app, "again") == (AddApplication(),)
    assert app.state == "Submitted"


@pytest.mark.parametrize("state", ["Rejected", "Completed", "Failed"])
def test_k30_an_ended_application_goes_with_its_last_pod(state: str) -> None:
    app = Thing(state)
    fired(APPLICATION, app, "forget")
    assert app.state == state
    app.has_pods = False
    fired(APPLICATION, app, "forget")
    assert app.state == "Removed"


def test_k33_an_application_whose_pods_vanish_early_is_removed() -> None:
    new = Thing("New")
    assert fired(APPLICATION, new, "idle") == (DeletePlaceholders(),)
    submitted = Thing("Submitted")
    assert fired(APPLICATION, submitted, "idle") == (RemoveApplication(), DeletePlaceholders())
    assert (new.state, submitted.state) == ("Removed", "Removed")


def test_k178_an_application_that_the_core_has_no_pods_of_is_removed() -> None:
    app = Thing("Running", core_has_pods=False)
    assert fired(APPLICATION, app, "idle") == (RemoveApplication(), DeletePlaceholders())
    assert app.state == "Removed"


@pytest.mark.parametrize("state", ["Running", "Failing"])
def test_k78_placeholders_go_with_the_last_real_pod(state: str) -> None:
    app = Thing(state)
    assert fired(APPLICATION, app, "idle") == (DeletePlaceholders(),)
    assert app.state == state


def test_k34_a_rejection_names_its_reason_as_a_whole() -> None:
    app = Thing("Submitted")
    assert fired(APPLICATION, app, "reject", reason="queue: root.a: is full") == (
        DeletePlaceholders(),
        FailPods("ApplicationRejected: queue: root.a: is full"),
    )
    assert app.state == "Rejected"


def test_k72_a_refused_placeholder_makes_the_gang_an_ordinary_application() -> None:
    app = Thing("Reserving", is_gang=True, has_placeholders=True, core_waits=True)
    said, *rest = fired(APPLICATION, app, "placeholders_failed", reason="quota of the namespace")
    assert isinstance(said, Say)
    assert said.action == "PlaceholderCreateFailed"
    assert "quota of the namespace" in said.note
    assert rest == [MarkResumed(), DeletePlaceholders()]
    app.has_placeholders = False
    # the core would hold the real pods back, so it is told anew
    assert fired(APPLICATION, app, "settled") == (RemoveApplication(), AddApplication(gang=False))
    assert app.state == "Submitted"
    app.is_gang = False
    assert fired(APPLICATION, app, "accept") == (AskForPods(),)


def test_k77_at_a_start_after_the_timeout_a_hard_gang_fails() -> None:
    app = Thing("Submitted", is_gang=True, hard=True, timeout_over=True)
    first, second, third, last = fired(APPLICATION, app, "accept")
    assert (first, second, last) == (RemoveApplication(), DeletePlaceholders(), HasEnded())
    assert isinstance(third, FailPods)
    assert application_fsm.TIMED_OUT in third.reason
    assert app.state == "Failing"


def test_k77_at_a_start_after_the_timeout_a_soft_gang_runs() -> None:
    app = Thing("Submitted", is_gang=True, timeout_over=True)
    said, *rest = fired(APPLICATION, app, "accept")
    assert isinstance(said, Say)
    assert said.action == "PlaceholderTimeout"
    assert rest == [DeletePlaceholders(), AskForPods()]
    assert app.state == "Running"


def test_k146_a_gang_with_a_placed_member_runs() -> None:
    app = Thing("Submitted", is_gang=True, hard=True, timeout_over=True, has_started=True)
    assert fired(APPLICATION, app, "accept") == (AskForPods(),)
    assert app.state == "Running"


def test_k80_a_lost_placeholder_is_created_again_while_it_is_needed() -> None:
    app = Thing("Reserving", is_gang=True)
    assert fired(APPLICATION, app, "placeholder_lost", group="w") == (CreateAgain("w"),)
    app.state = "Running"
    assert fired(APPLICATION, app, "placeholder_lost", group="w") == ()


def test_k151_a_forgotten_application_is_submitted_again() -> None:
    app = Thing("Reserving", is_gang=True)
    assert fired(APPLICATION, app, "forgotten") == (AddApplication(),)
    assert app.state == "Submitted"
    failing = Thing("Failing")
    assert fired(APPLICATION, failing, "forgotten") == ()
    assert failing.state == "Failed"


def test_the_time_limits_of_an_application_are_declared() -> None:
    timers = Timers()
    app = Thing("New")
    timers.fire(APPLICATION, app, "submit", 0)
    assert timers.next_deadline() == 60 * SECOND
    (due,) = timers.due(60 * SECOND)
    (effect,) = timers.fire(APPLICATION, app, due.trigger, 60 * SECOND)
    assert effect == Warn("application thing has been Submitted for longer than expected")
    assert timers.next_deadline() == 3 * MINUTE
    assert set(APPLICATION.timed) == {"Held", "Submitted", "Reserving", "Resuming", "Failing"}


# -- tasks -------------------------------------------------------------------------------------


def test_k37_the_life_of_a_pod() -> None:
    task = Thing("New")
    sent, said = fired(TASK, task, "ask")
    assert sent == SendAsk()
    assert said.reason == "Scheduling"
    assert fired(TASK, task, "allocated", node="n1", uuid="u-0") == (BindPod(),)
    task.node, task.uuid = "n1", "u-0"
    (scheduled,) = fired(TASK, task, "bound")
    assert (scheduled.reason, "n1" in scheduled.note) == ("Scheduled", True)
    assert fired(TASK, task, "ended") == (ConfirmRelease(task_fsm.STOPPED_BY_RM),)
    assert task.state == "Ended"


def test_k37_a_member_of_a_gang_says_so() -> None:
    effects = fired(TASK, Thing("New", group="workers"), "ask")
    assert [each.action for each in effects[1:]] == ["Scheduling", "TaskGroupMatch"]
    effects = fired(TASK, Thing("New", group="workers", is_placeholder=True), "ask")
    assert [each.action for each in effects[1:]] == ["Scheduling"]


def test_k39_the_end_is_told_with_the_type_of_the_release() -> None:
    task = Thing("Bound", node="n1", uuid="u-0", is_placeholder=True)
    released = {"type": task_fsm.PLACEHOLDER_REPLACED}
    assert fired(TASK, task, "release", **released) == (DeletePod(),)
    task.release_type = task_fsm.PLACEHOLDER_REPLACED
    assert fired(TASK, task, "release", **released) == ()
    assert fired(TASK, task, "ended") == (ConfirmRelease(task_fsm.PLACEHOLDER_REPLACED),)


def test_k113_a_victim_of_preemption_hears_why() -> None:
    task = Thing("Bound", node="n1", uuid="u-0")
    said, delete = fired(TASK, task, "release", type=task_fsm.PREEMPTED_BY_SCHEDULER)
    assert (said.reason, delete) == ("Preempted", DeletePod(preempted=True))


def test_k100_a_refused_assumption_asks_again_without_a_write() -> None:
    task = Thing("Asked")
    said, *rest = fired(TASK, task, "allocated", node="n1", uuid="u-0", refusal="port 80 is taken")
    assert (said.reason, "port 80 is taken" in said.note) == ("AssumePodFailed", True)
    assert rest == [RefuseNode("n1"), AskAgain("u-0")]
    assert task.state == "Asked"


def test_k108_a_failed_bind_asks_again() -> None:
    task = Thing("Binding", node="n1", uuid="u-0")
    said, *rest = fired(TASK, task, "bind_failed", reason="500", step="bind")
    assert said.reason == "PodBindFailure"
    assert rest == [AbandonAssumption(), RefuseNode("n1"), AskAgain("u-0")]
    assert task.state == "Asked"
    task = Thing("Binding", node="n1", uuid="u-0")
    said, *rest = fired(TASK, task, "bind_failed", reason="no disk", step="volumes")
    assert said.reason == "PodVolumesBindFailure"


@pytest.mark.parametrize("state", ["New", "Gated", "Failed", "Releasing"])
def test_k111_an_allocation_that_comes_too_late_is_given_back(state: str) -> None:
    task = Thing(state)
    effects = fired(TASK, task, "allocated", node="n1", uuid="u-0")
    assert effects == (AbandonAssumption(), GiveBack("u-0"))
    assert task.state == state


def test_k111_a_second_allocation_is_given_back_and_the_first_one_stays() -> None:
    task = Thing("Bound", node="n1", uuid="u-0")
    assert fired(TASK, task, "allocated", node="n1", uuid="u-0") == ()
    assert fired(TASK, task, "allocated", node="n2", uuid="u-1") == (GiveBack("u-1"),)


@pytest.mark.parametrize(
    ("state", "uuid", "effects"),
    [
        ("Asked", "", (ReportPod(),)),
        ("Binding", "u-0", (AbandonAssumption(), GiveBack("u-0"), ReportPod())),
    ],
)
def test_k37_a_pod_that_somebody_else_bound_is_reported_there(
    state: str, uuid: str, effects: tuple[Any, ...]
) -> None:
    task = Thing(state, uuid=uuid)
    assert fired(TASK, task, "elsewhere", node="n2") == effects
    assert task.state == "Recovering"
    assert fired(TASK, task, "allocated", node="n2", uuid="u-1") == ()
    assert task.state == "Bound"


def test_k37_a_released_ask_of_a_placeholder_deletes_it_and_of_a_real_pod_waits() -> None:
    placeholder = Thing("Asked", is_placeholder=True)
    said, delete = fired(TASK, placeholder, "ask_released")
    assert (said.action, said.originator, delete) == ("PlaceholderTimeOut", True, DeletePod())
    assert placeholder.state == "Releasing"
    real = Thing("Asked")
    assert fired(TASK, real, "ask_released") == ()
    assert real.state == "New"


def test_k88_an_obstacle_is_named_and_nothing_is_asked() -> None:
    task = Thing("New")
    (said,) = fired(TASK, task, "ask", obstacle="claim data is missing")
    assert (said.reason, said.warning) == ("FailedScheduling", True)
    assert task.state == "New"


def test_k89_gates_hold_a_pod_back() -> None:
    task = Thing("New")
    (said,) = fired(TASK, task, "gate", gates="quota/wait")
    assert "quota/wait" in said.note
    assert fired(TASK, task, "ungate") == (Reconsider(),)
    assert task.state == "New"


def test_k90_the_ask_of_a_pod_that_is_deleted_is_taken_back() -> None:
    task = Thing("Asked")
    assert fired(TASK, task, "withdraw") == (ReleaseAsk(),)


def test_k97_a_removed_node_undoes_the_assumption() -> None:
    task = Thing("Binding", node="n1", uuid="u-0")
    assert fired(TASK, task, "node_lost") == (CancelBind(), AbandonAssumption())
    task.uuid = ""
    lost = Thing("Binding", node="n1")
    _, *rest = fired(TASK, task, "bind_failed", reason="the node is removed")
    assert rest == [AbandonAssumption(), RefuseNode("n1"), AskAgain("")]
    # the write had arrived: the pod waits for the node to come back
    assert fired(TASK, lost, "bound") == (ReportPod(),)
    assert lost.state == "Recovering"


def test_k143_a_running_pod_that_the_core_rejects_counts_as_foreign() -> None:
    task = Thing("Recovering", node="n1")
    said, report = fired(TASK, task, "rejected", reason="no such queue")
    assert (said.reason, report) == ("TaskRejected", ReportForeign())
    assert fired(TASK, task, "again") == ()
    task.is_foreign = True
    assert fired(TASK, task, "ended") == (ConfirmRelease(task_fsm.STOPPED_BY_RM),)


@pytest.mark.parametrize("state", ["New", "Gated", "Failed"])
def test_k96_a_pod_that_is_placed_after_the_end_of_its_application_counts_as_foreign(
    state: str,
) -> None:
    task = Thing(state, app_has_ended=True)
    said, report = fired(TASK, task, "recover")
    assert (said.reason, report, task.state) == ("TaskRejected", ReportForeign(), "Failed")
    # its application starts anew
    task.is_foreign, task.app_has_ended = True, False
    assert fired(TASK, task, "recover") == (ReportPod(), ReleaseForeign())
    assert task.state == "Recovering"


def test_k37_a_rejected_pod_is_tried_again_after_30_seconds() -> None:
    timers = Timers()
    task = Thing("Asked")
    timers.fire(TASK, task, "rejected", 0, reason="no")
    assert timers.next_deadline() == 30 * SECOND
    task.may_try_again = True
    (due,) = timers.due(30 * SECOND)
    assert timers.fire(TASK, task, due.trigger, 30 * SECOND) == (Reconsider(),)
    assert task.state == "New"


def test_a_discarded_placeholder_takes_its_ask_back_at_once() -> None:
    task = Thing("Asked", is_placeholder=True)
    assert fired(TASK, task, "discard") == (ReleaseAsk(), DeletePod())
    assert fired(TASK, task, "ended") == ()


def test_a_placeholder_announces_that_it_is_bound() -> None:
    task = Thing("Binding", node="n1", uuid="u-0", is_placeholder=True)
    assert fired(TASK, task, "bound")[-1] == AnnouncePlaceholder()
    found = Thing("Recovering", node="n1", is_placeholder=True)
    assert fired(TASK, found, "allocated", node="n1", uuid="u-0") == (AnnouncePlaceholder(),)


# -- the others --------------------------------------------------------------------------------


def test_k72_a_name_that_is_taken_is_replaced() -> None:
    placeholder = Thing("Waiting")
    assert fired(PLACEHOLDER, placeholder, "create") == (CreatePod(),)
    assert fired(PLACEHOLDER, placeholder, "name_taken") == (CreatePod(),)
    fired(PLACEHOLDER, placeholder, "created")
    fired(PLACEHOLDER, placeholder, "seen")
    assert placeholder.state == "Seen"


def test_k22_a_reflector_goes_on_where_it_was() -> None:
    reflector = Thing("Listing")
    for trigger, state in (
        ("failed", "Backoff"), ("retry", "Listing"), ("expired", "Listing"), ("listed", "Watching"),
    ):  # fmt: skip
        fired(REFLECTOR, reflector, trigger)
        assert reflector.state == state
    reflector.has_version = True
    fired(REFLECTOR, reflector, "failed")
    assert fired(REFLECTOR, reflector, "retry") == (all_effects.Watch(),)
    assert fired(REFLECTOR, reflector, "expired") == (all_effects.List(),)


def test_k141_the_steps_of_a_recovery() -> None:
    shim = Thing("Waiting", has_synced=True)
    assert fired(SHIM, shim, "lead") == (Recover("Registering"),)
    steps = []
    for _ in range(4):
        steps.extend(fired(SHIM, shim, "done"))
    assert steps == [Recover("Submitting"), Recover("Creating"), Recover("Reporting")]
    assert fired(SHIM, shim, "serve") == (Serve(),)
    assert shim.state == "Serving"
    assert [row.trigger for row in path_to(RECOVERY, "Recovered")] == ["done"] * 4


def test_k142_a_recovery_without_progress_stops_the_process() -> None:
    timers = Timers()
    shim = Thing("Syncing")
    timers.fire(SHIM, shim, "synced", 0)
    timers.fire(SHIM, shim, "done", 10 * SECOND)
    timers.fire(SHIM, shim, "progress", 30 * SECOND)
    assert timers.next_deadline() == 90 * SECOND
    (due,) = timers.due(90 * SECOND)
    assert timers.fire(SHIM, shim, due.trigger, 90 * SECOND, reason="node n1 has no answer") == (
        StopProcess(1, "node n1 has no answer"),
    )


def test_k11_a_lost_lease_stops_the_process() -> None:
    shim = Thing("Serving")
    assert fired(SHIM, shim, "lose", reason="another one leads") == (
        StopProcess(1, "another one leads"),
    )
