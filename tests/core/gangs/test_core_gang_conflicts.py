"""Where the sources differ (1.7) and gangs are concerned: what was decided."""

import pytest
from core_world import in_order, launch, member, queues, running_gang, scripted, serve, state

from quadriga.si import NodeInfo, RequestError
from quadriga.sim.scripted.script import ONE_QUEUE, Script

MINUTE = 60


def only(script: Script, *nodes: str) -> None:
    """Predicates accept these nodes."""
    script.scheduler.set_predicate("rm", lambda key, node, _: None if node in nodes else "no")


def test_x8_the_order_can_be_changed_while_running(script: Script) -> None:
    stopped, waits = "released a/x-{} STOPPED_BY_RM", "a Waiting (wait)"
    for number, order in enumerate(("design", "k8shim")):
        script.configure(ONE_QUEUE, extra={"si.messageOrder": order})
        script.app("a")
        serve(script, "a", "x", memory=1)
        heard = in_order(order, waits, stopped.format(number))
        assert script.release("a", f"x-{number}") == heard
    with pytest.raises(RequestError, match="neither design nor k8shim"):
        Script(extra={"si.messageOrder": "alphabetical"})


def test_x18_another_node_is_used_from_the_request_on(script: Script) -> None:
    """Decided before the release is asked for; nobody else gets the room. A full node is no other one."""
    script.node("n2", memory=5)
    running_gang(script, count=1, size=6)
    only(script, "n2")
    assert member(script, "real", size=6) == []
    script.node("n2", NodeInfo.UPDATE, memory=6)
    assert script.schedule() == ["released g/p0-0 PLACEHOLDER_REPLACED"]
    n2 = script.scheduler.partition().nodes["n2"]
    assert sum(n2.allocated) == 6
    (planned,) = n2.allocations
    assert (planned.uuid, planned.state) == ("real-0", "Planned")
    assert launch(script, "other", "x", memory=6) == []
    assert script.confirm() == ["new g/real-0 on n2"]


def test_x39_a_drained_node_loses_what_was_planned_for_it(script: Script) -> None:
    script.node("n2", memory=20)
    running_gang(script, count=1)
    only(script, "n2")
    member(script, "real")
    script.node("n2", NodeInfo.DRAIN_NODE)
    only(script, "n1", "n2")
    assert script.confirm() == ["new g/real-0 on n1"]
    assert not any(script.scheduler.partition().nodes["n2"].allocated)


def test_x26_2_1_the_last_leftover_completes_it_before_the_timer(script: Script) -> None:
    """Whoever releases it: the 30 s of Waiting are for applications without placeholders."""
    running_gang(script)
    serve(script, "g", "real", memory=1)
    script.release("g", "real-0")
    script.advance(10)
    script.release("g", "p0-0")
    assert state(script) == "Waiting"
    assert sorted(script.release("g", "p1-0")) == [
        "g Completed (complete)",
        "released g/p1-0 STOPPED_BY_RM",
    ]
    assert script.advance(20) == []


def test_x27_though_its_own_placeholder_fills_the_quota(order: str) -> None:
    """The member needs no quota of its own: it would take over its placeholder's."""
    config = queues("default", default="resources: {max: {memory: 6}}")
    script = scripted(config, order=order, memory=20)
    running_gang(script, count=1, size=6)
    only(script)
    member(script, "real", size=6)
    assert script.advance(1) == ["FAILED g/real"]


@pytest.mark.parametrize("announced", [True, False])
def test_i17_x35_a_placeholder_ask_that_changes_its_size(script: Script, announced: bool) -> None:
    script.app("g", gang={"memory": 4} if announced else None)
    assert serve(script, "g", "p", group="tg", placeholder=True, repeat=2, memory=30) == []
    assert serve(script, "g", "p", group="tg", placeholder=True, repeat=2, memory=2) == [
        "new g/p-0 on n1 placeholder of tg",
        "g Running (run)",
        "new g/p-1 on n1 placeholder of tg",
    ]
    (group,) = script.scheduler.application("g").gang.task_groups.values()
    assert (group.count, group.allocated) == (2, 2)


MINUTE = 60


def placeholders(script: Script, *keys: str, size: int = 1) -> list[str]:
    return script.ask("g", *keys, group="tg", placeholder=True, memory=size)


def test_x35_real_asks_are_held_until_all_that_were_asked_for_are_there(script: Script) -> None:
    """X9, with and without a task group, also those that came before the first placeholder ask."""
    script.app("g")
    script.ask("g", "before", memory=1)
    placeholders(script, "p0", "p1", size=15)
    assert member(script, "m0", size=15) == ["new g/p0-0 on n1 placeholder of tg"]
    assert state(script) == "Accepted"
    (reason, *_) = script.scheduler.explain("g", "before").reasons
    assert reason.startswith("held until the gang is complete: has 15 B memory of 30 B memory")
    script.node("n2", memory=15)
    heard = script.schedule()
    assert heard[:2] == ["g Running (run)", "new g/p1-0 on n2 placeholder of tg"]
    assert "new g/before-0 on n1" in heard


@pytest.mark.parametrize("announced", [{"memory": 1}, None])
def test_x17_x35_the_time_limit_of_a_gang_is_that_of_its_placeholders(
    script: Script, announced: dict[str, int] | None
) -> None:
    """It is no run limit."""
    script.app("g", gang=announced, timeout_ms=60_000)
    placeholders(script, "p0")
    member(script, "m0")
    script.confirm()
    assert script.advance(60 * MINUTE) == []
    assert state(script) == "Running"


def test_x35_a_placeholder_ask_that_is_taken_back_makes_the_gang_smaller(script: Script) -> None:
    script.app("g")
    placeholders(script, "p0")
    placeholders(script, "p1", size=100)
    assert serve(script, "g", "real", memory=1) == ["new g/p0-0 on n1 placeholder of tg"]
    assert "g Running (run)" in script.release_ask("g", "p1")


def test_x35_the_gate_is_left_out(script: Script) -> None:
    """X16 needs the total, which nobody has announced: what fits the quota is placed."""
    script.configure(queues("default", default="resources: {max: {memory: 8}}"))
    script.app("g")
    placeholders(script, "p0", "p1", "p2", size=4)
    assert len(script.schedule()) == 2


def test_x35_a_fair_queue_takes_no_placeholder_asks() -> None:
    """As it takes no placeholderAsk (G7); its other asks are served."""
    config = queues("default", default="properties: {application.sort.policy: fair}")
    script = scripted(config, "g", memory=20)
    (heard,) = placeholders(script, "p0")
    assert heard.startswith("rejected ask g/p0") and "unsupported sort type" in heard
    assert "new g/real-0 on n1" in serve(script, "g", "real", memory=1)


@pytest.mark.parametrize("style", ["", "Soft", "soft", "Spongy"])
def test_x41_a_style_that_is_not_hard_is_soft(script: Script, style: str) -> None:
    script.app("g", gang={"memory": 30}, style=style)
    placeholders(script, "p0")
    script.schedule()
    assert any("Resuming" in line for line in script.advance(15 * MINUTE))
    noted = [text for _, text in script.scheduler.notes if "gangSchedulingStyle" in text]
    note = "gangSchedulingStyle 'Spongy' of application g is taken as Soft"
    assert noted == ([note] if style == "Spongy" else [])


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_g45_x38_leftovers_are_released_at_the_timeout(script: Script, style: str) -> None:
    """A complete gang does not time out: it runs on, and later members go the normal way."""
    script.app("g", gang={"memory": 4}, style=style)
    placeholders(script, "p0", "p1", size=2)
    script.schedule()
    member(script, "m0", size=2)
    script.confirm()
    assert script.advance(15 * MINUTE) == ["released g/p1-0 TIMEOUT"]
    assert state(script) == "Running"
    assert member(script, "m1", size=2) == ["new g/m1-0 on n1"]
    assert script.confirm() == []
    assert state(script) == "Running"
    (group,) = script.scheduler.application("g").gang.task_groups.values()
    assert (group.count, group.replaced, group.timed_out) == (2, 1, 1)
