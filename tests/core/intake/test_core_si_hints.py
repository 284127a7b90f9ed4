"""What the RM and people are told of asks that wait: the scale-up hint (I38, 5.11, X27) and explanations."""

from typing import Any

import pytest
from core_world import scripted
from tree_side import below, room, tree

from quadriga.si import NodeInfo, UpdateContainerSchedulingStateRequest
from quadriga.sim.scripted.script import Script

GIB = 1024**3
ONE_RUNS = "maxapplications: 1"


def cluster(vcore: int, of_queue: str = "", *apps: str, order: str = "") -> Script:
    """One node, and applications (``app``) in ``root.q`` that ask for 1000 each where they are named."""
    script = scripted(tree(f"q, {of_queue}" if of_queue else "q"), order=order, vcore=vcore)
    for app in apps or ["app"]:
        script.app(app, "root.q")
        if apps:
            script.ask(app, "a", vcore=1000)
    return script


def hints(script: Script) -> list[str]:
    """One round, and the second after it: the asks that were told of."""
    heard = script.schedule() + script.advance(1)
    return [line.removeprefix("FAILED ") for line in heard if line.startswith("FAILED")]


# -- the hint --------------------------------------------------------------------------------------


def test_i38_an_ask_that_finds_no_node_is_told_of_once() -> None:
    script = cluster(1000)
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
    script.ask("app", "b", vcore=2000)  # once more after a change
    assert hints(script) == ["app/b"]
    assert hints(script) == []
    script.node("n2", vcore=2000)
    assert script.schedule() == ["new app/b-0 on n2"]


def test_i38_asks_are_looked_at_when_there_is_nothing_more_to_decide() -> None:
    """The asks that wait may be a million, and most of them not tried yet."""
    script = cluster(1000)
    script.ask("app", "large", vcore=2000)
    assert script.schedule() == []
    script.ask("app", *(f"small{at}" for at in range(150)), vcore=1)
    assert len(script.schedule(limit=100)) >= 100
    assert script.scheduler.unfinished
    assert script.advance(2) == []
    script.schedule()
    assert script.advance(1) == ["FAILED app/large"]


def test_i38_no_more_is_asked_for_than_the_quota_would_let_run() -> None:
    script = cluster(1000, room(3))
    script.ask("app", "a", "b", "c", "d", "e", vcore=1000)
    assert hints(script) == ["app/b", "app/c"]
    assert hints(script) == []
    # room in the quota again: the next one
    script.release("app", "a-0")
    assert hints(script) == ["app/d"]


@pytest.mark.parametrize(
    ("vcore", "tags"), [(2000, {}), (1000, {"yunikorn.apache.org/requiredNode": "n1"})]
)
def test_i38_beyond_a_quota_or_for_a_node_is_not_told(vcore: int, tags: dict[str, str]) -> None:
    script = cluster(500, room(1))
    script.ask("app", "a", tags=tags, vcore=vcore)
    assert hints(script) == []


def test_i38_applications_that_wait_for_a_place_were_not_tried() -> None:
    script = cluster(1000, ONE_RUNS, "one", "two")
    assert hints(script) == []
    script.ask("one", "b", vcore=1000)
    assert hints(script) == ["one/b"]
    # its turn: tried, and told of
    script.remove_app("one")
    script.node("n1", NodeInfo.DRAIN_NODE)
    assert hints(script) == ["two/a"]


def test_i38_held_asks_gangs_at_the_gate_and_asks_for_placeholders_are_not_told_of() -> None:
    script = cluster(2000, room(4), "one", "other")
    script.schedule()
    script.app("gang", "root.q", gang={"vcore": 3000})
    script.ask("gang", "p", "q", "r", group="g", placeholder=True, vcore=1000)
    script.ask("gang", "x", group="g", vcore=1000)
    assert hints(script) == []
    # the gate opens: the placeholders are told of (G12), the real ask is not
    script.remove_app("one")
    script.node("n1", NodeInfo.DRAIN_NODE)
    assert hints(script) == ["gang/p", "gang/q", "gang/r"]
    script = scripted(vcore=2000)
    script.app("app", gang={"vcore": 2000})
    script.ask("app", "p", "q", group="g", placeholder=True, vcore=1000)
    script.schedule()
    script.ask("app", "r", "s", "t", group="g", vcore=1000)
    # two replacements in flight; none is left for the third, which only lacks a node (X36)
    assert hints(script) == ["app/t"]
    script.confirm()
    assert hints(script) == []


def test_i38_inspection_may_be_asked_for_and_a_paused_managers_asks_are_not_told_of() -> None:
    script = cluster(500, "", "app")
    # not before it was tried
    assert script.scheduler.inspect(script.now) == []
    script.schedule()
    ((rm_id, message),) = script.scheduler.inspect(script.now)
    assert (rm_id, message.allocationKey) == ("rm", "a")
    assert script.scheduler.inspect(script.now) == []
    script = cluster(500)
    script.scheduler.disconnect("rm", script.now)
    script.ask("app", "a", vcore=1000)
    assert hints(script) == []
    script.scheduler.reconnect("rm", script.now)
    assert hints(script) == ["app/a"]


# -- in slices -------------------------------------------------------------------------------------


def many(slices: bool) -> Script:
    """Asks of several applications that lack nodes, some behind a quota."""
    script = Script(tree("a", "b, resources: {max: {vcore: 30m}}"))
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


def asks_told(script: Script) -> set[tuple[str, str]]:
    """Since this was asked last."""
    told = [m.message for m in script.messages if hasattr(m.message, "state")]
    script.messages.clear()
    return {(each.applicartionID, each.allocationKey) for each in told}


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_i38_5_11_slices_tell_the_same_in_the_same_order(size: int) -> None:
    whole, sliced = many(slices=False), many(slices=True)
    assert len(whole.advance(1)) == 119 + 30
    assert sliced.advance(1) == []
    assert max(in_slices(sliced, size)) <= size
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
    told = asks_told(script)
    in_slices(script, 8)
    names = asks_told(script)
    assert names
    assert ("x", "late") not in names
    assert ("y", "5-7") not in names
    assert "z" not in {app for app, _ in names}
    assert not names & told
    partition = script.scheduler.partition()
    assert all(key in partition.applications[app].asks for app, key in names)
    # the next look tells of what is left, and no ask is told of twice
    script.advance(1)
    in_slices(script, 8)
    last = asks_told(script)
    assert not last & names
    assert ("x", "late") in last


# -- explanations ----------------------------------------------------------------------------------


def explain(script: Script, app: str = "app", key: str = "a") -> Any:
    script.schedule()
    return script.scheduler.explain(app, key)


def test_explain_a_quota_with_its_numbers() -> None:
    script = scripted(tree(f"p, {room(3)}, {below('q')}"), "app:root.p.q", vcore=9000)
    script.ask("app", "a", "b", vcore=2000)
    found = explain(script, "app", "b")
    (reason,) = found.reasons
    assert reason == "queue root.p: limit 3 CPU, used 2 CPU, asked 2 CPU, headroom 1 CPU"
    assert found.remedies == ("raise the max of root.p by 1 CPU",)
    assert all(not check.remedy for check in found.checks if check.passed)
    assert not found.hopeless


def test_explain_a_job_that_fits_no_node() -> None:
    script = Script()
    script.node("n1", vcore=80_000, memory=504 * GIB)
    script.node("n2", vcore=12_000, memory=1024 * GIB)
    script.app("app")
    script.ask("app", "a", vcore=80_000, memory=512 * GIB)
    found = explain(script)
    assert found.hopeless
    (check,) = [c for c in found.checks if c.about == "node sizes"]
    assert not check.passed
    for word in ("80 CPU", "512 GiB memory", "1 TiB memory", "2 nodes"):
        assert word in check.text
    assert check.remedy == "add a node with 80 CPU and 512 GiB memory"


def test_explain_maxapplications_and_no_node_at_all() -> None:
    found = explain(cluster(4000, ONE_RUNS, "one", "two"), "two")
    assert found.reasons == ("queue root.q runs 1 of 1 applications",)
    assert found.remedies == ("raise maxapplications of root.q to 2",)
    script = Script()
    script.app("app")
    script.ask("app", "a", vcore=1000)
    found = explain(script)
    assert found.key == "app/a"
    assert found.hopeless


def test_explain_a_paused_manager_and_predicates_that_refuse() -> None:
    script = cluster(4000, "", "app")
    script.scheduler.set_predicate("rm", lambda key, node, allocate: "taint")
    assert any("taint" in text for text in explain(script).reasons)
    script.scheduler.disconnect("rm", script.now)
    assert any("Paused" in text for text in explain(script).reasons)


def test_explain_what_is_not_pending_is_a_key_error() -> None:
    script = cluster(1000, "", "app")
    script.schedule()
    for app, key in (("app", "a"), ("app", "x"), ("nobody", "a")):
        with pytest.raises(KeyError):
            script.scheduler.explain(app, key)
