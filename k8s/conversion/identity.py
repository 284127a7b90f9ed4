"""The identity of a pod: its scheduler, application, queue and user, and what kind of pod it is (K52 to K57).
See D270."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from quadriga.k8s.conversion import keys
from quadriga.k8s.conversion.problems import Problem, shown
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import Pod, PriorityClass

#: suffix of an application id that was generated before the pod had a UID
UNIQUE_SUFFIX: Final = "-uniqueautogen"
_MAX_LABEL: Final = 63
MAX_NAMESPACE: Final = 26
_NOBODY: Final = "nobody"
_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))


def is_ours(pod: Pod, settings: Settings) -> bool:
    """Return whether the pod names one of our schedulers. All other pods are foreign (K7)."""
    return pod.spec.scheduler_name in settings.scheduler_names


# -- application and queue -------------------------------------------------------------------------


def application_id(pod: Pod, settings: Settings) -> str:
    """Return the application id of a pod with our scheduler name, "" for a foreign pod (K52 to K54).

    With ``ids_per_namespace`` the namespace is prepended, as in ``team-a.spark-1``. A namespace has no dot in
    its name, so two namespaces never produce the same ID.
    """
    named = application_named(pod, settings)
    if named and settings.ids_per_namespace:
        return f"{pod.metadata.namespace or 'default'}.{named}"
    return named


def application_named(pod: Pod, settings: Settings) -> str:
    """Return the ID as the pod names it, or a generated one (K52 to K54)."""
    if pod.spec.scheduler_name not in settings.scheduler_names:
        return ""
    meta = pod.metadata
    found = _named(pod)
    if not found:
        return unnamed_application_id(meta.namespace, meta.uid, settings)
    if found.endswith(UNIQUE_SUFFIX):
        return f"{found.removesuffix(UNIQUE_SUFFIX)}-{meta.uid}"
    return found


def gang_id(pod: Pod, group: str) -> str:
    """Return the application id for the gang of a PodGroup: ``team-a.spark-1:workers``, or ``team-a:workers``
    if the pod names no application (K204).

    It always has the namespace, because a PodGroup belongs to one. Neither a label nor a name has a colon, so
    no other application has this ID.
    """
    namespace, named = pod.metadata.namespace or "default", _named(pod)
    return f"{namespace}.{named}:{group}" if named else f"{namespace}:{group}"


def _named(pod: Pod) -> str:
    meta = pod.metadata
    labels = meta.labels
    return (
        labels.get(keys.APP_ID)
        or meta.annotations.get(keys.APP_ID)
        or labels.get(keys.OLD_APP_ID)
        or labels.get(keys.SPARK_APP_ID)
        or ""
    )


def unnamed_application_id(namespace: str, uid: str, settings: Settings) -> str:
    """Return the application id of a pod that names none (K54). Admission has no UID yet and passes ""."""
    namespace = namespace or "default"
    if not settings.generate_unique_app_id:
        return f"yunikorn-{namespace}-autogen"[:_MAX_LABEL]
    suffix = f"-{uid}" if uid else UNIQUE_SUFFIX
    return (namespace[:MAX_NAMESPACE] + suffix)[:_MAX_LABEL]


def queue_of(pod: Pod) -> str:
    """Return the queue that the pod names; with "" placement rules decide (K55)."""
    meta = pod.metadata
    labels = meta.labels
    return (
        labels.get(keys.QUEUE)
        or meta.annotations.get(keys.QUEUE)
        or labels.get(keys.OLD_QUEUE)
        or ""
    )


def ambiguity(pod: Pod) -> Problem | None:
    """Return a problem if keys of the pod name another application or queue than the one that counts (K56)."""
    meta = pod.metadata
    labels, annotations = meta.labels, meta.annotations
    if not annotations and keys.OLD_APP_ID not in labels and keys.SPARK_APP_ID not in labels:
        if keys.QUEUE not in labels or keys.OLD_QUEUE not in labels:
            return None  # nearly all pods have one key of each
    applications = (
        ("label", keys.APP_ID, labels.get(keys.APP_ID)),
        ("annotation", keys.APP_ID, annotations.get(keys.APP_ID)),
        ("label", keys.OLD_APP_ID, labels.get(keys.OLD_APP_ID)),
        ("label", keys.SPARK_APP_ID, labels.get(keys.SPARK_APP_ID)),
    )
    queues = (
        ("label", keys.QUEUE, labels.get(keys.QUEUE)),
        ("annotation", keys.QUEUE, annotations.get(keys.QUEUE)),
        ("label", keys.OLD_QUEUE, labels.get(keys.OLD_QUEUE)),
    )
    notes = [
        note
        for what, named in (("application ids", applications), ("queues", queues))
        if (note := _losers(what, named))
    ]
    return Problem("Scheduling", "Scheduling", "; ".join(notes)) if notes else None


def _losers(what: str, named: tuple[tuple[str, str, str | None], ...]) -> str:
    given = [each for each in named if each[2]]
    losers = [each for each in given if each[2] != given[0][2]]
    if not losers:
        return ""
    kind, key, value = given[0]
    ignored = ", ".join(f"{value!r} of {kind} {key}" for kind, key, value in losers)
    return f"the pod has several {what}: {value!r} of {kind} {key} is used, ignored: {ignored}"


# -- user ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class User:
    """A user and their groups."""

    name: str = _NOBODY
    #: empty: the core looks the groups up
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UserReading:
    """The user of a pod, and the problem with the annotation if there is one."""

    user: User
    problem: Problem | None = None


def user_of(pod: Pod) -> UserReading:
    """Return user and groups of the pod, ``nobody`` if nothing names one or the annotation is unreadable (K57).

    The old label counts only without an annotation. Admission always writes the annotation, except for pods
    with the scheduler's own label, which it leaves alone: their old label is not read.
    """
    text = pod.metadata.annotations.get(keys.USER_INFO)
    if text:
        return _read_user(text)
    labels = pod.metadata.labels
    key, value = keys.SCHEDULER_LABEL
    name = "" if labels.get(key) == value else labels.get(keys.OLD_USER_NAME, "")
    return UserReading(User(name or _NOBODY))


@lru_cache(maxsize=4096)
def _read_user(text: str) -> UserReading:
    try:
        found = msgspec.json.decode(text)
        if not isinstance(found, dict):
            raise ValueError("it is not a JSON object")
        # Go's JSON decoder matches names case-insensitively.
        fields = {name.lower(): value for name, value in found.items()}
        name, groups = fields.get("user"), fields.get("groups")
        if not (name is None or isinstance(name, str)):
            raise ValueError("user is not a text")
        if groups is None:
            groups = []
        if not isinstance(groups, list) or not all(isinstance(each, str) for each in groups):
            raise ValueError("groups is not a list of texts")
        return UserReading(User(name or _NOBODY, tuple(groups)))
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        note = f"annotation {keys.USER_INFO} cannot be read, the user is {_NOBODY}: {error}: {shown(text)}"
        return UserReading(User(), Problem("Scheduling", "Scheduling", note))


# -- kinds of pods ---------------------------------------------------------------------------------


def is_placeholder(pod: Pod) -> bool:
    """Return whether the pod is a placeholder (K40)."""
    meta = pod.metadata
    text = meta.annotations.get(keys.PLACEHOLDER)
    if text is None:
        text = meta.annotations.get(keys.OLD_PLACEHOLDER)
    if text is None:
        text = meta.labels.get(keys.OLD_PLACEHOLDER_LABEL)
    return text in _TRUE


def is_resumed(pod: Pod) -> bool:
    """Return whether the gang of this originator has resumed after a soft timeout (K77)."""
    return pod.metadata.annotations.get(keys.GANG_RESUMED) == "true"


def task_group_name(pod: Pod, settings: Settings) -> str:
    """Return the task group of the pod, "" if it has none or gang scheduling is off (K66)."""
    if settings.disable_gang_scheduling:
        return ""
    return pod.metadata.annotations.get(keys.TASK_GROUP_NAME, "")


def is_static(pod: Pod) -> bool:
    """Return whether the pod is the mirror pod of a static pod, which belongs to its node (K46)."""
    return any(owner.kind == "Node" for owner in pod.metadata.owner_references)


def is_replaced(pod: Pod) -> bool:
    """Return whether a controller replaces the pod as soon as it fails: its containers always restart, as those
    of a ReplicaSet, so its failure means nothing to the controller (K60)."""
    owners = pod.metadata.owner_references
    return pod.spec.restart_policy == "Always" and any(owner.controller for owner in owners)


def is_being_deleted_unplaced(pod: Pod) -> bool:
    """Return whether the pod is terminating without a node: it is not asked for any more (K90)."""
    return pod.metadata.deletion_timestamp != "" and not pod.spec.node_name


# -- preemption ------------------------------------------------------------------------------------


def may_be_preempted(pod: Pod, priority_class: PriorityClass | None) -> bool:
    """Return the pod's annotation ``true`` or ``false``, else that of its PriorityClass, else true (K87)."""
    own = pod.metadata.annotations.get(keys.ALLOW_PREEMPTION)
    if own in ("true", "false"):
        return own == "true"
    return preemption_of_class(priority_class)


def preemption_of_class(priority_class: PriorityClass | None) -> bool:
    """Return whether pods of the class may be preempted: not if its annotation is ``false`` (K42)."""
    if priority_class is None:
        return True
    return priority_class.metadata.annotations.get(keys.ALLOW_PREEMPTION) != "false"


def may_preempt(pod: Pod) -> bool:
    """Return whether other pods may be preempted for this pod (K87)."""
    return pod.spec.preemption_policy != "Never"
