"""Gangs of pods that want something of the domains that they run in (Q13)."""

from typing import Any

import pytest
from k8s_queues import QUEUES
from k8s_world import World, gang
from msgspec.structs import replace

from quadriga.k8s.conversion import keys
from quadriga.k8s.objects import (
    Node,
    Pod,
    SchedulingConstraints,
    SchedulingGroup,
    TopologyConstraint,
)
from quadriga.k8s.shim import inputs

LEVELS = QUEUES.replace("{name: default,", "{name: default, topology: [zone, rack],", 1)
RACK = SchedulingConstraints((TopologyConstraint("rack"),))


def racks(*names: str, queues: str = LEVELS) -> World:
    """Nodes ``n0``, ``n1``, ... of four cores in these racks of one zone."""
    world = World(queues=queues)
    for at, name in enumerate(names):
        world.add_node(f"n{at}")
        label(world, f"n{at}", name)
    return world


def label(world: World, name: str, rack: str) -> Node:
    node = world.nodes[name]
    meta = replace(node.metadata, labels={"zone": "z", "rack": rack})
    world.set_node(replace(node, metadata=meta))
    return node


def where(world: World, pods: list[Pod]) -> str:
    return " ".join(world.pods[pod.uid].spec.node_name or "-" for pod in pods)


def pods_of(world: World, number: int, **annotations: str) -> list[Pod]:
    """The pods of a gang with a task group; each has these annotations, the first one the definition."""
    more: dict[str, Any] = {"annotations": annotations, "group": "w", "cpu": "2"}
    return [
        world.add_pod(f"p{at}", "app", groups=[gang("w", number, "2")], **more)
        for at in range(number)
    ]


@pytest.mark.parametrize("key", [keys.TOPOLOGY_REQUIRED, keys.KUEUE_REQUIRED])
def test_q13_pods_with_an_annotation_run_in_one_rack(key: str) -> None:
    world = racks("a", "b", "b")
    pods = pods_of(world, 4, **{key: "rack"})
    world.run(60)
    assert sorted(where(world, pods).split()) == ["n1", "n1", "n2", "n2"]
    world.check()


def test_q13_a_task_group_may_have_annotations_of_its_own() -> None:
    world = racks("a", "b", "b")
    group = gang("w", 2, "1", annotations={keys.TOPOLOGY_MEMBERS: "rack=1"})
    pods = [world.add_pod(f"p{at}", "app", group="w", groups=[group]) for at in range(2)]
    world.run(60)
    assert {where(world, [pod]) for pod in pods} in ({"n0", "n1"}, {"n0", "n2"})


def test_q13_a_pod_group_names_the_level_and_a_member_that_follows_keeps_to_the_rack() -> None:
    world = racks("a", "b", "b")
    world.add_group("workers", 4, scheduling_constraints=RACK)
    pods = [
        world.add_pod(f"m{at}", scheduling_group=SchedulingGroup("workers"), cpu="2")
        for at in range(5)
    ]
    world.run(60)
    assert sorted(where(world, pods).split()) == ["-", "n1", "n1", "n2", "n2"]
    label(world, "n0", "b")
    world.run(60)
    assert "-" not in where(world, pods)
    world.check()


def test_q13_what_cannot_be_honoured_is_told_to_the_pod() -> None:
    """A level that is not declared holds the gang until it is, a bound without a number is ignored, and a pod
    without a gang has no domain."""
    world = racks("a", "a", queues=QUEUES)
    pods = pods_of(world, 2, **{keys.KUEUE_REQUIRED: "rack", keys.TOPOLOGY_MEMBERS: "rack=many"})
    world.add_pod("alone", "other", annotations={keys.TOPOLOGY_PREFERRED: "zone"})
    world.run(60)
    assert where(world, pods) == "- -"
    told = " ".join(each.note for each in world.records)
    assert "podset-required-topology: 'rack' is no level of the queue configuration" in told
    assert "topology-members is ignored: tag topology.members is 'rack=many'" in told
    assert "topology-preferred has no effect: the pod belongs to no gang" in told
    world.inputs.append(inputs.ConfigurationChanged({"queues.yaml": LEVELS}))
    world.run(60)
    assert sorted(where(world, pods).split()) == ["n1", "n1"]
