"""Pods that name a PodGroup: what they wait for, and which of them are placed together (K204 to K206).

The gang of a PodGroup is an application of its own. It is Held until as many of its pods exist as have to be
placed together and none of them has a node. Then that many are chosen, and the core is asked to place them in
one decision, without placeholders. The others follow one by one. A member that has a node has started the gang.
See D293. A gang with task groups whose members all exist is placed in the same way if the settings say so
(D356).
"""

from __future__ import annotations

from collections import Counter
from heapq import nsmallest
from typing import NamedTuple

from quadriga.k8s.conversion import annotated_tags, identity, keys, messages, resources, task_groups
from quadriga.k8s.conversion import pod_groups as conversion
from quadriga.k8s.lifecycles import application as application_fsm
from quadriga.k8s.lifecycles import task as task_fsm
from quadriga.k8s.objects import Pod
from quadriga.k8s.shim import actions
from quadriga.k8s.shim.kernel import Kernel
from quadriga.k8s.shim.model import Application, GroupEntry, Task, order_of, ref_of
from quadriga.si import AddApplicationRequest

# -- which pods --------------------------------------------------------------------------------


def _key(pod: Pod) -> tuple[str, str] | None:
    group = pod.spec.scheduling_group
    return None if group is None else (pod.metadata.namespace, group.pod_group_name)


def note(kernel: Kernel, pod: Pod) -> None:
    """Keep a pod that names a PodGroup."""
    key = _key(pod)
    if key is None:
        return
    entry = kernel.pod_groups.get(key)
    if entry is None:
        entry = kernel.pod_groups[key] = GroupEntry(key)
    known = entry.pods.get(pod.metadata.uid)
    entry.pods[pod.metadata.uid] = pod
    if identity.is_ours(pod, kernel.settings):
        if pod.spec.node_name and (known is None or not known.spec.node_name):
            entry.placed += 1
            say_scheduled(kernel, entry)
    elif known is None and entry.app is not None:
        kernel.look_at(entry.app)  # it names this PodGroup


def forget(kernel: Kernel, pod: Pod) -> None:
    """Forget a pod that has terminated or is gone."""
    key = _key(pod)
    entry = kernel.pod_groups.get(key) if key is not None else None
    if entry is not None:
        entry.pods.pop(pod.metadata.uid, None)
        if not entry.pods and entry.group is None:
            del kernel.pod_groups[entry.key]


def entry_of(kernel: Kernel, pod: Pod) -> GroupEntry | None:
    """Return the PodGroup that decides about the pod, ``None`` if it names none or if its task group counts
    (K206)."""
    key = _key(pod)
    if key is None:
        return None
    entry = kernel.pod_groups.get(key)
    name = identity.task_group_name(pod, kernel.settings)
    if name:
        app = kernel.applications.get(identity.application_id(pod, kernel.settings))
        gang = task_groups.read(pod, kernel.settings) if app is None else app.metadata.gang
        if gang.refusal or gang.group(name) is not None:
            return None
    return entry


def why_left_out(kernel: Kernel, pod: Pod) -> str:
    """Return why the pod is not scheduled because of its PodGroup; "" if it may be."""
    entry = entry_of(kernel, pod)
    if entry is None or pod.spec.node_name:
        return ""
    if entry.group is not None:
        return entry.refusal and f"{entry.named} is not supported: {entry.refusal}"
    if not kernel.pod_group_version:
        known = "the API server has no PodGroups, or the account may not read them"
        return f"it belongs to {entry.named}, and {known}"
    return f"{entry.named} does not exist yet"


def gang_of(kernel: Kernel, pod: Pod) -> GroupEntry | None:
    """Return the PodGroup whose gang the pod belongs to."""
    entry = entry_of(kernel, pod)
    if entry is None or entry.group is None or entry.refusal:
        return None
    return entry if conversion.min_count(entry.group) else None


def application_id(kernel: Kernel, pod: Pod) -> str:
    """Return the application of a pod with our scheduler name: that of the gang, if it has a member already."""
    entry = gang_of(kernel, pod)
    if entry is None:
        return identity.application_id(pod, kernel.settings)
    app = entry.app
    if app is not None and kernel.applications.get(app.key) is app:
        return app.key
    return identity.gang_id(pod, entry.key[1])


def priority_of(task: Task) -> int:
    """Return the priority of the task: that of the PodGroup, if it has one, for each pod of its gang (K204)."""
    entry = task.app.pod_group
    own = entry.group.spec.priority if entry is not None and entry.group is not None else None
    return (task.pod.spec.priority or 0) if own is None else own


# -- the gang ----------------------------------------------------------------------------------


def _may_be_placed(kernel: Kernel, task: Task) -> bool:
    pod = task.pod
    waits = task.state in task_fsm.WAITS and not pod.spec.scheduling_gates
    return waits and not pod.metadata.deletion_timestamp and not kernel.blocked_reason(pod)


class _Part(NamedTuple):
    """A PodGroup, or a task group without placeholders (D356): its name in messages, the number of its pods that
    are placed together, and all its pods."""

    named: str
    needed: int
    tasks: list[Task]


def _needed(app: Application) -> dict[str, int]:
    entry = app.pod_group
    if entry is not None:
        return {} if entry.group is None else {entry.named: conversion.min_count(entry.group)}
    groups = app.groups.items() if app.gathers_members else ()
    return {f"task group {name}": group.spec.min_member for name, group in groups}


def _part_of(app: Application, task: Task) -> str:
    if (entry := app.pod_group) is not None:
        return entry.named if task.key in entry.pods else ""
    return f"task group {task.group}"


def _parts(app: Application) -> list[_Part]:
    parts = {named: _Part(named, needed, []) for named, needed in _needed(app).items()}
    for task in app.tasks.values():
        if (part := parts.get(_part_of(app, task))) is not None:
            part.tasks.append(task)
    return [*parts.values()]


def _ready(kernel: Kernel, part: _Part) -> list[Task]:
    return [task for task in part.tasks if _may_be_placed(kernel, task)]


def lacks(kernel: Kernel, app: Application) -> str:
    """Return what a gang that is placed whole waits for before it is submitted to the core; "" for nothing."""
    _give_up_allocations(kernel, app)
    app.changed, app.ready, app.put_off = {}, {}, False
    if app.has_started:
        return ""
    return "; ".join(text for part in _parts(app) if (text := _lack(kernel, app, part)))


def lacks_still(kernel: Kernel, app: Application) -> bool:
    """Return whether members are missing as at the last look; visit only those that have changed since."""
    changed, app.changed = app.changed, {}
    if changed is None or any(each.node for each in changed.values()):
        return False
    for task in changed.values():
        ready = app.ready.get(_part_of(app, task), set())
        may = task.key in app.tasks and _may_be_placed(kernel, task)
        (ready.add if may else ready.discard)(task.key)
    return any(len(app.ready.get(named, ())) < needed for named, needed in _needed(app).items())


def _lack(kernel: Kernel, app: Application, part: _Part) -> str:
    app.ready[part.named] = {task.key for task in _ready(kernel, part)}
    needed, ready = part.needed, len(app.ready[part.named])
    if ready >= needed:
        return ""
    live = [task for task in part.tasks if not task.pod.metadata.deletion_timestamp]
    gated = sum(bool(task.pod.spec.scheduling_gates) for task in live)
    text = f"{part.named} wants {needed} pods together, {len(live)} exist"
    if gated:
        text += f", {gated} of them with scheduling gates"
    if others := len(live) - gated - ready:
        text += f", {others} of them cannot be placed yet"
    entry = app.pod_group
    names = Counter(
        pod.spec.scheduler_name
        for pod in (entry.pods.values() if entry is not None else ())
        if not identity.is_ours(pod, kernel.settings)
    )
    for name, number in sorted(names.items())[:3]:
        text += f"; {number} more of scheduler {name} do not count"
    return text


def choose(kernel: Kernel, app: Application, request: AddApplicationRequest) -> None:
    """Choose the members that are placed together, the first ones by priority and age, and inform the core."""
    entry = app.pod_group
    app.chosen = {}
    _give_up_allocations(kernel, app)
    if entry is not None and entry.group is not None:
        request.tags.update(annotated_tags.group_tags(entry.group))
    parts = _parts(app)
    if app.has_started or not parts or lacks(kernel, app):
        return
    total = Counter[str]()
    for part in parts:
        for task in nsmallest(
            part.needed,
            _ready(kernel, part),
            key=lambda task: (-(task.pod.spec.priority or 0), order_of(task.pod)),
        ):
            app.chosen[task.key] = task
            total.update(resources.of_pod(task.pod))
    if not app.chosen:
        return
    request.executionTimeoutMilliSeconds = 0
    request.placeholderAsk.CopyFrom(messages.resource_of(total))
    request.tags[keys.GANG_PLACEHOLDERS_TAG] = "none"
    named = entry.named if entry is not None else "its gang"
    app.held_because = f"The pod follows when {len(app.chosen)} other pods of {named} are placed."


def is_whole(kernel: Kernel, app: Application, changed: dict[str, Task] | None = None) -> bool:
    """Return whether the chosen members are still those that are placed together. Only ``changed`` may not be."""
    if not app.chosen or len(app.chosen) != sum(_needed(app).values()):
        return False
    asked = app.state in application_fsm.ASKS_CHOSEN
    return all(
        task.state in task_fsm.SOUGHT if asked else _may_be_placed(kernel, task)
        for task in (app.chosen if changed is None else changed).values()
        if task.key in app.chosen
    )


def _give_up_allocations(kernel: Kernel, app: Application) -> None:
    """Drop the allocations that are kept for the members: the core does not have them any more."""
    for uid in app.allocations:
        kernel.cache.forget(uid)
    app.allocations.clear()


# -- the condition -----------------------------------------------------------------------------


def say_scheduled(kernel: Kernel, entry: GroupEntry) -> None:
    """Set the condition Scheduled, once, when as many pods as it needs have had a node (K205)."""
    if entry.scheduled or entry.group is None or entry.refusal or not kernel.serving:
        return
    if entry.placed >= (conversion.min_count(entry.group) or 1):
        entry.scheduled = True
        _say(kernel, entry, "Scheduled", "as many pods as the group needs have a node")


def say_waiting(kernel: Kernel, entry: GroupEntry | None, message: str) -> None:
    """Set the condition that says why the PodGroup is not scheduled."""
    if entry is None or entry.group is None or entry.scheduled or entry.reported == message:
        return
    entry.reported = message
    _say(kernel, entry, "Unschedulable", message)


def _say(kernel: Kernel, entry: GroupEntry, reason: str, message: str) -> None:
    group = entry.group
    assert group is not None
    version, generation = kernel.pod_group_version, group.metadata.generation
    kernel.actions.append(
        actions.SetGroupCondition(ref_of(group), reason, message, version, generation)
    )
