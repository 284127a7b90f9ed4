"""Why a pod waits, as its condition tells autoscalers: Unschedulable where more nodes would help,
SchedulingSkipped where a quota stops it (K155). Shim and core in one process."""

from collections.abc import Sequence
from typing import Any

import pytest
from k8s_queues import DEFAULT, queues
from k8s_world import World, cluster

from quadriga.k8s.objects import Pod

LACKS_NODES, SKIPPED = "Unschedulable", "SchedulingSkipped"
SMALL = "root.small"


def world(nodes: int = 2) -> World:
    made = cluster(
        nodes=nodes, queues=queues(DEFAULT, "{name: small, resources: {max: {vcore: 2}}}")
    )
    made.run(1)
    return made


def fill(made: World, *cores: str, queue: str = "root.default") -> list[Pod]:
    number = len(made.pods)
    pods = [
        made.add_pod(f"there-{number + at}", f"there-{number + at}", each, queue=queue)
        for at, each in enumerate(cores)
    ]
    made.run(1)
    assert all(made.pods[pod.uid].spec.node_name for pod in pods)
    return pods


def waits(made: World, cpu: str = "1", **more: Any) -> Pod:
    pod = made.add_pod("p", "app", cpu, **more)
    made.run(5)
    return pod


def condition(made: World, pod: Pod) -> str:
    assert not made.pods[pod.uid].spec.node_name
    return made.conditions[pod.uid][0]


@pytest.mark.parametrize(
    ("nodes", "there", "wanted"),
    [
        # the implied quota of the root queue is short: it is what the nodes have
        pytest.param(2, ["4", "4"], {"cpu": "1"}, id="a full cluster"),
        pytest.param(2, ["3", "3"], {"cpu": "2"}, id="room that no node has for itself"),
        pytest.param(2, [], {"cpu": "5"}, id="larger than every node"),
        pytest.param(2, [], {"cpu": "9"}, id="larger than all nodes together"),
        pytest.param(0, [], {"cpu": "1"}, id="no nodes"),
        pytest.param(2, [], {"node_selector": {"disk": "fast"}}, id="predicates refuse the nodes"),
    ],
)
def test_k155_more_nodes_would_help(nodes: int, there: Sequence[str], wanted: Any) -> None:
    made = world(nodes)
    fill(made, *there)
    assert condition(made, waits(made, **wanted)) == LACKS_NODES


def test_k155_a_cordoned_cluster_and_a_resource_that_no_node_has() -> None:
    made = world()
    made.cordon("n1")
    made.cordon("n2")
    made.run(1)
    assert condition(made, waits(made)) == LACKS_NODES
    made = world()
    gpu = made.add_pod("gpu", "app-gpu", "1")
    (container,) = gpu.spec.containers
    container.resources.requests["nvidia.com/gpu"] = "1"
    made.run(5)
    assert condition(made, gpu) == LACKS_NODES


@pytest.mark.parametrize(
    ("small", "there", "cores"),
    [
        pytest.param(["2"], [], "1", id="a queue at its max"),
        # more nodes would not help
        pytest.param(["2"], ["4", "2"], "1", id="a queue at its max in a full cluster"),
        pytest.param([], [], "3", id="larger than its queue"),
    ],
)
def test_k155_a_quota_stops_it(small: list[str], there: list[str], cores: str) -> None:
    made = world()
    fill(made, *small, queue=SMALL)
    fill(made, *there)
    pod = waits(made, cores, queue=SMALL)
    assert condition(made, pod) == SKIPPED
    assert SMALL in made.conditions[pod.uid][1]


def test_k155_only_as_many_pods_as_the_queue_may_have_lack_nodes() -> None:
    made = world()
    fill(made, "4", "4")
    pods = [made.add_pod(f"p{number}", "app", "1", queue=SMALL) for number in range(4)]
    made.run(5)
    told = [made.conditions.get(pod.uid, ("",))[0] for pod in pods]
    assert told[:2] == [LACKS_NODES] * 2
    assert LACKS_NODES not in told[2:]


def test_k155_a_quota_comes_between_and_goes() -> None:
    """The condition says what stops the pod now."""
    made = world()
    others = fill(made, "4", "4")
    pod = waits(made, queue=SMALL)
    assert condition(made, pod) == LACKS_NODES
    # A node's room comes back and is used up within the queue: its quota is short now.
    urgent = made.add_pod("urgent", "urgent", "2", queue=SMALL, priority=100)
    made.run(5)
    made.delete_pod(others[0].uid)
    made.run(5)
    assert made.pods[urgent.uid].spec.node_name
    assert condition(made, pod) == SKIPPED
    # The node goes with all that ran there: the quota has room again, and no node has.
    made.remove_node("n1")
    made.delete_pod(urgent.uid)
    made.run(5)
    assert condition(made, pod) == LACKS_NODES
