"""Nodes arrive, change, drain and go, and what happens to whom then (I29 to I33, X19, X20, M7, 2.11)."""

import pytest
from core_steps import on_nodes, partitions, refused, run, serve, submit
from core_world import MESSAGE_ORDERS, in_order, queues, refuse, report, scripted, state

from quadriga import si
from quadriga.si import NodeInfo, NodeRequest, TerminationType
from quadriga.si.constants import NODE_PARTITION, TAG_REQUIRED_NODE
from quadriga.sim.scripted.script import ONE_QUEUE, Script, resource


def node_state(script: Script, name: str = "n1") -> str:
    return script.scheduler.partition().nodes[name].state


def placed(script: Script, app: str = "app", size: int = 1000, key: str = "a") -> Script:
    """An application with one allocation."""
    run(script, app, key, vcore=size)
    return script


def existing(
    uuid: str, app: str = "app", *, group: str = "", placeholder: bool = False, vcore: int = 1000
) -> si.Allocation:
    return si.Allocation(
        allocationKey=uuid.rsplit("-", 1)[0],
        UUID=uuid,
        applicationID=app,
        partitionName="default",
        resourcePerAlloc=resource({"vcore": vcore}),
        taskGroupName=group,
        placeholder=placeholder,
        nodeID="n1",
    )


# -- arrival ---------------------------------------------------------------------------------------


def test_i33_a_node_needs_an_id_and_no_negative_resources_but_no_capacity() -> None:
    script = Script()
    refused(script.node("", vcore=1), "node ", "nodeID")
    refused(script.node("n1", vcore=-(2**63)), "node n1", "schedulableResource[vcore]")
    refused(script.node("n1", vcore=1, occupied={"vcore": -1}), "node n1", "occupiedResource")
    assert script.scheduler.partition().nodes == {}
    # the id is still free
    assert script.node("n1", vcore=1000) == ["accepted node n1"]
    update = si.NodeInfo.UPDATE
    refused(script.node("n1", update, vcore=-1), "node n1")
    refused(script.node("n1", update, vcore=5, occupied={"vcore": -1}), "node n1")
    assert script.scheduler.partition().capacity[1] == 1000  # nothing half applied
    refused(script.app("app", gang={"vcore": -1}), "app", "placeholderAsk")
    script = Script()
    assert script.node("n1") == ["accepted node n1"]
    placed(script)
    assert script.scheduler.application("app").state == "Accepted"
    script.node("n1", si.NodeInfo.UPDATE, vcore=1000)
    assert script.schedule()[-1] == "new app/a-0 on n1"


def test_i29_i31_x20_i32_a_draining_node_keeps_what_runs_and_takes_nothing_new() -> None:
    script = on_nodes(n1=4000)
    placed(script)
    refusal = "node n1 is Schedulable: schedule is not possible"
    refused(script.node("n1", si.NodeInfo.DRAIN_TO_SCHEDULABLE), "node n1", refusal)
    assert node_state(script) == "Schedulable"
    for action in (si.NodeInfo.DRAIN_NODE, si.NodeInfo.UPDATE, si.NodeInfo.DRAIN_NODE):
        assert script.node("n1", action, vcore=4000) == []
        assert node_state(script) == "Draining"
        assert serve(script, "app", "b", vcore=1000) == []
    assert list(script.scheduler.application("app").allocations) == ["a-0"]
    assert script.node("n1", si.NodeInfo.DRAIN_TO_SCHEDULABLE) == []
    assert script.schedule() == ["new app/b-0 on n1"]


# -- capacity, occupation, attributes --------------------------------------------------------------


def test_i33_an_update_replaces_attributes_and_leaves_capacity_alone() -> None:
    script = Script()
    script.node("n1", vcore=1000, attributes={"si/zone": "a", "si/os": "linux"})
    script.node("n1", si.NodeInfo.UPDATE, attributes={"si/zone": "b"})
    assert script.scheduler.partition().nodes["n1"].attributes == {"si/zone": "b"}
    assert placed(script).scheduler.application("app").state == "Running"


def test_x19_occupied_resources_of_whatever_type_are_not_given_to_anybody() -> None:
    script = Script()
    script.node("n1", vcore=4000, occupied={"vcore": 3000})
    assert run(script, "app", "a", "b", vcore=1000) == ["app Running (run)", "new app/a-0 on n1"]
    # less is occupied: room for the other one
    script.node("n1", si.NodeInfo.UPDATE, occupied={"vcore": 2000})
    assert script.schedule() == ["new app/b-0 on n1"]
    # more than there is: nothing is evicted
    script.node("n1", si.NodeInfo.UPDATE, occupied={"vcore": 4000})
    assert serve(script, "app", "c", vcore=1000) == []
    assert set(script.scheduler.application("app").allocations) == {"a-0", "b-0"}
    script.node("n1", si.NodeInfo.UPDATE, occupied={})
    assert script.schedule() == ["new app/c-0 on n1"]
    script = Script()
    script.node("n1", vcore=1000, occupied={"gpu": 2})
    script.node("n1", si.NodeInfo.UPDATE, vcore=1000, disk=5)
    placed(script)
    assert serve(script, "app", "g", gpu=1) == []
    script.node("n1", si.NodeInfo.UPDATE, vcore=1000, gpu=3)
    assert script.schedule() == ["new app/g-0 on n1"]


@pytest.mark.parametrize("order", MESSAGE_ORDERS)
def test_i32_m7_decommission_ends_what_runs_there(order: str) -> None:
    script = scripted(order=order, vcore=3000)
    run(script, "app", "a", "b", vcore=1000)
    placed(script, "two")
    heard = script.node("n1", si.NodeInfo.DECOMISSION)
    released = ["released app/a-0 STOPPED_BY_RM", "released app/b-0 STOPPED_BY_RM"]
    assert [e for e in heard if "app" in e] == in_order(order, "app Waiting (wait)", *released)
    assert set(heard[2:] if order == "design" else heard) >= {"two Waiting (wait)"}
    assert "released two/a-0 STOPPED_BY_RM" in heard
    assert script.scheduler.partition().nodes == {}
    ended = [r for _, m in script.messages for r in getattr(m, "released", ())]
    assert {release.message for release in ended} == {"Node n1 Removed"}
    # nobody waits for a confirmation, one that comes is ignored (R4)
    assert script.outstanding == []
    assert script.release("app", "a-0") == []


# -- recovery --------------------------------------------------------------------------------------


def test_i33_a_node_with_a_wrong_existing_allocation_is_rejected_whole() -> None:
    script = scripted(ONE_QUEUE, "app")
    wrong = {
        "unknown application": existing("a-0", "nobody"),
        "independent": existing("a-0", ""),
        "allocationKey": existing("-0"),
        "resourcePerAlloc": existing("a-0", vcore=0),
        "no usable": existing("a-0", vcore=-1),
        "twice": existing("good-0"),
    }
    for why, allocation in wrong.items():
        (line,) = script.node("n1", existing=[existing("good-0"), allocation], vcore=4000)
        assert line.startswith("rejected node n1: ") and why in line
        assert script.scheduler.partition().nodes == {}
        assert script.scheduler.application("app").state == "New"
    assert script.node("n1", existing=[existing("good-0")], vcore=4000)[-1] == "accepted node n1"


def test_si_1_4_the_echo_has_what_was_reported() -> None:
    script = Script(version="1.5")
    script.app("app")
    script.node("n1", vcore=4000)
    reported = existing("a-0")
    reported.priority = 7
    reported.allocationTags["k"] = "v"
    reported.originator = True
    report(script, reported)
    (echo,) = script.messages[-1].message.new
    reported.allocationID = "a-0"
    assert echo == reported


def test_x12_existing_allocations_are_known_by_allocation_id_or_key_too() -> None:
    script = scripted(ONE_QUEUE, "app")
    by_id, by_key = existing("a-3"), existing("b-0")
    by_id.UUID, by_id.allocationID = "", "a-3"
    by_key.UUID = ""
    script.node("n1", existing=[by_id, by_key], vcore=4000)
    assert set(script.scheduler.application("app").allocations) == {"a-3", "b-0"}


@pytest.mark.parametrize(
    ("key", "uuid", "next_uuid"), [("other", "a-0", "a-1"), ("a", "a-" + "9" * 5000, "a-")]
)
def test_x12_a_recovered_uuid_is_never_given_twice(key: str, uuid: str, next_uuid: str) -> None:
    """Not that of another key, nor one with an endless number."""
    script = scripted(ONE_QUEUE, "app")
    odd = existing(uuid)
    odd.allocationKey = key
    script.node("n1", existing=[odd], vcore=4000)
    (line,) = serve(script, "app", "a", vcore=1000)
    assert line.startswith(f"new app/{next_uuid}")
    assert len(script.scheduler.application("app").allocations) == 2


def test_x16_a_recovered_placeholder_starts_a_gang_that_waits_at_the_gate() -> None:
    script = on_nodes(queues("default", default="resources: {max: {vcore: 4}}"), n1=9000)
    placed(script, "other", size=2000)
    submit(script, "gang", "p", gang={"vcore": 3000}, group="g", placeholder=True, vcore=1000)
    assert script.schedule() == []
    found = existing("q-0", "gang", group="g", placeholder=True)
    report(script, found)
    # it has started: what the quota has left is for it
    assert script.schedule() == ["new gang/p-0 on n1 placeholder of g"]


TIMEOUT = TerminationType.TIMEOUT
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


# -- one node --------------------------------------------------------------------------------------


def test_i32_a_daemon_reaches_a_draining_node(script: Script) -> None:
    """It belongs on every node, whatever becomes of it; everybody else is kept out."""
    script.node("n1", vcore=2000)
    script.node("n1", DRAIN)
    submit(script, "g", "daemon", vcore=1000, tags={TAG_REQUIRED_NODE: "n1"})
    assert serve(script, "g", "pod", vcore=1000) == ["g Running (run)", "new g/daemon-0 on n1"]


def test_m7_a_node_may_be_replaced_in_one_request(script: Script) -> None:
    gang(script, "n1", "n2")
    script.ask("g", "late", vcore=1000)
    size = resource({"vcore": 1000})
    actions = (GONE, NodeInfo.CREATE, NodeInfo.CREATE)
    infos = [NodeInfo(nodeID="n1", action=each, schedulableResource=size) for each in actions]
    heard = script.send(NodeRequest(rmID="rm", nodes=infos))
    assert next(line for line in heard if "node" in line) == "accepted node n1"
    assert heard[-1].startswith("rejected node n1: ") and "exists already" in heard[-1]
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


# -- whose placeholders were there -----------------------------------------------------------------


def test_s32_the_real_ones_node_goes(script: Script) -> None:
    """It is planned anew; the placeholder is on its way back all the same (X18)."""
    gang(script, "n1", "n2", size=2)
    script.node("n3", vcore=1000)
    refuse(script, lambda key, node: key == "real" and node != "n3")
    serve(script, "g", "real", group="tg", vcore=1000)
    assert script.node("n3", GONE) == []
    script.scheduler.set_predicate("rm", None)
    assert script.schedule() == ["released g/p1-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/real-1 on n2"]
    assert script.scheduler.partition().nodes["n1"].allocations == {}


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
