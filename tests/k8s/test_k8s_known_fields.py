"""Fields of newer servers that are known: groups of the Workload objects of 1.35 are not supported (K133),
and a resize of the pod as a whole counts (K85)."""

from __future__ import annotations

import pytest
from decoded import container
from decoded import pod as decoded_pod
from k8s_world import cluster
from msgspec.structs import replace

from quadriga.k8s.conversion.resources import may_differ
from quadriga.k8s.objects import (
    PodCondition,
    ResourceRequirements,
    WorkloadReference,
)

WORKLOAD = {"workload_ref": WorkloadReference("training", "workers")}


def test_k133_a_pod_that_names_a_group_of_a_workload_is_held_and_says_so_once() -> None:
    made = cluster("8")
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


def test_k85_a_condition_that_says_nothing_of_sizes_is_no_change() -> None:
    before = decoded_pod(spec={"containers": [container(cpu="1")]})
    ready = PodCondition("Ready", "True")
    after = replace(before, status=replace(before.status, conditions=(ready,)))
    assert not may_differ(before, after)
