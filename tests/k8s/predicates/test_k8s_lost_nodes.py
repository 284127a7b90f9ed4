"""What a gang does when a node that it uses is not ready or is gone, as docs/kubernetes.md tells it."""

import pytest
from k8s_queues import WHOLE
from k8s_world import World, cluster, gang
from msgspec.structs import replace

from quadriga.k8s.objects import NodeCondition, Taint

HARD = "placeholderTimeoutInSeconds=60 gangSchedulingStyle=Hard"


def lose_touch(world: World, name: str) -> None:
    node = world.nodes[name]
    taints = tuple(
        Taint("node.kubernetes.io/unreachable", effect=e) for e in ("NoSchedule", "NoExecute")
    )
    status = replace(node.status, conditions=(NodeCondition("Ready", "Unknown"),))
    world.set_node(replace(node, spec=replace(node.spec, taints=taints), status=status))


def come_back(world: World, name: str) -> None:
    node = world.nodes[name]
    status = replace(node.status, conditions=(NodeCondition("Ready", "True"),))
    world.set_node(replace(node, spec=replace(node.spec, taints=()), status=status))


def running_gang(*, spare: bool, **options: str) -> World:
    """Three members of 3 cores, on a node of 4 cores each; one more node if ``spare``."""
    world = cluster("4", nodes=4 if spare else 3, **options)
    groups = [gang("w", 3, cpu="3")]
    for name in ("driver", "worker-0", "worker-1"):
        world.add_pod(name, "spark", cpu="3", group="w", groups=groups, policy=HARD)
    world.run(60)
    assert world.phases() == {"Running": 3}
    return world


def places(world: World, prefix: str = "") -> dict[str, str]:
    return {each.metadata.name: each.spec.node_name for each in world.named(prefix)}


@pytest.mark.parametrize("spare", [True, False])
def test_the_others_run_on_and_a_replacement_is_placed_by_itself_or_waits(spare: bool) -> None:
    """Not even a Hard gang fails then: its timeout is that of its start."""
    world = running_gang(spare=spare)
    lost = places(world)["worker-1"]
    rest = places(world)
    world.remove_node(lost)
    world.run(1)
    assert world.app_state("spark") == "Running"
    # The collector of pods takes the orphan away, and its controller makes another.
    (orphan,) = world.named("worker-1")
    world._remove_pod(orphan.uid)
    world.add_pod("worker-2", "spark", cpu="3", group="w")
    if not spare:
        world.run(3600)
        assert world.phases() == {"Pending": 1, "Running": 2}
        world.add_node("n9")
    world.run(10)
    assert world.placeholders == []
    found = places(world)
    assert found.pop("worker-2") not in ("", lost)
    assert found.items() < rest.items()
    world.check()


def test_nothing_is_placed_on_a_node_that_is_not_ready_and_what_runs_there_counts() -> None:
    world = running_gang(spare=False)
    lost = places(world)["worker-1"]
    lose_touch(world, lost)
    small = world.add_pod("small", "other", cpu="2")
    world.run(60)
    assert world.pods[small.uid].spec.node_name == ""
    assert world.phases("worker") == {"Running": 2}
    assert world.used(lost) == 3000
    come_back(world, lost)
    tiny = world.add_pod("tiny", "other", cpu="1")
    world.run(10)
    assert world.pods[tiny.uid].spec.node_name != ""
    world.check()


def test_a_pod_that_is_being_evicted_from_a_dead_node_counts_until_it_is_gone() -> None:
    """Its kubelet does not confirm the deletion. Its replacement needs room elsewhere meanwhile."""
    world = running_gang(spare=True)
    lost = places(world)["worker-1"]
    lose_touch(world, lost)
    (evicted,) = world.named("worker-1")
    world.terminate(evicted.uid)
    replacement = world.add_pod("worker-2", "spark", cpu="3", group="w")
    world.run(10)
    assert world.pods[replacement.uid].status.phase == "Running"
    assert world.used(lost) == 3000
    world._remove_pod(evicted.uid)
    world.run(1)
    assert world.used(lost) == 0
    world.check()


def test_t7_a_gang_that_gathers_makes_the_placeholders_of_a_lost_node_again() -> None:
    world = cluster("4", nodes=2, queues=WHOLE)
    groups = [gang("w", 3, cpu="3")]
    for name in ("driver", "worker-0", "worker-1"):
        world.add_pod(name, "spark", cpu="3", group="w", groups=groups)
    world.run(5)
    held = {each.metadata.name: each.spec.node_name for each in world.placeholders}
    assert sorted(held.values()) == ["", "n1", "n2"]
    world.remove_node("n2")
    (orphan,) = (each for each in world.placeholders if each.spec.node_name == "n2")
    world._remove_pod(orphan.uid)
    world.run(5)
    again = {each.metadata.name: each.spec.node_name for each in world.placeholders}
    assert sorted(again.values()) == ["", "", "n1"]
    assert orphan.metadata.name not in again
    assert world.phases("driver") == {"Pending": 1}
    for name in ("n3", "n4"):
        world.add_node(name)
    world.run(10)
    assert world.phases() == {"Running": 3}
    assert world.placeholders == []
    world.check()
