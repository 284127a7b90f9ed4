"""T9: the shim and the core are killed at every write and at every message, and start anew (K139 to K152)."""

from collections.abc import Callable

import pytest
from k8s_queues import SOFT, WHOLE
from k8s_world import Killed, World, cluster, gang
from msgspec.structs import replace

from quadriga.k8s.conversion.keys import DEVICES
from quadriga.k8s.objects import Metadata, NamedReference, Node, NodeSpec, NodeStatus
from quadriga.k8s.shim.actions import Record
from quadriga.si import AllocationRequest, NodeInfo, NodeRequest


def job() -> World:
    """T1, smaller: a Job of 12 pods on 2 nodes."""
    world = cluster("3", nodes=2)
    for n in range(12):
        world.add_pod(f"job-{n}", "job", duration=5)
    return world


def gang_of_two_groups() -> World:
    world = cluster(nodes=3)
    groups = [gang("driver", 1), gang("workers", 3, "2")]
    world.add_pod("driver", "spark", group="driver", groups=groups, duration=40)
    for n in range(3):
        world.add_pod(f"worker-{n}", "spark", "2", group="workers", duration=30)
    return world


def soft_gang() -> World:
    world = cluster("2", queues=WHOLE)
    world.add_gang(3, policy=SOFT, duration=10)
    return world


def real(world: World) -> set[str]:
    return {uid for uid, pod in world.pods.items() if not pod.metadata.name.startswith("tg-")}


def run_to_the_end(world: World, seconds: float) -> None:
    world.run(seconds, until=lambda: all(world.pods[uid].ended for uid in real(world)))


STORIES: dict[str, tuple[Callable[[], World], int]] = {
    "job": (job, 0),
    "gang of two groups": (gang_of_two_groups, 4),
    "soft gang": (soft_gang, 3),
}


def length(story: Callable[[], World]) -> int:
    world = story()
    run_to_the_end(world, 400)
    world.run(60)
    return world.steps


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", STORIES)
def test_t9_k149_a_kill_at_every_step_loses_and_doubles_nothing(name: str, after: bool) -> None:
    story, members = STORIES[name]
    steps = length(story)
    assert steps > 15
    for step in range(1, steps + 1):
        world = story()
        world.kill_at, world.kill_after = step, after
        pods = real(world)
        with pytest.raises(Killed):
            world.run(400)
        where = f"{name}, killed at step {step} of {steps}: {world.log[-1]}"
        world.restart()
        world.run(1)
        world.check()
        holding = [pod for pod in world.placeholders if not pod.terminating]
        placed = [uid for uid in pods if world.pods[uid].spec.node_name]
        if not all(world.pods[uid].ended for uid in placed):
            assert len(holding) + len(placed) <= members + 1 or not members, where
        run_to_the_end(world, 400)
        assert real(world) == pods, where
        assert {world.pods[uid].status.phase for uid in pods} == {"Succeeded"}, where
        assert all(len(world.bound[uid]) == 1 for uid in pods), where
        world.run(60)
        assert world.placeholders == [], where
        assert world.core_state() == {}, where
        assert world.shim.dump()["applications"] == [], where


def kinds(world: World) -> list[str]:
    found = []
    for request in world.sent:
        name = type(request).__name__
        if isinstance(request, NodeRequest):
            name += f" {NodeInfo.ActionFromRM.Name(request.nodes[0].action)}"
        elif isinstance(request, AllocationRequest):
            name += " reports" if request.allocations else " asks"
        found.append(name)
    return found


def test_k141_the_order_of_a_start() -> None:
    world = cluster("2")
    world.add_pod("other", scheduler="another", node="n1")
    world.add_pod("a", "app")
    waiting = world.add_pod("b", "app")
    world.run(2)
    world.sent.clear()
    world.restart()
    late = world.add_pod("late", "app")  # arrives while the recovery is under way
    world.run(2)
    assert kinds(world) == [
        "RegisterResourceManagerRequest",
        "ApplicationRequest",
        "NodeRequest CREATE_DRAIN",
        "AllocationRequest reports",
        "NodeRequest DRAIN_TO_SCHEDULABLE",
        "AllocationRequest asks",
    ]
    asks = [ask.allocationKey for each in world.sent for ask in getattr(each, "asks", ())]
    assert asks == [waiting.uid, late.uid]
    (application,) = [new for each in world.sent for new in getattr(each, "new", ())]
    assert application.tags["application.create.force"] == "true"
    world.check()


def test_k141_existing_pods_are_reported_by_creation_a_thousand_in_a_message() -> None:
    world = World()
    world.add_node("n1", cpu="8000", pods=3000)
    world.run(1)
    for n in range(1200):
        world.add_pod(f"p-{n:04}", "app")
    world.run(1)
    world.sent.clear()
    world.restart()
    world.run(1)
    reports = [each.allocations for each in world.sent if getattr(each, "allocations", ())]
    assert [len(each) for each in reports] == [1000, 200]
    keys = [each.allocationKey for report in reports for each in report]
    in_order = sorted(world.pods.values(), key=lambda pod: pod.metadata.name)
    assert keys == [pod.uid for pod in in_order]
    world.check()


def test_k143_a_running_pod_of_a_rejected_application_counts_as_foreign() -> None:
    world = cluster(queues=WHOLE)
    pod = world.add_pod("a", "app", queue="root.default", duration=50)
    world.run(1)
    world.refuse_applications = True
    world.restart()
    world.run(2)
    assert world.core_state() == {pod.uid: "n1"}
    assert "TaskRejected/Recovery" in world.reasons(pod.uid)
    (full,) = pod.spec.containers
    small = replace(full, resources=replace(full.resources, requests={"cpu": "200m"}))
    placed = world.pods[pod.uid]
    world.set_pod(replace(placed, spec=replace(placed.spec, containers=(small,))))
    world.run(1)
    assert world.used("n1") == 200, "K85"
    world.run(60)
    assert world.core_state() == {}
    assert world.phases() == {"Succeeded": 1}


def test_k145_missing_placeholders_are_created_after_a_restart() -> None:
    world = cluster("2", queues=WHOLE)
    world.add_gang()
    world.run(2)
    kept = {pod.uid for pod in world.placeholders[:2]}
    lost = world.placeholders[2].uid
    world.pods.pop(lost)
    world.restart()
    world.run(2)
    assert len(world.placeholders) == 3
    assert kept < {pod.uid for pod in world.placeholders}
    world.add_node("n2", cpu="2")
    world.run(3)
    assert world.phases("driver") == {"Running": 1}
    world.check()


def test_k146_a_gang_with_a_placed_member_makes_no_placeholders(world: World) -> None:
    world.add_gang()
    world.run(3)
    assert world.phases("driver") == {"Running": 1}
    assert len(world.placeholders) == 2
    world.log.clear()
    world.restart()
    worker = world.add_pod("worker", "spark", group="w")
    world.run(3)
    assert not [line for line in world.log if line.startswith("Create")]
    assert world.pods[worker.uid].status.phase == "Running"
    assert len(world.placeholders) == 1
    world.check()


def test_k147_placeholders_without_a_real_pod_are_deleted() -> None:
    world = cluster("2", queues=WHOLE)
    driver = world.add_gang()
    world.run(2)
    assert len(world.placeholders) == 3
    world.pods.pop(driver.uid)  # and the collector has not come by
    world.restart()
    world.run(2)
    world.check_over("spark")


def test_k148_a_terminating_placeholder_counts_as_gone() -> None:
    world = cluster("2", queues=WHOLE)
    world.add_gang()
    world.run(2)
    leaving = next(pod.uid for pod in world.placeholders if pod.spec.node_name)
    world.terminate(leaving)
    world.restart()
    world.add_node("n2", cpu="4")
    world.run(3)
    assert leaving not in world.pods
    assert world.phases("driver") == {"Running": 1}
    world.check()


def test_k77_a_gang_that_has_resumed_stays_an_ordinary_application() -> None:
    world = cluster("2", queues=WHOLE)
    world.add_gang(cpu="4", policy=SOFT)
    world.run(10)
    assert world.app_state("spark") == "Running"
    world.log.clear()
    world.sent.clear()
    world.restart()
    world.run(5)
    (application,) = [new for each in world.sent for new in getattr(each, "new", ())]
    assert not application.placeholderAsk.resources
    assert not application.executionTimeoutMilliSeconds
    assert world.placeholders == []
    world.add_node("n2", cpu="4")
    world.run(2)
    assert world.phases("driver") == {"Running": 1}


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_k77_a_timeout_that_is_over_at_a_start(style: str) -> None:
    world = World(queues=WHOLE)
    pod = world.add_gang(policy=f"placeholderTimeoutInSeconds=30 gangSchedulingStyle={style}")
    world.core.stop()
    world.now += 31_000_000_000
    world.start()
    world.add_node("n1")
    world.run(5)
    assert not [line for line in world.log if line.startswith("Create")]
    if style == "Soft":
        assert world.pods[pod.uid].status.phase == "Running"
        assert "GangScheduling/PlaceholderTimeout" in world.reasons(pod.uid)
    else:
        assert world.conditions[pod.uid][0] == "ResourceReservationTimeout"
    world.run(120)
    assert world.app_state("spark") == ("Running" if style == "Soft" else "")


def test_k71_the_owner_of_the_placeholders_stays_the_originator() -> None:
    world = cluster("2", queues=WHOLE)
    groups = [gang("w", 3)]
    world.run(1)
    older = world.add_pod("older", "spark", group="w", groups=groups)
    world.run(2)
    # in the same second, and before it by name
    world.add_pod("a-younger", "spark", group="w", groups=groups)
    world.restart()
    world.run(2)
    assert world.shim.dump()["applications"][0]["originator"] == older.metadata.name
    owners = {owner.uid for pod in world.placeholders for owner in pod.metadata.owner_references}
    assert owners == {older.uid}


def test_k153_events_of_what_was_there_may_have_been_told_before_the_start() -> None:
    world = cluster("2", queues=WHOLE)
    world.run(1)
    world.add_gang()
    world.add_pod("large", "large", cpu="9")
    world.add_pod("other", "other", scheduling_gates=(NamedReference("quota/wait"),))
    world.run(2)
    assert world.reasons().count("GangScheduling/PlaceholderAllocated") == 2
    told = set(map(_said, world.records))
    ours = [each for each in world.records if each.kind == "Pod"]
    assert [each.may_exist for each in ours] == [each.reason == "Informational" for each in ours]
    world.records.clear()
    world.restart()
    world.run(2)
    repeated = [each for each in world.records if _said(each) in told]
    assert {each.action for each in repeated} >= {"PlaceholderAllocated", "Scheduling", "Node"}
    assert [each for each in repeated if not each.may_exist] == []
    # what happens from then on is new
    world.records.clear()
    late = world.add_pod("late", "late")
    world.run(2)
    assert "Scheduling/Scheduling" in world.reasons(late.uid)
    own = [each for each in world.records if each.uid == late.uid]
    assert not any(each.may_exist for each in own if each.reason != "Informational")
    world.check()


@pytest.mark.parametrize("what", ["both", "the core"])
def test_q14_a_bound_pod_names_its_units_and_keeps_them_over_a_restart(what: str) -> None:
    name = "example.com/gpu-milli"
    devices = f"devices: [{{name: {name}, shared: true}}], queues:"
    world = World(queues=WHOLE.replace("queues:", devices, 1))
    node = NodeStatus(allocatable={"cpu": "9", "pods": "9", name: "2000"})
    world.set_node(Node(Metadata(name="n1", uid="node-n1"), NodeSpec(), node))

    def ask(name_of_pod: str, milli: str) -> str:
        uid = world.add_pod(name_of_pod, "app", overhead={name: milli}).uid
        world.run(3)
        return world.pods[uid].metadata.annotations.get(DEVICES, "")

    assert [ask(f"p{milli}", milli) for milli in ("700", "500", "400")] == [
        f"{name}=0",
        f"{name}=1",
        f"{name}=1",
    ]
    if what == "both":
        world.restart()
    else:
        world.forget_core()
    world.run(5)
    assert ask("fits", "300") == f"{name}=0"
    assert ask("too-large", "101") == ""
    world.check()


def _said(record: Record) -> tuple[str, ...]:
    return record.uid, record.reason, record.action, record.note
