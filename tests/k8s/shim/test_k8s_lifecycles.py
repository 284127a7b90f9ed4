"""The shim's tables: every row, every illegal pair, and what ours does where the reference is wrong (K27 to
K39)."""

from collections.abc import Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from quadriga.base.times import MINUTE, SECOND
from quadriga.fsm import InvalidTransition, Lifecycle, Row, Timers, path_to, tour
from quadriga.fsm.pytest_plugin import track
from quadriga.k8s.lifecycles import (
    APPLICATION,
    LIFECYCLES,
    RECOVERY,
    SHIM,
    TASK,
)
from quadriga.k8s.lifecycles import application as application_fsm
from quadriga.k8s.lifecycles import effects as fx
from quadriga.k8s.lifecycles import task as task_fsm
from quadriga.k8s.shim import shim
from quadriga.k8s.transport import connections

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
    "blocked_reason": "",
    "refusal": "",
    "serving": True,
    "why": "reset",
}


#: of an application, a task, or whatever else has a lifecycle here
NOT_SO = """
    is_gang hard timeout_over has_started groups_full has_placeholders has_followers core_waits places_whole
    would_come_again is_placeholder is_foreign app_has_ended may_try_again has_version has_synced is_cordoned
    streams used lasts_to_the_end
""".split()
FACTS: dict[str, Any] = dict.fromkeys(NOT_SO, False) | dict.fromkeys(["group", "node", "uuid"], "")
FACTS |= {"key": "thing", "delay": 0, "release_type": 0, "has_pods": True, "core_has_pods": True}


class Thing(SimpleNamespace):
    def __init__(self, state: str, **facts: Any) -> None:
        super().__init__(state=state, **{**FACTS, **facts, "history": {}})


#: facts and information with which the guard of this name agrees, and with which it does not
AGREES: dict[str, dict[str, Any]] = {
    "has_to_wait": {"delay": SECOND},
    "would_come_again": {"would_come_again": True},
    "timed_out_hard": {"is_gang": True, "timeout_over": True, "hard": True},
    "reserves": {"is_gang": True},
    "timed_out_soft": {"is_gang": True, "timeout_over": True},
    "groups_full": {"groups_full": True},
    "core_waits": {"core_waits": True},
    "has_placeholders": {"has_placeholders": True},
    "has_pods": {},
    "ends_at_once": {"core_has_pods": False},
    "places_whole": {"places_whole": True},
    "is_hard": {"hard": True},
    "blocked": {"info": {"blocked_reason": "claim data is missing"}},
    "refused": {"info": {"refusal": "port 80 is taken"}},
    "same_allocation": {"uuid": "u-0"},
    "is_placeholder": {"is_placeholder": True},
    "may_try_again": {"may_try_again": True},
    "has_allocation": {"uuid": "u-0"},
    "is_foreign": {"is_foreign": True},
    "app_has_ended": {"app_has_ended": True},
    "not has_allocation": {},
    "has_version": {"has_version": True},
    "may_open": {"info": {"serving": True}},
    "is_cordoned": {"is_cordoned": True},
    "has_synced": {"has_synced": True},
    "streams": {"streams": True},
    "is_whole": {"lasts_to_the_end": True, "info": {"why": ""}},
}
REFUSES: dict[str, dict[str, Any]] = {
    "may_open": {"is_cordoned": True},
    "has_pods": {"has_pods": False},
    "ends_at_once": {"core_has_pods": True},
    "not has_allocation": {"uuid": "u-0"},
    "same_allocation": {"uuid": "u-9"},
}


def prepared(lifecycle: Lifecycle, row: Row) -> tuple[Thing, dict[str, Any]]:
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
    assert {type(each).__module__ for each in effects} <= {fx.__name__}


@pytest.mark.parametrize(("lifecycle", "state", "trigger"), ILLEGAL, ids=str)
def test_everything_else_is_refused(lifecycle: Lifecycle, state: str, trigger: str) -> None:
    thing = Thing(state)
    with pytest.raises(InvalidTransition):
        lifecycle.fire(thing, trigger, **INFO)
    assert thing.state == state


@pytest.mark.parametrize(
    "name", ["application", "task", "node", "placeholder", "reflector", "connection", "shim"]
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
        application_fsm.WITHDRAW, task_fsm.GATE, task_fsm.UNGATE, task_fsm.ASK, task_fsm.RECOVER, task_fsm.AGAIN,
    }  # fmt: skip
    heard = set(lifecycle.triggers()) - own - {application_fsm.RELEASE}
    for state in set(lifecycle.states) - set(lifecycle.final):
        assert heard <= set(lifecycle.triggers(state)), state


# -- single steps ------------------------------------------------------------------------------


class like:
    """An effect of this type with these attributes; texts in ``note`` and ``reason`` may be part of them."""

    def __init__(self, kind: type, **attributes: Any) -> None:
        self.kind, self.attributes = kind, attributes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, self.kind) and all(
            value in getattr(other, name)
            if name in ("note", "reason")
            else value == getattr(other, name)
            for name, value in self.attributes.items()
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self.kind.__name__} {self.attributes}"


def says(**attributes: Any) -> like:
    return like(fx.Say, **attributes)


def step(
    lifecycle: Lifecycle, thing: Thing, trigger: str, to: str, *effects: Any, id: str, **info: Any
) -> Any:
    return pytest.param(lifecycle, thing, trigger, info, to, effects, id=id)


A, T = APPLICATION, TASK
RESUMES = (fx.MarkResumed(), fx.DeletePlaceholders())
FIRST = {"node": "n1", "uuid": "u-0"}
SECOND_ONE = {"node": "n2", "uuid": "u-1"}
STOPPED, REPLACED = task_fsm.STOPPED_BY_RM, task_fsm.PLACEHOLDER_REPLACED
PREEMPTED, TIMED_OUT = task_fsm.PREEMPTED_BY_SCHEDULER, application_fsm.TIMED_OUT

# fmt: off
STEPS = [
    # -- applications
    step(A, Thing("New"), "submit", "Submitted", fx.AddApplication(), id="K32 new"),
    step(A, Thing("Submitted"), "accept", "Running", fx.AskForPods(), id="K32 accepted"),
    step(A, Thing("Running"), "complete", "Completed", fx.DeletePlaceholders(), id="K32 complete"),
    step(A, Thing("Submitted", is_gang=True), "accept", "Reserving", fx.CreateMissing(), id="K32 a gang reserves"),
    step(A, Thing("Reserving", is_gang=True), "placeholder_bound", "Reserving", says(action="PlaceholderAllocated"),
         id="K32 not yet full", name="tg-1", group="w", node="n1"),
    step(A, Thing("Reserving", is_gang=True, groups_full=True), "placeholder_bound", "Running",
         says(action="PlaceholderAllocated"), says(action="GangReservationComplete"), fx.AskForPods(),
         id="K32 until every group is full", name="tg-2", group="w", node="n2"),
    *(step(A, Thing(state, is_gang=True), "release", state, fx.ReleasePod("pod-1", PREEMPTED),
           id="K27 a release never changes the state", key="pod-1", type=PREEMPTED)
      for state in ("Submitted", "Reserving", "Resuming")),
    *(step(A, Thing(state), "fail", "Failing", fx.DeletePlaceholders(), fx.FailPods("killed by hand"),
           id="K28 a failure is legal before every end", reason="killed by hand")
      for state in ("New", "Submitted", "Reserving", "Resuming", "Running")),
    step(A, Thing("Failing"), "fail", "Failing", id="K29 failing is not failed", reason="again"),
    step(A, Thing("Failing"), "failed", "Failed", id="K29 failed", reason=""),
    *(step(A, Thing(state, is_gang=True, has_placeholders=True), "resume", "Resuming",
           says(action="GangSchedulingFailed", warning=True), *RESUMES,
           id="K29 resuming is obeyed while reserving and while running", reason="ResourceReservationTimeout")
      for state in ("Reserving", "Running")),
    step(A, Thing("Resuming", is_gang=True, has_placeholders=True), "settled", "Resuming", id="K29 some are left"),
    step(A, Thing("Resuming", is_gang=True), "settled", "Running", fx.AskForPods(again=True), id="K29 none is left"),
    *(step(A, Thing(state), "forget", state, id="K30 an ended application stays with its pods")
      for state in ("Rejected", "Completed", "Failed")),
    *(step(A, Thing(state, has_pods=False), "forget", "Removed", id="K30 and goes with the last one")
      for state in ("Rejected", "Completed", "Failed")),
    *(step(A, Thing(state), "idle", state, fx.DeletePlaceholders(), id="K78 placeholders go with the last real pod")
      for state in ("Running", "Failing")),
    # -- tasks
    step(T, Thing("New"), "ask", "Asked", fx.SendAsk(), says(reason="Scheduling"), id="K37 new"),
    step(T, Thing("New", group="w"), "ask", "Asked",
         fx.SendAsk(), says(action="Scheduling"), says(action="TaskGroupMatch"), id="K37 a member of a gang says so"),
    step(T, Thing("New", group="w", is_placeholder=True), "ask", "Asked", fx.SendAsk(), says(action="Scheduling"),
         id="K37 a placeholder does not"),
    step(T, Thing("Asked"), "allocated", "Binding", fx.BindPod(), id="K37 allocated", **FIRST),
    step(T, Thing("Binding", **FIRST), "bound", "Bound", says(reason="Scheduled", note="n1"), id="K37 bound"),
    step(T, Thing("Bound", **FIRST), "ended", "Ended", fx.ConfirmRelease(STOPPED), id="K37 ended"),
    step(T, Thing("Bound", **FIRST, is_placeholder=True), "release", "Releasing", fx.DeletePod(),
         id="K39 a placeholder is replaced", type=REPLACED),
    step(T, Thing("Releasing", **FIRST, is_placeholder=True, release_type=REPLACED), "release", "Releasing",
         id="K39 it is deleted once", type=REPLACED),
    step(T, Thing("Releasing", **FIRST, is_placeholder=True, release_type=REPLACED), "ended", "Ended",
         fx.ConfirmRelease(REPLACED), id="K39 the end is told with the type of the release"),
    step(T, Thing("Asked"), "elsewhere", "Recovering", fx.ReportPod(), id="K37 somebody else bound it", node="n2"),
    step(T, Thing("Binding", uuid="u-0"), "elsewhere", "Recovering",
         fx.AbandonAssumption(), fx.GiveBack("u-0"), fx.ReportPod(), id="K37 while it was bound here", node="n2"),
    step(T, Thing("Recovering"), "allocated", "Bound", id="K37 it is reported there", **SECOND_ONE),
    step(T, Thing("Asked", is_placeholder=True), "ask_released", "Releasing",
         says(action="PlaceholderTimeOut", originator=True), fx.DeletePod(),
         id="K37 a released ask of a placeholder deletes it"),
    step(T, Thing("Asked"), "ask_released", "New", id="K37 a released ask of a real pod waits"),
    step(T, Thing("Asked", is_placeholder=True), "discard", "Releasing", fx.ReleaseAsk(), fx.DeletePod(),
         id="a discarded placeholder takes its ask back at once"),
    step(T, Thing("Releasing", is_placeholder=True), "ended", "Ended", id="and has ended without a word"),
    step(T, Thing("Binding", **FIRST, is_placeholder=True), "bound", "Bound", says(), fx.AnnouncePlaceholder(),
         id="a placeholder announces that it is bound"),
    step(T, Thing("Recovering", node="n1", is_placeholder=True), "allocated", "Bound", fx.AnnouncePlaceholder(),
         id="also one that was found", **FIRST),
    # -- the others
]
# fmt: on


@pytest.mark.parametrize(("lifecycle", "thing", "trigger", "info", "to", "effects"), STEPS)
def test_a_step_has_its_effects(
    lifecycle: Lifecycle, thing: Thing, trigger: str, info: Any, to: str, effects: tuple[Any, ...]
) -> None:
    thing = Thing(**vars(thing))
    assert lifecycle.fire(thing, trigger, **info) == effects
    assert thing.state == to


# -- walks -------------------------------------------------------------------------------------


def test_k141_the_steps_of_a_recovery() -> None:
    shim = Thing("Waiting", has_synced=True)
    steps = list(SHIM.fire(shim, "lead"))
    for _ in range(4):
        steps.extend(SHIM.fire(shim, "done"))
    rooms = ("Registering", "Submitting", "Creating", "Reporting")
    assert steps == [fx.Recover(room) for room in rooms]
    assert SHIM.fire(shim, "serve") == (fx.Serve(),)
    assert shim.state == "Serving"
    assert [row.trigger for row in path_to(RECOVERY, "Recovered")] == ["done"] * 4


def test_the_time_limits_of_an_application_are_declared() -> None:
    timers = Timers()
    app = Thing("New")
    timers.fire(APPLICATION, app, "submit", 0)
    assert timers.next_deadline() == 60 * SECOND
    (due,) = timers.due(60 * SECOND)
    (effect,) = timers.fire(APPLICATION, app, due.trigger, 60 * SECOND)
    assert effect == fx.Warn("application thing has been Submitted for longer than expected")
    assert timers.next_deadline() == 3 * MINUTE
    timed = {"Held", "Submitted", "Placing", "Reserving", "Resuming", "Failing"}
    assert set(APPLICATION.timed) == timed


def test_every_effect_is_executed_by_the_shim_or_by_the_transport() -> None:
    kinds = {e for e in vars(fx).values() if isinstance(e, type) and e.__module__ == fx.__name__}
    transport = {fx.List, fx.Watch, fx.Pause, *connections._EXECUTE}
    assert kinds == {*shim._HANDLERS, *transport}
    assert not shim._HANDLERS.keys() & transport
