"""What is in force while a pod is resized, beside a plain reference, and what is told of a resize that takes
the queue beyond its quota (K85, K209)."""

from random import Random
from typing import Any

import pytest
from decoded import container, decoded
from decoded import pod as decoded_pod
from hypothesis import given
from hypothesis import strategies as st
from k8s_queues import DEFAULT, queues
from k8s_world import World, cluster, gang
from msgspec.structs import replace

from quadriga.core.scheduler import Scheduler
from quadriga.k8s.conversion.resources import may_differ, of_pod
from quadriga.k8s.objects import ContainerStatus, Pod, PodCondition, PodStatus, ResourceRequirements
from quadriga.k8s.shim.actions import Action, Delete

NAMES = ("cpu", "memory", "hugepages-2Mi", "example.com/nic")
AS_A_WHOLE = ("cpu", "memory", "hugepages-2Mi")


def naive(manifest: dict[str, Any]) -> dict[str, int]:
    """K82 to K85 and K209 as the rules say them, on a manifest with whole numbers as amounts."""
    spec, status = manifest["spec"], manifest["status"]
    infeasible = False
    for condition in status["conditions"]:
        if condition["type"] == "PodResizePending" and condition["reason"] == "Infeasible":
            infeasible = True

    def in_force(
        wanted: dict[str, int], told: dict[str, Any], names: tuple[str, ...]
    ) -> dict[str, int]:
        told_of = [
            told.get("allocatedResources", {}),
            told.get("resources", {}).get("requests", {}),
        ]
        found = {}
        for name in names:
            values = [each[name] for each in told_of if name in each]
            if name in wanted and not (infeasible and "resources" in told):
                values.append(wanted[name])
            if values:
                found[name] = max(values)
        return found

    def of(kind: str, each: dict[str, Any]) -> dict[str, int]:
        told = [other for other in status[kind] if other["name"] == each["name"]]
        return in_force(each["resources"]["requests"], told[0] if told else {}, NAMES)

    result = {}
    for name in NAMES:
        running = sum(of("containerStatuses", each).get(name, 0) for each in spec["containers"])
        sidecars, starting = 0, 0
        for each in spec["initContainers"]:
            needs = of("initContainerStatuses", each).get(name, 0)
            if each.get("restartPolicy") == "Always":
                sidecars += needs
            else:
                starting = max(starting, sidecars + needs)
        result[name] = max(running + sidecars, starting)
    if "resources" in spec:
        whole = spec["resources"]["requests"]
        named = tuple(name for name in AS_A_WHOLE if name in whole)
        result.update(in_force(whole, status, named))
    for name, value in spec["overhead"].items():
        result[name] += value
    result["vcore"] = 1000 * result.pop("cpu")
    return {name: value for name, value in result.items() if value}


class RandomResizes:
    def __init__(self, random: Random) -> None:
        self.random = random

    def amounts(self, names: tuple[str, ...] = NAMES) -> dict[str, int]:
        chosen = self.random.sample(names, self.random.randint(1, len(names)))
        return {name: self.random.randint(1, 9) for name in chosen}

    def told(self, wanted: dict[str, int]) -> dict[str, Any]:
        """Nothing, or both amounts of each resource that is asked for, as kubelets write them."""
        if self.random.random() < 0.4:
            return {}
        both = [{name: self.random.randint(1, 9) for name in wanted} for _ in range(2)]
        return {"allocatedResources": both[0], "resources": {"requests": both[1]}}

    def pod(self) -> dict[str, Any]:
        containers = [
            container(f"c{n}", **self.amounts()) for n in range(self.random.randint(1, 3))
        ]
        inits = [
            container(f"i{n}", self.random.choice(("", "Always")), **self.amounts())
            for n in range(self.random.randint(0, 3))
        ]
        statuses = [
            [{"name": each["name"], **self.told(each["resources"]["requests"])} for each in kind]
            for kind in (containers, inits)
        ]
        status: dict[str, Any] = {
            "containerStatuses": statuses[0],
            "initContainerStatuses": statuses[1],
        }
        spec: dict[str, Any] = {"containers": containers, "initContainers": inits, "overhead": {}}
        whole = self.amounts(AS_A_WHOLE)
        if self.random.random() < 0.5:
            spec["resources"] = {"requests": whole}
        # also of what is not asked for as a whole, which does not count
        status.update(self.told({**self.amounts(AS_A_WHOLE), **whole}))
        if self.random.random() < 0.3:
            spec["overhead"] = self.amounts()
        status["conditions"] = self.conditions()
        return {"spec": spec, "status": status}

    def conditions(self) -> list[dict[str, str]]:
        kind = self.random.choice(("PodResizePending", "PodResizeInProgress", ""))
        reason = self.random.choice(("Infeasible", "Deferred"))
        return [{"type": kind, "status": "True", "reason": reason}] if kind else []


def amounts_of(manifest: dict[str, Any]) -> dict[str, int]:
    found = of_pod(decoded_pod(spec=manifest["spec"], status=manifest["status"]))
    assert found.pop("pods") == 1
    return {name: value for name, value in found.items() if value}


@given(st.integers(min_value=0, max_value=2**63))
def test_k83_k209_in_force_is_what_the_rules_say(seed: int) -> None:
    made = RandomResizes(Random(seed))
    for _ in range(50):
        manifest = made.pod()
        assert amounts_of(manifest) == naive(manifest)
        status = {**manifest["status"], "conditions": made.conditions()}
        after = {"spec": manifest["spec"], "status": status}
        if naive(after) != naive(manifest):  # a condition alone is a change
            assert may_differ(decoded(Pod, manifest), decoded(Pod, after))


NEVER = PodCondition("PodResizePending", "True", "Infeasible")
LATER = PodCondition("PodResizePending", "True", "Deferred")
TEAM = "{name: team, resources: {max: {vcore: 3000m, memory: 64Gi}}}"


def world() -> World:
    made = World(queues=queues(DEFAULT, TEAM))
    made.add_node("n1", cpu="8")
    made.run(1)
    return made


def resize(made: World, uid: str, cpu: str) -> None:
    made.resize(uid, cpu)
    made.run(1)


def tell(made: World, uid: str, cpu: str, *conditions: PodCondition) -> None:
    told = ContainerStatus("main", {"cpu": cpu}, ResourceRequirements({"cpu": cpu}))
    status = PodStatus(phase="Running", container_statuses=(told,), conditions=conditions)
    made.set_pod(replace(made.pods[uid], status=status))
    made.run(1)


def used(made: World, queue: str = "team") -> int:
    def read(core: Scheduler) -> int:
        partition = core.partition()
        found = {each.path: each.allocated for each in partition.queues()}[f"root.{queue}"]
        return int(partition.registry.mapping(found).get("vcore", 0))

    return made.core.read(read)


def told(made: World) -> list[tuple[str, str, str]]:
    return [
        (each.name, each.type, each.note)
        for each in made.records
        if each.reason == "ResizedBeyondQuota"
    ]


def test_k209_the_queue_follows_a_condition_that_changes_alone() -> None:
    made = world()
    pod = made.add_pod("a", "app", queue="root.team")
    made.run(1)
    tell(made, pod.uid, "1")
    resize(made, pod.uid, "4")
    assert used(made) == 4000, "the resize may come at any time"
    tell(made, pod.uid, "1", NEVER)
    assert used(made) == 1000
    tell(made, pod.uid, "1", LATER)
    assert used(made) == 4000
    tell(made, pod.uid, "1", NEVER)
    resize(made, pod.uid, "2")
    tell(made, pod.uid, "2", PodCondition("PodResizeInProgress", "True"))
    assert used(made) == 2000
    made.check()


def test_k209_a_resize_beyond_the_quota_is_told_once() -> None:
    made = world()
    pod = made.add_pod("a", "app", queue="root.team")
    other = made.add_pod("b", "other", queue="root.team")
    made.run(1)
    resize(made, pod.uid, "2")
    assert told(made) == [], "the quota of 3 CPU is used up and not exceeded"
    tell(made, pod.uid, "2")
    resize(made, pod.uid, "4")
    tell(made, pod.uid, "2", LATER)
    tell(made, pod.uid, "4")
    note = "The resize takes queue 'root.team' beyond its quota: 5 CPU of 3 CPU"
    assert told(made) == [("a", "Warning", note)]
    assert used(made) == 5000, "what runs is not stopped"
    resize(made, pod.uid, "3")
    tell(made, pod.uid, "3")
    assert len(told(made)) == 1, "it is still too much, and less than before"
    resize(made, other.uid, "2")
    assert [name for name, _, _ in told(made)] == ["a", "b"]
    made.restart()
    made.run(2)
    assert len(told(made)) == 2, "a restart tells nothing anew"
    made.check()


def test_k209_a_resize_in_a_queue_without_a_quota_is_not_told() -> None:
    made = world()
    pod = made.add_pod("a", "app")
    made.run(1)
    resize(made, pod.uid, "64")
    assert used(made, "default") == 64_000
    assert told(made) == []


@pytest.mark.parametrize("foreign", [False, True])
def test_k85_the_core_hears_of_each_step_of_a_resize(foreign: bool) -> None:
    made = cluster("8")
    owner = {"scheduler": "default-scheduler"} if foreign else {}
    small = ResourceRequirements({"cpu": "4"})
    pod = made.add_pod("pod", "app", node="n1", resources=small, **owner)
    made.run(1)

    assert made.used("n1") == 4000
    big = replace(pod.spec, resources=ResourceRequirements({"cpu": "6"}))
    status = replace(pod.status, allocated_resources={"cpu": "4"})
    pod = made.set_pod(replace(made.pods[pod.uid], spec=big, status=status))
    made.run(1)
    assert made.used("n1") == 6000
    never = PodCondition("PodResizePending", "True", "Infeasible")
    pod = made.set_pod(replace(pod, status=replace(status, conditions=(never,))))
    made.run(1)
    assert made.used("n1") == 4000
    pod = made.set_pod(replace(pod, status=status))
    made.run(1)
    assert made.used("n1") == 6000
    back = replace(pod.spec, resources=ResourceRequirements({"cpu": "1"}))
    pod = made.set_pod(replace(pod, spec=back))
    made.run(1)
    assert made.used("n1") == 4000, "what is in force"
    made.set_pod(replace(pod, status=replace(status, allocated_resources={"cpu": "1"})))
    made.run(1)
    assert made.used("n1") == 1000


def test_k85_a_member_is_resized_while_its_placeholder_is_being_deleted() -> None:
    made = cluster("8")
    held: list[Action] = []
    effect = made._effect
    made._effect = lambda each: held.append(each) if isinstance(each, Delete) else effect(each)  # type: ignore[method-assign]
    pod = made.add_pod("a", "app", "4", group="w", groups=[gang("w", 1, "4")])
    made.run(1)
    assert len(held) == 1
    small = replace(pod.spec.containers[0], resources=ResourceRequirements({"cpu": "1"}))
    made.set_pod(replace(made.pods[pod.uid], spec=replace(pod.spec, containers=(small,))))
    made.run(1)
    effect(held[0])
    made.run(1)
    assert made.phases() == {"Running": 1}
    assert made.used("n1") == 1000


def test_k85_a_condition_that_says_nothing_of_sizes_is_no_change() -> None:
    before = decoded_pod(spec={"containers": [container(cpu="1")]})
    ready = PodCondition("Ready", "True")
    after = replace(before, status=replace(before.status, conditions=(ready,)))
    assert not may_differ(before, after)
