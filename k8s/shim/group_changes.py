"""Changes of PodGroups, and the gangs that are checked again because of them (K204 to K206)."""

from __future__ import annotations

from quadriga.k8s.conversion import identity
from quadriga.k8s.conversion import pod_groups as conversion
from quadriga.k8s.lifecycles import application as application_fsm
from quadriga.k8s.lifecycles import task as task_fsm
from quadriga.k8s.objects import PodGroup
from quadriga.k8s.shim import actions, pod_groups
from quadriga.k8s.shim.applications import end_task, withdraw
from quadriga.k8s.shim.inputs import Change, PodGroupsServed
from quadriga.k8s.shim.kernel import Kernel
from quadriga.k8s.shim.model import GroupEntry
from quadriga.k8s.shim.pods import add


def changed(kernel: Kernel, change: Change, group: PodGroup) -> None:
    """Handle a PodGroup that was added, changed or deleted. It stays valid while it is being deleted."""
    meta = group.metadata
    key = meta.namespace, meta.name
    entry = kernel.pod_groups.get(key)
    if entry is None:
        entry = kernel.pod_groups[key] = GroupEntry(key)
    before = entry.group
    if change == "DELETED":
        if before is None or before.metadata.uid != meta.uid:
            return
        kernel.actions.append(actions.DropCondition(meta.uid))
        _set(kernel, entry, None)
        if not entry.pods:
            del kernel.pod_groups[key]
        return
    if before is None or before.metadata.uid != meta.uid:
        entry.app, entry.scheduled = None, conversion.is_scheduled(group)
        # the message that an earlier process has written to its condition
        entry.reported = next((each.message for each in group.status.conditions), "")
        ours = (pod for pod in entry.pods.values() if identity.is_ours(pod, kernel.settings))
        entry.placed = sum(bool(pod.spec.node_name) for pod in ours)
    _set(kernel, entry, group)


def _set(kernel: Kernel, entry: GroupEntry, group: PodGroup | None) -> None:
    """Set the PodGroup of the entry. Classify its pods without a node again if the PodGroup now means something
    else for them."""
    before, entry.group = _meaning(entry), group
    refusal = "" if group is None else conversion.refusal(group, kernel.settings)
    if refusal and refusal != entry.refusal:
        note = f"{entry.named} is not supported, and its pods are not scheduled: {refusal}"
        kernel.actions.append(actions.LogWarning(note))
    entry.refusal = refusal
    if not kernel.serving:
        return  # the recovery classifies them
    if before != _meaning(entry):
        _sort_anew(kernel, entry)
    elif entry.app is not None:
        kernel.look_at(entry.app)
    pod_groups.say_scheduled(kernel, entry)
    if refusal:
        pod_groups.say_waiting(kernel, entry, refusal)


def _meaning(entry: GroupEntry) -> tuple[str, str, bool]:
    group = entry.group
    if group is None:
        return "", "", False
    return group.metadata.uid, entry.refusal, conversion.min_count(group) > 0


def _sort_anew(kernel: Kernel, entry: GroupEntry) -> None:
    if entry.app is not None and entry.app.state in application_fsm.GATHERS:
        withdraw(kernel, entry.app)
    for pod in list(entry.pods.values()):
        task = kernel.tasks.get(pod.metadata.uid)
        if task is not None:
            if task.state not in task_fsm.UNPLACED or task.node:
                continue
            end_task(kernel, task)
        if identity.is_ours(pod, kernel.settings) and not pod.spec.node_name:
            add(kernel, pod)


def served(kernel: Kernel, input: PodGroupsServed) -> None:
    """Handle a server that has begun to serve PodGroups, or serves them in another version."""
    kernel.pod_group_version = input.version
    read_again(kernel)


def read_again(kernel: Kernel) -> None:
    """Read all PodGroups again: after a change of the settings or the server, a refused or unknown one may be
    valid."""
    for entry in list(kernel.pod_groups.values()):
        _set(kernel, entry, entry.group)
        if entry.group is None and kernel.serving:
            _sort_anew(kernel, entry)
