"""Messages to the core in the form of SI 1.5 (K8, K45, K46, K87, K91, K93, K94).

Each function makes one item; `applications`, `allocations` and `nodes` put items into a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from quadriga.base.times import unix_seconds
from quadriga.k8s.conversion import identity, keys, resources
from quadriga.k8s.conversion.annotated_tags import levels_of, rule_tags, run_time_tags
from quadriga.k8s.conversion.applications import ApplicationMetadata
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.conversion.task_groups import HARD, placeholder_ask
from quadriga.k8s.objects import Node, Pod, PriorityClass
from quadriga.si import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    AllocationRequest,
    ApplicationRequest,
    NodeInfo,
    NodeRequest,
    PreemptionPolicy,
    Quantity,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    Resource,
    TerminationType,
    UpdateConfigurationRequest,
    UserGroupInformation,
)
from quadriga.si.constants import (
    APP_TAG_CREATE_FORCE,
    ARCH,
    FAILURE_DOMAIN_REGION,
    FAILURE_DOMAIN_ZONE,
    FOREIGN_DEFAULT,
    FOREIGN_STATIC,
    HOST_NAME,
    INSTANCE_TYPE,
    NODE_READY_ATTRIBUTE,
    OS,
    RACK_NAME,
    TAG_DEVICES,
    TAG_REQUIRED_NODE,
)

_VERSION: Final = "1.5"
#: in this dialect the core uses the state names of YuniKorn's shim
_DIALECT: Final = {"si.stateNames": "yunikorn"}
_RACK: Final = "/rack-default"
_INT64_MAX: Final = 2**63 - 1
#: a tag of seconds has at most nine digits
_LONGEST_WAIT: Final = 10**9
#: all combinations of allowPreemptSelf and allowPreemptOther
_PREEMPTION: Final = {
    (self, other): PreemptionPolicy(allowPreemptSelf=self, allowPreemptOther=other)
    for self in (False, True)
    for other in (False, True)
}


# -- the resource manager --------------------------------------------------------------------------


def register(settings: Settings, build: Mapping[str, str]) -> RegisterResourceManagerRequest:
    """Return a registration; ``build`` describes the program for display."""
    return RegisterResourceManagerRequest(
        rmID=settings.cluster_id,
        version=_VERSION,
        policyGroup=settings.policy_group,
        buildInfo=build,
        config=settings.queues,
        extraConfig={**settings.extra, **_DIALECT},
    )


def update_configuration(settings: Settings) -> UpdateConfigurationRequest:
    """Return an update of the configuration."""
    return UpdateConfigurationRequest(
        rmID=settings.cluster_id,
        policyGroup=settings.policy_group,
        config=settings.queues,
        extraConfig={**settings.extra, **_DIALECT},
    )


# -- applications ----------------------------------------------------------------------------------


def applications(
    settings: Settings,
    new: Iterable[AddApplicationRequest] = (),
    remove: Iterable[RemoveApplicationRequest] = (),
) -> ApplicationRequest:
    """Return a request with new and removed applications."""
    return ApplicationRequest(rmID=settings.cluster_id, new=new, remove=remove)


def add_application(
    application: ApplicationMetadata, *, force: bool, gang: bool = True
) -> AddApplicationRequest:
    """Return a new application. ``force`` says that a live pod of it already has a node (K45). ``gang`` is
    false once its gang has resumed: then it has no placeholders and no timeout (K77)."""
    request = AddApplicationRequest(
        applicationID=application.id,
        queueName=application.queue,
        partitionName=keys.PARTITION,
        ugi=UserGroupInformation(user=application.user.name, groups=application.user.groups),
        tags={**application.tags, APP_TAG_CREATE_FORCE: "true" if force else "false"},
        gangSchedulingStyle=application.policy.style,
    )
    if gang and application.groups:
        request.placeholderAsk.CopyFrom(resource_of(placeholder_ask(application.groups)))
        seconds = application.policy.timeout_seconds
        milliseconds = seconds * 1000
        request.executionTimeoutMilliSeconds = max(-_INT64_MAX, min(milliseconds, _INT64_MAX))
        if 0 < seconds < _LONGEST_WAIT:
            request.tags[keys.GANG_WAIT_TAG] = str(seconds)
            if application.policy.style != HARD:
                request.tags[keys.GANG_ELASTIC_TAG] = "true"
    return request


def remove_application(application_id: str) -> RemoveApplicationRequest:
    """Return the removal of an application."""
    return RemoveApplicationRequest(applicationID=application_id, partitionName=keys.PARTITION)


# -- asks and allocations --------------------------------------------------------------------------


def allocations(
    settings: Settings,
    asks: Iterable[AllocationAsk] = (),
    existing: Iterable[Allocation] = (),
    releases: Iterable[AllocationRelease] = (),
    ask_releases: Iterable[AllocationAskRelease] = (),
) -> AllocationRequest:
    """Return a request about allocations. The core handles asks first, then the releases of asks, then those of
    allocations."""
    request = AllocationRequest(rmID=settings.cluster_id, asks=asks, allocations=existing)
    releases, ask_releases = tuple(releases), tuple(ask_releases)
    if releases or ask_releases:
        request.releases.CopyFrom(
            AllocationReleasesRequest(
                allocationsToRelease=releases, allocationAsksToRelease=ask_releases
            )
        )
    return request


def ask(
    pod: Pod,
    application_id: str,
    settings: Settings,
    *,
    originator: bool = False,
    priority: int | None = None,
    priority_class: PriorityClass | None = None,
    amounts: resources.Amounts | None = None,
) -> AllocationAsk:
    """Return the ask of a pod with our scheduler name and without a node (K87). ``amounts`` are its resources
    if they are known; ``priority`` replaces its own."""
    policy = identity.may_be_preempted(pod, priority_class), identity.may_preempt(pod)
    return AllocationAsk(
        allocationKey=pod.metadata.uid,
        applicationID=application_id,
        partitionName=keys.PARTITION,
        resourceAsk=resource_of(resources.of_pod(pod) if amounts is None else amounts),
        maxAllocations=1,
        priority=(pod.spec.priority or 0) if priority is None else priority,
        tags=_tags(pod),
        taskGroupName=identity.task_group_name(pod, settings),
        placeholder=identity.is_placeholder(pod),
        Originator=originator,
        preemptionPolicy=_PREEMPTION[policy],
    )


def allocation(
    pod: Pod,
    application_id: str,
    settings: Settings,
    *,
    node: str = "",
    devices: str = "",
    originator: bool = False,
    priority: int | None = None,
    priority_class: PriorityClass | None = None,
) -> Allocation:
    """Return the allocation of a pod with our scheduler name and a node (K91). ``node`` and ``devices``, the
    units that it has of shared devices, replace the pod's own if these are not known yet."""
    tags = _tags(pod)
    if devices := devices or pod.metadata.annotations.get(keys.DEVICES, ""):
        tags[TAG_DEVICES] = devices
    policy = identity.may_be_preempted(pod, priority_class), identity.may_preempt(pod)
    return Allocation(
        allocationKey=pod.metadata.uid,
        applicationID=application_id,
        partitionName=keys.PARTITION,
        nodeID=node or pod.spec.node_name,
        resourcePerAlloc=resource_of(resources.of_pod(pod)),
        priority=(pod.spec.priority or 0) if priority is None else priority,
        allocationTags=tags,
        taskGroupName=identity.task_group_name(pod, settings),
        placeholder=identity.is_placeholder(pod),
        originator=originator,
        preemptionPolicy=_PREEMPTION[policy],
    )


def foreign_allocation(pod: Pod) -> Allocation:
    """Return an allocation for a pod of another scheduler on its node; it has no application (K91, K143)."""
    tags = _tags(pod)
    tags[keys.FOREIGN_TAG] = FOREIGN_STATIC if identity.is_static(pod) else FOREIGN_DEFAULT
    return Allocation(
        allocationKey=pod.metadata.uid,
        partitionName=keys.PARTITION,
        nodeID=pod.spec.node_name,
        resourcePerAlloc=resource_of(resources.of_pod(pod)),
        priority=pod.spec.priority or 0,
        allocationTags=tags,
    )


def release(
    uid: str,
    application_id: str = "",
    kind: TerminationType = TerminationType.STOPPED_BY_RM,
    uuid: str = "",
    message: str = "",
) -> AllocationRelease:
    """Return the release of an allocation; a foreign one has no application. Without ``uuid`` it releases every
    allocation of the pod.

    A release without a key would mean all pods of the application (K93), so it raises ValueError.
    """
    if not uid:
        raise ValueError("a release names its pod")
    return AllocationRelease(
        partitionName=keys.PARTITION,
        applicationID=application_id,
        allocationKey=uid,
        UUID=uuid,
        terminationType=kind,
        message=message,
    )


def release_ask(
    uid: str,
    application_id: str,
    kind: TerminationType = TerminationType.STOPPED_BY_RM,
    message: str = "",
) -> AllocationAskRelease:
    """Return the release of an ask. Raises ValueError without a key or an application, like `release`."""
    if not uid or not application_id:
        raise ValueError("the release of an ask names its pod and its application")
    return AllocationAskRelease(
        partitionName=keys.PARTITION,
        applicationID=application_id,
        allocationKey=uid,
        terminationType=kind,
        message=message,
    )


def _tags(pod: Pod) -> dict[str, str]:
    """Return what the core and its pages may know of the pod (K46)."""
    meta = pod.metadata
    tags = {_label_tag(key): value for key, value in meta.labels.items()}
    tags[keys.POD_NAMESPACE_TAG] = meta.namespace
    tags[keys.POD_NAME_TAG] = meta.name
    created = unix_seconds(meta.creation_timestamp)
    if created is not None:
        tags[keys.CREATION_TIME_TAG] = str(created)
    tags.update(run_time_tags(pod))
    if meta.annotations:
        tags.update(rule_tags(pod))
    if meta.owner_references:
        node = _required_node(pod)
        if node:
            tags[TAG_REQUIRED_NODE] = node
    return tags


@lru_cache(maxsize=4096)
def _label_tag(key: str) -> str:
    return keys.LABEL_TAG + key


def _required_node(pod: Pod) -> str:
    """Return the node that a pod of a DaemonSet is created for."""
    if not any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references):
        return ""
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return ""
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    if required is None:
        return ""
    found = ""
    for term in required.node_selector_terms:
        for field in term.match_fields:
            if field.key == "metadata.name" and field.operator == "In" and field.values:
                found = field.values[-1]
    return found


def resource_of(amounts: Mapping[str, int]) -> Resource:
    """Return the amounts as a message. Zeros stay: they say that the resource is known."""
    return _resource(tuple(amounts.items()))


@lru_cache(maxsize=4096)
def _resource(items: tuple[tuple[str, int], ...]) -> Resource:
    return Resource(resources={name: Quantity(value=value) for name, value in items})


# -- nodes -----------------------------------------------------------------------------------------


def nodes(settings: Settings, items: Iterable[NodeInfo]) -> NodeRequest:
    """Return a request about nodes."""
    return NodeRequest(rmID=settings.cluster_id, nodes=items)


def node_created(node: Node, settings: Settings) -> NodeInfo:
    """Return a new node, which is closed until its pods are known (K94)."""
    return _node(node, settings, NodeInfo.CREATE_DRAIN)


def node_updated(node: Node, settings: Settings) -> NodeInfo:
    """Return changed resources or attributes of a node that the core knows."""
    return _node(node, settings, NodeInfo.UPDATE)


def node_drained(name: str) -> NodeInfo:
    """Return the message that the node accepts no new pods because it is cordoned."""
    return NodeInfo(nodeID=name, action=NodeInfo.DRAIN_NODE)


def node_opened(name: str) -> NodeInfo:
    """Return the message that the node accepts pods."""
    return NodeInfo(nodeID=name, action=NodeInfo.DRAIN_TO_SCHEDULABLE)


def node_removed(name: str) -> NodeInfo:
    """Return the removal of a node."""
    return NodeInfo(nodeID=name, action=NodeInfo.DECOMISSION)


def _node(node: Node, settings: Settings, action: NodeInfo.ActionFromRM) -> NodeInfo:
    return NodeInfo(
        nodeID=node.metadata.name,
        action=action,
        attributes=_attributes(node, settings),
        schedulableResource=resource_of(resources.of_node(node)),
    )


def _attributes(node: Node, settings: Settings) -> dict[str, str]:
    found = {HOST_NAME: node.metadata.name, RACK_NAME: _RACK}
    labels = node.metadata.labels
    for attribute, names in (
        (ARCH, ("kubernetes.io/arch", "beta.kubernetes.io/arch")),
        (OS, ("kubernetes.io/os", "beta.kubernetes.io/os")),
        (INSTANCE_TYPE, (settings.instance_type_label,)),
        (
            FAILURE_DOMAIN_ZONE,
            ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
        ),
        (
            FAILURE_DOMAIN_REGION,
            ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
        ),
    ):
        value = next((labels[name] for name in names if labels.get(name)), "")
        if value:
            found[attribute] = value
    ready = any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
    for label in levels_of(settings):
        if value := labels.get(label, ""):
            found[label] = value
    found[NODE_READY_ATTRIBUTE] = "true" if ready else "false"
    return found
