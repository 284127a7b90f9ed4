"""Objects as the API server sends them: from manifests, through JSON, into the structs."""

from typing import Any, TypeVar

import msgspec

from quadriga.k8s.objects import ConfigMap, Namespace, Node, Pod, PriorityClass

Kind = TypeVar("Kind", Pod, Node, Namespace, PriorityClass, ConfigMap)


def decoded(kind: type[Kind], manifest: dict[str, Any]) -> Kind:
    return msgspec.json.decode(msgspec.json.encode(manifest), type=kind)


def pod(
    name: str = "web-1",
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    spec: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **metadata: Any,
) -> Pod:
    """A pod of ours in the namespace ``team``, with one container that requests nothing."""
    return decoded(
        Pod,
        {
            "metadata": {
                "name": name,
                "namespace": "team",
                "uid": f"uid-{name}",
                "creationTimestamp": "2026-01-02T03:04:05Z",
                "labels": labels or {},
                "annotations": annotations or {},
                **metadata,
            },
            "spec": {"schedulerName": "yunikorn", "containers": [{"name": "main"}], **(spec or {})},
            "status": status or {},
        },
    )


def container(name: str = "main", restart: str = "", **requests: Any) -> dict[str, Any]:
    """A container in a manifest; ``restart`` makes an init container a sidecar."""
    found: dict[str, Any] = {"name": name, "resources": {"requests": requests}}
    return {**found, "restartPolicy": restart} if restart else found


def namespace(name: str = "team", **annotations: str) -> Namespace:
    """Its annotations without their domain; ``_`` stands for a dot."""
    return decoded(
        Namespace,
        {
            "metadata": {
                "name": name,
                "annotations": {
                    f"yunikorn.apache.org/{key.replace('_', '.')}": value
                    for key, value in annotations.items()
                },
            }
        },
    )


def node(
    name: str = "n1",
    *,
    labels: dict[str, str] | None = None,
    spec: dict[str, Any] | None = None,
    allocatable: dict[str, Any] | None = None,
    conditions: tuple[dict[str, str], ...] = ({"type": "Ready", "status": "True"},),
) -> Node:
    return decoded(
        Node,
        {
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels or {}},
            "spec": spec or {},
            "status": {
                "allocatable": allocatable or {"cpu": "4", "memory": "8Gi", "pods": "110"},
                "conditions": list(conditions),
            },
        },
    )
