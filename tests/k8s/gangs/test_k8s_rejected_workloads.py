"""A workload that cannot be scheduled says so on its pods, and does not make a heap of them (K60, K88)."""

import pytest
from k8s_queues import STRICT
from k8s_world import World, cluster

from quadriga.k8s.conversion.problems import CLAIMS_UNREAD
from quadriga.k8s.shim.inputs import ConfigurationChanged
from quadriga.si import ApplicationRequest

MINUTE = 60


class Replicas:
    """A ReplicaSet: whatever of it fails is there again at once."""

    def __init__(self, world: World, name: str, replicas: int, queue: str, policy: str = "Always"):
        self.world, self.name, self.replicas = world, name, replicas
        self.more = {"queue": queue, "owned": name, "restart_policy": policy}
        self.made: list[str] = []

    def run(self, seconds: int) -> None:
        world = self.world
        for _ in range(max(seconds, 1)):
            live = [uid for uid in self.made if uid in world.pods and not world.pods[uid].ended]
            for _ in range(self.replicas - len(live)):
                pod = world.add_pod(f"{self.name}-{len(self.made)}", "app", **self.more)
                self.made.append(pod.uid)
            if seconds:
                world.run(1)

    def phases(self) -> dict[str, int]:
        return dict(self.world.phases(f"{self.name}-"))


def tries(world: World) -> int:
    return sum(len(each.new) for each in world.sent if isinstance(each, ApplicationRequest))


@pytest.mark.parametrize("replicas", [1, 10])
def test_k60_a_rejected_replica_set_leaves_no_failed_pods(replicas: int) -> None:
    world = cluster(queues=STRICT)
    workload = Replicas(world, "web", replicas, "root.nowhere")
    workload.run(10 * MINUTE)
    assert workload.phases() == {"Pending": replicas}
    assert tries(world) == 10, "after 0, 1, 3, 7, 15, ... seconds"
    assert world.app_state("app") == "Held"
    for uid in workload.made:
        reason, message = world.conditions[uid]
        assert reason == "SchedulingSkipped"
        assert message.startswith("The application was rejected: ")
        assert "root.nowhere" in message
        warned = [each for each in world.records if each.uid == uid and each.type == "Warning"]
        assert {each.note for each in warned if "app was rejected" in each.note}
    world.check()


def test_k60_the_pods_run_as_soon_as_the_queue_is_there() -> None:
    world = cluster(queues=STRICT)
    workload = Replicas(world, "web", 2, "root.nowhere")
    workload.run(MINUTE)
    world.inputs.append(ConfigurationChanged({"queues.yaml": STRICT.replace("open", "nowhere")}))
    world.run(1)
    assert workload.phases() == {"Running": 2}
    world.check()


def test_k60_a_mended_template_runs_though_the_pods_of_the_old_one_are_still_there() -> None:
    world = cluster(queues=STRICT)
    old = Replicas(world, "old", 2, "root.nowhere")
    old.run(MINUTE)
    new = Replicas(world, "new", 1, "root.open")
    new.run(1)
    assert new.phases() == {"Running": 1}
    assert world.app_state("app") == "Running"
    for uid in old.made:
        world.delete_pod(uid)
    world.run(1)
    world.check()


def test_k60_a_template_that_is_wrong_in_another_way_waits_as_well() -> None:
    world = cluster(queues=STRICT)
    old = Replicas(world, "old", 1, "root.nowhere")
    old.run(MINUTE)
    before = tries(world)
    new = Replicas(world, "new", 1, "root.neither")
    new.run(10)
    assert (old.phases(), new.phases()) == ({"Pending": 1}, {"Pending": 1})
    assert tries(world) - before <= 5
    assert "root.neither" in world.conditions[new.made[0]][1]


def test_k34_a_pod_that_is_to_end_fails_beside_one_that_is_replaced() -> None:
    world = cluster(queues=STRICT)
    workload = Replicas(world, "web", 1, "root.nowhere")
    workload.run(0)
    job = Replicas(world, "job", 1, "root.nowhere", policy="Never")
    job.run(1)
    assert workload.phases() == {"Pending": 1}
    assert job.phases() == {"Failed": 1}
    world.run(MINUTE)
    assert len(world.shim.dump()["applications"][0]["tasks"]) == 1


def test_k60_a_rejected_workload_is_held_again_after_a_restart() -> None:
    world = cluster(queues=STRICT)
    workload = Replicas(world, "web", 3, "root.nowhere")
    workload.run(MINUTE)
    world.restart()
    world.run(1)
    assert workload.phases() == {"Pending": 3}
    assert world.app_state("app") == "Held"
    world.forget_core()
    world.run(MINUTE)
    assert workload.phases() == {"Pending": 3}
    assert len(workload.made) == 3
    world.check()


def test_k143_with_a_running_pod_the_others_fail_as_before(world: World) -> None:
    world.refuse_applications = True
    world.add_pod("runs", "app", node="n1")
    workload = Replicas(world, "web", 1, "")
    workload.run(1)
    assert world.app_state("app") == "Rejected"
    assert workload.phases() == {"Failed": 1}


def test_k88_the_first_pod_with_a_claim_is_not_warned_while_claims_are_being_listed() -> None:
    world = cluster()
    says = {"": CLAIMS_UNREAD}
    world.blocked_reason = lambda pod: says[""]
    pod = world.add_pod("a", "app")
    world.run(1)
    world.set_pod(pod)
    world.run(1)
    (event,) = [each for each in world.records if each.uid == pod.uid]
    assert (event.reason, event.type, event.note) == ("Scheduling", "Normal", CLAIMS_UNREAD)
    says[""] = "the claim data does not exist"
    for _ in range(2):
        world.set_pod(pod)
        world.run(1)
    warned = [each for each in world.records if each.type == "Warning"]
    assert [each.note for each in warned] == ["the claim data does not exist"]
    assert warned[0].reason == "FailedScheduling"
    says[""] = ""
    world.set_pod(pod)
    world.run(1)
    assert world.phases() == {"Running": 1}
