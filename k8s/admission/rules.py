"""The decisions of admission about pods and workloads, as pure functions (K159 to K164).

`decide` takes a request and its surroundings, and returns a patch or the reason of a denial. The CEL policy
(`policy`) decides the same. See D307.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from quadriga.k8s.conversion import identity, keys, patterns
from quadriga.k8s.conversion.resources import DEVICE_CLASS
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import Namespace, PriorityClass

#: what the API server writes into a pod that names no scheduler
DEFAULT_SCHEDULER: Final = "default-scheduler"
#: the API groups of the workloads: every kind whose controller creates pods and is trusted with their user
#: (K208)
WORKLOADS: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("replicationcontrollers",),
    "apps": ("deployments", "replicasets", "statefulsets", "daemonsets"),
    "batch": ("jobs", "cronjobs"),
}
#: where each kind of workload has its pod template
TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "replicationcontrollers": ("spec", "template"),
    "deployments": ("spec", "template"),
    "replicasets": ("spec", "template"),
    "statefulsets": ("spec", "template"),
    "daemonsets": ("spec", "template"),
    "jobs": ("spec", "template"),
    "cronjobs": ("spec", "jobTemplate", "spec", "template"),
}

_TEXT: Final = (
    r'"([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u([0-9a-ce-fA-CE-F][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|'
    r'[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})))*"'
)
_SPACE: Final = r"[ \t\r\n]*"
_LIST: Final = rf"\[{_SPACE}({_TEXT}({_SPACE},{_SPACE}{_TEXT})*{_SPACE})?\]"
_MEMBER: Final = (
    rf'{_SPACE}("[uU][sS][eE][rR]"{_SPACE}:{_SPACE}({_TEXT}|null)'
    rf'|"[gG][rR][oO][uU][pP][sS]"{_SPACE}:{_SPACE}({_LIST}|null)){_SPACE}'
)
#: a claim of a user: JSON with a user and groups, and no other field. CEL cannot parse JSON, so both ways read
#: it by this expression (K208)
READABLE: Final = rf"^{_SPACE}\{{({_MEMBER}(,{_MEMBER})*|{_SPACE})\}}{_SPACE}$"
#: name of the setting that bounds its characters
BOUND: Final = "podUser"

#: labels that are copied to their old keys
_COPIED: Final = ((keys.APP_ID, keys.OLD_APP_ID), (keys.QUEUE, keys.OLD_QUEUE))

Object = Mapping[str, Any]
#: one operation of a JSON patch (RFC 6902)
Operation = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """A request to write an object."""

    operation: str
    #: in the plural, as in ``pods``
    resource: str
    namespace: str
    user: str
    groups: tuple[str, ...]
    object: Object
    #: the existing object, for an UPDATE
    old: Object | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What else a decision depends on."""

    settings: Settings
    #: the namespace of the scheduler itself
    own_namespace: str = ""
    #: namespace of the request, if it is known
    namespace: Namespace | None = None
    #: class of the pod, if it names one
    priority_class: PriorityClass | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The request is allowed with this patch, or denied for a reason."""

    patch: tuple[Operation, ...] = ()
    denied: str = ""


_UNCHANGED: Final = Decision()


def decide(request: Request, around: Surroundings) -> Decision:
    """Return the decision about a request. One that no rule covers is allowed unchanged."""
    if not is_ours(request.namespace, around):
        return _UNCHANGED
    if request.resource == "pods":
        if not _is_for_us(request.object, around.settings):
            return _UNCHANGED
        if request.operation == "CREATE":
            return _pod_created(request, around)
        if request.operation == "UPDATE":
            return _pod_updated(request)
    elif request.resource in TEMPLATES:
        template = _at(request.object, TEMPLATES[request.resource])
        if not _is_for_us(template, around.settings):
            return _UNCHANGED
        if request.operation == "CREATE":
            return _workload_created(request, template, around)
        if request.operation == "UPDATE":
            return _workload_updated(request, template, around)
    return _UNCHANGED


# -- namespaces and schedulers (K159, K160) --------------------------------------------------------


def is_ours(namespace: str, around: Surroundings) -> bool:
    """Return whether admission handles this namespace. It never handles the scheduler's own one."""
    if namespace == around.own_namespace:
        return False
    settings = around.settings
    return _chosen(
        namespace,
        _namespace_says(around.namespace, keys.NAMESPACE_ENABLE),
        settings.process_namespaces,
        settings.bypass_namespaces,
    )


def is_labelled(namespace: str, around: Surroundings) -> bool:
    """Return whether pods of this namespace get an application id if they have none."""
    settings = around.settings
    return _chosen(
        namespace,
        _namespace_says(around.namespace, keys.NAMESPACE_GENERATE_APP_ID),
        settings.label_namespaces,
        settings.no_label_namespaces,
    )


def _namespace_says(namespace: Namespace | None, key: str) -> str:
    return "" if namespace is None else namespace.metadata.annotations.get(key, "")


def _chosen(name: str, annotation: str, wanted: tuple[str, ...], unwanted: tuple[str, ...]) -> bool:
    """Return the annotation if it is ``true`` or ``false``, else whether the patterns match. No wanted ones
    match all."""
    if annotation in ("true", "false"):
        return annotation == "true"
    if wanted and not patterns.any_matches(wanted, name):
        return False
    return not patterns.any_matches(unwanted, name)


def _is_for_us(pod: Object, settings: Settings) -> bool:
    """Return whether a pod or template names one of our schedulers; or none, or the default one, and nothing
    that only the default one can serve (K207)."""
    spec = _at(pod, ("spec",))
    name = spec.get("schedulerName") or DEFAULT_SCHEDULER
    if name in settings.scheduler_names:
        return True
    unsupported = spec.get("resourceClaims") or spec.get("workloadRef") is not None
    return name == DEFAULT_SCHEDULER and not unsupported and not _asks_for_devices(spec)


def _asks_for_devices(spec: Object) -> bool:
    """Return whether a container requests devices of a DeviceClass by the class's name."""
    return any(
        resource.startswith(DEVICE_CLASS)
        for kind in ("containers", "initContainers")
        for container in spec.get(kind) or ()
        for part in ("requests", "limits")
        for resource in _at(container, ("resources", part))
    )


# -- pods (K159, K161, K164) -----------------------------------------------------------------------


def _pod_created(request: Request, around: Surroundings) -> Decision:
    pod, settings = request.object, around.settings
    annotations = _texts(pod, "annotations")
    claimed = annotations.get(keys.USER_INFO)
    if denied := _denied(claimed, request, settings):
        return Decision(denied=denied)
    labels = _texts(pod, "labels")
    new_labels: dict[str, str] = {}
    new_annotations: dict[str, str] = {}
    if is_labelled(request.namespace, around):
        new_labels = _new_labels(labels, annotations, request.namespace, settings)
        if annotations.get(keys.ALLOW_PREEMPTION) not in ("true", "false"):
            allowed = identity.preemption_of_class(around.priority_class)
            new_annotations[keys.ALLOW_PREEMPTION] = "true" if allowed else "false"
    if claimed is None and not _names_user(labels, settings):
        new_annotations[keys.USER_INFO] = user_info(request.user, request.groups)
    spec: dict[str, str] = {}
    if _at(pod, ("spec",)).get("schedulerName") not in settings.scheduler_names:
        spec["schedulerName"] = settings.scheduler_names[0]
    metadata = {"labels": new_labels, "annotations": new_annotations}
    wanted = {"spec": spec, "metadata": {kind: new for kind, new in metadata.items() if new}}
    return Decision(_patch(pod, wanted))


def _new_labels(
    labels: Mapping[str, str], annotations: Mapping[str, str], namespace: str, settings: Settings
) -> dict[str, str]:
    """Return the labels to add: an application id if there is none, and copies under the old keys where these
    are free."""
    new: dict[str, str] = {}
    if not _has_application_id(labels, annotations):
        name = identity.unnamed_application_id(namespace, "", settings)
        # A long namespace can be cut where no label may end. The shim makes the same name then.
        if not name.endswith("-"):
            new[keys.APP_ID] = name
    for key, old in _COPIED:
        value = new.get(key) or labels.get(key)
        if value and not labels.get(old):
            new[old] = value
    return new


def _has_application_id(labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
    return bool(
        labels.get(keys.APP_ID)
        or annotations.get(keys.APP_ID)
        or labels.get(keys.OLD_APP_ID)
        or labels.get(keys.SPARK_APP_ID)
    )


def _pod_updated(request: Request) -> Decision:
    before = _texts(request.old or {}, "annotations").get(keys.USER_INFO)
    after = _texts(request.object, "annotations").get(keys.USER_INFO)
    if before != after:
        return Decision(denied=f"the annotation {keys.USER_INFO} of a pod cannot be changed")
    return _UNCHANGED


# -- workloads (K163) ------------------------------------------------------------------------------


def _workload_created(request: Request, template: Object, around: Surroundings) -> Decision:
    settings = around.settings
    made = request.operation == "CREATE" and _is_system_user(request, settings)
    if made and request.resource == "replicasets":
        # The Deployment controller would see another template than its own, and create a ReplicaSet again.
        return _UNCHANGED
    annotations = _texts(template, "annotations")
    claimed = annotations.get(keys.USER_INFO)
    # A controller is trusted with what the template claims, so the claim is always checked here.
    if denied := _denied(claimed, request, settings):
        return Decision(denied=denied)
    labels = _texts(template, "labels")
    if claimed is not None or _names_user(labels, settings):
        return _UNCHANGED
    named = _has_application_id(labels, annotations)
    if not (named or is_labelled(request.namespace, around)):
        return _UNCHANGED
    return _with_user(request, user_info(request.user, request.groups))


def _with_user(request: Request, info: str) -> Decision:
    wanted: Object = {"metadata": {"annotations": {keys.USER_INFO: info}}}
    for name in reversed(TEMPLATES[request.resource]):
        wanted = {name: wanted}
    return Decision(_patch(request.object, wanted))


def _workload_updated(request: Request, template: Object, around: Surroundings) -> Decision:
    """Decide about an update. A user that was dropped, as by a replace with the original file, is written again
    (K208); a claim that differs from the previous one is checked like a new one. A template that was for
    another scheduler says nothing."""
    old = _at(request.old or {}, TEMPLATES[request.resource])
    if not _is_for_us(old, around.settings):
        return _workload_created(request, template, around)
    claimed = _texts(template, "annotations").get(keys.USER_INFO)
    before = _texts(old, "annotations").get(keys.USER_INFO)
    if claimed == before:
        return _UNCHANGED
    if (
        claimed is None
        and before is not None
        and not _names_user(_texts(template, "labels"), around.settings)
    ):
        return _with_user(request, before)
    return Decision(denied=_denied(claimed, request, around.settings))


# -- users (K162) ----------------------------------------------------------------------------------


def user_info(user: str, groups: Iterable[str]) -> str:
    """Return the annotation that names a user."""
    return msgspec.json.encode({"user": user, "groups": list(groups)}).decode()


def _denied(claimed: str | None, request: Request, settings: Settings) -> str:
    """Return why the requester may not claim this user; "" if there is no claim, it is true, or it is allowed."""
    if claimed in (None, user_info(request.user, request.groups)) or settings.bypass_auth:
        return ""
    if not _may_claim(request, settings):
        groups = ", ".join(request.groups) or "no group"
        return (
            f"user {request.user} ({groups}) may not set the annotation {keys.USER_INFO}: "
            "it is set from the user of the request"
        )
    if len(claimed) <= settings.bounds[BOUND] and patterns.any_matches((READABLE,), claimed):
        return ""
    return unreadable(settings)


def unreadable(settings: Settings) -> str:
    """Return the reason against an unreadable claim."""
    return (
        f"the annotation {keys.USER_INFO} is not JSON with a user and groups and no other field, of at most"
        f" {settings.bounds[BOUND]} characters"
    )


def _names_user(labels: Mapping[str, str], settings: Settings) -> bool:
    """Return whether the old label names the user. It counts only if everyone may set the user."""
    return settings.bypass_auth and bool(labels.get(keys.OLD_USER_NAME))


def _may_claim(request: Request, settings: Settings) -> bool:
    return (
        (settings.trust_controllers and _is_system_user(request, settings))
        or patterns.any_matches(settings.external_users, request.user)
        or any(patterns.any_matches(settings.external_groups, each) for each in request.groups)
    )


def _is_system_user(request: Request, settings: Settings) -> bool:
    return patterns.any_matches(settings.system_users, request.user)


# -- JSON ------------------------------------------------------------------------------------------


def _at(found: Any, path: Iterable[str]) -> Object:
    """Return the object at a path, empty if there is none."""
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _texts(found: Object, kind: str) -> Mapping[str, str]:
    """Return the labels or annotations."""
    return _at(found, ("metadata", kind))


def _patch(found: Object, wanted: Object, path: tuple[str, ...] = ()) -> tuple[Operation, ...]:
    """Return operations that set what is wanted and keep everything else."""
    patch: list[Operation] = []
    for name, value in wanted.items():
        here = (*path, name)
        if isinstance(value, Mapping) and (below := _at(found, (name,))):
            patch += _patch(below, value, here)
        elif value != {}:
            patch.append({"op": "add", "path": _pointer(here), "value": value})
    return tuple(patch)


def _pointer(path: Iterable[str]) -> str:
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in path)
