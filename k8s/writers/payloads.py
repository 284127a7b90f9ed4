"""Paths and bodies of the requests about pods, as bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from quadriga.k8s.shim.actions import PodRef

__all__ = [
    "annotations_payload",
    "binding_payload",
    "delete_payload",
    "disruption_payload",
    "failed_payload",
    "pod_path",
    "pods_path",
]

_encode = msgspec.json.Encoder().encode

_BINDING = b'{"apiVersion":"v1","kind":"Binding","metadata":%b,"target":{"apiVersion":"v1","kind":"Node","name":%b}}'


#: what every name of an API server that checks them is made of
_PLAIN = re.compile(r"[a-z0-9.-]*").fullmatch


def _quoted(name: str) -> str:
    return name if _PLAIN(name) else quote(name, safe="")


def pods_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{_quoted(namespace)}/pods"


def pod_path(pod: PodRef) -> str:
    return f"/api/v1/namespaces/{_quoted(pod.namespace)}/pods/{_quoted(pod.name)}"


def binding_payload(pod: PodRef, node: str) -> bytes:
    """K104: with the UID, so that another pod of that name is not bound."""
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    return _BINDING % (_encode(metadata), _encode(node))


def delete_payload(uid: str, grace: int | None) -> bytes:
    """K112. ``grace`` in seconds, ``None`` for the pod's own."""
    options: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": uid},
    }
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    return _encode(options)


def annotations_payload(uid: str, annotations: Mapping[str, str]) -> bytes:
    """A merge patch; the UID in it makes the server refuse another pod of that name."""
    return _encode({"metadata": {"uid": uid, "annotations": dict(annotations)}})


def failed_payload(uid: str, reason: str, message: str) -> bytes:
    """K34, a patch of the status."""
    status = {"phase": "Failed", "reason": reason, "message": message}
    return _encode({"metadata": {"uid": uid}, "status": status})


def disruption_payload(uid: str, scheduler: str, now: str) -> bytes:
    """K113, a strategic merge patch of the status. ``now`` is RFC 3339."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{scheduler}: preempting to accommodate a higher priority pod",
        "lastTransitionTime": now,
    }
    return _encode({"metadata": {"uid": uid}, "status": {"conditions": [condition]}})
