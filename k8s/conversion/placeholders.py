"""The placeholder pod: what keeps room for a member of a gang (K69 to K71)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from quadriga.k8s.conversion import keys
from quadriga.k8s.conversion.applications import ApplicationMetadata
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.conversion.task_groups import TaskGroup
from quadriga.k8s.objects import OwnerReference, Pod

__all__ = ["SUFFIX_ALPHABET", "SUFFIX_LENGTH", "manifest", "name_of", "originator_uid", "owner_of"]

#: of the random end of a name
SUFFIX_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
SUFFIX_LENGTH: Final = 10

_MAX_NAME: Final = 63
_MAX_APPLICATION: Final = 28
_MAX_GROUP: Final = 20
#: what the API server accepts as the value of a label
_LABEL: Final = re.compile("(?=.{1,63}$)[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)


def name_of(application_id: str, group: str, suffix: str) -> str:
    """The name of a placeholder: a DNS label whatever the ids are (K69).

    ``suffix`` is random: `SUFFIX_LENGTH` characters of `SUFFIX_ALPHABET`.
    """
    name = f"tg-{application_id[:_MAX_APPLICATION]}-{group[:_MAX_GROUP]}-{suffix}"
    return re.sub("[^a-z0-9-]", "-", name.lower())[:_MAX_NAME].strip("-")


def owner_of(originator: Pod) -> tuple[OwnerReference, ...]:
    """The owner of the placeholders: the garbage collector deletes them with it."""
    owner = OwnerReference(
        api_version="v1",
        kind="Pod",
        name=originator.metadata.name,
        uid=originator.metadata.uid,
        controller=False,
        block_owner_deletion=True,
    )
    return (owner,)


def originator_uid(placeholder: Pod) -> str:
    """The UID of the pod that a placeholder belongs to, or an empty text (K71)."""
    for owner in placeholder.metadata.owner_references:
        if owner.kind == "Pod":
            return owner.uid
    return ""


def manifest(
    application: ApplicationMetadata,
    group: TaskGroup,
    originator: Pod,
    suffix: str,
    settings: Settings,
    owners: Sequence[OwnerReference] = (),
) -> dict[str, Any]:
    """A placeholder of the group, ready to be created (K69).

    ``owners`` are those of an earlier placeholder, if there is one: the originator stays the same after a
    restart (K71).
    """
    spec: dict[str, Any] = {
        "schedulerName": originator.spec.scheduler_name or settings.scheduler_names[0],
        "restartPolicy": "Never",
        "hostNetwork": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": _pod_security(settings),
        "containers": [_container(group, settings)],
    }
    if originator.spec.priority_class_name:
        spec["priorityClassName"] = originator.spec.priority_class_name
    if originator.spec.image_pull_secrets:
        spec["imagePullSecrets"] = [
            {"name": each.name} for each in originator.spec.image_pull_secrets
        ]
    if group.node_selector:
        spec["nodeSelector"] = dict(group.node_selector)
    if group.tolerations:
        spec["tolerations"] = list(group.tolerations)
    if group.affinity is not None:
        spec["affinity"] = group.affinity
    if group.topology_spread_constraints:
        spec["topologySpreadConstraints"] = list(group.topology_spread_constraints)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_of(application.named, group.name, suffix),
            "namespace": application.namespace,
            "labels": _labels(application, group),
            "annotations": _annotations(application, group),
            "ownerReferences": [_reference(each) for each in owners or owner_of(originator)],
        },
        "spec": spec,
    }


def _labels(application: ApplicationMetadata, group: TaskGroup) -> dict[str, str]:
    own = {keys.APP_ID: application.named, keys.QUEUE: application.queue}
    labels = {key: value for key, value in group.labels.items() if key not in own}
    labels.update((key, value) for key, value in own.items() if value and _is_label(value))
    return labels


def _annotations(application: ApplicationMetadata, group: TaskGroup) -> dict[str, str]:
    annotations = {
        **group.annotations,
        keys.PLACEHOLDER: "true",
        keys.TASK_GROUP_NAME: group.name,
        keys.TASK_GROUPS: application.task_groups_text,
    }
    if application.policy_text:
        annotations[keys.POLICY_PARAMETERS] = application.policy_text
    # Annotations may name what is no label, and are read as well.
    for key, value in ((keys.APP_ID, application.named), (keys.QUEUE, application.queue)):
        annotations.pop(key, None)
        if value and not _is_label(value):
            annotations[key] = value
    return annotations


def _is_label(value: str) -> bool:
    return _LABEL.fullmatch(value) is not None


def _reference(owner: OwnerReference) -> dict[str, Any]:
    # Written out with both booleans: the structs leave defaults out.
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": owner.controller,
        "blockOwnerDeletion": owner.block_owner_deletion,
    }


def _pod_security(settings: Settings) -> dict[str, Any]:
    found: dict[str, Any] = {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for name, value in (
        ("runAsUser", settings.placeholder_run_as_user),
        ("runAsGroup", settings.placeholder_run_as_group),
        ("fsGroup", settings.placeholder_fs_group),
    ):
        if value is not None:
            found[name] = value
    return found


def _container(group: TaskGroup, settings: Settings) -> dict[str, Any]:
    return {
        "name": "pause",
        "image": settings.placeholder_image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {
            "requests": dict(group.min_resource),
            "limits": dict(group.min_resource),
        },
        "securityContext": {
            "privileged": False,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
