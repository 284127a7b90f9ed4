"""Manifests as users of YuniKorn write them."""

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
        "metadata": {"name": name, "labels": own, "annotations": {RUN: run, **(annotations or {})}},
        "spec": {
            "schedulerName": SCHEDULER,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "none", "resources": {"requests": requests}}],
            **spec,
        },
    }


#: placeholders are placed one by one; by default none is before there is room for all
WHOLE = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        properties: {gang.admission: whole}
        queues:
          - name: default
"""
GUARANTEED = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: owner
            resources: {guaranteed: {vcore: 4}}
            properties: {preemption.delay: 1s}
          - name: guest
            resources: {guaranteed: {vcore: 1}}
"""


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
                "metadata": {k: template["metadata"].get(k, {}) for k in ("labels", "annotations")},
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
        pod(f"{app}-{name}-{index}", app, cpu=cpu, annotations={**annotations, GROUP: name}, **more)
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


# -- volumes ---------------------------------------------------------------------------------------


def claiming(name: str, *claims: str, **spec: Any) -> Object:
    """A pod with volumes of these claims."""
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return pod(name, name, queue="root.default", volumes=volumes, **spec)


def storage_class(
    name: str, mode: str = "WaitForFirstConsumer", by: str = "kubernetes.io/no-provisioner"
) -> Object:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
    return {**kind, "metadata": {"name": name}, "provisioner": by, "volumeBindingMode": mode}


def claim(name: str, of_class: str = "wait", size: int = 1, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": of_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": f"{size}Gi"}},
            **spec,
        },
    }


def volume(
    name: str, of_class: str, *nodes: str, size: int = 1, labels: Object | None = None, **spec: Any
) -> Object:
    """Of ``size`` GiB; these nodes can use it."""
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "capacity": {"storage": f"{size}Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": of_class,
            "local": {"path": "/tmp"},
            "persistentVolumeReclaimPolicy": "Retain",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
            **spec,
        },
    }


# -- what became of them ---------------------------------------------------------------------------


def bound(present: list[Object], prefix: str = "") -> list[Object]:
    """The pods that have a node, with names that begin so."""
    return [
        each
        for each in present
        if each["spec"].get("nodeName") and each["metadata"]["name"].startswith(prefix)
    ]


def condition(pod: Object, kind: str) -> Object:
    found = (each for each in pod["status"].get("conditions", ()) if each["type"] == kind)
    return next(found, {})


def in_phase(present: list[Object], phase: str = "Running") -> list[Object]:
    return [each for each in present if each["status"].get("phase") == phase]
