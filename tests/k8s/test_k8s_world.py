"""Whole stories in a deterministic cluster with the real core (T1 to T8)."""

import pytest
from k8s_queues import HARD, QUEUES, SOFT, WHOLE
from k8s_world import World, cluster, gang


def test_t2_no_real_pod_is_bound_before_the_last_placeholder() -> None:
    world = cluster("3")
    world.add_gang(3)
    world.run(5)
    binds = [line for line in world.log if line.startswith("Bind")]
    assert [line.startswith("Bind tg-") for line in binds] == [True] * 3 + [False] * 3
    nodes = {pod.metadata.name: pod.spec.node_name for pod in world.pods.values()}
    assert nodes == {"driver": "n1", "worker-0": "n1", "worker-1": "n1"}
    reasons = world.reasons()
    assert reasons.count("GangScheduling/CreatingPlaceholders") == 1
    assert reasons.count("GangScheduling/PlaceholderAllocated") == 3
    assert reasons.count("GangScheduling/GangReservationComplete") == 1
    assert reasons.count("GangScheduling/TaskGroupMatch") == 3
    world.check()


BOTH = pytest.mark.parametrize("queues", [WHOLE, QUEUES], ids=["whole", "default"])


@BOTH
def test_t3_a_soft_gang_without_room_goes_on_without_it(queues: str) -> None:
    world = cluster("2", queues=queues)
    originator = world.add_gang(3, policy=SOFT, duration=10)
    world.run(3)
    assert world.app_state("spark") == "Reserving"
    assert len(world.placeholders) == 3
    world.run(8)
    assert world.placeholders == []
    assert world.app_state("spark") == "Running"
    annotations = world.pods[originator.uid].metadata.annotations
    assert annotations["internal.yunikorn.apache.org/gang-resumed"] == "true"
    assert sum(pod.status.phase == "Running" for pod in world.pods.values()) == 2
    world.check()
    found = [each.split("/")[1] for each in world.reasons(originator.uid)]
    order = ["CreatingPlaceholders", "PlaceholderTimeOut", "GangSchedulingFailed"]
    assert sorted(order, key=found.index) == order
    world.run(60)
    assert world.phases() == {"Succeeded": 3}
    assert world.core_state() == {}


@BOTH
def test_t4_a_hard_gang_without_room_fails(queues: str) -> None:
    world = cluster("2", queues=queues)
    world.add_gang(2, policy=HARD)
    pods = list(world.pods.values())
    world.run(11)
    assert world.placeholders == []
    for pod in pods:
        assert world.pods[pod.uid].status.phase == "Failed"
        assert world.conditions[pod.uid][0] == "ResourceReservationTimeout"
        assert "ApplicationFailed/Scheduling" in world.reasons(pod.uid)
    assert world.core_state() == {}
    world.run(120)
    assert world.app_state("spark") == ""


def test_k60_an_id_that_failed_starts_anew_when_its_pods_have_ended() -> None:
    world = cluster("2", queues=WHOLE)
    world.add_gang(policy=HARD)
    world.run(6)
    world.kubelets = False
    late = world.add_pod("late", "spark")
    world.run(20)
    assert world.pods[late.uid].status.phase == "Running"
    world.check()


def test_t5_two_gangs_that_fit_only_alone(world: World) -> None:
    for app in ("first", "second"):
        for n in range(3):
            world.add_pod(f"{app}-{n}", app, group="w", groups=[gang("w", 3)], duration=20)
    world.run(5)
    assert world.phases("first") == {"Running": 3}
    assert world.phases("second") == {"Pending": 3}
    holders = {pod.spec.node_name for pod in world.placeholders}
    assert holders == {""}  # the other gang holds no room
    world.run(60)
    assert world.phases() == {"Succeeded": 6}
    assert world.placeholders == []


def test_t6_the_originator_is_deleted_while_the_gang_reserves_or_ends_before_it() -> None:
    world = cluster("2", queues=WHOLE)
    originator = world.add_gang()
    world.run(1)
    assert len(world.core_state()) == 2
    world.delete_pod(originator.uid)
    world.run(2)
    world.check_over("spark")
    assert world.core_app("spark") in ("", "Completed")
    world = cluster()
    world.add_gang(duration=10)
    world.run(5)
    assert len(world.placeholders) == 2
    world.run(7)
    assert world.placeholders == []
    assert world.core_state() == {}
    world.run(60)
    assert world.app_state("spark") == ""


def test_k80_placeholders_deleted_by_hand_are_made_again_three_times_a_minute() -> None:
    world = cluster("1", queues=WHOLE)
    world.add_gang(members=2)
    world.run(1)
    for _ in range(3):
        world.delete_pod(world.placeholders[0].uid)
        world.run(1)
        assert len(world.placeholders) == 2
    world.delete_pod(world.placeholders[0].uid)
    world.run(30)
    assert len(world.placeholders) == 1
    world.run(30)
    assert len(world.placeholders) == 2
    world.add_node("n2", cpu="2")
    world.run(5)
    assert world.phases("driver") == {"Running": 1}
    world.check()
    world = cluster("1", queues=WHOLE, values={"service.gangRetries": "0"})
    world.add_gang(members=2)
    world.run(1)
    world.delete_pod(world.placeholders[0].uid)
    world.run(120)
    assert len(world.placeholders) == 1


def test_t8_errors_of_groups_ids_and_queues_are_told_and_the_pods_run(world: World) -> None:
    pod = world.add_gang(members=0)
    world.run(1)
    assert "GangScheduling/TaskGroupsError" in world.reasons(pod.uid)
    assert world.phases() == {"Running": 1}
    world = cluster()
    pod = world.add_pod("a", "app-a", labels={"applicationId": "other"})
    assert pod.metadata.labels["yunikorn.apache.org/app-id"] == "app-a"
    world.add_pod("b-0", "app-b", group="w", groups=[gang("w", 1)])
    wrong = world.add_pod("b-1", "app-b", group="nobody")
    other = world.add_pod("b-2", "app-b", queue="root.small")
    world.run(3)
    assert "Scheduling/Scheduling" in [
        f"{each.reason}/{each.action}"
        for each in world.records
        if each.uid == pod.uid and each.type == "Warning"
    ]
    assert "GangScheduling/TaskGroupsError" in world.reasons(wrong.uid)
    assert any(each.uid == other.uid and "queue" in each.note for each in world.records)
    assert world.phases() == {"Running": 4}
    world.check()
