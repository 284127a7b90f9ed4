"""Gangs that ran before the scheduler started (G56, G57, X25, 2.11)."""

from typing import Any

import pytest
from core_world import member, queues, report, reported, scripted, serve, state

from quadriga.si import Allocation, NodeInfo
from quadriga.sim.scripted.script import Script

MINUTE = 60


@pytest.fixture
def script(order: str) -> Script:
    return scripted(order=order)


def ran(key: str, group: str = "tg", **more: Any) -> Allocation:
    """An allocation of 1 as the resource manager reports it."""
    return reported(key, taskGroupName=group, memory=1, **{"nodeID": "n1", **more})


def placeholder(key: str, group: str = "tg") -> Allocation:
    return ran(key, group, placeholder=True)


def test_g56_g57_allocations_come_with_their_node(script: Script) -> None:
    """Updates before the node's answer; nothing is said to be new (5.15); the gang goes on where it was."""
    script.app("g", gang={"memory": 3})
    existing = [placeholder("p0"), placeholder("q0", group="other")]
    heard = script.node("n1", memory=20, existing=existing)
    assert heard == ["g Accepted (ask)", "accepted node n1"]
    app = script.scheduler.application("g")
    assert sorted(app.placeholders) == ["p0-0", "q0-0"]
    assert not app.asks
    ask = app.placeholders["p0-0"].ask
    assert (ask.ask_key, ask.state, ask.task_group) == ("p0", "Allocated", "tg")
    counts = {name: group.count for name, group in app.gang.task_groups.items()}
    assert counts == {"tg": 1, "other": 1}
    assert sum(app.allocated_placeholder) == 2
    script.ask("g", "p2", group="tg", placeholder=True, memory=1)
    assert member(script, "real") == [
        "g Running (run)",
        "new g/p2-0 on n1 placeholder of tg",
        "released g/p0-0 PLACEHOLDER_REPLACED",
    ]
    assert script.confirm() == ["new g/real-0 on n1"]


def test_g56_recovery_knows_no_quota(script: Script) -> None:
    script.configure(queues("default", default="resources: {max: {memory: 1}}"))
    script.app("g", gang={"memory": 1})
    script.app("h")
    existing = [ran("a", app="h", group=""), ran("b", app="h", group=""), placeholder("p0")]
    assert script.node("n1", memory=2, existing=existing)[-1] == "accepted node n1"
    assert sum(script.scheduler.application("h").queue.allocated) == 3


def test_g57_x12_without_a_task_group_it_is_a_regular_allocation(script: Script) -> None:
    """And no replacement ever touches it. Numbers go on."""
    script.app("g", gang={"memory": 1})
    existing = [placeholder("p0", group=""), ran("a", group="", UUID="a-3")]
    script.node("n1", memory=20, existing=existing)
    assert list(script.scheduler.application("g").allocations) == ["p0-0", "a-3"]
    assert state(script) == "Running"
    assert member(script, "real") == ["new g/real-0 on n1"]
    assert serve(script, "g", "a", memory=1) == ["new g/a-4 on n1"]


def test_g56_allocations_of_a_request_are_echoed_or_rejected_one_by_one(script: Script) -> None:
    script.app("g", gang={"memory": 2})
    script.node("n1", memory=20)
    assert report(script, placeholder("p0"), placeholder("p1"), ran("early")) == [
        "g Accepted (ask)",
        "new g/p0-0 on n1 placeholder of tg",
        "g Running (run)",
        "new g/p1-0 on n1 placeholder of tg",
        "new g/early-0 on n1",
    ]
    heard = report(script, ran("a", nodeID="n9"), ran("b", app="nobody"), ran("c"), ran(""))
    assert [line for line in heard if line.startswith("new")] == ["new g/c-0 on n1"]
    rejected = [line for line in heard if line.startswith("rejected allocation")]
    assert [line.split()[2] for line in rejected] == ["g/a:", "nobody/b:", "g/:"]


@pytest.mark.parametrize("first", ["real", "placeholder"])
@pytest.mark.parametrize("ends", ["replaced", "times out", "completes"])
def test_x25_a_leftover_of_a_running_application(script: Script, first: str, ends: str) -> None:
    """Whichever is reported first: a later member takes it over, or it is given back at the end."""
    existing = [ran("real"), placeholder("p1")]
    script.app("g", gang={"memory": 2}, style="Hard")
    script.node("n1", memory=20, existing=existing if first == "real" else existing[::-1])
    assert state(script) == "Running"
    if ends == "replaced":
        assert member(script, "late") == ["released g/p1-0 PLACEHOLDER_REPLACED"]
        assert script.confirm() == ["new g/late-0 on n1"]
    elif ends == "times out":
        assert script.advance(15 * MINUTE) == ["released g/p1-0 TIMEOUT"]
        assert script.confirm() == []
    else:
        script.release("g", "real-0")
        assert state(script) == "Waiting"
        assert script.advance(30) == ["released g/p1-0 TIMEOUT"]
        assert script.confirm() == ["g Completed (complete)"]
    assert state(script) == ("Completed" if ends == "completes" else "Running")


def test_recovered_on_a_draining_node(script: Script) -> None:
    script.app("g", gang={"memory": 1})
    script.node("n1", NodeInfo.CREATE_DRAIN, memory=20, existing=[placeholder("p0")])
    script.ask("g", "real", group="tg", memory=1)
    assert serve(script, "g", "more", memory=1) == []  # X39
    script.node("n1", NodeInfo.DRAIN_TO_SCHEDULABLE)
    assert script.schedule() == ["released g/p0-0 PLACEHOLDER_REPLACED", "new g/more-0 on n1"]
    assert script.confirm() == ["new g/real-0 on n1"]
