"""Paths and payloads of requests about pods."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from quadriga.k8s.conversion.keys import DEVICES
from quadriga.k8s.shim.actions import PodRef

_encode = msgspec.json.Encoder().encode

_BINDING = b'{"apiVersion":"v1","kind":"Binding","metadata":%b,"target":{"apiVersion":"v1","kind":"Node","name":%b}}'


#: matches every name that a checking API server accepts
_PLAIN = re.compile(r"[a-z0-9.-]*").fullmatch


def _quoted(name: str) -> str:
    return name if _PLAIN(name) else quote(name, safe="")


def pods_path(namespace: str) -> str:
    """Return the path of the pods of a namespace."""
    return f"/api/v1/namespaces/{_quoted(namespace)}/pods"


def pod_path(pod: PodRef) -> str:
    """Return the path of a pod."""
    return f"/api/v1/namespaces/{_quoted(pod.namespace)}/pods/{_quoted(pod.name)}"


def binding_payload(pod: PodRef, node: str, devices: str = "") -> bytes:
    """Return a Binding. It has the UID, so that another pod with that name is not bound (K104). The API server
    copies its annotations to the pod: with ``devices``, the units of shared devices that the pod has (Q14)."""
    metadata: dict[str, Any] = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    if devices:
        metadata["annotations"] = {DEVICES: devices}
    return _BINDING % (_encode(metadata), _encode(node))


def delete_payload(uid: str, grace: int | None) -> bytes:
    """Return delete options (K112). ``grace`` is in seconds; ``None`` for the pod's own."""
    options: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": uid},
    }
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    return _encode(options)


def annotations_payload(uid: str, annotations: Mapping[str, str]) -> bytes:
    """Return a merge patch of annotations. Its UID makes the server refuse another pod with that name."""
    return _encode({"metadata": {"uid": uid, "annotations": dict(annotations)}})


def failed_payload(uid: str, reason: str, message: str) -> bytes:
    """Return a patch of the status that fails the pod (K34)."""
    status = {"phase": "Failed", "reason": reason, "message": message}
    return _encode({"metadata": {"uid": uid}, "status": status})


def disruption_payload(uid: str, scheduler: str, now: str) -> bytes:
    """Return a strategic merge patch of the status with the condition DisruptionTarget (K113). ``now`` is RFC
    3339."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{scheduler}: preempting to accommodate a higher priority pod",
        "lastTransitionTime": now,
    }
    return _encode({"metadata": {"uid": uid}, "status": {"conditions": [condition]}})
