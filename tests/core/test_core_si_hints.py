"""What the resource manager and people are told of asks that wait: the scale-up hint (I38, 5.11,
X27) and explanations."""

from __future__ import annotations

from typing import Any

import pytest

from quadriga.si import (
    NodeInfo,
    RegisterResourceManagerRequest,
    UpdateContainerSchedulingStateRequest,
)
from quadriga.sim.script import Script

GIB = 1024**3
ORDERS = pytest.mark.parametrize("order", ["design", "k8shim"])


def tree(*queues: str) -> str:
    children = ", ".join(queues)
    return (
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: "
        f"[{children}]}}]}}]"
    )


def hints(script: Script) -> list[str]:
    """One round, and the second after it."""
    heard = script.schedule()
    return [line for line in heard + script.advance(1) if line.startswith("FAILED")]


# -- the hint --------------------------------------------------------------------------------------


def test_i38_an_ask_that_finds_no_node_is_told_of_once() -> None:
    script = Script()
    script.node("n1", vcore=1000)
    script.app("app")
    script.ask("app", "a", "b", vcore=1000)
    script.schedule()
    script.messages.clear()
    assert script.advance(0.999) == []
    assert script.advance(0.001) == ["FAILED app/b"]
    ((_, message),) = script.messages
    assert message == UpdateContainerSchedulingStateRequest(
        applicartionID="app",
        allocationKey="b",
        state=UpdateContainerSchedulingStateRequest.FAILED,
        reason="request is waiting for cluster resources become available",
    )
    for _ in range(5):
        assert hints(script) == []


def test_i38_a_node_that_comes_after_the_hint_serves_the_ask() -> None:
    script = Script()
    script.app("app")
    script.ask("app", "a", vcore=1000)
    script.node("n1", vcore=500)
    assert hints(script) == ["FAILED app/a"]
    script.node("n2", vcore=1000)
    assert script.schedule() == ["app Running (run)", "new app/a-0 on n2"]


def test_i38_an_ask_that_is_served_in_time_is_not_told_of() -> None:
    script = Script()
    script.app("app")
    script.ask("app", "a", vcore=1000)
    script.node("n1", vcore=500)
    script.schedule()
    script.node("n2", vcore=1000)
    script.schedule()
    assert script.advance(10) == []


def test_i38_asks_are_looked_at_when_there_is_nothing_more_to_decide() -> None:
    """The asks that wait may be a million, and most of them not tried yet."""
    script = Script()
    script.node("n1", vcore=1000)
    script.app("app")
    script.ask("app", "large", vcore=2000)
    assert script.schedule() == []
    script.ask("app", *(f"small{at}" for at in range(150)), vcore=1)
    assert len(script.schedule(limit=100)) >= 100
    assert script.scheduler.unfinished
    assert script.advance(2) == []
    script.schedule()
    assert script.advance(1) == ["FAILED app/large"]


def test_i38_a_changed_ask_may_be_told_of_again() -> None:
    script = Script()
    script.node("n1", vcore=500)
    script.app("app")
    script.ask("app", "a", vcore=1000)
    assert hints(script) == ["FAILED app/a"]
    script.ask("app", "a", vcore=2000)
    assert hints(script) == ["FAILED app/a"]
    assert hints(script) == []


def test_i38_no_more_is_asked_for_than_the_quota_would_let_run() -> None:
    script = Script(tree("{name: q, resources: {max: {vcore: 3}}}"))
    script.node("n1", vcore=1000)
    script.app("app", "root.q")
    script.ask("app", "a", "b", "c", "d", "e", vcore=1000)
    assert hints(script) == ["FAILED app/b", "FAILED app/c"]
    assert hints(script) == []
    # room in the quota again: the next one
    script.release("app", "a-0")
    assert hints(script) == ["FAILED app/d"]


def test_i38_asks_are_told_of_in_the_order_in_which_they_would_be_served() -> None:
    script = Script(tree("{name: q, resources: {max: {vcore: 1}}}"))
    script.node("n1", vcore=500)
    script.app("app", "root.q")
    script.ask("app", "a", vcore=1000)
    script.ask("app", "b", priority=5, vcore=1000)
    assert hints(script) == ["FAILED app/b"]


def test_i38_asks_beyond_their_quota_are_not_told_of() -> None:
    script = Script(tree("{name: q, resources: {max: {vcore: 1}}}"))
    script.node("n1", vcore=500)
    script.app("app", "root.q")
    script.ask("app", "a", vcore=2000)
    assert hints(script) == []


def test_i38_asks_for_a_required_node_are_not_told_of() -> None:
    script = Script()
    script.node("n1", vcore=500)
    script.app("app")
    script.ask("app", "a", tags={"yunikorn.apache.org/requiredNode": "n1"}, vcore=1000)
    assert hints(script) == []


def test_i38_applications_that_wait_for_a_place_were_not_tried() -> None:
    script = Script(tree("{name: q, maxapplications: 1}"))
    script.node("n1", vcore=1000)
    for app in ("one", "two"):
        script.app(app, "root.q")
        script.ask(app, "a", vcore=1000)
    assert hints(script) == []
    script.ask("one", "b", vcore=1000)
    assert hints(script) == ["FAILED one/b"]
    # its turn: tried, and told of
    script.remove_app("one")
    script.node("n1", NodeInfo.DRAIN_NODE)
    assert hints(script) == ["FAILED two/a"]


def test_i38_applications_behind_the_turn_of_a_stateaware_queue_were_not_tried() -> None:
    script = Script(tree("{name: q, properties: {application.sort.policy: stateaware}}"))
    script.node("n1", vcore=500)
    for app in ("one", "two"):
        script.app(app, "root.q")
        script.ask(app, "a", vcore=1000)
    assert hints(script) == ["FAILED one/a"]


def test_i38_asks_that_predicates_refuse_everywhere_are_told_of() -> None:
    script = Script()
    script.scheduler.set_predicate("rm", lambda key, node, allocate: "taint")
    script.node("n1", vcore=4000)
    script.app("app")
    script.ask("app", "a", vcore=1000)
    assert hints(script) == ["FAILED app/a"]
    assert hints(script) == []


def test_i38_held_asks_and_gangs_behind_the_gate_are_not_told_of() -> None:
    script = Script(tree("{name: q, resources: {max: {vcore: 4}}}"))
    script.node("n1", vcore=2000)
    script.app("one", "root.q")
    script.ask("one", "a", vcore=2000)
    script.schedule()
    script.app("gang", "root.q", gang={"vcore": 3000})
    script.ask("gang", "p", "q", "r", group="g", placeholder=True, vcore=1000)
    script.ask("gang", "x", group="g", vcore=1000)
    assert hints(script) == []
    # the gate opens: the placeholders are told of (G12), the real ask is not
    script.remove_app("one")
    script.node("n1", NodeInfo.DRAIN_NODE)
    assert hints(script) == ["FAILED gang/p", "FAILED gang/q", "FAILED gang/r"]


def test_i38_an_ask_that_waits_for_a_placeholder_is_not_told_of() -> None:
    script = Script()
    script.node("n1", vcore=2000)
    script.app("app", gang={"vcore": 2000})
    script.ask("app", "p", "q", group="g", placeholder=True, vcore=1000)
    script.schedule()
    script.ask("app", "r", "s", "t", group="g", vcore=1000)
    # two replacements in flight; none is left for the third, which only lacks a node (X36)
    assert hints(script) == ["FAILED app/t"]
    script.confirm()
    assert hints(script) == []


@ORDERS
def test_x27_a_replacement_that_fits_nowhere_is_told_of(order: str) -> None:
    script = Script(extra={"si.messageOrder": order})
    script.node("n1", vcore=1000)
    script.app("app", gang={"vcore": 1000})
    script.ask("app", "p", group="g", placeholder=True, vcore=1000)
    script.schedule()
    script.scheduler.set_predicate("rm", lambda key, node, allocate: "taint")
    script.ask("app", "r", group="g", vcore=1000)
    assert hints(script) == ["FAILED app/r"]


def test_i38_nothing_is_told_of_a_paused_managers_asks() -> None:
    script = Script()
    script.node("n1", vcore=500)
    script.app("app")
    script.scheduler.disconnect("rm", script.now)
    script.ask("app", "a", vcore=1000)
    assert hints(script) == []
    script.scheduler.reconnect("rm", script.now)
    assert hints(script) == ["FAILED app/a"]


def test_i38_inspection_may_be_asked_for() -> None:
    script = Script()
    script.node("n1", vcore=500)
    script.app("app")
    script.ask("app", "a", vcore=1000)
    # not before it was tried
    assert script.scheduler.inspect(script.now) == []
    script.schedule()
    ((rm_id, message),) = script.scheduler.inspect(script.now)
    assert (rm_id, message.allocationKey) == ("rm", "a")
    assert script.scheduler.inspect(script.now) == []


# -- in slices -------------------------------------------------------------------------------------


def many(slices: bool) -> Script:
    """Asks of several applications that lack nodes, some behind a quota."""
    script = Script(tree("{name: a}", "{name: b, resources: {max: {vcore: 30m}}}"))
    script.scheduler.set_hints_in_slices(slices)
    script.node("n1", vcore=1)
    for app, queue in (("x", "root.a"), ("y", "root.b"), ("z", "root.b")):
        script.app(app, queue)
        for priority in (0, 5, 1):
            keys = [f"{priority}-{at}" for at in range(40)]
            script.ask(app, *keys, priority=priority, vcore=1)
    script.schedule()
    script.messages.clear()
    return script


def in_slices(script: Script, size: int) -> list[int]:
    """Call until there is nothing left; how many messages each call gave."""
    numbers = []
    while script.scheduler.unfinished or not numbers:
        before = len(script.messages)
        script._heard(script.scheduler.schedule(script.now, budget=size))
        numbers.append(len(script.messages) - before)
        assert len(numbers) < 10_000
    return numbers


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_i38_5_11_slices_tell_the_same_in_the_same_order(size: int) -> None:
    whole, sliced = many(slices=False), many(slices=True)
    assert len(whole.advance(1)) == 119 + 30
    assert sliced.advance(1) == []
    numbers = in_slices(sliced, size)
    assert max(numbers) <= size
    assert sliced.messages == whole.messages
    assert whole.schedule() == sliced.schedule() == []


def test_i38_5_11_without_a_budget_a_call_tells_of_all() -> None:
    script = many(slices=True)
    script.advance(1)
    assert len(script.schedule()) == 149
    assert not script.scheduler.unfinished


def test_i38_5_11_between_two_slices_anything_may_happen() -> None:
    script = many(slices=True)
    script.advance(1)
    while len(script.messages) < 20:
        script._heard(script.scheduler.schedule(script.now, budget=8))
    assert script.scheduler.unfinished
    # asks are served and taken back, one comes, an application goes
    script.node("n2", vcore=25)
    script._heard(script.scheduler.schedule(script.now, budget=8))
    script.release_ask("y", "5-7")
    script.ask("x", "late", vcore=1)
    script.remove_app("z")
    told = [m.message for m in script.messages if hasattr(m.message, "state")]
    script.messages.clear()
    in_slices(script, 8)
    later = [m.message for m in script.messages if hasattr(m.message, "state")]
    names = {(each.applicartionID, each.allocationKey) for each in later}
    assert names
    assert ("x", "late") not in names
    assert ("y", "5-7") not in names
    assert "z" not in {app for app, _ in names}
    assert not names & {(each.applicartionID, each.allocationKey) for each in told}
    partition = script.scheduler.partition()
    assert all(key in partition.applications[app].asks for app, key in names)
    # the next look tells of what is left, and no ask is told of twice
    script.messages.clear()
    script.advance(1)
    in_slices(script, 8)
    last = {
        (m.message.applicartionID, m.message.allocationKey)
        for m in script.messages
        if hasattr(m.message, "state")
    }
    assert not last & names
    assert ("x", "late") in last


def test_i38_5_11_a_manager_that_registers_anew_hears_no_more_of_it() -> None:
    script = many(slices=True)
    script.advance(1)
    script._heard(script.scheduler.schedule(script.now, budget=8))
    assert script.scheduler.unfinished
    script.send(RegisterResourceManagerRequest(rmID="rm", config=tree("{name: a}")))
    script.messages.clear()
    assert in_slices(script, 8) == [0]


# -- explanations ----------------------------------------------------------------------------------


def explain(script: Script, app: str, key: str) -> Any:
    script.schedule()
    return script.scheduler.explain(app, key)


def test_explain_a_quota_with_its_numbers() -> None:
    script = Script(tree("{name: p, resources: {max: {vcore: 3}}, queues: [{name: q}]}"))
    script.node("n1", vcore=9000)
    script.app("app", "root.p.q")
    script.ask("app", "a", "b", vcore=2000)
    found = explain(script, "app", "b")
    (reason,) = found.reasons
    assert reason == "queue root.p: limit 3 CPU, used 2 CPU, asked 2 CPU, headroom 1 CPU"
    assert found.remedies == ("raise the max of root.p by 1 CPU",)
    assert not found.hopeless


def test_explain_x9_an_ask_that_is_held() -> None:
    script = Script()
    script.node("n1", vcore=1000)
    script.app("app", gang={"vcore": 2000})
    script.ask("app", "p", "q", group="g", placeholder=True, vcore=1000)
    script.ask("app", "r", group="g", vcore=1000)
    found = explain(script, "app", "r")
    assert "held until the gang is complete: has 1 CPU of 2 CPU (X9)" in found.reasons


def test_explain_x16_a_gang_behind_the_gate() -> None:
    script = Script(tree("{name: q, resources: {max: {vcore: 4}}}"))
    script.node("n1", vcore=9000)
    script.app("one", "root.q")
    script.ask("one", "a", vcore=2000)
    script.schedule()
    script.app("gang", "root.q", gang={"vcore": 3000})
    script.ask("gang", "p", group="g", placeholder=True, vcore=1000)
    (reason,) = explain(script, "gang", "p").reasons
    assert reason == (
        "the whole gang needs 3 CPU, queue root.q has room for 2 CPU: limit 4 CPU, used 2 CPU (X16)"
    )


def test_explain_a_job_that_fits_no_node() -> None:
    script = Script()
    script.node("n1", vcore=80_000, memory=504 * GIB)
    script.node("n2", vcore=12_000, memory=1024 * GIB)
    script.app("app")
    script.ask("app", "a", vcore=80_000, memory=512 * GIB)
    found = explain(script, "app", "a")
    assert found.hopeless
    (check,) = [c for c in found.checks if c.about == "node sizes"]
    assert not check.passed
    for word in ("80 CPU", "512 GiB memory", "1 TiB memory", "2 nodes"):
        assert word in check.text
    assert check.remedy == "add a node with 80 CPU and 512 GiB memory"


def test_explain_groups_nodes_by_their_reason() -> None:
    script = Script()
    for number in range(3):
        script.node(f"full{number}", vcore=1000)
    script.app("app")
    script.ask("app", "a", "b", "c", vcore=1000)
    script.schedule()
    for number in range(2):
        script.node(f"drained{number}", NodeInfo.CREATE_DRAIN, vcore=4000)
    script.node("small", vcore=10)
    script.ask("app", "d", vcore=1000)
    found = explain(script, "app", "d")
    about = [(c.passed, c.text) for c in found.checks if c.about.startswith("node")]
    assert about == [
        (True, "5 of 6 nodes are large enough"),
        (False, "3 nodes: not enough free CPU; node full0 comes nearest and lacks 1 CPU"),
        (False, "2 nodes: draining"),
    ]
    script.node("drained1", NodeInfo.DRAIN_TO_SCHEDULABLE)
    assert script.scheduler.explain("app", "d").reasons == ()


def test_explain_a_reserved_node() -> None:
    script = Script()
    for number in (1, 2, 3):
        script.node(f"n{number}", vcore=2000)
    script.app("other")
    script.ask("other", "x", "y", "z", vcore=1200)
    script.schedule()
    script.app("app")
    script.ask("app", "a", vcore=2000)
    script.advance(3)
    script.schedule()
    script.ask("other", "u", "v", "w", vcore=800)
    found = explain(script, "other", "w")
    assert "1 node has room but is reserved: n1 for ask a of app" in found.reasons


def test_explain_maxapplications() -> None:
    script = Script(tree("{name: q, maxapplications: 1}"))
    script.node("n1", vcore=4000)
    for app in ("one", "two"):
        script.app(app, "root.q")
        script.ask(app, "a", vcore=1000)
    found = explain(script, "two", "a")
    assert found.reasons == ("queue root.q runs 1 of 1 applications",)
    assert found.remedies == ("raise maxapplications of root.q to 2",)


def test_explain_the_required_node() -> None:
    script = Script()
    script.node("n1", vcore=500)
    script.node("n2", vcore=4000)
    script.app("app")
    script.ask("app", "a", tags={"yunikorn.apache.org/requiredNode": "n1"}, vcore=1000)
    found = explain(script, "app", "a")
    assert found.hopeless
    assert any("required node n1" in text for text in found.reasons)


def test_explain_without_any_node() -> None:
    script = Script()
    script.app("app")
    script.ask("app", "a", vcore=1000)
    found = explain(script, "app", "a")
    assert found.key == "app/a"
    assert found.hopeless


def test_explain_a_parked_ask_and_one_that_waits_for_its_placeholder() -> None:
    script = Script()
    script.node("n1", vcore=2000)
    script.app("app", gang={"vcore": 1000})
    script.ask("app", "p", group="g", placeholder=True, vcore=1000)
    script.schedule()
    script.ask("app", "late", group="g", placeholder=True, vcore=2000)
    script.ask("app", "r", "s", group="g", vcore=1000)
    found = explain(script, "app", "s")
    assert any("waits for a placeholder of task group g" in text for text in found.reasons)
    assert explain(script, "app", "r").reasons


def test_explain_a_stateaware_queue_that_serves_another_one() -> None:
    script = Script(tree("{name: q, properties: {application.sort.policy: stateaware}}"))
    script.node("n1", vcore=9000)
    for app in ("one", "two"):
        script.app(app, "root.q")
        script.ask(app, "a", vcore=1000)
    found = explain(script, "two", "a")
    assert any("stateaware" in text and "one" in text for text in found.reasons)


def test_explain_a_paused_manager() -> None:
    script = Script()
    script.node("n1", vcore=9000)
    script.app("app")
    script.ask("app", "a", vcore=1000)
    script.scheduler.disconnect("rm", script.now)
    assert any("Paused" in text for text in explain(script, "app", "a").reasons)


def test_explain_predicates_that_refuse() -> None:
    script = Script()
    script.scheduler.set_predicate("rm", lambda key, node, allocate: "taint")
    script.node("n1", vcore=4000)
    script.app("app")
    script.ask("app", "a", vcore=1000)
    assert any("taint" in text for text in explain(script, "app", "a").reasons)


def test_explain_what_is_not_pending_is_a_key_error() -> None:
    script = Script()
    script.node("n1", vcore=1000)
    script.app("app")
    script.ask("app", "a", vcore=1000)
    script.schedule()
    for app, key in (("app", "a"), ("app", "x"), ("nobody", "a")):
        with pytest.raises(KeyError):
            script.scheduler.explain(app, key)


def test_explain_names_remedies_only_for_what_fails() -> None:
    script = Script(tree("{name: q, resources: {max: {vcore: 4}}}"))
    script.node("n1", vcore=16000)
    script.app("app", "root.q")
    script.ask("app", "large", vcore=6000)
    script.schedule()
    explanation = script.scheduler.explain("app", "large")
    assert explanation.remedies == ("raise the max of root.q by 2 CPU",)
    assert all(not check.remedy for check in explanation.checks if check.passed)
