"""The placeholder pod, which reserves resources for a member of a gang (K69 to K71). See D261."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from quadriga.k8s.conversion import keys
from quadriga.k8s.conversion.applications import ApplicationMetadata
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.conversion.task_groups import TaskGroup, policy_text
from quadriga.k8s.objects import OwnerReference, Pod

#: characters of the random end of a name
SUFFIX_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
SUFFIX_LENGTH: Final = 10

_MAX_NAME: Final = 63
_MAX_APPLICATION: Final = 28
_MAX_GROUP: Final = 20
#: larger numbers of members are beyond any bound
_MEMBERS: Final = re.compile("[1-9][0-9]{0,9}", re.ASCII)
#: what the API server accepts as the value of a label
_LABEL: Final = re.compile("(?=.{1,63}$)[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)


def name_of(application_id: str, group: str, suffix: str) -> str:
    """Return the name of a placeholder: a DNS label whatever the ids are (K69).

    ``suffix`` is random: `SUFFIX_LENGTH` characters of `SUFFIX_ALPHABET`.
    """
    name = f"tg-{application_id[:_MAX_APPLICATION]}-{group[:_MAX_GROUP]}-{suffix}"
    return re.sub("[^a-z0-9-]", "-", name.lower())[:_MAX_NAME].strip("-")


def owner_of(originator: Pod) -> tuple[OwnerReference, ...]:
    """Return the owner of the placeholders: the garbage collector deletes them with it.

    It does not block the owner's deletion: where the API server checks that, it takes a permission that we do
    not have (K201).
    """
    owner = OwnerReference(
        api_version="v1",
        kind="Pod",
        name=originator.metadata.name,
        uid=originator.metadata.uid,
        controller=False,
        block_owner_deletion=False,
    )
    return (owner,)


def originator_uid(placeholder: Pod) -> str:
    """Return the UID of the pod that a placeholder belongs to, or "" (K71)."""
    for owner in placeholder.metadata.owner_references:
        if owner.kind == "Pod":
            return owner.uid
    return ""


def declared_by(placeholders: Iterable[Pod]) -> dict[str, str]:
    """Return the annotations of a gang as far as its placeholders show them: the copies on placeholders of
    earlier releases, or the groups of these placeholders."""
    groups: dict[str, dict[str, Any]] = {}
    policy = ""
    for pod in placeholders:
        annotations = pod.metadata.annotations
        policy = policy or annotations.get(keys.POLICY_PARAMETERS, "")
        if copy := annotations.get(keys.TASK_GROUPS, ""):
            return _annotated(copy, annotations.get(keys.POLICY_PARAMETERS, ""))
        name, members = annotations.get(keys.TASK_GROUP_NAME, ""), annotations.get(keys.MIN_MEMBER)
        if name and name not in groups and members and _MEMBERS.fullmatch(members):
            groups[name] = _group_of(pod, name, int(members))
    return _annotated(msgspec.json.encode([*groups.values()]).decode() if groups else "", policy)


def _annotated(definition: str, policy: str) -> dict[str, str]:
    found = {keys.TASK_GROUPS: definition, keys.POLICY_PARAMETERS: policy}
    return {key: text for key, text in found.items() if text}


def _group_of(pod: Pod, name: str, members: int) -> dict[str, Any]:
    """Return the group that the placeholder was created from. Its labels and annotations cannot be distinguished from
    the placeholder's own and are left out."""
    spec = pod.spec
    requested = spec.containers[0].resources if spec.containers else None
    group: dict[str, Any] = {
        "name": name,
        "minMember": members,
        "minResource": dict(requested.requests) if requested is not None else {},
        "nodeSelector": spec.node_selector,
        "tolerations": spec.tolerations,
        "affinity": spec.affinity,
        "topologySpreadConstraints": spec.topology_spread_constraints,
    }
    return {key: value for key, value in group.items() if value or key == "minResource"}


def manifest(
    application: ApplicationMetadata,
    group: TaskGroup,
    originator: Pod,
    suffix: str,
    settings: Settings,
    owners: Sequence[OwnerReference] = (),
) -> dict[str, Any]:
    """Return the manifest of a placeholder of the group, ready to be created (K69).

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
    # A recovery needs these. The definition itself would be copied for every member of the gang.
    annotations = {
        **group.annotations,
        keys.PLACEHOLDER: "true",
        keys.SAFE_TO_EVICT: "true",
        keys.TASK_GROUP_NAME: group.name,
        keys.MIN_MEMBER: str(group.min_member),
        keys.DEFINITION_HASH: application.definition_hash,
    }
    annotations.pop(keys.TASK_GROUPS, None)
    annotations.pop(keys.POLICY_PARAMETERS, None)
    policy = policy_text(application.policy)
    if policy:
        annotations[keys.POLICY_PARAMETERS] = policy
    # Annotations may have values that are no valid labels, and are read as well.
    for key, value in ((keys.APP_ID, application.named), (keys.QUEUE, application.queue)):
        annotations.pop(key, None)
        if value and not _is_label(value):
            annotations[key] = value
    return annotations


def _is_label(value: str) -> bool:
    return _LABEL.fullmatch(value) is not None


def _reference(owner: OwnerReference) -> dict[str, Any]:
    # Both booleans are written out: the structs omit defaults.
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
