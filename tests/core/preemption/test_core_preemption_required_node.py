"""Preemption on a required node (2.8), and other effects of required nodes (5.6, 5.8)."""

from typing import Any

import pytest
from preemption_side import PREEMPTED, ask, explained, news, preempted, reserved
from tree_side import below, limits, most, tree

from quadriga.si import NodeInfo
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.scripted.script import Script


def node_of(size: int = 4, **asks: dict[str, Any]) -> Script:
    """Node n1 with an allocation of ``others`` for each ask, and one that drains, so that root has room."""
    script = Script()
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100, memory=100)
    script.app("others")
    script.app("app")
    script.node("n1", vcore=size)
    for key, said in asks.items():
        ask(script, "others", key, **{"vcore": 1, "others": False, **said})
        script.schedule()
    return script


def require(script: Script, *keys: str, node: str = "n1", **more: Any) -> None:
    ask(script, "app", *keys, tags={TAG_REQUIRED_NODE: node}, **{"vcore": 1, **more})


def victims(script: Script, **more: Any) -> list[str]:
    """The keys of the victims of one ask, ``daemon``, for node n1."""
    require(script, "daemon", **more)
    return [victim.removeprefix("others/")[:-2] for victim in preempted(script.schedule())]


HIGH, REQUIRES = {"priority": 1}, {"tags": {TAG_REQUIRED_NODE: "n1"}}
MAIN, OPTED = {"originator": True}, {"itself": False}


@pytest.mark.parametrize(
    ("size", "asks", "daemon", "chosen"),
    [
        # guarantees and the policy of the ask do not matter
        (1, {"a": {}}, {"others": False}, "a"),
        # regular ones, then who opted out, then originators, the newest first
        (5, {"x": MAIN, "o": OPTED, "y": MAIN | OPTED, "p": {}, "z": MAIN}, {"vcore": 5}, "pozyx"),
        # then by the lowest priority
        (4, {"a": HIGH, "b": {}, "c": HIGH, "d": {}}, {"priority": 1, "vcore": 4}, "dbca"),
        # nobody of higher priority, or who requires the node
        (3, {"a": HIGH, "b": {}, "c": REQUIRES}, {}, "b"),
        # as in the reference: one more is evicted than the free room requires
        (3, {"a": {}, "b": {}}, {"vcore": 2}, "ba"),
        # victims and free room together may be enough
        (4, {"a": {}, "b": {}, "c": {"priority": 9}}, {"vcore": 3}, "ba"),
    ],
)
def test_2_8_who_goes_in_which_order(
    size: int, asks: dict[str, Any], daemon: dict[str, Any], chosen: str
) -> None:
    assert victims(node_of(size, **asks), **daemon) == list(chosen)


def test_2_8_only_victims_that_help_and_none_where_too_few_until_its_node_changes() -> None:
    script = node_of()
    script.node("n1", NodeInfo.UPDATE, vcore=2, memory=10)
    script.ask("others", "a", vcore=2)
    script.ask("others", "b", memory=10)
    script.schedule()
    assert victims(script) == ["a"]
    script = node_of(3, a=HIGH, b=HIGH, c={})
    assert victims(script, vcore=2) == []
    assert reserved(script) == {"n1": "app/daemon"}
    assert "hold too little" in explained(script, "app", "daemon")
    script.release("others", "a-0")
    assert preempted(script.schedule()) == ["others/c-0"]


def test_2_8_an_ask_preempts_once() -> None:
    script = node_of(2, a={}, b={})
    assert victims(script) == ["b"]
    script.node("n1", NodeInfo.UPDATE, vcore=1)  # what comes free is not enough any more
    script.confirm(PREEMPTED)
    for _ in range(3):
        script.advance(20)
        assert script.schedule() == []
    script.release("others", "a-0")
    assert news(script.schedule()) == ["app/daemon-0 on n1"]


def test_2_8_no_preemption_while_a_quota_has_no_room() -> None:
    quota = tree("a, resources: {max: {vcore: 2m}}", "b")
    script = Script(quota)
    script.app("others", "root.b")
    script.app("app", "root.a")
    script.node("n1", vcore=4)
    script.node("n2", NodeInfo.CREATE_DRAIN, vcore=4)
    script.ask("others", "x", vcore=4)
    script.schedule()
    require(script, "daemon", vcore=2)
    script.schedule(1)
    assert reserved(script) == {"n1": "app/daemon"}
    script.node("n2", NodeInfo.DRAIN_TO_SCHEDULABLE)
    script.ask("app", "full", priority=9, vcore=1)
    script.configure(quota.replace("2m", "1m"))
    script.schedule()
    assert preempted(script.log) == []
    script.configure(quota)
    script.release("app", "full-0")
    assert preempted(script.schedule()) == ["others/x-0"]


def full(nodes: int = 2) -> Script:
    """Nodes n1, n2, ... of two vcores each, all of which application ``others`` holds."""
    script = Script()
    script.app("others")
    script.app("app")
    for number in range(1, nodes + 1):
        script.node(f"n{number}", vcore=2)
        ask(script, "others", f"{number}a", f"{number}b", others=False, vcore=1)
        script.schedule()
    return script


def test_2_8_nobody_else_gets_the_room_that_its_victims_leave() -> None:
    """It preempts although root is at its max, which is what all nodes have: the node bounds it."""
    script = full()
    ask(script, "others", "old", others=False, priority=9, vcore=1)
    script.schedule()
    require(script, "daemon", node="n2")
    assert script.schedule(1) == []
    assert reserved(script) == {"n2": "app/daemon"}
    assert preempted(script.schedule(1)) == ["others/2b-0"]
    ask(script, "others", "young", others=False, priority=9, vcore=1)
    assert script.schedule() == []
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["app/daemon-0 on n2"]
    script.release("others", "1a-0")
    assert news(script.schedule()) == ["others/old-0 on n1"]


def test_2_8_explain_does_not_name_the_max_of_root() -> None:
    script = full()
    require(script, "daemon", node="n2", priority=-1)
    script.schedule()
    checks = script.scheduler.explain("app", "daemon").checks
    assert "quota" not in {check.about for check in checks}
    assert "hold too little" in explained(script, "app", "daemon")
    ask(script, "app", "plain", vcore=1)
    others = script.scheduler.explain("app", "plain").checks
    assert [check.subject for check in others if check.about == "quota"] == ["queue root"]


@pytest.mark.parametrize(
    ("queue", "leaf", "about"),
    [
        ("a" + most(1), "root.a", "quota"),
        (f"top{most(1)}, {below('a')}", "root.top.a", "quota"),
        ("a, " + limits("users: ['*'], maxresources: {vcore: 1m}"), "root.a", "limit"),
    ],
    ids=["own max", "max above", "limit of a user"],
)
def test_2_8_a_configured_quota_still_stops_it(queue: str, leaf: str, about: str) -> None:
    script = Script(tree(queue, "b"))
    script.app("others", "root.b")
    script.app("app", leaf)
    script.node("n1", vcore=3)
    ask(script, "app", "own", vcore=1)
    ask(script, "others", "x", "y", others=False, vcore=1)
    script.schedule()
    require(script, "daemon")
    assert script.schedule() == []
    failing = [c.about for c in script.scheduler.explain("app", "daemon").checks if not c.passed]
    assert failing[0] == about
    script.release("app", "own-0")
    assert news(script.schedule()) == ["app/daemon-0 on n1"]


def test_2_7_several_asks_may_require_the_same_node() -> None:
    """Each has its reservation, preempts, and is served as soon as it fits (+1.7)."""
    script = node_of(2, a=HIGH, b={})
    require(script, "d1", vcore=2)  # there is too little that may go for it
    require(script, "d2", vcore=1)
    script.schedule()
    node = script.scheduler.partition().nodes["n1"]
    assert node.reservation is not None and node.reservation.ask.key == "app/d1"
    assert [kept.ask.key for kept in node.also_reserved] == ["app/d2"]
    assert preempted(script.log) == ["others/b-0"]
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["app/d2-0 on n1"]
    script.release("others", "a-0")
    script.release("app", "d2-0")
    assert news(script.schedule()) == ["app/d1-0 on n1"]
    assert reserved(script) == {}


def test_2_7_the_second_ask_follows_when_the_first_is_withdrawn() -> None:
    script = node_of(1, a=HIGH)
    require(script, "d1", "d2", "d3")
    script.schedule()
    script.release_ask("app", "d1")
    assert reserved(script) == {"n1": "app/d2"}
    script.release_ask("app", "d3")
    script.node("n1", NodeInfo.DECOMISSION)
    assert reserved(script) == {}
    assert script.scheduler.application("app").reservations == {}


def test_5_6_it_cancels_the_reservation_of_another_ask_even_if_it_fits() -> None:
    script = node_of(4, a=HIGH, b=HIGH)
    script.ask("others", "big", vcore=4)
    script.advance(2)
    script.schedule()
    assert reserved(script) == {"n1": "others/big"}
    require(script, "daemon")
    assert news(script.schedule(1)) == ["app/daemon-0 on n1"]


def test_i32_a_reserved_required_node_that_drains_is_still_used() -> None:
    script = node_of(1, a=HIGH)
    require(script, "daemon")
    script.schedule()
    script.node("n1", NodeInfo.DRAIN_NODE)
    script.release("others", "a-0")
    assert news(script.schedule()) == ["app/daemon-0 on n1"]
