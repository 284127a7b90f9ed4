"""The groups of the Workload API, which pods may name and which are not supported yet (K133).

A member of a gang must never be scheduled alone, and only its PodGroup says whether it is one. So a pod that
names a group is held, with an event.
"""

from __future__ import annotations

from quadriga.k8s.conversion.problems import Problem, shown
from quadriga.k8s.objects import Pod

__all__ = ["names_group", "not_supported", "overruled"]


def names_group(pod: Pod) -> bool:
    """Whether the pod names a group in ``schedulingGroup`` (from 1.36 on) or ``workloadRef`` (1.35)."""
    return pod.spec.scheduling_group is not None or pod.spec.workload_ref is not None


def not_supported(pod: Pod) -> str:
    """Why a pod that names a group is not asked for."""
    return (
        f"{_field(pod)} is not supported yet: the pod is not scheduled, because it may belong to a gang."
        " Gangs are supported as task groups, in annotations"
    )


def overruled(pod: Pod) -> Problem:
    """The pod has a task group too, which is more explicit."""
    note = f"{_field(pod)} is not supported yet and has no effect: the pod's task group counts"
    return Problem("GangScheduling", "SchedulingGroupIgnored", note)


def _field(pod: Pod) -> str:
    group, workload = pod.spec.scheduling_group, pod.spec.workload_ref
    if group is not None:
        return f"spec.schedulingGroup (PodGroup {shown(group.pod_group_name)})"
    assert workload is not None
    return f"spec.workloadRef (Workload {shown(workload.name)}, group {shown(workload.pod_group)})"
