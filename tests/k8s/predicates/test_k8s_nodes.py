"""Nodes, foreign pods and resizes as the core hears of them (K85, K91 to K97, T13)."""

from k8s_world import OURS, World, cluster
from msgspec.structs import replace

from quadriga.k8s.objects import NodeStatus
from quadriga.k8s.shim.actions import Bind
from quadriga.k8s.shim.inputs import BindEnded, CoreAnswered
from quadriga.si import AcceptedNode, NodeInfo, NodeRequest, NodeResponse, RejectedNode


def node_actions(world: World) -> list[str]:
    return [
        NodeInfo.ActionFromRM.Name(node.action)
        for request in world.sent
        if isinstance(request, NodeRequest)
        for node in request.nodes
    ]


def test_k94_t13_a_node_opens_and_nothing_is_bound_while_it_is_cordoned(world: World) -> None:
    world.run(1)
    assert node_actions(world) == ["CREATE_DRAIN", "DRAIN_TO_SCHEDULABLE"]
    assert [each.reason for each in world.records] == ["NodeAccepted"]
    world.cordon("n1")
    pod = world.add_pod("a", "app", duration=10)
    world.run(5)
    assert world.pods[pod.uid].spec.node_name == ""
    world.cordon("n1", unschedulable=False)
    world.run(2)
    assert world.pods[pod.uid].spec.node_name == "n1"
    assert node_actions(world)[2:] == ["DRAIN_NODE", "DRAIN_TO_SCHEDULABLE"]


def test_k187_a_cordoned_node_stays_closed_over_a_restart(world: World) -> None:
    world.cordon("n1")
    world.add_pod("a", "app")
    world.run(2)
    world.restart()
    world.run(5)
    assert world.phases() == {"Pending": 1}
    assert "DRAIN_TO_SCHEDULABLE" not in node_actions(world)


def test_k97_a_pod_that_is_assumed_on_a_removed_node_waits_again(world: World) -> None:
    world.answer(Bind, lambda bind: BindEnded("nobody", "failed"), times=1)
    pod = world.add_pod("a", "app", duration=20)
    world.run(1)
    world.remove_node("n1")
    world.run(1)
    assert world.cache.assumed(pod.uid) is None
    assert world.core_state() == {}
    world.add_node("n2")
    world.run(2)
    assert world.pods[pod.uid].spec.node_name == "n2"
    world.check()


def test_k97_a_bind_that_had_arrived_makes_an_orphan(world: World) -> None:
    world.answer(Bind, lambda bind: BindEnded("nobody", "failed"), times=1)
    pod = world.add_pod("a", "app")
    world.run(1)
    world._cancel = lambda cancel: world.inputs.append(BindEnded(pod.uid, "bound", "n1"))  # type: ignore[method-assign]
    world.remove_node("n1")
    world.place(pod.uid, "n1")
    world.run(1)
    assert world.core_state() == {}
    world.add_node("n1")
    world.run(1)
    assert world.core_state() == {pod.uid: "n1"}
    world.check()


def test_k97_an_orphan_whose_application_has_completed_is_counted_again(world: World) -> None:
    world.add_node("n2")
    pod = world.add_pod("a", "app", duration=200)
    world.run(1)
    node = world.pods[pod.uid].spec.node_name
    world.remove_node(node)
    world.run(60)
    assert world.core_state() == {}
    world.add_node(node)
    world.run(1)
    assert world.core_state() == {pod.uid: node}
    world.check()
    world.run(300)
    assert world.core_state() == {}
    assert world.app_state("app") == ""


def test_k97_a_node_that_is_replaced_before_its_allocation_was_heard(world: World) -> None:
    pod = world.add_pod("a", "app", duration=50)
    # the core has placed the pod, and the shim first hears of another node of this name
    while world.core_app("app") != "Running":
        world.half_step()
    waiting = list(world.inputs)
    world.inputs.clear()
    world.remove_node("n1")
    world.add_node("n1", cpu="8")
    world.inputs.extend(waiting)
    world.run(5)
    assert world.pods[pod.uid].spec.node_name == "n1"
    world.check()


def test_k94_other_resources_of_a_node_are_told_and_heartbeats_are_not() -> None:
    world = cluster("1")
    world.run(1)
    world.set_node(replace(world.nodes["n1"]))
    world.run(1)
    assert "UPDATE" not in node_actions(world)
    pod = world.add_pod("a", "app", cpu="2")
    status = NodeStatus(allocatable={"cpu": "3", "memory": "64Gi", "pods": "110"})
    world.set_node(replace(world.nodes["n1"], status=status))
    world.run(2)
    assert node_actions(world).count("UPDATE") == 1
    assert world.pods[pod.uid].spec.node_name == "n1"


def test_k91_a_foreign_pod_is_told_when_its_node_comes_and_when_it_gets_one(world: World) -> None:
    world.add_pod("other", scheduler="default-scheduler", node="n2")
    waiting = world.add_pod("another", scheduler="default-scheduler")
    world.run(1)
    assert world.core_state() == {}
    world.add_node("n2")
    world.run(1)
    assert list(world.core_state().values()) == ["n2"]
    world.place(waiting.uid, "n1")
    world.run(1)
    world.check()


def test_k85_a_resized_pod_is_told_with_its_node_and_a_resized_ask_again() -> None:
    world = cluster()
    running = world.add_pod("running", "app", cpu="1")
    waiting = world.add_pod("waiting", "app", cpu="8")
    world.run(2)
    world.resize(running.uid, "2")
    world.resize(waiting.uid, "3")
    world.run(2)
    assert world.used("n1") == 2000
    assert world.pods[waiting.uid].spec.node_name == ""
    world.resize(waiting.uid, "2")
    world.run(2)
    assert world.pods[waiting.uid].spec.node_name == "n1"
    assert world.used("n1") == 4000
    world.check()


def test_k94_a_node_that_the_core_rejects_is_offered_again_when_it_changes(world: World) -> None:
    found = world.nodes["n1"]
    broken = replace(found, status=NodeStatus(allocatable={"cpu": "-4", "memory": "1Gi"}))
    world.nodes.clear()
    world.inputs.clear()
    world.start()
    world.set_node(broken)
    world.run(1)
    assert "NodeRejected" in [each.reason for each in world.records]
    world.set_node(found)
    # and what the core says of nodes that are gone means nothing
    for answer in (
        {"accepted": [AcceptedNode(nodeID="n2")]},
        {"rejected": [RejectedNode(nodeID="n2")]},
    ):
        world.inputs.append(CoreAnswered(NodeResponse(**answer)))
    pod = world.add_pod("a", "app")
    world.run(2)
    assert world.pods[pod.uid].spec.node_name == "n1"
    assert pod.spec.scheduler_name == OURS
