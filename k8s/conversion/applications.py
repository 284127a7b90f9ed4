"""What an application takes from the pod that creates it (K45, K58)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quadriga.base.times import unix_seconds
from quadriga.k8s.conversion import identity, keys, task_groups
from quadriga.k8s.conversion.annotated_tags import rule_tags, run_time_tags
from quadriga.k8s.conversion.identity import User
from quadriga.k8s.conversion.namespaces import tags_of
from quadriga.k8s.conversion.problems import Problem, shown
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.conversion.task_groups import Policy, TaskGroup, TaskGroups
from quadriga.k8s.objects import Namespace, Pod
from quadriga.si.constants import TAG_CREATION_TIME


@dataclass(frozen=True, slots=True)
class ApplicationMetadata:
    """Everything about an application except its pods."""

    id: str
    #: the ID as its pods name it, without the namespace (K52)
    named: str
    namespace: str
    queue: str
    user: User
    #: all tags but ``application.create.force``
    tags: Mapping[str, str]
    gang: TaskGroups
    #: hash of the definition of the task groups, for the placeholders
    definition_hash: str
    #: creation time of the pod, in s since the Unix epoch
    created: int | None
    #: recorded as events of the pod
    problems: tuple[Problem, ...] = ()
    #: recorded as events of the namespace
    namespace_problems: tuple[Problem, ...] = ()

    @property
    def groups(self) -> tuple[TaskGroup, ...]:
        """The task groups; empty without a gang."""
        return self.gang.groups

    @property
    def policy(self) -> Policy:
        """The scheduling policy of the gang."""
        return self.gang.policy


def read(pod: Pod, namespace: Namespace | None, settings: Settings) -> ApplicationMetadata:
    """Return the application that a pod with our scheduler name creates."""
    meta = pod.metadata
    user = identity.user_of(pod)
    gang = task_groups.read(pod, settings)
    of_namespace = tags_of(namespace)
    created = unix_seconds(meta.creation_timestamp)
    definition = task_groups.definition_of(pod, settings)
    parameters = task_groups.parameters_of(pod, settings)
    tags = {
        keys.NAMESPACE_TAG: meta.namespace or "default",
        keys.TASK_GROUPS: definition,
        keys.POLICY_PARAMETERS: parameters,
        **of_namespace.tags,
    }
    if pod.spec.image_pull_secrets:
        names = ",".join(each.name for each in pod.spec.image_pull_secrets)
        tags[keys.IMAGE_PULL_SECRETS_TAG] = names
    if created is not None:
        tags[TAG_CREATION_TIME] = str(created)
    if definition:  # its placeholders have what its first pod declares
        tags |= run_time_tags(pod) | rule_tags(pod)
    return ApplicationMetadata(
        id=identity.application_id(pod, settings),
        named=identity.application_named(pod, settings),
        namespace=meta.namespace or "default",
        queue=identity.queue_of(pod),
        user=user.user,
        tags=tags,
        gang=gang,
        definition_hash=task_groups.hash_of(definition) if gang.groups else "",
        created=created,
        problems=(*((user.problem,) if user.problem is not None else ()), *gang.problems),
        namespace_problems=of_namespace.problems,
    )


def deviation(pod: Pod, application: ApplicationMetadata) -> Problem | None:
    """Return a problem if a later pod names another queue or user than the pod that created the application
    (K58).

    A pod that names none does not differ.
    """
    found = []
    queue = identity.queue_of(pod)
    if queue and queue != application.queue:
        found.append(f"queue {shown(queue)}, the application has {shown(application.queue)}")
    user = identity.user_of(pod).user
    if keys.USER_INFO in pod.metadata.annotations and user != application.user:
        found.append(f"user {_described(user)}, the application has {_described(application.user)}")
    if not found:
        return None
    return Problem("Scheduling", "Scheduling", f"ignored of the pod: {'; '.join(found)}")


def sharing(pod: Pod, application: ApplicationMetadata) -> Problem | None:
    """Return a problem if a later pod of another namespace, or one that names no user, runs at the cost of the
    application (K58).

    A pod that names another user is a `deviation`.
    """
    found = []
    namespace = pod.metadata.namespace or "default"
    if namespace != application.namespace:
        gang = keys.TASK_GROUP_NAME in pod.metadata.annotations
        alone = ", and its gang gets no placeholders of its own" if gang else ""
        found.append(
            f"it was created in namespace {application.namespace!r}, the pod in {namespace!r}{alone}; "
            "service.applicationIdsPerNamespace keeps the application IDs of namespaces apart"
        )
    user = identity.user_of(pod).user
    if keys.USER_INFO not in pod.metadata.annotations and user != application.user:
        found.append(
            f"its user is {_described(application.user)}, the pod has no annotation "
            f"{keys.USER_INFO} and is of {_described(user)}"
        )
    if not found:
        return None
    name = shown(application.named)
    note = f"the pod runs in the queue and for the user of application {name}: {'; '.join(found)}"
    return Problem("ApplicationShared", "Scheduling", note)


def _described(user: User) -> str:
    return f"{user.name!r} of {', '.join(user.groups)}" if user.groups else repr(user.name)
