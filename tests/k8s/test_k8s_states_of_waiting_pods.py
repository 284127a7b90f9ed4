"""Why a pod waits, as its condition tells autoscalers: Unschedulable where more nodes would help,
SchedulingSkipped where a quota stops it (K155). Shim and core in one process."""

from __future__ import annotations

import pytest
from k8s_world import World

from quadriga.k8s.objects import Metadata, Node, NodeSpec, NodeStatus, Pod

LACKS_NODES, SKIPPED = "Unschedulable", "SchedulingSkipped"

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: default
          - name: small
            resources:
              max: {vcore: 2}
"""


def world(nodes: int = 2) -> World:
    """Nodes of 4 cores each."""
    made = World(queues=QUEUES)
    for number in range(nodes):
        made.add_node(f"n{number}")
    made.run(1)
    return made


def fill(made: World, *cores: str, queue: str = "root.default") -> list[Pod]:
    """Pods that run, in applications of their own."""
    number = len(made.pods)
    pods = [
        made.add_pod(f"there-{number + at}", f"there-{number + at}", each, queue=queue)
        for at, each in enumerate(cores)
    ]
    made.run(1)
    assert all(made.pods[pod.uid].spec.node_name for pod in pods)
    return pods


def condition(made: World, pod: Pod) -> str:
    assert not made.pods[pod.uid].spec.node_name
    return made.conditions[pod.uid][0]


def test_k155_a_full_cluster() -> None:
    """The implied quota of the root queue is short: it is what the nodes have."""
    made = world()
    fill(made, "4", "4")
    pod = made.add_pod("p", "app", "1")
    made.run(5)
    assert condition(made, pod) == LACKS_NODES


def test_k155_a_fragmented_cluster() -> None:
    """Together the nodes have room, but none has enough."""
    made = world()
    fill(made, "3", "3")
    pod = made.add_pod("p", "app", "2")
    made.run(5)
    assert condition(made, pod) == LACKS_NODES


@pytest.mark.parametrize("cores", ["5", "9"])
def test_k155_a_pod_that_is_larger_than_every_node(cores: str) -> None:
    made = world()
    pod = made.add_pod("p", "app", cores)
    made.run(5)
    assert condition(made, pod) == LACKS_NODES


def test_k155_a_cluster_without_nodes() -> None:
    made = world(0)
    pod = made.add_pod("p", "app", "1")
    made.run(5)
    assert condition(made, pod) == LACKS_NODES


def test_k155_a_cordoned_cluster() -> None:
    made = world()
    made.cordon("n0")
    made.cordon("n1")
    made.run(1)
    pod = made.add_pod("p", "app", "1")
    made.run(5)
    assert condition(made, pod) == LACKS_NODES


def test_k155_nodes_with_room_that_predicates_refuse() -> None:
    made = world()
    pod = made.add_pod("p", "app", "1", node_selector={"disk": "fast"})
    made.run(5)
    assert condition(made, pod) == LACKS_NODES


def test_k155_a_resource_that_no_node_has() -> None:
    made = world()
    gpu = made.add_pod("gpu", "app-gpu", "1")
    container = gpu.spec.containers[0]
    assert container.resources is not None
    container.resources.requests["nvidia.com/gpu"] = "1"
    made.run(5)
    assert condition(made, gpu) == LACKS_NODES


def test_k155_a_queue_at_its_max() -> None:
    made = world()
    fill(made, "2", queue="root.small")
    pod = made.add_pod("p", "app", "1", queue="root.small")
    made.run(5)
    assert condition(made, pod) == SKIPPED
    assert "root.small" in made.conditions[pod.uid][1]


def test_k155_a_queue_at_its_max_in_a_full_cluster() -> None:
    """More nodes would not help."""
    made = world()
    fill(made, "2", queue="root.small")
    fill(made, "4", "2")
    pod = made.add_pod("p", "app", "1", queue="root.small")
    made.run(5)
    assert condition(made, pod) == SKIPPED


def test_k155_a_pod_that_is_larger_than_its_queue() -> None:
    made = world()
    pod = made.add_pod("p", "app", "3", queue="root.small")
    made.run(5)
    assert condition(made, pod) == SKIPPED


def test_k155_only_as_many_pods_as_the_queue_may_have_lack_nodes() -> None:
    made = world()
    fill(made, "4", "4")
    pods = [made.add_pod(f"p{number}", "app", "1", queue="root.small") for number in range(4)]
    made.run(5)
    told = [made.conditions.get(pod.uid, ("",))[0] for pod in pods]
    assert told[:2] == [LACKS_NODES] * 2
    assert LACKS_NODES not in told[2:]


def test_k155_a_quota_comes_between_and_goes() -> None:
    """The condition says what stops the pod now."""
    made = world()
    others = fill(made, "4", "4")
    pod = made.add_pod("p", "app", "1", queue="root.small")
    made.run(5)
    assert condition(made, pod) == LACKS_NODES
    # A node's room comes back and is used up within the queue: its quota is short now.
    urgent = made.add_pod("urgent", "urgent", "2", queue="root.small", priority=100)
    made.run(5)
    made.delete_pod(others[0].uid)
    made.run(5)
    assert made.pods[urgent.uid].spec.node_name
    assert condition(made, pod) == SKIPPED
    # The node goes with all that ran there: the quota has room again, and no node has.
    made.remove_node("n0")
    made.delete_pod(urgent.uid)
    made.run(5)
    assert condition(made, pod) == LACKS_NODES


def test_k155_an_autoscaler_that_adds_the_node() -> None:
    made = world()
    fill(made, "4", "4")
    pod = made.add_pod("p", "app", "1")
    made.run(5)
    assert condition(made, pod) == LACKS_NODES
    made.set_node(
        Node(
            Metadata(name="more", uid="more"),
            NodeSpec(),
            NodeStatus(allocatable={"cpu": "4", "memory": "64Gi", "pods": "110"}),
        )
    )
    made.run(1)
    assert made.pods[pod.uid].spec.node_name == "more"
    assert pod.uid not in made.conditions
