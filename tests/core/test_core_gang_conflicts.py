"""Where the sources differ (1.7) and gangs are concerned: what was decided."""

from __future__ import annotations

import pytest
from core_world import (
    gang,
    in_order,
    launch,
    member,
    queues,
    running_gang,
    scripted,
    serve,
    state,
)

from quadriga.si import AllocationRequest, NodeInfo, RequestError, TerminationType
from quadriga.sim.script import ONE_QUEUE, Script

REPLACED = TerminationType.PLACEHOLDER_REPLACED
MINUTE = 60


def only(script: Script, *nodes: str) -> None:
    """Predicates accept these nodes."""
    script.scheduler.set_predicate("rm", lambda key, node, _: None if node in nodes else "no")


def test_x2_in_the_words_of_yunikorn(order: str) -> None:
    """X1, X34: the same flow, other names; a reason stays as it is."""
    script = scripted(order=order, extra={"si.stateNames": "yunikorn"}, memory=20)
    gang(script, "p0", announced=30, style="Hard")
    script.advance(15 * MINUTE)
    script.confirm()
    updates = [line for line in script.log if line.startswith("g ")]
    assert updates == [
        "g Accepted (runApplication)",
        "g Failing (ResourceReservationTimeout)",
        "g Failed (failApplication)",
    ]


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


def test_x9_held_asks_are_visible_and_not_reported_for_scale_up(script: Script) -> None:
    """And when the hold is switched off they go on."""
    script.app("g", gang={"memory": 30})
    script.ask("g", "p0", group="tg", placeholder=True, memory=1)
    serve(script, "g", "real", memory=1)
    assert script.advance(10) == []
    (reason,) = script.scheduler.explain("g", "real").reasons
    assert reason == "held until the gang is complete: has 1 B memory of 30 B memory (X9)"
    script.configure(queues("default", default="properties: {gang.hold: 'false'}"))
    assert script.schedule() == ["g Running (run)", "new g/real-0 on n1"]


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


def test_x18_any_placeholders_own_node_goes_first(script: Script) -> None:
    """A placeholder whose node will do is taken before another node is tried."""
    script.node("n2", memory=19)
    script.node("n3", memory=20)
    running_gang(script, count=3)
    app = script.scheduler.application("g")
    nodes = {uuid: held.node.node_id for uuid, held in app.placeholders.items()}
    assert sorted(nodes.values()) == ["n1", "n2", "n3"]
    only(script, "n3")
    (on_n3,) = [uuid for uuid, node in nodes.items() if node == "n3"]
    assert member(script, "real") == [f"released g/{on_n3} PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/real-0 on n3"]


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


def test_i17_a_partly_allocated_placeholder_ask_stays_one(script: Script) -> None:
    """What is allocated belongs to its ask: the key cannot become something else by then."""
    script.app("g", gang={"memory": 40})
    assert len(serve(script, "g", "p", group="tg", placeholder=True, repeat=2, memory=15)) == 1
    for group, flag in (("tg", False), ("other", True)):
        (answer,) = script.ask("g", "p", group=group, placeholder=flag, memory=5)
        assert answer.startswith("rejected ask g/p: ")
    script.release("g", "p-0")
    assert state(script) == "Accepted"


def test_i17_a_parked_ask_stays_a_member_of_its_group_and_may_want_more(script: Script) -> None:
    running_gang(script)
    member(script, "real")
    (answer,) = script.ask("g", "real", group="tg", placeholder=True, memory=1)
    assert answer.startswith("rejected ask g/real: ")
    assert member(script, "real", repeat=2, priority=3) == []
    assert script.confirm() == ["new g/real-0 on n1"]
    assert script.schedule() == ["released g/p1-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/real-1 on n1"]
    assert not script.scheduler.application("g").asks


def test_asks_releases_and_confirmations_in_one_request(script: Script) -> None:
    """M2: the ask is there before the release that would have let the application wait."""
    launch(script, "g", "a", memory=1)
    request = AllocationRequest(rmID="rm")
    ask = request.asks.add(allocationKey="b", applicationID="g", maxAllocations=1)
    ask.resourceAsk.resources["memory"].value = 1
    request.releases.allocationsToRelease.add(
        applicationID="g", UUID="a-0", terminationType=TerminationType.STOPPED_BY_RM
    )
    assert script.send(request) == ["released g/a-0 STOPPED_BY_RM"]
    assert state(script) == "Running"
