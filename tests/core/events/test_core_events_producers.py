"""Every row of the table of event records (2.16), by what happens, and the table: one row for each change."""

import ast
from functools import cache
from pathlib import Path

import pytest
from core_steps import partitions
from core_world import later, launch, queues, refuse, reported, scripted, serve
from event_lines import RecordReader

from quadriga.core.events import observers
from quadriga.fsm import LIFECYCLES
from quadriga.si import NodeInfo, TerminationType
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.scripted.script import ONE_QUEUE, Script


def config(small: str = "max: {vcore: 2}", more: str = "", name: str = "small") -> str:
    own = f"resources: {{{small}}}" + (f", {more}" if more else "")
    return queues("default", name, **{name: own})


def recorded(config: str = ONE_QUEUE, *apps: str, **node: int) -> tuple[Script, RecordReader]:
    script = scripted(config, *apps, **node)
    return script, RecordReader(script)


def running(**asked: int) -> tuple[Script, RecordReader]:
    """One node, and the application ``a`` with one allocation on it."""
    script = scripted(ONE_QUEUE, "a", vcore=4000)
    serve(script, "a", "k", vcore=1000, **asked)
    return script, RecordReader(script)


def test_2_16_queues_are_recorded_parents_first_with_new_quotas_and_types() -> None:
    script, reader = recorded(config())
    batch = script.scheduler.events.batch()
    assert [record[4] for record in batch.records] == ["root", "root.default", "root.small"]
    script.configure(config("max: {vcore: 3}, guaranteed: {vcore: 1}"))
    assert reader.new_lines() == [
        "QUEUE SET QUEUE_CONFIG root.small",
        "QUEUE SET QUEUE_MAX root.small vcore=3000",
        "QUEUE SET QUEUE_GUARANTEED root.small vcore=1000",
    ]
    script.configure(config("max: {vcore: 2}, guaranteed: {vcore: 1}", "queues: [{name: below}]"))
    assert reader.new_lines() == [
        "QUEUE SET QUEUE_TYPE root.small (leaf queue: false)",
        "QUEUE SET QUEUE_CONFIG root.small",
        "QUEUE SET QUEUE_MAX root.small vcore=2000",
        "QUEUE SET QUEUE_GUARANTEED root.small vcore=1000",
        "QUEUE ADD QUEUE_CONFIG root.small.below",
    ]


@pytest.mark.parametrize(
    "change",
    [
        "properties: {application.sort.policy: fair}",
        "maxapplications: 3",
        "submitacl: ann",
        "limits: [{users: [ann], maxapplications: 1}]",
    ],
)
def test_2_16_x44_any_change_of_a_queue_by_its_configuration_is_recorded_once(change: str) -> None:
    script, reader = recorded(config())
    script.configure(config() + " # the same")
    assert reader.new_lines() == []
    script.configure(config(more=change))
    assert reader.new_lines("QUEUE") == ["QUEUE SET QUEUE_CONFIG root.small"]
    script.configure(config(more=change) + " # the same")
    assert reader.new_lines() == []


def test_2_16_x44_a_queue_is_removed_when_it_is_gone_not_when_it_drains() -> None:
    script, reader = recorded(config(), "a:root.small")
    script.configure(config(name="other"))
    assert reader.new_lines("QUEUE") == ["QUEUE ADD QUEUE_CONFIG root.other"]
    script.configure(config())  # it is configured again before it was gone
    assert reader.new_lines("QUEUE SET") == ["QUEUE SET QUEUE_CONFIG root.small"]
    script.configure(config(name="other"))
    reader.new_lines()
    script.remove_app("a")
    script.advance(10)
    assert reader.new_lines("QUEUE") == [
        "QUEUE REMOVE QUEUE_APP root.small a",
        "QUEUE REMOVE QUEUE_CONFIG root.small",
    ]


def test_2_16_x44_queues_made_by_placement_are_dynamic_until_they_are_configured() -> None:
    def placing(*names: str) -> str:
        rules = "placementrules: [{name: user, create: true}], queues:"
        return queues(*names).replace("queues:", rules, 1)

    script, reader = recorded(placing())
    for user in ("ann", "bob"):
        script.app(user, "", user=user)
        assert reader.new_lines() == [
            f"QUEUE ADD QUEUE_DYNAMIC root.{user}",
            f"APP ADD APP_NEW {user}",
            f"QUEUE ADD QUEUE_APP root.{user} {user}",
        ]
    script.configure(placing("bob"))
    assert "QUEUE SET QUEUE_CONFIG root.bob" in reader.new_lines("QUEUE")
    script.remove_app("ann")
    script.advance(10)
    assert reader.new_lines("QUEUE")[-1] == "QUEUE REMOVE QUEUE_DYNAMIC root.ann"


def test_2_16_x7_i30_records_of_a_node_from_its_arrival_to_its_removal() -> None:
    script, reader = recorded()
    script.node("n1", NodeInfo.CREATE_DRAIN, vcore=4000)
    assert reader.new_lines("NODE") == [
        "NODE SET NODE_SCHEDULABLE n1 (schedulable: false)",
        "NODE ADD n1 vcore=4000 (Node added to the scheduler)",
    ]
    script.node("n1", vcore=4000)  # which is rejected
    script.node("n1", NodeInfo.DRAIN_NODE)
    assert reader.new_lines() == []
    script.node("n1", NodeInfo.DRAIN_TO_SCHEDULABLE)
    assert reader.new_lines() == ["NODE SET NODE_SCHEDULABLE n1 (schedulable: true)"]
    for action in (NodeInfo.DRAIN_NODE, NodeInfo.DRAIN_NODE):
        script.node("n1", action)
    assert reader.new_lines() == ["NODE SET NODE_SCHEDULABLE n1 (schedulable: false)"]
    script.node("n1", NodeInfo.UPDATE, vcore=6000)
    assert reader.new_lines("NODE") == ["NODE SET NODE_CAPACITY n1 vcore=6000"]
    script.node("n1", NodeInfo.UPDATE, vcore=6000)
    assert reader.new_lines() == []
    script.node("n1", NodeInfo.UPDATE, occupied={"vcore": 500})
    assert reader.new_lines() == ["NODE SET NODE_OCCUPIED n1 vcore=500"]
    for _ in range(2):
        script.node("n1", NodeInfo.UPDATE, attributes={"ready": "false"})
    assert reader.new_lines() == ["NODE SET NODE_READY n1 (ready: false)"]
    script.node("n2", vcore=1000)
    assert reader.new_lines() == [
        "QUEUE SET QUEUE_MAX root vcore=6000 "
        "(max resources changed from map[vcore:6000] to map[vcore:7000])",
        "NODE SET NODE_SCHEDULABLE n2 (schedulable: true)",
        "NODE ADD n2 vcore=1000 (Node added to the scheduler)",
    ]
    script.node("n1", NodeInfo.DECOMISSION)
    assert reader.new_lines("NODE") == [
        "NODE SET NODE_SCHEDULABLE n1 (schedulable: false)",
        "NODE REMOVE NODE_DECOMISSION n1 (Node removed from the scheduler)",
    ]


def test_2_16_an_application_from_its_arrival_to_its_end() -> None:
    script, reader = recorded(vcore=4000)
    script.app("a")
    assert reader.new_lines() == ["APP ADD APP_NEW a", "QUEUE ADD QUEUE_APP root.default a"]
    script.ask("a", "k", vcore=1000)
    assert reader.new_lines() == ["APP SET APP_ACCEPTED a", "APP ADD APP_REQUEST a k vcore=1000"]
    script.schedule()
    assert reader.new_lines() == [
        "APP SET APP_RUNNING a vcore=1000",
        "NODE ADD NODE_ALLOC n1 k vcore=1000",
        "QUEUE ADD QUEUE_ALLOC root.default k-0 vcore=1000",
        "USERGROUP ADD UG_USER_RESOURCE user root.default vcore=1000",
        "APP ADD APP_ALLOC a k-0 vcore=1000",
        "APP REMOVE REQUEST_ALLOC a k vcore=1000",
    ]
    script.release("a", "k-0")
    assert reader.new_lines() == [
        "USERGROUP REMOVE UG_USER_RESOURCE user root.default vcore=1000",
        "APP REMOVE ALLOC_CANCEL a k-0 vcore=1000",
        "NODE REMOVE NODE_ALLOC n1 k vcore=1000",
        "APP SET APP_COMPLETING a",
    ]
    script.advance(30)
    assert reader.new_lines() == [
        "APP SET APP_COMPLETED a",
        "QUEUE REMOVE QUEUE_APP root.default a",
        "APP REMOVE a",
    ]
    script.advance(72 * 3600)
    assert reader.new_lines() == ["APP SET APP_EXPIRED a"]


@pytest.mark.parametrize("asked", [True, False])
def test_x44_2_11_a_recovered_allocation_enters_its_leaf_and_serves_an_ask(asked: bool) -> None:
    script, reader = recorded(ONE_QUEUE, "a")
    if asked:
        script.ask("a", "k", vcore=1000)
        reader.new_lines()
    script.node("n1", existing=[reported("k", "a", vcore=1000)], vcore=4000)
    accepted = [] if asked else ["APP SET APP_ACCEPTED a"]
    served = ["APP REMOVE REQUEST_ALLOC a k vcore=1000"] if asked else []
    assert reader.new_lines("APP", "NODE ADD", "QUEUE ADD") == [
        "NODE ADD n1 vcore=4000 (Node added to the scheduler)",
        *accepted,
        "NODE ADD NODE_ALLOC n1 k vcore=1000",
        "QUEUE ADD QUEUE_ALLOC root.default k-0 vcore=1000",
        "APP ADD APP_ALLOC a k-0 vcore=1000",
        *served,
        "APP SET APP_RUNNING a vcore=1000",
    ]


def test_x15_starting_is_recorded_where_it_is_a_state() -> None:
    stateaware = config(small="", more="properties: {application.sort.policy: stateaware}")
    script, reader = recorded(stateaware, "a:root.small", vcore=4000)
    serve(script, "a", "k", vcore=1000)
    assert "APP SET APP_STARTING a vcore=1000" in reader.new_lines("APP SET")


@pytest.mark.parametrize(
    ("queue", "partition", "user", "reason"),
    [
        ("root", "", "user", "no placement rule matched"),
        ("root.small", "nowhere", "user", "does not exist"),
        ("root.small", "", "", "empty user cannot resolve"),
    ],
)
def test_2_16_a_rejected_application_is_recorded_with_the_reason(
    queue: str, partition: str, user: str, reason: str
) -> None:
    script, reader = recorded(queues("small"))
    script.app("a", queue, partition=partition, user=user)
    arrived, rejected = reader.new_lines()
    assert arrived == "APP ADD APP_NEW a"
    assert rejected.startswith("APP SET APP_REJECT a (") and reason in rejected


def test_i17_2_16_an_ask_that_changes_is_recorded_again_and_its_cancellation() -> None:
    script, reader = recorded(ONE_QUEUE, "a")
    script.ask("a", "k", vcore=1000)
    reader.new_lines()
    script.ask("a", "k", vcore=2000)
    assert reader.new_lines() == ["APP ADD APP_REQUEST a k vcore=2000"]
    script.release_ask("a", "k")  # the resource manager withdraws it
    assert reader.new_lines("APP REMOVE") == ["APP REMOVE REQUEST_CANCEL a k vcore=2000"]


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        (TerminationType.UNKNOWN_TERMINATION_TYPE, "ALLOC_NODEREMOVED"),
        (TerminationType.STOPPED_BY_RM, "ALLOC_CANCEL"),
        (TerminationType.TIMEOUT, "ALLOC_TIMEOUT"),
        (TerminationType.PREEMPTED_BY_SCHEDULER, "ALLOC_PREEMPT"),
        (TerminationType.PLACEHOLDER_REPLACED, "ALLOC_REPLACED"),
        (None, "ALLOC_TIMEOUT"),  # it ran for too long
    ],
)
def test_2_16_x17_the_end_of_an_allocation_says_how_its_release_was_terminated(
    kind: TerminationType | None, detail: str
) -> None:
    script, reader = running(timeout_ms=5000)
    if kind is None:
        script.advance(5)
        script.confirm()
    else:
        script.release("a", "k-0", kind)
    assert reader.new_lines("APP REMOVE") == [f"APP REMOVE {detail} a k-0 vcore=1000"]


def gang(
    style: str = "Soft", *, node: int = 8000, timeout_ms: int = 60_000
) -> tuple[Script, RecordReader]:
    """A gang of two, of 1000 each, that has the placeholders that fit the node."""
    script = scripted(vcore=node)
    script.app("g", gang={"vcore": 2000}, style=style, timeout_ms=timeout_ms)
    serve(script, "g", "p0", "p1", group="tg", placeholder=True, vcore=1000)
    return script, RecordReader(script)


def test_g31_a_replacement_on_the_same_node_has_no_record_of_the_node() -> None:
    script, reader = gang()
    serve(script, "g", "r0", group="tg", vcore=500)
    assert reader.new_lines() == ["APP ADD APP_REQUEST g r0 vcore=500"]
    script.confirm()
    assert reader.new_lines() == [
        "USERGROUP REMOVE UG_USER_RESOURCE user root.default vcore=1000",
        "APP REMOVE ALLOC_REPLACED g p0-0 vcore=1000",
        "QUEUE ADD QUEUE_ALLOC root.default r0-0 vcore=500",
        "USERGROUP ADD UG_USER_RESOURCE user root.default vcore=500",
        "APP ADD APP_ALLOC g r0-0 vcore=500",
        "APP REMOVE REQUEST_ALLOC g r0 vcore=500",
    ]


def test_x18_a_replacement_on_another_node_is_recorded_there_at_once() -> None:
    script, reader = gang()
    script.node("n2", vcore=8000)
    refuse(script, lambda key, node: (key, node) == ("r0", "n1"), "not here")
    reader.new_lines()
    serve(script, "g", "r0", group="tg", vcore=500)
    assert reader.new_lines("NODE") == ["NODE ADD NODE_ALLOC n2 r0 vcore=500"]
    script.confirm()
    assert reader.new_lines("NODE") == ["NODE REMOVE NODE_ALLOC n1 p0 vcore=1000"]


def test_5_10_a_placeholder_that_is_too_small_is_named() -> None:
    script, reader = gang()
    script.ask("g", "r0", group="tg", vcore=1500)
    reader.new_lines()
    script.schedule()
    assert reader.new_lines("REQUEST")[0] == (
        "REQUEST NONE p0 g vcore=1500 (Task group 'tg' in application 'g': allocation resources "
        "'map[vcore:1500]' are not matching placeholder 'map[vcore:1000]' allocation with ID 'p0')"
    )


def quotas(most: int) -> str:
    low = f"resources: {{guaranteed: {{vcore: 1}}, max: {{vcore: {most}}}}}"
    config = queues(
        "low",
        "high",
        low=f"properties: {{preemption.quota.delay: 10s}}, {low}",
        high="properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 3}}",
    )
    return config.replace("queues:", "preemption: {quotapreemptionenabled: true}, queues:", 1)


def full() -> tuple[Script, RecordReader]:
    """Four vcores, all used by ``low``; one of them is guaranteed to it."""
    script = scripted(quotas(4), "low:root.low", "high:root.high", vcore=4000)
    serve(script, "low", "a", "b", "c", "d", vcore=1000)
    return script, RecordReader(script)


def test_2_16_the_record_of_a_victim_names_the_ask_and_its_end_is_preempted() -> None:
    script, reader = full()
    script.ask("high", "h", preempt=(True, True), vcore=1000)
    later(script, 1)
    assert reader.new_lines("REQUEST NONE d", "NODE ADD") == [
        "REQUEST NONE d low vcore=1000 (Preempted by h from application high in root.high)",
        "NODE ADD NODE_RESERVATION n1 h vcore=1000",
    ]
    script.confirm()
    assert reader.new_lines("APP") == ["APP REMOVE ALLOC_PREEMPT low d-0 vcore=1000"]
    script.schedule()
    assert reader.new_lines("NODE") == [
        "NODE REMOVE NODE_RESERVATION n1 h vcore=1000",
        "NODE ADD NODE_ALLOC n1 h vcore=1000",
    ]


def test_2_16_a_new_quota_is_recorded_and_a_lowered_one_named_as_the_reason() -> None:
    script, reader = full()
    script.configure(quotas(3))
    reader.new_lines()
    script.advance(10)
    assert reader.new_lines() == [
        "REQUEST NONE d low vcore=1000 (Preempted by Quota change enforcement process in root.low)",
        "QUEUE SET QUEUE_PREEMPTION root.low vcore=3000 (Quota preemption: preemptable "
        "map[vcore:1000], claimed map[vcore:1000], selected 4, preempted 1)",
    ]
    script, reader = recorded(config())
    script.configure(config("max: {vcore: 3}, guaranteed: {vcore: 1}"))
    assert reader.new_lines() == [
        "QUEUE SET QUEUE_CONFIG root.small",
        "QUEUE SET QUEUE_MAX root.small vcore=3000",
        "QUEUE SET QUEUE_GUARANTEED root.small vcore=1000",
    ]


def test_2_16_an_ask_without_victims_on_its_required_node_is_recorded() -> None:
    script = Script()
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=9000)
    script.node("n1", vcore=1000)
    launch(script, "a", "first", priority=9, vcore=1000)
    reader = RecordReader(script)
    serve(script, "a", "daemon", tags={TAG_REQUIRED_NODE: "n1"}, vcore=1000)
    script.schedule()
    assert reader.new_lines("REQUEST") == [
        "REQUEST NONE daemon a vcore=1000 (Unschedulable request 'daemon' with required node 'n1', "
        "no preemption victim found)"
    ]


CORE = Path(__file__).parents[3] / "core"


def _functions_of_the_observer() -> dict[str, list[str]]:
    """By name, the types that each function is called with."""
    found = {}
    for node in ast.walk(ast.parse((CORE / "model" / "observer.py").read_text())):
        if isinstance(node, ast.AnnAssign):
            assert isinstance(node.target, ast.Attribute)
            assert isinstance(node.annotation, ast.Subscript)  # Callable[[...], None]
            types = node.annotation.slice.elts[0].elts  # type: ignore[attr-defined]
            found[node.target.attr] = [ast.unparse(each) for each in types]
    return found


@cache
def _functions_in(module: str) -> dict[str, list[str]]:
    """By name, the types of the parameters but for the first one, the log or ``self``."""
    found = {}
    for node in ast.walk(ast.parse((CORE / "events" / module).read_text())):
        if isinstance(node, ast.FunctionDef):
            types = [each.annotation for each in node.args.args[1:]]
            found[node.name] = [ast.unparse(each) for each in types if each is not None]
    return found


REPORTED = _functions_of_the_observer()


def test_every_change_has_one_row_and_is_reported_somewhere() -> None:
    by_listener = {"settings_changed", "state_dropped"}
    assert sorted([*observers.CHANGES, *observers.QUOTA_CHANGES, *by_listener]) == sorted(REPORTED)
    for change, record in observers.CHANGES.items():
        module = f"{record.__module__.rpartition('.')[2]}.py"
        assert _functions_in(module)[record.__name__] == REPORTED[change], change
    for change, method in observers.QUOTA_CHANGES.items():
        assert _functions_in("quota_events.py")[method.__name__] == REPORTED[change], change
    assert set(observers.TRANSITIONS) <= set(LIFECYCLES.values())
    # A function that nothing calls would be a record that is never made.
    calls = {
        node.func.attr
        for path in CORE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert calls >= REPORTED.keys()


def test_quota_events_follow_the_partitions_that_there_are() -> None:
    script = Script(partitions("default", "other"))
    recorder = script.scheduler.resource_managers()[0].observer
    assert isinstance(recorder, observers.Recorder)
    followed = recorder.quota_events.partitions
    assert [partition.name for partition in followed] == ["default", "other"]
    script.configure(partitions("default"))
    assert [partition.name for partition in recorder.quota_events.partitions] == ["default"]
