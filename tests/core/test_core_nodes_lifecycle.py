"""Whole lives of nodes, and what happens to whom when one drains, shrinks or goes (I29 to I33, M7,
X20, 2.11)."""

from __future__ import annotations

import pytest
from core_steps import partitions, refused, run, serve, submit
from core_world import in_order, scripted, state

from quadriga.si import NodeInfo, NodeRequest, TerminationType
from quadriga.si.constants import NODE_PARTITION, TAG_REQUIRED_NODE
from quadriga.sim.script import Script, resource

TIMEOUT = TerminationType.TIMEOUT
REPLACED = TerminationType.PLACEHOLDER_REPLACED
GONE, DRAIN, OPEN = NodeInfo.DECOMISSION, NodeInfo.DRAIN_NODE, NodeInfo.DRAIN_TO_SCHEDULABLE


@pytest.fixture
def script(order: str) -> Script:
    return scripted(order=order)


def gang(script: Script, *nodes: str, style: str = "Soft", size: int = 2, asked: int = 2) -> None:
    """A gang whose placeholders land on these nodes, one each."""
    for node in nodes:
        script.node(node, vcore=1000)
    script.app("g", gang={"vcore": 1000 * size}, style=style, timeout_ms=60_000)
    keys = [f"p{at}" for at in range(asked)]
    serve(script, "g", *keys, group="tg", placeholder=True, vcore=1000)


def act(script: Script, *actions: tuple[str, NodeInfo.ActionFromRM]) -> list[str]:
    """Several actions in one request."""
    infos = [
        NodeInfo(nodeID=name, action=action, schedulableResource=resource({"vcore": 1000}))
        for name, action in actions
    ]
    return script.send(NodeRequest(rmID="rm", nodes=infos))


# -- one node --------------------------------------------------------------------------------------


def test_i29_a_whole_life(script: Script) -> None:
    assert script.node("n1", NodeInfo.CREATE_DRAIN, vcore=1000) == ["accepted node n1"]
    assert run(script, "g", "a", vcore=1000) == []
    assert script.node("n1", OPEN) == []
    assert script.schedule() == ["g Running (run)", "new g/a-0 on n1"]
    assert script.node("n1", NodeInfo.UPDATE, vcore=2000) == []
    assert serve(script, "g", "b", "c", vcore=1000) == ["new g/b-0 on n1"]
    assert script.node("n1", DRAIN) == []
    script.release("g", "b-0")
    assert script.schedule() == []
    assert script.node("n1", OPEN) == []
    assert script.schedule() == ["new g/c-0 on n1"]
    assert script.node("n1", DRAIN) == []
    script.release("g", "a-0")
    heard = script.node("n1", GONE)
    assert "released g/c-0 STOPPED_BY_RM" in heard
    assert state(script) == "Waiting"
    assert [(r.trigger, r.target) for r in script.scheduler.story("node/n1")] == [
        ("accept", "Draining"),
        *[("schedule", "Schedulable"), ("drain", "Draining")] * 2,
        ("decommission", "Removed"),
    ]


def test_i32_a_daemon_reaches_a_draining_node(script: Script) -> None:
    """It belongs on every node, whatever becomes of it; everybody else is kept out."""
    script.node("n1", vcore=2000)
    script.node("n1", DRAIN)
    submit(script, "g", "daemon", vcore=1000, tags={TAG_REQUIRED_NODE: "n1"})
    assert serve(script, "g", "pod", vcore=1000) == ["g Running (run)", "new g/daemon-0 on n1"]


def test_i32_a_daemon_waits_for_its_node_to_come_back(script: Script) -> None:
    script.node("n1", vcore=1000)
    script.app("g")
    script.node("n1", GONE)
    assert serve(script, "g", "daemon", vcore=1000, tags={TAG_REQUIRED_NODE: "n1"}) == []
    script.node("n2", vcore=1000)
    assert script.schedule() == []
    script.node("n1", vcore=1000)
    assert script.schedule()[-1] == "new g/daemon-0 on n1"


def test_m7_a_node_may_be_replaced_in_one_request(script: Script) -> None:
    gang(script, "n1", "n2")
    script.ask("g", "late", vcore=1000)
    heard = act(script, ("n1", GONE), ("n1", NodeInfo.CREATE), ("n1", NodeInfo.CREATE))
    assert next(line for line in heard if "node" in line) == "accepted node n1"
    assert heard[-1].startswith("rejected node n1: ") and "I30" in heard[-1]
    assert script.schedule() == ["new g/late-0 on n1"]


def test_i30_a_node_is_found_in_its_partition(order: str) -> None:
    script = Script(partitions("default", "gpu"), extra={"si.messageOrder": order})
    script.node("n1", vcore=1000, attributes={NODE_PARTITION: "gpu"})
    assert list(script.scheduler.partition("gpu").nodes) == ["n1"]
    # the id is taken in the other one, too, and later actions need no attribute
    refused(script.node("n1", vcore=1000), "node n1")
    assert script.node("n1", NodeInfo.UPDATE, vcore=3000) == []
    assert script.node("n1", DRAIN) == []
    assert run(script, "g", "a", partition="gpu", vcore=2000) == []
    assert script.node("n1", OPEN) == []
    assert script.schedule()[-1] == "new g/a-0 on n1"
    script.node("n1", GONE)
    assert script.node("n1", vcore=1000) == ["accepted node n1"]
    assert list(script.scheduler.partition("default").nodes) == ["n1"]


def test_i33_a_partition_that_goes_takes_no_more_nodes(order: str) -> None:
    """It ends with its last node and application."""
    script = Script(partitions("default", "gpu"), extra={"si.messageOrder": order})
    script.node("n1", vcore=1000, attributes={NODE_PARTITION: "gpu"})
    script.configure(partitions("default"))
    (line,) = script.node("n2", vcore=1000, attributes={NODE_PARTITION: "gpu"})
    assert line == "rejected node n2: partition gpu is Draining and takes no node n2"
    script.node("n1", GONE)
    assert [partition.name for partition in script.scheduler.partitions()] == ["default"]
    (line,) = script.node("n2", vcore=1000, attributes={NODE_PARTITION: "gpu"})
    assert "does not exist" in line


def test_m7_roots_quota_is_what_the_nodes_have(script: Script) -> None:
    """It follows every change of a node, also below what is used (5.1)."""
    partition = script.scheduler.partition()
    place = partition.registry.position("vcore")

    def limit() -> int | None:
        found = dict(partition.root.limits).get(place)
        assert partition.capacity[place] == (found or 0)
        return found

    assert limit() is None
    script.node("n1", vcore=1000)
    script.node("n2", NodeInfo.CREATE_DRAIN, vcore=2000)
    assert limit() == 3000  # a draining node's capacity counts as well
    run(script, "g", "a", vcore=1000)
    script.node("n1", NodeInfo.UPDATE, vcore=500)
    assert limit() == 2500
    script.node("n2", GONE)
    assert limit() == 500
    assert serve(script, "g", "b", vcore=100) == []
    script.node("n1", GONE)
    assert limit() is None


# -- whose placeholders were there -----------------------------------------------------------------


def test_s32_the_placeholders_node_goes_and_not_the_real_ones(script: Script, order: str) -> None:
    """The replacement is complete: it only waited for the placeholder to be gone (2.11)."""
    gang(script, "n1", "n2", size=2)
    script.node("n3", vcore=1000)
    script.scheduler.set_predicate(
        "rm", lambda key, node, allocate: None if node == "n3" or key != "real" else "no"
    )
    script.ask("g", "real", group="tg", vcore=1000)
    assert script.schedule() == ["released g/p0-0 PLACEHOLDER_REPLACED"]
    assert script.node("n1", GONE) == ["released g/p0-0 STOPPED_BY_RM", "new g/real-0 on n3"]
    # the confirmation is too late
    assert script.confirm() == []
    assert state(script) == "Running"


def test_s32_the_real_ones_node_goes(script: Script) -> None:
    """It is planned anew; the placeholder is on its way back all the same (X18)."""
    gang(script, "n1", "n2", size=2)
    script.node("n3", vcore=1000)
    script.scheduler.set_predicate(
        "rm", lambda key, node, allocate: None if node == "n3" or key != "real" else "no"
    )
    serve(script, "g", "real", group="tg", vcore=1000)
    assert script.node("n3", GONE) == []
    script.scheduler.set_predicate("rm", None)
    assert script.schedule() == ["released g/p1-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/real-1 on n2"]
    assert script.scheduler.partition().nodes["n1"].allocations == {}


def test_s32_one_node_for_both(script: Script, order: str) -> None:
    gang(script, "n1", "n2", size=2)
    script.ask("g", "real", group="tg", vcore=1000)
    assert script.schedule() == ["released g/p0-0 PLACEHOLDER_REPLACED"]
    assert script.node("n1", GONE) == ["released g/p0-0 STOPPED_BY_RM"]
    group = script.scheduler.application("g").gang.task_groups["tg"]
    assert (group.count, group.replaced, group.timed_out) == (2, 0, 1)
    assert script.schedule() == ["released g/p1-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/real-1 on n2"]


def test_x39_draining_nodes_serve_their_gang_when_they_are_open_again(script: Script) -> None:
    gang(script, "n1", "n2", size=2)
    script.node("n1", DRAIN)
    script.node("n2", DRAIN)
    assert serve(script, "g", "r0", "r1", "more", group="tg", vcore=1000) == []
    script.node("n2", GONE)  # with its placeholder
    assert script.schedule() == []
    script.node("n1", OPEN)
    assert script.schedule() == ["released g/p0-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/r0-0 on n1"]
    script.release("g", "r0-0")
    assert script.schedule() == ["new g/r1-0 on n1"]


# -- whose end was waited for ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("style", "before", "after"),
    [("Hard", "Killing", "g Killed (killed)"), ("Soft", "Resuming", "g Accepted (resumed)")],
)
def test_g48_a_node_that_goes_takes_the_last_placeholder_of_a_gang_that_was_late(
    script: Script, order: str, style: str, before: str, after: str
) -> None:
    """It is gone, in whatever way."""
    gang(script, "n1", style=style)
    script.advance(60)
    assert state(script) == before
    assert script.node("n1", GONE) == in_order(order, after, "released g/p0-0 STOPPED_BY_RM")
    assert script.confirm() == []


def test_x26_a_node_that_goes_completes_an_application(script: Script, order: str) -> None:
    gang(script, "n1", "n2")
    serve(script, "g", "real", group="tg", vcore=1000)
    script.confirm()
    script.release("g", "real-0")
    script.advance(30)
    assert state(script) == "Waiting"
    heard = script.node("n2", GONE)
    assert heard == in_order(order, "g Completed (complete)", "released g/p1-0 STOPPED_BY_RM")


def test_s5_a_node_that_goes_takes_part_of_a_gang_that_gathers(script: Script) -> None:
    """Hard: it waits for the timer. What is left is given back then (G46)."""
    gang(script, "n1", "n2", style="Hard", size=3, asked=3)
    assert state(script) == "Accepted"
    assert script.node("n1", GONE) == ["released g/p0-0 STOPPED_BY_RM"]
    assert state(script) == "Accepted"
    script.advance(60)
    assert state(script) == "Killing"
    assert script.confirm() == ["g Killed (killed)"]


def test_i32_pending_asks_outlive_the_node(script: Script, order: str) -> None:
    """An application with something to ask for does not enter Waiting (G40)."""
    script.node("n1", vcore=1000)
    run(script, "g", "a", "b", vcore=1000)
    assert script.node("n1", GONE) == ["released g/a-0 STOPPED_BY_RM"]
    assert state(script) == "Running"
    script.node("n2", vcore=1000)
    assert script.schedule() == ["new g/b-0 on n2"]


def test_i32_a_release_in_flight_ends_with_its_node(script: Script, order: str) -> None:
    """Its confirmation comes too late and is ignored (V9)."""
    script.node("n1", vcore=1000)
    run(script, "g", "a", vcore=1000, timeout_ms=10_000)
    assert script.advance(10) == ["released g/a-0 TIMEOUT"]
    gone = "released g/a-0 STOPPED_BY_RM"
    assert script.node("n1", GONE) == in_order(order, "g Waiting (wait)", gone)
    assert script.confirm() == []
    # and it is not asked for again
    assert all("released" not in line for line in script.advance(1000))
