"""Manifests as users of YuniKorn write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from plain_client import Object
from process_kubelet import RUN
from scheduler_process import SCHEDULER

APP = "yunikorn.apache.org/app-id"
QUEUE = "yunikorn.apache.org/queue"
GROUP = "yunikorn.apache.org/task-group-name"
GROUPS = "yunikorn.apache.org/task-groups"
POLICY = "yunikorn.apache.org/schedulingPolicyParameters"
PLACEHOLDER = "internal.yunikorn.apache.org/placeholder"


def pod(
    name: str,
    app: str = "",
    *,
    cpu: str = "100m",
    memory: str = "64Mi",
    run: str = "forever",
    queue: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A pod of ours. ``app`` and ``queue`` are labels where they are given."""
    own = dict(labels or {})
    if app:
        own[APP] = app
    if queue:
        own[QUEUE] = queue
    requests = {"cpu": cpu, "memory": memory}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": own,
            "annotations": {RUN: run, **(annotations or {})},
        },
        "spec": {
            "schedulerName": SCHEDULER,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "none", "resources": {"requests": requests}}],
            **spec,
        },
    }


def foreign(name: str, node: str, *, cpu: str = "100m", run: str = "forever") -> Object:
    """Somebody else's pod, which is on this node already."""
    made = pod(name, cpu=cpu, run=run, nodeName=node)
    made["spec"]["schedulerName"] = "default-scheduler"
    return made


def job(name: str, count: int, template: Object, *, parallelism: int | None = None) -> Object:
    """A Job of pods like this one."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completions": count,
            "parallelism": parallelism or count,
            "backoffLimit": 0,
            "template": {
                "metadata": {
                    key: template["metadata"].get(key, {}) for key in ("labels", "annotations")
                },
                "spec": template["spec"],
            },
        },
    }


def gang(
    app: str,
    groups: Mapping[str, tuple[int, str]],
    *,
    timeout: int = 0,
    style: str = "Soft",
    minimum: Mapping[str, int] | None = None,
    **more: Any,
) -> list[Object]:
    """The real pods of a gang, the originator first. ``groups``: name → number and cores of each.
    ``minimum``: how many the gang needs, where that is not their number."""
    minimum = minimum or {}
    described = [
        {
            "name": name,
            "minMember": minimum.get(name, count),
            "minResource": {"cpu": cpu, "memory": "64Mi"},
        }
        for name, (count, cpu) in groups.items()
    ]
    policy = f"gangSchedulingStyle={style}"
    if timeout:
        policy = f"placeholderTimeoutInSeconds={timeout} {policy}"
    annotations = {GROUPS: json.dumps(described), POLICY: policy}
    return [
        pod(
            f"{app}-{name}-{index}",
            app,
            cpu=cpu,
            annotations={**annotations, GROUP: name},
            **more,
        )
        for name, (count, cpu) in groups.items()
        for index in range(count)
    ]


def is_placeholder(pod: Object) -> bool:
    return (pod["metadata"].get("annotations") or {}).get(PLACEHOLDER) == "true"


def queues(text: str, **settings: str) -> Object:
    """The ConfigMap with these queues and settings. Gangs may be larger than the nodes."""
    settings = {"service.gangScaleUp": "true", **settings}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "yunikorn-configs", "namespace": "default"},
        "data": {**({"queues.yaml": text} if text else {}), **settings},
    }
