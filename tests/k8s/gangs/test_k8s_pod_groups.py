"""PodGroups of Kubernetes: pods of a gang wait for each other and are placed together, without placeholders; those
of a basic group are ordinary pods (K204 to K206)."""

from typing import Any

import pytest
from k8s_world import Killed, World, cluster, failed
from k8s_world import gang as task_group
from msgspec.structs import replace

from quadriga import si
from quadriga.k8s.objects import (
    Container,
    ContainerPort,
    GangPolicy,
    NamedReference,
    Pod,
    ResourceRequirements,
    SchedulingConstraints,
    SchedulingGroup,
    SchedulingPolicy,
    TopologyConstraint,
    WorkloadReference,
)
from quadriga.k8s.shim import actions, inputs

ZONE = TopologyConstraint("zone")


def member(world: World, name: str, app: str = "", group: str = "workers", **more: Any) -> Pod:
    return world.add_pod(name, app, scheduling_group=SchedulingGroup(group), **more)


def members(
    world: World, number: int, app: str = "", group: str = "workers", **more: Any
) -> list[Pod]:
    return [member(world, f"{group}-{n}", app, group, **more) for n in range(number)]


def said(world: World, pod: Pod) -> str:
    return world.conditions.get(pod.uid, ("", ""))[1]


def running(world: World) -> int:
    return world.phases()["Running"]


def apps(world: World) -> dict[str, str]:
    return {each["id"]: each["state"] for each in world.shim.dump()["applications"]}


def gang_world(
    least: int, pods: int, cpu: str = "4", seconds: float = 30, **more: Any
) -> tuple[World, list[Pod]]:
    """The group ``workers``, which wants at least so many pods together (0: a basic one), and its pods."""
    world = cluster(cpu)
    world.add_group("workers", least)
    made = members(world, pods, **more)
    world.run(seconds)
    return world, made


GONE = "The pod waits: PodGroup default/workers does not exist yet."

# -- which pods are ordinary ---------------------------------------------------------------------


def test_k204_pods_of_a_basic_group_are_ordinary_pods_and_wait_until_it_exists() -> None:
    world = cluster()
    (first, *_) = members(world, 3, "app", cpu="2")
    world.run(30)
    assert (running(world), said(world, first)) == (0, GONE)
    world.add_group("workers")
    world.run(30)
    assert running(world) == 2
    assert apps(world) == {"app": "Running"}
    assert world.group_conditions[-1][:2] == ("workers", "Scheduled")
    world.check()


def test_k204_a_server_may_have_pod_groups_later() -> None:
    world = World()
    world.group_version = ""
    world.start()
    world.add_node("n1")
    pod = member(world, "first")
    world.run(5)
    why = "the API server has no PodGroups, or the account may not read them."
    assert (running(world), said(world, pod).endswith(why)) == (0, True)
    world.inputs.append(inputs.PodGroupsServed("v1alpha2"))
    world.run(5)
    assert said(world, pod) == GONE
    world.add_group("workers")
    world.run(5)
    assert running(world) == 1


# -- gangs ---------------------------------------------------------------------------------------


def test_k204_a_gang_is_placed_whole_or_not_at_all() -> None:
    world, _ = gang_world(4, 4, "3", seconds=3600)
    assert running(world) == 0
    assert apps(world) == {"default:workers": "Placing"}
    assert all(cond[1] == "Unschedulable" for cond in world.group_conditions)
    world.add_node("n2", cpu="1")
    world.run(60)
    assert running(world) == 4
    world.check()
    world.delete_pod(member(world, "fifth").uid)
    world.run(60)
    assert running(world) == 4


def test_k204_what_is_beyond_the_minimum_is_placed_one_by_one() -> None:
    world, pods = gang_world(2, 6)
    assert running(world) == 4
    world.delete_pod(pods[0].uid)
    world.run(60)
    assert running(world) == 4
    world.check()


def test_k204_the_first_ones_by_priority_and_age_are_chosen() -> None:
    world, _ = gang_world(2, 0, "2")
    member(world, "low", priority=1)
    world.run(5)
    member(world, "gated", priority=9, scheduling_gates=(NamedReference("wait"),))
    member(world, "high", priority=5)
    member(world, "other", priority=1)
    world.run(60)
    assert [world.phases(each)["Running"] for each in ("high", "low", "other")] == [1, 1, 0]


def test_k204_gated_pods_and_those_of_others_are_no_members_that_can_be_placed() -> None:
    world, (pod,) = gang_world(2, 1)
    member(world, "other", scheduler="default-scheduler")
    world.run(30)
    text = "PodGroup default/workers wants 2 pods together, "
    others = "; 1 more of scheduler default-scheduler do not count"
    assert said(world, pod) == f"{text}1 exist{others}"
    gated = member(world, "gated", scheduling_gates=(NamedReference("wait"),))
    world.run(30)
    expected = f"{text}2 exist, 1 of them with scheduling gates{others}"
    assert (running(world), said(world, pod)) == (0, expected)
    world.ungate(gated.uid)
    world.run(30)
    assert running(world) == 2


def test_k204_ended_pods_do_not_count() -> None:
    world, _ = gang_world(2, 2, seconds=120, duration=5)
    assert world.phases() == {"Succeeded": 2}
    member(world, "third")
    world.run(600)
    assert world.phases("third") == {"Pending": 1}


def test_k204_groups_of_one_application_are_independent() -> None:
    """As those of a JobSet: in whatever order their pods come."""
    world = cluster("4")
    world.add_group("a", 2)
    world.add_group("b", 5)
    world.add_group("c", 2)
    for n in range(5):
        for group in "bac":
            if n < world.groups[group].spec.scheduling_policy.gang.min_count:
                member(world, f"{group}-{n}", "jobset", group)
    world.run(60)
    assert (world.phases("a"), world.phases("b")["Running"]) == ({"Running": 2}, 0)
    assert world.phases("c") == {"Running": 2}
    assert set(apps(world)) == {f"default.jobset:{each}" for each in "abc"}


def test_k204_a_group_is_one_whatever_the_labels_and_its_namespace_counts() -> None:
    world, _ = gang_world(2, 0)
    member(world, "first", "one")
    other = member(world, "there", "one", namespace="team")
    world.run(30)
    assert running(world) == 0
    assert said(world, other) == GONE.replace("default", "team")
    member(world, "second", "two")
    world.run(30)
    assert running(world) == 2
    assert apps(world)["default.one:workers"] == "Running"


def test_k204_the_core_gets_the_sum_of_the_members_and_no_originator(world: World) -> None:
    world.add_group("workers", 2, priority=7)
    members(world, 3, cpu="500m")
    world.run(30)
    (request,) = (new for s in world.sent if isinstance(s, si.ApplicationRequest) for new in s.new)
    ask = {name: each.value for name, each in request.placeholderAsk.resources.items()}
    assert ask == {"vcore": 1000, "pods": 2}
    assert request.tags["gang.placeholders"] == "none"
    assert (request.gangSchedulingStyle, request.executionTimeoutMilliSeconds) == ("Soft", 0)
    asks = [a for sent in world.sent if isinstance(sent, si.AllocationRequest) for a in sent.asks]
    assert len(asks) == 3
    assert not any(each.Originator or each.placeholder for each in asks)
    assert {each.priority for each in asks} == {7}


# -- before it is placed -------------------------------------------------------------------------


def test_k204_a_gang_that_loses_a_member_before_it_is_placed_waits_again() -> None:
    world, pods = gang_world(3, 3, "2")
    assert apps(world) == {"default:workers": "Placing"}
    world.delete_pod(pods[1].uid)
    world.run(30)
    assert apps(world) == {"default:workers": "Held"}
    assert world.core_app("default:workers") == "Completed"
    world.add_node("n2")
    world.run(30)
    assert running(world) == 0
    member(world, "fourth")
    world.run(30)
    assert running(world) == 3
    world.check()


def test_k204_another_member_takes_the_place_of_a_lost_one() -> None:
    world, pods = gang_world(3, 4, "2")
    assert said(world, pods[3]).startswith("The pod follows when 3 other pods")
    world.delete_pod(pods[0].uid)
    world.run(5)
    world.add_node("n2", cpu="1")
    world.run(30)
    assert running(world) == 3
    world.check()


@pytest.mark.parametrize("change", ["its minimum", "its deletion has begun", "it is gone"])
def test_k204_the_group_may_change_before_the_gang_is_placed(change: str) -> None:
    world, pods = gang_world(3, 3, "2")
    group = world.groups["workers"]
    if change == "its minimum":
        spec = replace(group.spec, scheduling_policy=SchedulingPolicy(gang=GangPolicy(2)))
        metadata = replace(group.metadata, resource_version="x")
        world.set_group(replace(group, metadata=metadata, spec=spec))
    elif change == "its deletion has begun":
        metadata = replace(group.metadata, deletion_timestamp=world.stamp(), resource_version="x")
        world.set_group(replace(group, metadata=metadata))
        world.add_node("n2")
    else:
        world.remove_group("workers")
        world.run(30)
        assert (apps(world), said(world, pods[0])) == ({}, GONE)
        world.add_group("workers")
    world.run(30)
    assert running(world) == (3 if change == "its deletion has begun" else 2)
    world.check()


def test_k204_k205_a_group_that_is_created_again_counts_anew_by_its_own_pods() -> None:
    world, (pod,) = gang_world(0, 1)
    world.delete_pod(pod.uid)
    world.add_group("workers", 2)
    world.run(5)
    said_before = len(world.group_conditions)
    member(world, "first")
    world.run(30)
    assert [each[1] for each in world.group_conditions[said_before:]] == ["Unschedulable"]
    assert apps(world) == {"default:workers": "Held"}


def test_k204_no_member_is_bound_while_the_cluster_refuses_one() -> None:
    """The core has placed all; one node cannot take its pod any more."""
    world = cluster("2", 2)
    world.add_group("workers", 2)
    refused: list[str] = []

    def objection(uid: str, node: str) -> str | None:
        if refused or not uid.startswith("workers-1"):
            return None
        refused.append(node)
        assert not world.bound
        return "as the test says"

    world.cache.objection = objection
    members(world, 2)
    world.run(60)
    assert len(refused) == 1
    assert running(world) == 2
    world.check()


def test_k204_members_that_exclude_each_other_are_placed_together() -> None:
    world = cluster("4", 3)
    world.add_group("workers", 3)
    for pod in members(world, 3):
        ports = (ContainerPort(host_port=80, container_port=80, protocol="TCP"),)
        main = Container("main", ResourceRequirements({"cpu": "1"}), ports)
        world.set_pod(replace(pod, spec=replace(pod.spec, containers=(main,))))
    world.run(60)
    assert running(world) == 3
    assert len({pod.spec.node_name for pod in world.pods.values()}) == 3


def test_k204_a_bind_that_fails_is_tried_alone() -> None:
    world, _ = gang_world(3, 0)
    world.answer(actions.Bind, failed, 1)
    members(world, 3)
    world.run(120)
    assert running(world) == 3
    world.check()


# -- later ---------------------------------------------------------------------------------------


def test_k204_a_gang_that_has_lost_all_its_members_starts_anew_as_a_gang() -> None:
    world, pods = gang_world(3, 3, "3")
    assert running(world) == 3
    for pod in pods:
        world.delete_pod(pod.uid)
    other = world.add_pod("in-the-way", "other")
    world.run(3)
    members(world, 3)
    world.run(120)
    assert world.phases("workers") == {"Pending": 3}
    world.delete_pod(other.uid)
    world.run(60)
    assert world.phases("workers") == {"Running": 3}
    world.check()


def test_k204_after_a_restart_a_gang_that_has_begun_goes_on_alone() -> None:
    world, pods = gang_world(3, 3)
    more = member(world, "more", cpu="3")
    world.run(5)
    world.delete_pod(pods[0].uid)
    world.delete_pod(pods[1].uid)
    world.restart()
    world.run(60)
    assert world.phases("more") == {"Running": 1}, said(world, more)
    world.check()


@pytest.mark.parametrize("step", range(1, 16))
@pytest.mark.parametrize("after", [False, True])
def test_k204_a_kill_at_any_step_leaves_no_part_of_a_gang(step: int, after: bool) -> None:
    world = World(kill_at=step, kill_after=after)
    world.add_node("n1", cpu="3")
    world.add_group("workers", 3)
    members(world, 3)
    try:
        world.run(30)
    except Killed:
        world.restart()
        world.run(60)
    assert running(world) == 3
    world.check()


def test_k204_a_waiting_gang_survives_a_restart_and_a_core_that_forgets() -> None:
    world, _ = gang_world(3, 3, "2")
    world.restart()
    world.run(30)
    assert apps(world) == {"default:workers": "Placing"}
    world.forget_core()
    world.run(30)
    assert (apps(world), running(world)) == ({"default:workers": "Placing"}, 0)
    world.add_node("n2")
    world.run(60)
    assert running(world) == 3
    assert world.audit().standing == ()


def test_k60_a_gang_that_the_core_rejects_is_tried_again_after_a_pause() -> None:
    world, _ = gang_world(2, 0)
    world.refuse_applications = True
    members(world, 2, owned="set", restart_policy="Always")
    world.run(20)
    assert apps(world) == {"default:workers": "Held"}
    assert len([each for each in world.sent if isinstance(each, si.ApplicationRequest)]) < 8
    assert world.group_conditions[-1][2].startswith("The application was rejected: not here")
    world.refuse_applications = False
    world.run(60)
    assert running(world) == 2


# -- the condition -------------------------------------------------------------------------------


@pytest.mark.parametrize("node", ["", "n1"], ids=["its own", "of a process that died before it"])
def test_k205_true_is_written_once_and_never_taken_back(node: str) -> None:
    world, pods = gang_world(2, 2, node=node)
    world.delete_pod(pods[0].uid)
    world.run(5)
    member(world, "big", cpu="9")
    world.restart()
    world.run(600)
    assert [each[1] for each in world.group_conditions].count("Scheduled") == 1
    assert world.group_conditions[-1][1] == "Scheduled"


# -- what is not supported -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"scheduling_policy": SchedulingPolicy()}, "neither basic nor gang"),
        ({"gang": 20_000}, "the bound is 10000 (service.gangMaxMembers)"),
        ({"scheduling_policy": SchedulingPolicy(gang=GangPolicy(-1))}, "its minCount is -1"),
        (
            {"gang": 2, "scheduling_constraints": SchedulingConstraints((ZONE, ZONE))},
            "schedulingConstraints.topology has 2 items, at most one is supported",
        ),
        ({"gang": 2, "disruption_mode": "PodGroup"}, "preemption of the group as a whole"),
        ({"gang": 2, "disruption_mode": {"all": {}}}, "preemption of the group as a whole"),
        ({"parent_composite_pod_group_name": "tree"}, "CompositePodGroup"),
        ({"resource_claims": (NamedReference("gpus"),)}, "resourceClaims of a PodGroup"),
    ],
)
def test_k206_what_is_not_supported_holds_the_pods(spec: dict[str, Any], why: str) -> None:
    world = cluster()
    world.add_group("workers", **spec)
    pod, _ = members(world, 2)
    world.run(30)
    assert running(world) == 0
    assert why in said(world, pod)
    assert why in world.group_conditions[-1][2]
    assert [text for text in world.log_warnings if why in text and "default/workers" in text]
    assert world.audit().standing == ()


@pytest.mark.parametrize("mode", ["Pod", {"single": {}}, None])
def test_k206_pods_that_go_one_by_one_are_supported(world: World, mode: Any) -> None:
    world.add_group("workers", 2, disruption_mode=mode)
    members(world, 2)
    world.run(30)
    assert running(world) == 2


def test_k206_task_groups_count_and_an_event_says_so() -> None:
    world = cluster("8")
    world.add_group("workers", 4)
    driver = world.add_gang(2, members=2, scheduling_group=SchedulingGroup("workers"))
    world.run(60)
    assert world.phases() == {"Running": 2}
    notes = [each.note for each in world.records if each.action == "SchedulingGroupIgnored"]
    assert notes == ["spec.schedulingGroup has no effect: the pod's task group counts"] * 2
    assert driver.uid in {each.uid for each in world.records}


def test_k206_a_task_group_that_the_application_does_not_have_counts_for_nothing() -> None:
    world = cluster("8")
    world.add_pod("driver", "app", group="w", groups=[task_group("w", 1)])
    world.run(5)
    pod = member(world, "member", "app", group="workers")
    world.set_pod(replace(pod, metadata=pod.metadata))
    world.run(60)
    assert world.phases("member") == {"Pending": 1}


def test_k133_a_pod_that_names_a_group_of_a_workload_is_held_and_says_so_once() -> None:
    made = cluster("8")
    held = made.add_pod("member", "app", workload_ref=WorkloadReference("training", "workers"))
    made.add_pod("other", "app")
    made.run(30)
    made.set_pod(held)
    made.run(30)
    assert made.phases("member") == {"Pending": 1}
    assert made.phases("other") == {"Running": 1}
    (event,) = (each for each in made.records if each.uid == held.uid)
    assert (event.type, event.reason) == ("Warning", "FailedScheduling")
    named = "spec.workloadRef (Workload 'training', group 'workers') is not supported"
    assert event.note.startswith(named)
