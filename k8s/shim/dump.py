"""The state of the shim for a state dump (K17)."""

from __future__ import annotations

from typing import Any

from quadriga.k8s.shim import audit
from quadriga.k8s.shim.kernel import Kernel
from quadriga.k8s.shim.model import Application, Task


def of(kernel: Kernel) -> dict[str, Any]:
    """Return the state as JSON objects in a total order."""
    return {
        "state": kernel.state,
        "waitingInputs": len(kernel.deferred),
        "nodes": [
            {
                "name": name,
                "state": entry.state,
                "cordoned": entry.is_cordoned,
                "pods": len(kernel.on_node.get(name, ())),
            }
            for name, entry in sorted(kernel.nodes.items())
        ],
        "priorityClasses": sorted(kernel.classes),
        "applications": [_application(app) for _, app in sorted(kernel.applications.items())],
        "podGroups": {
            entry.named: "missing" if entry.group is None else entry.refusal or entry.reported
            for _, entry in sorted(kernel.pod_groups.items())
        },
        "cluster": kernel.cache.dump(),
        "audit": audit.dump(kernel),
        "foreignPods": [
            {"uid": uid, "node": each.pod.spec.node_name, "orphan": not each.reported}
            for uid, each in sorted(kernel.foreign.items())
        ],
    }


def _application(app: Application) -> dict[str, Any]:
    return {
        "id": app.key,
        "state": app.state,
        "originator": app.originator.metadata.name if app.originator is not None else "",
        "gang": app.is_gang,
        "groups": {
            name: {"minMember": each.spec.min_member, "bound": each.bound}
            for name, each in app.groups.items()
        },
        "creating": len(app.pending_placeholders),
        "chosen": len(app.chosen),
        "tasks": [_task(task) for task in app.tasks.values()],
        "later": [_task(task) for task in app.later.values()],
    }


def _task(task: Task) -> dict[str, Any]:
    meta = task.pod.metadata
    return {
        "uid": task.key,
        "namespace": meta.namespace,
        "name": meta.name,
        "state": task.state,
        "node": task.node,
        "placeholder": task.is_placeholder,
        "group": task.group,
        "foreign": task.is_foreign,
    }
