"""Reports of allocations: their age, whose they are, and what is known already (2.11, 2.20, X12, X21)."""

from typing import Any

import pytest
from core_world import later, report, scripted, serve

from quadriga.core.model.application import Application
from quadriga.si import Allocation, NodeInfo, PreemptionPolicy, TerminationType
from quadriga.si.constants import CREATION_TIME, KEY_ALLOW_PREEMPTION, TAG_CREATION_TIME
from quadriga.sim.scripted.script import ONE_QUEUE, Script, resource

REPLACED = TerminationType.PLACEHOLDER_REPLACED


@pytest.fixture
def script(order: str) -> Script:
    return scripted(ONE_QUEUE, "app", order=order, vcore=10_000)


def after(seconds: int) -> Script:
    """Such a script at a time."""
    script = Script()
    script.advance(seconds)
    script.node("n1", vcore=10_000)
    script.app("app")
    return script


def ran(key: str, size: int = 1000, **more: Any) -> Allocation:
    """An allocation as it is reported; ``uuid`` is left out where it is empty."""
    message = Allocation(
        allocationKey=key,
        UUID=more.pop("uuid", f"{key}-0"),
        applicationID=more.pop("app", "app"),
        nodeID=more.pop("node", "n1"),
        resourcePerAlloc=resource({"vcore": size, **more.pop("extra", {})}),
        taskGroupName=more.pop("group", ""),
        placeholder=more.pop("placeholder", False),
        allocationTags=more.pop("tags", {}),
    )
    assert not more
    return message


def app(script: Script, name: str = "app") -> Application:
    return script.scheduler.application(name)


def vcore(script: Script, book: Any) -> int:
    place = script.scheduler.partition().registry.position("vcore")
    return int(book[place]) if place < len(book) else 0


def used(script: Script) -> tuple[int, int, int]:
    """vcore of the node, the queue and the application."""
    node = script.scheduler.partition().nodes["n1"]
    one = app(script)
    books = (node.allocated, one.queue.allocated, one.allocated)
    return tuple(vcore(script, book) for book in books)  # type: ignore[return-value]


# -- the same again --------------------------------------------------------------------------------


def test_x12_a_key_alone_names_the_one_allocation_that_it_has(script: Script) -> None:
    serve(script, "app", "a", vcore=1000)
    script.release("app", "a-0")
    serve(script, "app", "a", vcore=1000)
    assert list(app(script).allocations) == ["a-1"]
    assert report(script, ran("a", 3000, uuid="")) == []
    assert list(app(script).allocations) == ["a-1"]
    assert used(script) == (3000, 3000, 3000)


# -- another size ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [500, 4000, 12_000])
def test_2_20_v2_an_allocation_changes_its_size_in_all_books(script: Script, size: int) -> None:
    """It may exceed the node."""
    report(script, ran("a"), ran("b"))
    assert report(script, ran("a", size)) == []
    assert used(script) == (size + 1000,) * 3
    node = script.scheduler.partition().nodes["n1"]
    assert vcore(script, node.available) == 10_000 - size - 1000
    assert app(script).state == "Running"
    script.release("app", "a-0")
    assert used(script) == (1000, 1000, 1000)


def test_2_20_the_new_size_may_have_other_types_also_of_a_placeholder(script: Script) -> None:
    report(script, ran("a"))
    for more in ({"gpu": 2}, {}):
        report(script, ran("a", extra=more))
        registry = script.scheduler.partition().registry
        assert registry.mapping(app(script).allocated) == {"vcore": 1000, **more}
    script.app("g", gang={"vcore": 3000})
    serve(script, "g", "p0", "p1", group="tg", placeholder=True, vcore=1000)
    assert app(script, "g").state == "Accepted"
    assert report(script, ran("p0", 2000, app="g", group="tg", placeholder=True)) == [
        "g Running (run)"
    ]
    assert vcore(script, app(script, "g").allocated_placeholder) == 3000


def test_2_20_i8_what_a_replacement_in_flight_is_about_cannot_change(script: Script) -> None:
    script.app("g", gang={"vcore": 1000})
    serve(script, "g", "p", group="tg", placeholder=True, vcore=1000)
    serve(script, "g", "real", group="tg", vcore=1000)
    (line,) = report(script, ran("p", 500, app="g", group="tg", placeholder=True))
    assert line == "rejected allocation g/p: is Releasing and cannot change"
    # but it may be reported as it is
    assert report(script, ran("p", app="g", group="tg", placeholder=True)) == []
    (by_uuid,) = report(script, ran("real", app="g", group="tg"))
    (by_key,) = report(script, ran("real", app="g", group="tg", uuid="real-7"))
    assert "replacement in flight" in by_uuid
    assert "takes over a placeholder" in by_key
    assert script.confirm(REPLACED) == ["new g/real-0 on n1"]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"node": "n2"}, "runs on node n1"),
        ({"group": "tg"}, "another part in the gang"),
        ({"size": -5}, "resourcePerAlloc"),
        ({"key": "b", "uuid": "a-0"}, "allocationKey 'a'"),
    ],
)
def test_2_20_what_is_another_allocation(script: Script, wrong: dict[str, Any], why: str) -> None:
    script.node("n2", vcore=10_000)
    report(script, ran("a"))
    (line,) = report(script, ran(**{"key": "a", **wrong}))
    assert line.startswith("rejected allocation app/") and why in line
    assert used(script) == (1000, 1000, 1000)


def test_2_20_a_known_allocation_does_not_come_with_a_new_node(script: Script) -> None:
    report(script, ran("a"))
    (line,) = script.node("n2", existing=[ran("a", node="n2")], vcore=1000)
    assert line.startswith("rejected node n2: ") and "known already" in line


# -- what was asked for ----------------------------------------------------------------------------


@pytest.mark.parametrize("by_node", [True, False])
def test_i8_a_pending_ask_whose_pod_runs_is_not_served_again(script: Script, by_node: bool) -> None:
    """Whatever the order in which they are told: no pod gets two places."""
    script.ask("app", "a", "b", vcore=1000)
    if by_node:
        heard = script.node("n2", existing=[ran("a", node="n2")], vcore=10_000)
        assert heard == ["app Running (run)", "accepted node n2"]
    else:
        assert report(script, ran("a")) == ["app Running (run)", "new app/a-0 on n1"]
    assert list(app(script).asks) == ["b"]
    assert [line.split()[1] for line in script.schedule()] == ["app/b-0"]
    assert sorted(app(script).allocations) == ["a-0", "b-0"]


def test_i8_it_takes_one_repeat(script: Script) -> None:
    script.ask("app", "a", vcore=1000, repeat=2)
    report(script, ran("a"))
    assert app(script).asks["a"].pending == 1
    assert script.schedule() == ["new app/a-1 on n1"]
    assert script.schedule() == []


def test_i8_a_reservation_ends_with_its_ask(script: Script) -> None:
    script.ask("app", "before", vcore=5000)
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=10_000)
    script.schedule()
    serve(script, "app", "a", vcore=10_000)
    later(script, 2)
    partition = script.scheduler.partition()
    assert partition.nodes["n1"].reservation is not None
    report(script, ran("a", 10_000))
    assert partition.nodes["n1"].reservation is None
    assert not partition.reservations


def test_i8_a_placeholder_is_not_the_pod_of_a_real_ask(script: Script) -> None:
    script.ask("app", "a", vcore=1000)
    (line,) = report(script, ran("a", group="tg", placeholder=True))
    assert "another part in the gang" in line


# -- what a report says of itself ------------------------------------------------------------------


@pytest.mark.parametrize("tag", [CREATION_TIME, TAG_CREATION_TIME])
def test_2_11_age_comes_from_the_tag(tag: str) -> None:
    """So what was old before a restart is old after it, and the application with it."""
    script = after(1000)
    assert app(script).submitted == 1000 * 10**9
    report(script, ran("a", tags={tag: "400"}), ran("b", tags={tag: "300"}), ran("c"))
    created = {uuid: a.ask.created // 10**9 for uuid, a in app(script).allocations.items()}
    assert created == {"a-0": 400, "b-0": 300, "c-0": 1000}
    assert app(script).submitted == 300 * 10**9
    # it ran before this scheduler saw it run
    assert app(script).start_time == 300 * 10**9
    # but its place here is from now on
    assert app(script).allocations["a-0"].created == 1000 * 10**9


@pytest.mark.parametrize("text", ["", "soon", "-5", "9" * 30, "99999"])
def test_2_11_a_tag_that_says_nothing_is_left_aside(text: str) -> None:
    script = after(1000)
    report(script, ran("a", tags={CREATION_TIME: text}))
    assert app(script).allocations["a-0"].ask.created == 1000 * 10**9


def test_2_11_without_a_policy_it_may_be_preempted(script: Script) -> None:
    opted_out = ran("b")
    opted_out.preemptionPolicy.CopyFrom(PreemptionPolicy(allowPreemptOther=True))
    by_tag = ran("c", tags={KEY_ALLOW_PREEMPTION: "false"})
    report(script, ran("a"), opted_out, by_tag)
    policies = {
        key: (a.ask.terms.allow_preempt_self, a.ask.terms.allow_preempt_other)
        for key, a in app(script).allocations.items()
    }
    assert policies == {"a-0": (True, False), "b-0": (False, True), "c-0": (False, False)}
