"""Bounds of gangs (Q16): what is beyond one is refused by name, a gang that the nodes cannot hold creates
nothing, and large gangs are created and deleted in slices, behind other pods."""

import json
from typing import Any

import pytest
from k8s_world import _EFFECTS, World, cluster, gang
from msgspec.structs import replace

from quadriga.k8s.conversion import keys, task_groups
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import Metadata, Pod
from quadriga.k8s.shim import actions

NO_SCALE_UP = {"service.gangScaleUp": "false"}
SETTINGS = Settings()


def declared(
    groups: Any, policy: str = "", settings: Settings = SETTINGS
) -> task_groups.TaskGroups:
    text = groups if isinstance(groups, str) else json.dumps(groups)
    annotations = {keys.TASK_GROUPS: text, keys.POLICY_PARAMETERS: policy}
    return task_groups.read(Pod(Metadata(annotations=annotations)), settings)


IN = "annotation yunikorn.apache.org/"
MANY = "{}; the bound is 10000 (service.gangMaxMembers)"
LONG = "{} bytes, the bound is 65536 bytes (service.gangMaxDefinitionBytes)"
UP_TO = "6000, and all groups up to it have 12000 members"
LARGE = (
    "the placeholders of the groups up to 'w' would copy 100740000 bytes of it; the bound is 33554432"
    " (service.gangMaxPlaceholderBytes)"
)


@pytest.mark.parametrize(
    ("groups", "refusal"),
    [
        ([gang("w", 2147483647)], f": minMember of group 'w' is {MANY.format(2147483647)}"),
        ([gang("a", 6000), gang("b", 6000)], f": minMember of group 'b' is {MANY.format(UP_TO)}"),
        (
            [gang(f"g{n}", 1) for n in range(65)],
            ": it has 65 task groups, the bound is 64 (service.gangMaxTaskGroups)",
        ),
        (" " * 65_537, f" has {LONG.format(65537)}"),
        ([gang("w", 10_000, labels={"a": "x" * 10_000})], f": {LARGE}"),
    ],
)
def test_q16_a_gang_beyond_a_bound_is_refused(groups: Any, refusal: str) -> None:
    found = declared(groups)
    assert (found.groups, found.refusal) == ((), f"{IN}task-groups{refusal}")
    found = declared([gang("w", 1)], "\u00e4" * 32_769)
    said = f"{IN}schedulingPolicyParameters has {LONG.format(65538)}"
    assert (found.groups, found.refusal) == ((), said)


def test_q16_what_is_exactly_at_a_bound_is_a_gang_and_many_wrong_items_are_few_events() -> None:
    at_bound = [gang(f"g{n}", 10_000 - 63 if n == 0 else 1) for n in range(64)]
    assert len(declared(at_bound).groups) == 64
    text = json.dumps([gang("w", 1)])
    assert declared(text + " " * (65_536 - len(text))).groups
    found = declared([gang("w", 1)], "wrong " * 1_000)
    assert len(found.problems) == 11
    assert found.problems[-1].note.endswith("991 more items are skipped")


def test_q16_parsed_definitions_are_kept_up_to_a_weight() -> None:
    cache = task_groups._parsed
    cache.clear()
    bounded = Settings(gang_cache=50_000)
    for n in range(100):
        declared([gang(f"w{n}", 1, labels={"a": "x" * 5_000})], settings=bounded)
    assert 0 < len(cache) < 10
    assert cache.weight <= 50_000
    cache.clear()


def test_q16_the_members_of_a_refused_gang_wait_and_say_why_and_others_are_bound() -> None:
    world = cluster(cpu="16", values=NO_SCALE_UP)
    groups = [gang("w", 2147483647)]
    members = [world.add_pod(f"m{n}", "huge", group="w", groups=groups) for n in range(2)]
    world.add_pod("other", "other")
    world.run(10)
    bound = "is 2147483647; the bound is 10000 (service.gangMaxMembers)"
    for pod in members:
        assert not world.pods[pod.uid].spec.node_name
        reason, message = world.conditions[pod.uid]
        assert reason == "SchedulingSkipped" and bound in message
        told = [each for each in world.records if each.uid == pod.uid]
        (event,) = [each for each in told if each.action == "TaskGroupsError"]
        assert event.type == "Warning" and bound in event.note
        (line,) = [each for each in world.log_warnings if f"default/{pod.metadata.name} " in each]
        assert bound in line
    assert world.placeholders == []
    assert world.app_state("huge") == "Held"
    assert only(world, "other").spec.node_name


def test_q16_a_refused_gang_is_forgotten_with_its_pods_and_counted_if_it_runs() -> None:
    world = cluster(values=NO_SCALE_UP)
    pod = world.add_pod("m", "huge", group="w", groups=[gang("w", 10_001)])
    world.run(5)
    world.restart()
    world.run(5)
    assert world.app_state("huge") == "Held"
    world.delete_pod(pod.uid)
    world.run(5)
    assert world.app_state("huge") == ""
    world = cluster(cpu="16", values=NO_SCALE_UP)
    world.add_pod("m", "huge", group="w", groups=[gang("w", 10_001)], node="n1")
    world.run(5)
    assert world.app_state("huge") == "Running"
    world.check()


def creates(world: World) -> int:
    return sum(line.startswith("Create") for line in world.log)


def only(world: World, name: str) -> Pod:
    (found,) = [each for each in world.pods.values() if each.metadata.name == name]
    return found


def test_q16_a_gang_that_the_nodes_cannot_hold_creates_no_placeholder_and_says_so_once() -> None:
    world = cluster(cpu="4", nodes=4, values=NO_SCALE_UP)
    driver = world.add_gang(members=5000)
    world.add_pod("other", "other")
    world.run(2000)
    assert creates(world) == 0
    assert world.app_state("spark") == "Held"
    assert only(world, "other").spec.node_name
    why = "all nodes have room for 16 of the 5000 members of task group 'w'"
    (event,) = [each for each in world.records if each.action == "WaitingForNodes"]
    assert event.uid == driver.uid and why in event.note and "service.gangScaleUp" in event.note
    assert world.conditions[driver.uid] == (
        "SchedulingSkipped",
        f"The gang waits for nodes: {why}.",
    )


@pytest.mark.parametrize("restarted", [False, True])
def test_q16_a_gang_that_waits_for_nodes_is_tried_again_when_they_change(restarted: bool) -> None:
    world = cluster(cpu="2", values=NO_SCALE_UP)
    world.add_gang(pods=3, members=3)
    world.run(100)
    if restarted:
        world.restart()
        world.run(5)
    assert (world.app_state("spark"), creates(world)) == ("Held", 0)
    world.add_node("n2", cpu="1")
    world.run(2)
    assert world.app_state("spark") == "Running"
    assert all(pod.spec.node_name for pod in world.pods.values())
    world.check()


@pytest.mark.parametrize("restarted", [False, True])
def test_k76_a_soft_gang_without_nodes_runs_pod_by_pod_after_its_timeout(restarted: bool) -> None:
    world = cluster(cpu="2", values=NO_SCALE_UP)
    world.add_gang(pods=3, members=3, policy="placeholderTimeoutInSeconds=30")
    world.run(29)
    assert world.app_state("spark") == "Held"
    if restarted:
        world.restart()
    world.run(3)
    assert world.app_state("spark") == "Running"
    assert sum(bool(pod.spec.node_name) for pod in world.pods.values()) == 2
    assert creates(world) == 0
    world.check()


def test_k76_a_hard_gang_that_the_nodes_cannot_hold_fails_after_its_timeout() -> None:
    world = cluster(cpu="2", values=NO_SCALE_UP)
    policy = "placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard"
    driver = world.add_gang(members=3, policy=policy)
    world.run(35)
    assert world.conditions[driver.uid][0] == "ResourceReservationTimeout"
    assert world.pods[driver.uid].status.phase == "Failed"


@pytest.mark.parametrize(
    ("groups", "lacks"),
    [
        (
            [gang("w", 1, nodeSelector={"gpu": "yes"})],
            "the nodes with its nodeSelector have room for 0 of the 1 members of task group 'w'",
        ),
        ([gang("a", 5), gang("b", 4)], "all task groups together need 9 cpu, all nodes have 8 cpu"),
        (
            [gang("w", 221, cpu="0")],
            "all nodes have room for 220 of the 221 members of task group 'w'",
        ),
    ],
)
def test_q16_what_the_nodes_lack(groups: list[dict[str, Any]], lacks: str) -> None:
    world = cluster(cpu="4", nodes=2, values=NO_SCALE_UP)
    pod = world.add_pod("driver", "spark", group="w", groups=groups)
    world.run(1)
    assert world.conditions[pod.uid][1] == f"The gang waits for nodes: {lacks}."


def test_q16_all_slices_of_a_large_gang_are_created() -> None:
    world = World()
    for n in range(4):
        world.add_node(f"n{n}", cpu="1000", pods=1000)
    world.add_gang(members=300)
    world.run(5)
    assert creates(world) == 300
    assert world.app_state("spark") == "Running"


def test_q16_no_more_than_a_slice_of_a_gang_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API server that does not answer is asked for no more."""
    world = cluster(cpu="1000")
    asked: list[Any] = []
    monkeypatch.setitem(_EFFECTS, actions.Create, lambda world, action: asked.append(action))
    driver = world.add_gang(members=5000)
    world.run(1)
    assert len(asked) == 64
    # Two minutes later they are taken for lost, and some are asked for again (K80); then the gang is gone.
    cancelled: list[str] = []
    monkeypatch.setitem(_EFFECTS, actions.CancelCreate, lambda w, a: cancelled.append(a.name))
    world.run(121)
    world.end_pod(driver.uid)
    world.run(1)
    assert len(asked) > 64
    assert sorted(cancelled) == sorted(each.manifest["metadata"]["name"] for each in asked)


def test_q16_the_placeholders_of_a_large_gang_are_deleted_in_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone: set[str] = set()
    monkeypatch.setitem(_EFFECTS, actions.CancelDelete, lambda world, each: gone.add(each.uid))
    world = cluster(cpu="1")
    driver = world.add_gang(members=300)
    world.run(2, until=lambda: len(world.placeholders) == 300)
    world.run(1)
    began = len(world.deletes)
    world.kubelets = False
    # the driver ends: nobody needs the placeholders any more
    world.end_pod(driver.uid)
    for action in world.shim.handle(world.inputs.popleft(), world.now):
        world.carry_out(action)
    assert len(world.deletes) - began == 64
    world.run(1)
    assert world.placeholders == []
    assert gone == {each.pod.uid for each in world.deletes[began:]}, "or somebody else was quicker"


def test_q16_a_lost_placeholder_is_not_made_again_without_end_while_its_gang_fills() -> None:
    world = cluster(cpu="1")
    world.add_gang(members=100)
    world.run(0.01)
    for _ in range(20):
        for pod in world.placeholders[:5]:
            world.delete_pod(pod.uid)
        world.run(0.5)
    assert creates(world) <= 100 + 3


@pytest.mark.parametrize("other_says_it", [False, True])
def test_k145_a_gang_whose_declaring_pod_has_ended_is_found(other_says_it: bool) -> None:
    """The definition of another member with the hash, or the groups that the placeholders tell."""
    world = cluster(cpu="2")
    driver = world.add_gang(members=3)
    groups = [gang("w", 3)] if other_says_it else ()
    world.add_pod("worker-0", "spark", group="w", groups=groups)
    world.run(2)
    before = [pod.uid for pod in world.placeholders]
    assert len(before) == 3
    world.kubelets = False
    world.pods[driver.uid] = replace(
        world.pods[driver.uid], status=replace(world.pods[driver.uid].status, phase="Failed")
    )
    world.restart()
    world.run(5)
    assert [pod.uid for pod in world.placeholders] == before
    assert world.shim.dump()["applications"][0]["groups"] == {"w": {"minMember": 3, "bound": 0}}
