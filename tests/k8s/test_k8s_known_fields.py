"""Fields of newer servers that are known: groups of the Workload objects of 1.35 are not supported (K133),
and a resize of the pod as a whole counts (K85)."""

from __future__ import annotations

from typing import Any

import pytest
from decoded import container
from decoded import pod as decoded_pod
from k8s_world import World
from msgspec.structs import replace

from quadriga.k8s.conversion.resources import may_differ, of_pod
from quadriga.k8s.objects import (
    PodCondition,
    ResourceRequirements,
    SchedulingGroup,
    WorkloadReference,
)

GROUP = {"scheduling_group": SchedulingGroup("workers")}
WORKLOAD = {"workload_ref": WorkloadReference("training", "workers")}


def world() -> World:
    made = World()
    made.add_node("n1", cpu="8")
    return made


def test_k133_a_pod_that_names_a_group_of_a_workload_is_held_and_says_so_once() -> None:
    made = world()
    held = made.add_pod("member", "app", **WORKLOAD)
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


def test_k133_a_pod_of_a_group_that_runs_counts() -> None:
    made = world()
    made.add_pod("member", "app", cpu="7", node="n1", **GROUP)
    made.add_pod("other", "more", cpu="2")
    made.run(30)
    assert made.phases("other") == {"Pending": 1}


# -- resizes of the pod as a whole -----------------------------------------------------------------

INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}


def as_a_whole(wanted: str, allocated: str, actual: str, **status: Any) -> int:
    """The vcore of a pod that asks for so much as a whole, around a container that asks for 100m."""
    of_pod_level: dict[str, Any] = {}
    if allocated:
        of_pod_level["allocatedResources"] = {"cpu": allocated, "memory": "1Mi"}
    if actual:
        of_pod_level["resources"] = {"requests": {"cpu": actual}}
    spec: dict[str, Any] = {"containers": [container(cpu="100m")]}
    if wanted:
        spec["resources"] = {"requests": {"cpu": wanted}}
    found = of_pod(decoded_pod(spec=spec, status={**of_pod_level, **status}))
    assert "memory" not in found, "the pod does not ask for memory as a whole"
    return found["vcore"]


@pytest.mark.parametrize(
    ("wanted", "allocated", "actual", "expected"),
    [
        ("2", "", "", 2000),
        ("2", "1", "1", 2000),
        ("1", "2", "1", 2000),
        ("1", "1", "3", 3000),
        ("", "5", "5", 100),  # the sum of the containers, which counts by itself
    ],
)
def test_k85_a_resize_of_the_pod_counts_what_is_in_force(
    wanted: str, allocated: str, actual: str, expected: int
) -> None:
    assert as_a_whole(wanted, allocated, actual) == expected


def test_k85_a_resize_of_the_pod_that_the_node_can_never_do_is_not_counted() -> None:
    assert as_a_whole("8", "1", "1", conditions=[INFEASIBLE]) == 1000
    assert as_a_whole("8", "", "2", resize="Infeasible") == 2000
    assert as_a_whole("8", "", "", conditions=[INFEASIBLE]) == 8000


@pytest.mark.parametrize("foreign", [False, True])
def test_k85_the_core_hears_of_each_step_of_a_resize(foreign: bool) -> None:
    """One that shrinks frees its room when it is in force, and one that turns out to be infeasible at once."""
    made = world()
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


def test_k85_a_condition_that_says_nothing_of_sizes_is_no_change() -> None:
    before = decoded_pod(spec={"containers": [container(cpu="1")]})
    ready = PodCondition("Ready", "True")
    after = replace(before, status=replace(before.status, conditions=(ready,)))
    assert not may_differ(before, after)
