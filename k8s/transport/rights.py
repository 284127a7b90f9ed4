"""Permissions of the scheduler's account in the cluster (K18).

The role in ``deploy/kubernetes/roles.yaml``, ``quadriga kubernetes --check`` and the table in
docs/kubernetes.md follow these lists; tests compare them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from quadriga.k8s.transport.requester import Requester


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs on a kind of object. ``resource`` may have a subresource: ``pods/binding``."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    #: only in the scheduler's own namespace
    own_namespace: bool
    #: completes "without it"
    without: str


_READ: Final = ("get", "list", "watch")
_STORAGE: Final = "storage.k8s.io"
_NO_VOLUMES: Final = "pods with claims that are not bound yet stay pending"

# fmt: off
RIGHTS: Final[tuple[Right, ...]] = (
    #     group                    resource                 verbs                            own namespace
    Right("",                    "pods",                   (*_READ, "create", "patch", "update", "delete"), False,
          "nothing is scheduled: it reads all pods, creates placeholders, and deletes what the core releases"),
    Right("",                    "pods/binding",           ("create",),                      False,
          "no pod gets a node"),
    Right("",                    "pods/status",            ("patch",),                       False,
          "pods do not say why they wait, and autoscalers do not act on them"),
    Right("",                    "nodes",                  _READ,                            False,
          "nothing is scheduled"),
    Right("",                    "namespaces",             _READ,                            False,
          "nothing is scheduled: quotas of namespaces and selectors of namespaces need it"),
    Right("scheduling.k8s.io",   "priorityclasses",        _READ,                            False,
          "nothing is scheduled: a priority class may forbid preemption"),
    Right("events.k8s.io",       "events",                 ("create", "patch"),              False,
          "kubectl describe shows no events of the scheduler"),
    Right("",                    "configmaps",             _READ,                            True,
          "settings and queues cannot be read"),
    Right("coordination.k8s.io", "leases",                 ("get", "create", "update"),      True,
          "the process never becomes the leader; --no-lease runs without it"),
    Right("",                    "persistentvolumeclaims", (*_READ, "patch", "update"),      False, _NO_VOLUMES),
    Right("",                    "persistentvolumes",      (*_READ, "patch", "update"),      False, _NO_VOLUMES),
    Right(_STORAGE,              "storageclasses",         _READ,                            False, _NO_VOLUMES),
    Right(_STORAGE,              "csinodes",               _READ,                            False, _NO_VOLUMES),
    Right(_STORAGE,              "csidrivers",             _READ,                            False, _NO_VOLUMES),
    Right(_STORAGE,              "csistoragecapacities",   _READ,                            False, _NO_VOLUMES),
    Right(_STORAGE,              "volumeattachments",      _READ,                            False, _NO_VOLUMES),
)
#: needed if the server has PodGroups
POD_GROUP_RIGHTS: Final[tuple[Right, ...]] = (
    Right("scheduling.k8s.io",   "podgroups",              _READ,                            False,
          "pods that name a PodGroup are not scheduled"),
    Right("scheduling.k8s.io",   "podgroups/status",       ("patch", "update"),              False,
          "PodGroups do not say whether they are scheduled"),
)
#: needed if the server has DeviceClasses
DEVICE_CLASS_RIGHTS: Final[tuple[Right, ...]] = (
    Right("resource.k8s.io",     "deviceclasses",          ("list",),                        False,
          "pods with devices of a DeviceClass do not say that only the default scheduler can run them"),
)
# fmt: on

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class RightsUnknown(Exception):
    """Raised when the API server does not say what the account may do."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A permission, and those of its verbs that the account lacks."""

    right: Right
    verbs: tuple[str, ...]


async def missing(
    requester: Requester, namespace: str, rights: Sequence[Right] = RIGHTS
) -> list[Missing]:
    """Return the permissions that the account lacks. It sends one request for each verb.

    Raises `RightsUnknown`, and `NoAnswer` if the API server cannot be reached.
    """
    found = []
    for right in rights:
        answers = await asyncio.gather(
            *(_allowed(requester, attributes) for attributes in _questions(right, namespace))
        )
        lacking = tuple(
            verb for verb, allowed in zip(right.verbs, answers, strict=True) if not allowed
        )
        if lacking:
            found.append(Missing(right, lacking))
    return found


def _questions(right: Right, namespace: str) -> Iterator[dict[str, str]]:
    resource, _, subresource = right.resource.partition("/")
    for verb in right.verbs:
        attributes = {"group": right.group, "resource": resource, "verb": verb}
        if subresource:
            attributes["subresource"] = subresource
        if right.own_namespace:
            attributes["namespace"] = namespace
        yield attributes


async def _allowed(requester: Requester, attributes: dict[str, str]) -> bool:
    review: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    status, body = await requester.request("POST", _REVIEWS, json.dumps(review).encode())
    if status not in (200, 201):
        said = body[:200].decode("utf-8", "replace")
        raise RightsUnknown(f"the API server answers {status} to an access review: {said}")
    try:
        return bool(json.loads(body)["status"]["allowed"])
    except (ValueError, TypeError, KeyError):
        raise RightsUnknown("the API server's answer to an access review is unreadable") from None
