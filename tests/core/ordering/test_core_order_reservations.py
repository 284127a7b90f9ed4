"""Reservations: a node is kept for an ask that fits nowhere yet (2.7, 5.8, S6)."""

from collections.abc import Callable
from typing import Any

import pytest
from tree_side import news, reserved, tree, waited

from quadriga.core import Options
from quadriga.si import NodeInfo
from quadriga.sim.scripted.script import Script

OFF, ON = ({"scheduler.disableReservation": value} for value in ("true", "false"))


def full(*nodes: str, size: int = 4, bounded: bool = True) -> Script:
    """Nodes filled by single asks of another application; one that drains, so that root has room."""
    script = Script(
        options=Options(journal_size=None, bound_reservations=bounded, node_sort_policy="fair")
    )
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100)
    script.app("app")
    script.app("other")
    for node in nodes:
        script.node(node, vcore=size)
        script.ask("other", *(f"{node}-{n}" for n in range(size)), priority=1, vcore=1)
        script.schedule()
    return script


def waits(script: Script, *keys: str, app: str = "app", vcore: int = 2, **more: Any) -> None:
    """Asks (``big``) have found no room for two seconds."""
    script.ask(app, *(keys or ["big"]), vcore=vcore, **more)
    waited(script)


def kept(*nodes: str, **more: Any) -> Script:
    """The ask ``big`` for two vcores has one of these full nodes."""
    script = full(*nodes, **more)
    waits(script)
    assert list(reserved(script).values()) == ["app/big"]
    return script


def frees(script: Script, *uuids: str) -> None:
    for uuid in uuids:
        script.release("other", uuid)


def test_2_7_an_ask_reserves_after_two_seconds() -> None:
    script = full("n1")
    script.ask("app", "big", vcore=2)
    waited(script, 1.999)
    assert reserved(script) == {}
    script.advance(0.001)
    assert script.schedule() == []
    assert reserved(script) == {"n1": "app/big"}


def test_5_7_the_tightest_fit_is_reserved() -> None:
    """FitInScore counts what would be left over, by type; n2 has much memory to spare."""
    script = Script()
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100, memory=1000)
    script.app("app")
    for node, memory in (("n1", 50), ("n2", 90), ("n3", 40)):
        script.node(node, vcore=4, memory=memory)
        script.ask("app", node, vcore=4)
        script.schedule()
    waits(script, memory=30)
    assert reserved(script) == {"n3": "app/big"}


def test_2_7_a_reserved_node_is_hidden_from_others_and_serves_its_ask_first() -> None:
    script = kept("n1")
    script.ask("other", "small", priority=100, vcore=1)
    frees(script, "n1-0-0")
    assert script.schedule() == []
    frees(script, "n1-1-0")
    assert news(script.schedule()) == ["app/big-0 on n1"]
    assert reserved(script) == {}
    frees(script, "n1-2-0")
    assert news(script.schedule()) == ["other/small-0 on n1"]


def test_2_7_one_reservation_for_each_repeat_and_node() -> None:
    script = full("n1", "n2", "n3", bounded=False)
    waits(script, repeat=2, vcore=4)
    assert sorted(reserved(script).values()) == ["app/big", "app/big"]
    waits(script, "more", repeat=2, vcore=4)
    assert sorted(reserved(script).values()) == ["app/big", "app/big", "app/more"]


@pytest.mark.parametrize(
    ("change", "then"),
    [
        (lambda script: script.release_ask("app", "big"), ["app/next"]),
        (lambda script: script.ask("app", "big", vcore=3), ["app/big"]),
        (lambda script: script.remove_app("app"), []),
        (lambda script: script.node(*reserved(script), NodeInfo.DECOMISSION), ["app/big"]),
    ],
    ids=["ask taken back", "ask changed", "application removed", "node removed"],
)
def test_2_7_a_reservation_ends_with_its_ask_and_its_node(
    change: Callable[[Script], object], then: list[str]
) -> None:
    """Who waits may reserve in the next round."""
    script = full("n1", "n2")
    waits(script, "big", "next")
    assert list(reserved(script).values()) == ["app/big"]
    change(script)
    assert reserved(script) == {}
    script.schedule()
    assert list(reserved(script).values()) == then


def test_i32_a_drained_node_does_not_serve_its_reservation() -> None:
    script = kept("n1")
    script.node("n1", NodeInfo.DRAIN_NODE)
    frees(script, "n1-0-0", "n1-1-0")
    assert script.schedule() == []
    script.node("n1", NodeInfo.DRAIN_TO_SCHEDULABLE)
    assert news(script.schedule()) == ["app/big-0 on n1"]


@pytest.mark.parametrize(
    ("action", "room"), [(NodeInfo.DRAIN_NODE, {}), (NodeInfo.UPDATE, {"vcore": 1})]
)
def test_s6_an_ask_goes_elsewhere_when_its_reserved_node_drains_or_shrinks(
    action: NodeInfo.ActionFromRM, room: dict[str, int]
) -> None:
    script = kept("n1")
    script.node("n1", action, **room)
    script.node("n2", vcore=2)
    assert news(script.schedule()) == ["app/big-0 on n2"]
    assert reserved(script) == {}


def test_2_7_a_node_too_small_when_empty_is_not_reserved() -> None:
    script = full("n1")
    waits(script, vcore=5)
    assert reserved(script) == {}
    script.node("n2", vcore=5)
    assert news(script.schedule()) == ["app/big-0 on n2"]


def test_2_9_a_reservation_does_not_let_in_an_application_too_many() -> None:
    script = Script(tree("a, maxapplications: 1", "b"))
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100)
    script.node("n1", vcore=4)
    script.app("other", "root.b")
    script.ask("other", "x", "y", vcore=2)
    script.schedule()
    script.app("one", "root.a")
    script.app("two", "root.a")
    waits(script, app="one", vcore=4)
    assert reserved(script) == {"n1": "one/big"}
    script.node("n2", vcore=1)
    script.ask("two", "small", vcore=1)
    assert news(script.schedule()) == ["two/small-0 on n2"]
    frees(script, "x-0", "y-0")
    assert script.schedule() == []
    script.release("two", "small-0")  # Waiting no longer counts
    assert news(script.schedule()) == ["one/big-0 on n1"]


def test_2_2_3_switched_off_and_on_again_while_an_ask_waits() -> None:
    script = Script()
    script.node("n1", vcore=2)
    script.node("n2", vcore=1)
    script.app("app")
    script.ask("app", "small", vcore=1)
    script.schedule()
    waits(script)
    assert list(reserved(script).values()) == ["app/big"]
    script.configure("", OFF)
    assert reserved(script) == {}
    script.schedule()
    assert reserved(script) == {}
    script.configure("", ON)
    script.schedule()
    assert list(reserved(script).values()) == ["app/big"]


def test_i36_predicates_are_asked_before_a_reservation() -> None:
    """``allocate`` is false then."""
    script = full("n1", "n2")
    asked: list[tuple[str, str, bool]] = []

    def predicate(key: str, node: str, allocate: bool) -> str | None:
        asked.append((key, node, allocate))
        return "taint"

    script.ask("app", "big", vcore=2)
    script.schedule()
    script.scheduler.set_predicate("rm", predicate)
    script.advance(2)
    script.schedule()
    assert reserved(script) == {}
    assert {(key, allocate) for key, _, allocate in asked} == {("big", False)}
    script.scheduler.set_predicate("rm", None)
    waited(script)
    assert list(reserved(script).values()) == ["app/big"]
