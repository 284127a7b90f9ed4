"""PodGroups of the Workload API, which pods may name: what they request (K204, K206), and what is not supported
(K133).

A member of a gang must never be scheduled alone, and only its PodGroup says whether it is one. A pod therefore
waits until its PodGroup exists, and for good if that requests something unsupported.
"""

from __future__ import annotations

from typing import Any, Final

from quadriga.k8s.conversion import annotated_tags
from quadriga.k8s.conversion.problems import Problem, shown
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import Pod, PodGroup

#: versions of the API, the newest first, and the condition that says whether the group is scheduled (K205)
CONDITIONS: Final = {"v1beta1": "PodGroupInitiallyScheduled", "v1alpha2": "PodGroupScheduled"}
#: disruption modes of 1.36, and the only one of the newer form, in which each pod is disrupted by itself
_EACH_POD: Final[tuple[Any, ...]] = (None, "", "Pod", {}, {"single": {}})


def not_supported(pod: Pod) -> str:
    """Return why a pod that names a group of a Workload (1.35) is not asked for."""
    workload = pod.spec.workload_ref
    if workload is None:
        return ""
    return (
        f"spec.workloadRef (Workload {shown(workload.name)}, group {shown(workload.pod_group)}) is not"
        " supported: the pod is not scheduled, because it may belong to a gang. Gangs are supported as"
        " PodGroups, and as task groups in annotations"
    )


def overruled(pod: Pod) -> Problem | None:
    """Return a problem if the pod has a task group too, which is more explicit."""
    group, workload = pod.spec.scheduling_group, pod.spec.workload_ref
    if group is None and workload is None:
        return None
    field = "spec.schedulingGroup" if group is not None else "spec.workloadRef"
    note = f"{field} has no effect: the pod's task group counts"
    return Problem("GangScheduling", "SchedulingGroupIgnored", note)


def min_count(group: PodGroup) -> int:
    """Return how many of its pods are placed together; 0 if they are placed one by one."""
    gang = group.spec.scheduling_policy.gang
    return gang.min_count if gang is not None else 0


def refusal(group: PodGroup, settings: Settings) -> str:
    """Return why the pods of the group are not scheduled at all; "" if they may be (K206)."""
    spec, members = group.spec, min_count(group)
    policy = spec.scheduling_policy
    if (policy.basic is None) == (policy.gang is None):
        return "its schedulingPolicy is neither basic nor gang, and no other one is supported"
    if policy.gang is not None and members < 1:
        return f"its minCount is {members}"
    if members > settings.gang_max_members:
        bound = f"the bound is {settings.gang_max_members} (service.gangMaxMembers)"
        return f"its minCount is {members}; {bound}"
    if why := annotated_tags.refusal(group):
        return why
    if spec.disruption_mode not in _EACH_POD:
        return (
            "its disruptionMode asks for preemption of the group as a whole, which is not supported"
        )
    if spec.parent_composite_pod_group_name:
        return "it belongs to a CompositePodGroup, which is not supported"
    if spec.resource_claims:
        return "resourceClaims of a PodGroup are not supported"
    return ""


def is_scheduled(group: PodGroup) -> bool:
    """Return whether its condition says Scheduled, which is never taken back (K205)."""
    found = group.status.conditions
    return any(each.type in CONDITIONS.values() and each.status == "True" for each in found)
