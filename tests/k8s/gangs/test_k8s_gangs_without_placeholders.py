"""Gangs with task groups whose members all exist, under ``service.gangPlaceholders: missing``: they are placed in one
decision without placeholders (D356)."""

from typing import Any

import pytest
from k8s_queues import DEFAULT, QUEUES, queues
from k8s_world import World, cluster, gang
from msgspec.structs import replace

from quadriga.k8s.objects import Pod, SchedulingGroup

MISSING = {"service.gangPlaceholders": "missing"}
HARD = "gangSchedulingStyle=Hard placeholderTimeoutInSeconds=60"
SOFT = "gangSchedulingStyle=Soft placeholderTimeoutInSeconds=60"
GROUPS = [gang("w", 3)]


def world_of(cpu: str = "4", nodes: int = 1, **more: Any) -> World:
    return cluster(cpu, nodes, values={**MISSING, **more})


def members(world: World, number: int, first: int = 0, **more: Any) -> list[Pod]:
    more = {"group": "w", "groups": GROUPS, **more}
    return [world.add_pod(f"m-{n}", "app", **more) for n in range(first, first + number)]


def made_by_user(pod: Pod) -> bool:
    return not pod.metadata.name.startswith("tg-")


def running(world: World) -> int:
    return sum(pod.status.phase == "Running" for pod in world.pods.values() if made_by_user(pod))


def said(world: World, pod: Pod) -> tuple[str, str]:
    return world.conditions.get(pod.uid, ("", ""))


def state(world: World) -> str:
    return {each["id"]: each["state"] for each in world.shim.dump()["applications"]}.get("app", "")


def made(world: World) -> int:
    return world.reasons().count("GangScheduling/CreatingPlaceholders")


def test_d356_missing_members_get_placeholders_after_two_seconds() -> None:
    world = world_of()
    members(world, 2)
    world.run(1)
    assert world.placeholders == []
    world.run(30)
    assert (running(world), len(world.placeholders)) == (2, 1)
    members(world, 1, 2)
    world.run(30)
    assert (running(world), len(world.placeholders)) == (3, 0)
    world.check()


@pytest.mark.parametrize(("policy", "later"), [(HARD, "Failed"), (SOFT, "Running")])
def test_d356_the_timeout_bounds_the_wait_for_nodes(policy: str, later: str) -> None:
    world = world_of("2")
    pods = members(world, 3, policy=policy)
    world.run(55)
    assert (running(world), state(world), world.placeholders) == (0, "Placing", [])
    reason, text = said(world, pods[0])
    assert reason == "Unschedulable", text
    world.run(120)
    assert state(world) in (later, ""), state(world)
    assert running(world) == (0 if later == "Failed" else 2)
    assert made(world) == 0


def test_d356_without_a_timeout_the_gang_waits_until_nodes_come() -> None:
    world = world_of("2")
    members(world, 3)
    world.run(3 * 3600)
    assert (running(world), state(world)) == (0, "Placing")
    world.add_node("n2", cpu="1")
    world.run(60)
    assert (running(world), made(world)) == (3, 0)
    world.check()


def test_d356_when_a_member_is_deleted_the_gang_waits_for_another() -> None:
    world = world_of("2")
    pods = members(world, 3)
    world.run(10)
    world.delete_pod(pods[0].uid)  # the originator
    world.run(1)
    assert (state(world), world.placeholders) == ("Held", [])
    assert said(world, pods[1])[1] == "task group w wants 3 pods together, 2 exist"
    members(world, 1, 3)
    world.run(1)
    assert (state(world), world.placeholders) == ("Placing", [])
    world.delete_pod(pods[1].uid)
    world.run(10)
    assert (state(world), len(world.placeholders)) == ("Reserving", 3)
    world.add_node("n2", cpu="1")
    members(world, 1, 4)
    world.run(60)
    assert (running(world), len(world.placeholders)) == (3, 0)
    world.check()


def test_d356_the_shim_restarts_while_it_waits_and_after_it_started() -> None:
    world = world_of("2")
    members(world, 3)
    world.run(10)
    for again in (world.restart, world.forget_core):
        again()
        world.run(10)
        assert (running(world), state(world), made(world)) == (0, "Placing", 0)
    world.add_node("n2", cpu="2")
    world.run(60)
    assert running(world) == 3
    for again in (world.restart, world.forget_core):
        again()
        world.run(10)
        assert (running(world), state(world)) == (3, "Running")
    assert world.placeholders == []
    members(world, 1, 3)
    world.run(10)
    assert running(world) == 4
    world.check()


def test_d356_pods_beyond_min_member_and_of_no_group_follow() -> None:
    world = world_of("8")
    members(world, 5)
    world.add_pod("driver", "app", groups=GROUPS)
    world.run(5)
    assert (running(world), made(world)) == (6, 0)
    small = world_of("2")
    *_, last = members(small, 5)
    small.run(5)
    assert running(small) == 0
    assert said(small, last)[1] == "The pod follows when 3 other pods of its gang are placed."


def test_d356_a_gang_of_several_groups_is_placed_whole() -> None:
    world = world_of("4")
    groups = [gang("d", 1, "2"), gang("w", 3)]
    world.add_pod("d", "app", "2", group="d", groups=groups)
    members(world, 3, groups=groups)
    world.run(30)
    assert running(world) == 0
    world.add_node("n2", cpu="1")
    world.run(30)
    assert (running(world), made(world)) == (4, 0)
    world.check()


@pytest.mark.parametrize("after", [0, 1, 31])
def test_d356_a_suspended_and_resumed_job_is_a_gang_again(after: float) -> None:
    world = world_of("3")
    pods = members(world, 3)
    world.run(5)
    for pod in pods:
        world.delete_pod(pod.uid)
    world.run(after)
    world.add_pod("other", "other")
    world.run(1)
    members(world, 3, 3)
    world.run(30)
    assert (running(world), state(world)) == (1, "Placing")
    world.delete_pod(world.named("other")[0].uid)
    world.run(30)
    assert (running(world), made(world)) == (3, 0)
    world.check()


def test_d356_a_topology_annotation_counts() -> None:
    queues = QUEUES.replace("{name: default,", "{name: default, topology: [zone],", 1)
    world = World(MISSING, queues)
    for n, zone in enumerate("aab"):
        world.add_node(f"n{n}", cpu="2")
        node = world.nodes[f"n{n}"]
        world.set_node(replace(node, metadata=replace(node.metadata, labels={"zone": zone})))
    members(world, 3, annotations={"quadriga/topology-required": "zone"})
    world.run(10)
    assert ({pod.spec.node_name for pod in world.named("m-")}, made(world)) == ({"n0", "n1"}, 0)


@pytest.mark.parametrize("policy", ["", HARD])
def test_d356_a_failed_originator_is_replaced(policy: str) -> None:
    world = world_of("2")
    pods = members(world, 4, policy=policy)
    world.run(5)
    world.end_pod(pods[0].uid, "Failed")
    world.run(5)
    assert (running(world), state(world)) == (0, "Placing")
    world.add_node("n2", cpu="1")
    world.run(20)
    assert (running(world), made(world)) == (3, 0)


@pytest.mark.parametrize("kind", ["task group", "PodGroup"])
def test_a_look_at_a_large_gang_does_not_visit_every_member(kind: str) -> None:
    count, visits = 320, 0
    world = world_of("1")
    world.add_group("w", count)
    named: dict[str, Any] = {"groups": [gang("w", count)]}
    if kind == "PodGroup":
        named = {"group": "", "groups": None, "scheduling_group": SchedulingGroup("w")}

    def visited(pod: Pod) -> str:
        nonlocal visits
        visits += 1
        return ""

    world.blocked_reason = visited
    steps = world.steps
    for n in range(count - 1):
        members(world, 1, n, **named)
        world.run(0.001)
    # Every look would visit half of the members on average, and tell them.
    assert visits < count * 30
    assert world.steps - steps < count * 30
    world.run(1.4)
    texts = {said(world, pod)[1] for pod in world.named("m-")}
    assert [t.endswith(f"wants {count} pods together, {count - 1} exist") for t in texts] == [True]
    members(world, 1, count - 1, **named)
    world.add_node("n2", cpu="400", pods=400)
    world.run(5)
    assert (running(world), made(world)) == (count, 0)


@pytest.mark.parametrize("values", [MISSING, {}], ids=["whole", "by placeholders"])
@pytest.mark.parametrize("option", ["overrun", "never"])
def test_q9_a_pod_that_overran_on_a_node_of_a_planned_start_is_deleted(
    option: str, values: dict[str, str]
) -> None:
    """``late`` was lent n2 until ``long`` ends, as it says that it runs for 512 s, and does not end (D355)."""

    def told(seconds: int) -> dict[str, str]:
        return {"quadriga/expected-runtime": f"{seconds}"}

    own = f"{{gang.gather.after: 60s, gang.gather.preempt: {option}}}"
    world = cluster("4", 2, values=values, queues=queues(DEFAULT, properties=own))
    world.add_pod("long", "long", "4", duration=700, annotations=told(1000))
    world.run(1)
    members(world, 2, cpu="4", groups=[gang("w", 2, "4")], annotations=told(10))
    world.run(61)
    late = world.add_pod("late", "late", "3", annotations=told(512))
    world.run(690 - 62)
    assert (late.uid in world.bound, running(world), world.deletes) == (True, 2, [])
    world.run(20)
    preempted = [each.pod.name for each in world.deletes if each.preempted]
    if option == "never":
        assert (preempted, running(world)) == ([], 1)
    else:
        assert (preempted, len(world.phases("m-")), running(world)) == (["late"], 1, 2)
    world.check()
