"""Messages to the core (K6, K8, K45, K46, K87, K91, K93, K94), and that the core takes them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from quadriga.core import Scheduler
from quadriga.k8s.conversion import applications, messages
from quadriga.k8s.conversion.applications import ApplicationMetadata
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import Namespace, Pod, PriorityClass
from quadriga.si import (
    AllocationResponse,
    ApplicationResponse,
    NodeInfo,
    NodeResponse,
    Resource,
    TerminationType,
)
from tests.k8s.decoded import container, decoded, namespace, node, pod

DOMAIN = "yunikorn.apache.org/"
APP_ID = DOMAIN + "app-id"
#: 2026-01-02T03:04:05Z
CREATED = "1767323045"
SETTINGS = Settings()
GROUP = {"name": "workers", "minMember": 2, "minResource": {"cpu": "500m", "memory": "1Gi"}}


def application(
    one: Pod | None = None, where: Namespace | None = None, settings: Settings = SETTINGS
) -> ApplicationMetadata:
    return applications.read(one or pod(labels={APP_ID: "app-1"}), where, settings)


def amounts(resource: Resource) -> dict[str, int]:
    return {name: quantity.value for name, quantity in resource.resources.items()}


# -- the resource manager --------------------------------------------------------------------------


def test_k6_k8_the_registration() -> None:
    settings = replace(
        SETTINGS, cluster_id="prod", policy_group="blue", queues="q", extra={"log.level": "INFO"}
    )
    request = messages.register(settings, {"version": "1"})
    assert (request.rmID, request.policyGroup, request.config) == ("prod", "blue", "q")
    assert request.version == "1.5"
    assert dict(request.buildInfo) == {"version": "1"}
    assert dict(request.extraConfig) == {"log.level": "INFO", "si.stateNames": "yunikorn"}


def test_k49_the_configuration() -> None:
    request = messages.update_configuration(replace(SETTINGS, queues="q", extra={"a": "b"}))
    assert (request.rmID, request.policyGroup, request.config) == ("mycluster", "queues", "q")
    assert dict(request.extraConfig) == {"a": "b", "si.stateNames": "yunikorn"}


# -- applications ----------------------------------------------------------------------------------


def test_k45_an_application_without_a_gang() -> None:
    info = {DOMAIN + "user.info": '{"user": "ann", "groups": ["dev"]}'}
    labels = {APP_ID: "app-1", DOMAIN + "queue": "root.a"}
    secrets = {"imagePullSecrets": [{"name": "one"}, {"name": "two"}]}
    one = pod(labels=labels, annotations=info, spec=secrets)
    request = messages.add_application(application(one), force=False)
    assert (request.applicationID, request.queueName, request.partitionName) == (
        "app-1",
        "root.a",
        "default",
    )
    assert (request.ugi.user, list(request.ugi.groups)) == ("ann", ["dev"])
    assert dict(request.tags) == {
        "namespace": "team",
        "application.create.force": "false",
        "imagePullSecrets": "one,two",
        DOMAIN + "task-groups": "",
        DOMAIN + "schedulingPolicyParameters": "",
        DOMAIN + "creationTime": CREATED,
    }
    assert not request.HasField("placeholderAsk")
    assert request.executionTimeoutMilliSeconds == 0
    assert request.gangSchedulingStyle == "Soft"


def test_k45_tags_of_the_namespace_and_the_force_flag() -> None:
    where = namespace(namespace_quota='{"cpu": "1"}', parentqueue="root.x")
    request = messages.add_application(application(where=where), force=True)
    assert request.tags["application.create.force"] == "true"
    assert request.tags["namespace.parentqueue"] == "root.x"
    assert json.loads(request.tags["namespace.resourcequota"]) == {
        "resources": {"vcore": {"value": 1000}}
    }


def test_k45_no_namespace_is_the_default_and_no_time_is_no_tag() -> None:
    found = application(pod(namespace="", creationTimestamp="soon"))
    assert (found.namespace, found.created) == ("default", None)
    assert found.tags["namespace"] == "default"
    assert DOMAIN + "creationTime" not in found.tags
    assert "imagePullSecrets" not in found.tags


def gang(parameters: str) -> ApplicationMetadata:
    annotations = {
        DOMAIN + "task-groups": json.dumps([GROUP]),
        DOMAIN + "schedulingPolicyParameters": parameters,
    }
    return application(pod(labels={APP_ID: "app-1"}, annotations=annotations))


def test_k64_k67_a_gang() -> None:
    found = gang("placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard")
    request = messages.add_application(found, force=False)
    assert amounts(request.placeholderAsk) == {"vcore": 1000, "memory": 2 << 30, "pods": 2}
    assert request.executionTimeoutMilliSeconds == 30_000
    assert request.gangSchedulingStyle == "Hard"
    assert json.loads(request.tags[DOMAIN + "task-groups"]) == [GROUP]
    assert request.tags[DOMAIN + "schedulingPolicyParameters"] == found.policy_text


@pytest.mark.parametrize(
    ("seconds", "milliseconds"),
    [(0, 0), (-1, -1000), (31_536_000, 31_536_000_000), (2**62, 0), (-(2**62), -(2**63) + 1)],
)
def test_k67_the_timeout_stays_within_64_bits(seconds: int, milliseconds: int) -> None:
    request = messages.add_application(gang(f"placeholderTimeoutInSeconds={seconds}"), force=False)
    assert request.executionTimeoutMilliSeconds == milliseconds


@pytest.mark.parametrize(
    ("policy", "tags"),
    [
        ("placeholderTimeoutInSeconds=30", {"gang.wait.limit": "30", "gang.elastic": "true"}),
        (
            "placeholderTimeoutInSeconds=30 gangSchedulingStyle=Soft",
            {"gang.wait.limit": "30", "gang.elastic": "true"},
        ),
        (
            "placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard",
            {"gang.wait.limit": "30"},
        ),
        ("gangSchedulingStyle=Soft", {}),
        ("placeholderTimeoutInSeconds=-1", {}),
        (f"placeholderTimeoutInSeconds={10**9}", {}),
    ],
)
def test_k76_a_timeout_of_the_manifest_bounds_the_wait_of_a_gang_that_holds_nothing(
    policy: str, tags: dict[str, str]
) -> None:
    request = messages.add_application(gang(policy), force=False)
    assert {name: text for name, text in request.tags.items() if name[:5] == "gang."} == tags


def test_k77_a_gang_that_has_resumed_has_no_placeholders_and_no_timeout() -> None:
    request = messages.add_application(
        gang("placeholderTimeoutInSeconds=30"), force=False, gang=False
    )
    assert not request.HasField("placeholderAsk")
    assert request.executionTimeoutMilliSeconds == 0


def test_k67_without_a_gang_there_is_no_run_limit() -> None:
    one = pod(annotations={DOMAIN + "schedulingPolicyParameters": "placeholderTimeoutInSeconds=30"})
    request = messages.add_application(application(one), force=False)
    assert request.executionTimeoutMilliSeconds == 0


def test_k58_problems_come_with_the_application() -> None:
    one = pod(annotations={DOMAIN + "user.info": "ann", DOMAIN + "task-groups": "none"})
    found = application(one, namespace(namespace_maxApps="many"))
    assert [each.reason for each in found.problems] == ["Scheduling", "GangScheduling"]
    assert len(found.namespace_problems) == 1
    assert found.groups == ()


@pytest.mark.parametrize(
    ("labels", "annotations", "note"),
    [
        ({}, {}, None),
        ({DOMAIN + "queue": "root.a"}, {DOMAIN + "user.info": '{"user": "ann"}'}, None),
        ({"queue": "root.b"}, {}, "queue 'root.b', the application has 'root.a'"),
        ({}, {DOMAIN + "user.info": '{"user": "bob"}'}, "user 'bob', the application has 'ann'"),
        (
            {},
            {DOMAIN + "user.info": '{"user": "ann", "groups": ["dev"]}'},
            "user 'ann' of dev, the application has 'ann'",
        ),
        (
            {"queue": "root.b"},
            {DOMAIN + "user.info": '{"user": "bob"}'},
            "queue 'root.b', the application has 'root.a'; user 'bob', the application has 'ann'",
        ),
    ],
)
def test_k58_a_later_pod_that_says_otherwise(
    labels: dict[str, str], annotations: dict[str, str], note: str | None
) -> None:
    first = pod(
        labels={APP_ID: "app-1", DOMAIN + "queue": "root.a"},
        annotations={DOMAIN + "user.info": '{"user": "ann"}'},
    )
    found = applications.deviation(pod(labels=labels, annotations=annotations), application(first))
    if note is None:
        assert found is None
    else:
        assert found is not None
        assert found.note == f"ignored of the pod: {note}"


def at(second: int, name: str, **changes: Any) -> Pod:
    return pod(name, creationTimestamp=f"2026-01-02T03:04:{second:02}Z", **changes)


def test_k59_the_oldest_real_pod_creates_the_application() -> None:
    flag = {"internal.yunikorn.apache.org/placeholder": "true"}
    pods = [
        at(5, "b"),
        at(5, "a", namespace="zoo"),
        at(1, "placeholder", annotations=flag),
        at(2, "ended", status={"phase": "Succeeded"}),
        at(5, "a"),
        at(7, "late"),
    ]
    found = applications.creator(pods)
    assert found is applications.creator(reversed(pods)) is pods[4]
    assert [each.metadata.name for each in sorted(pods, key=applications.creation_order)] == [
        *("placeholder", "ended", "a", "b", "a", "late")
    ]


def test_k59_placeholders_alone_create_nothing() -> None:
    flag = {"internal.yunikorn.apache.org/placeholder": "true"}
    assert applications.creator([pod(annotations=flag), pod(status={"phase": "Failed"})]) is None
    assert applications.creator([]) is None


# -- asks ------------------------------------------------------------------------------------------


def test_k87_an_ask() -> None:
    one = pod(
        labels={"app": "x", "app.kubernetes.io/name": "y"},
        annotations={DOMAIN + "task-group-name": "workers"},
        spec={"containers": [container(cpu="1", memory="1Ki")], "priority": 7},
    )
    request = messages.ask(one, "app-1", SETTINGS)
    assert (request.allocationKey, request.applicationID) == ("uid-web-1", "app-1")
    assert (request.partitionName, request.maxAllocations) == ("default", 1)
    assert amounts(request.resourceAsk) == {"vcore": 1000, "memory": 1024, "pods": 1}
    assert request.priority == 7
    assert request.taskGroupName == "workers"
    assert not request.placeholder
    assert not request.Originator
    assert request.preemptionPolicy.allowPreemptSelf
    assert request.preemptionPolicy.allowPreemptOther
    assert dict(request.tags) == {
        "kubernetes.io/meta/namespace": "team",
        "kubernetes.io/meta/podName": "web-1",
        "kubernetes.io/label/app": "x",
        "kubernetes.io/label/app.kubernetes.io/name": "y",
        "creationTime": CREATED,
    }


def test_k87_flags_of_an_ask() -> None:
    flag = {"internal.yunikorn.apache.org/placeholder": "true"}
    assert messages.ask(pod(annotations=flag), "a", SETTINGS).placeholder
    assert messages.ask(pod(), "a", SETTINGS, originator=True).Originator
    assert messages.ask(pod(), "a", SETTINGS).priority == 0
    assert messages.ask(pod(spec={"priority": -5}), "a", SETTINGS).priority == -5


def test_k87_preemption() -> None:
    protected = decoded(
        PriorityClass, {"metadata": {"annotations": {DOMAIN + "allow-preemption": "false"}}}
    )
    never = pod(spec={"preemptionPolicy": "Never"})
    policy = messages.ask(never, "a", SETTINGS, priority_class=protected).preemptionPolicy
    assert (policy.allowPreemptSelf, policy.allowPreemptOther) == (False, False)
    policy = messages.allocation(pod(), "a", SETTINGS, priority_class=protected).preemptionPolicy
    assert (policy.allowPreemptSelf, policy.allowPreemptOther) == (False, True)


def test_k66_without_gang_scheduling_an_ask_has_no_group() -> None:
    off = replace(SETTINGS, disable_gang_scheduling=True)
    one = pod(annotations={DOMAIN + "task-group-name": "workers"})
    assert messages.ask(one, "a", off).taskGroupName == ""


def daemon(*terms: dict[str, Any], kind: str = "DaemonSet") -> Pod:
    required = {"nodeSelectorTerms": list(terms)}
    return pod(
        ownerReferences=[{"apiVersion": "apps/v1", "kind": kind, "name": "d", "uid": "u"}],
        spec={
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
            }
        },
    )


def on(*names: str, key: str = "metadata.name", operator: str = "In") -> dict[str, Any]:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(names)}]}


@pytest.mark.parametrize(
    ("one", "required"),
    [
        (daemon(on("n1")), "n1"),
        (daemon(on("n1"), on("n2")), "n2"),
        (daemon(on("n1"), {"matchExpressions": [{"key": "a", "operator": "Exists"}]}), "n1"),
        (daemon(on("n1", operator="NotIn")), None),
        (daemon(on("n1", key="metadata.namespace")), None),
        (daemon(on()), None),
        (daemon(), None),
        (daemon(on("n1"), kind="ReplicaSet"), None),
        (pod(), None),
        (pod(ownerReferences=[{"kind": "DaemonSet", "name": "d"}]), None),
        (
            pod(ownerReferences=[{"kind": "DaemonSet"}], spec={"affinity": {"nodeAffinity": {}}}),
            None,
        ),
    ],
)
def test_k46_a_pod_of_a_daemonset_names_its_node(one: Pod, required: str | None) -> None:
    tags = messages.ask(one, "a", SETTINGS).tags
    assert tags.get(DOMAIN + "requiredNode") == required


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-01-02T03:04:05Z", CREATED),
        ("2026-01-02T04:04:05+01:00", CREATED),
        ("2026-01-02T03:04:05.999999Z", CREATED),
        ("2026-01-02T03:04:05", CREATED),
        ("1970-01-01T00:00:00Z", "0"),
        ("", None),
        ("yesterday", None),
    ],
)
def test_k46_the_creation_time(text: str, seconds: str | None) -> None:
    tags = messages.ask(pod(creationTimestamp=text), "a", SETTINGS).tags
    assert tags.get("creationTime") == seconds


# -- allocations and releases ----------------------------------------------------------------------


def test_k91_an_allocation_is_the_ask_with_its_node() -> None:
    one = pod(
        labels={"app": "x"},
        annotations={
            DOMAIN + "task-group-name": "workers",
            "internal.yunikorn.apache.org/placeholder": "true",
        },
        spec={"containers": [container(cpu="1")], "priority": 7, "nodeName": "n1"},
    )
    asked = messages.ask(one, "app-1", SETTINGS, originator=True)
    found = messages.allocation(one, "app-1", SETTINGS, originator=True)
    assert found.nodeID == "n1"
    assert found.resourcePerAlloc == asked.resourceAsk
    assert found.allocationTags == asked.tags
    assert found.originator
    for name in "allocationKey applicationID partitionName priority taskGroupName".split():
        assert getattr(found, name) == getattr(asked, name)
    assert found.placeholder == asked.placeholder is True
    assert found.preemptionPolicy == asked.preemptionPolicy


def test_k91_the_node_of_a_pod_that_does_not_know_it_yet() -> None:
    assert messages.allocation(pod(), "a", SETTINGS, node="n2").nodeID == "n2"
    placed = pod(spec={"nodeName": "n1"})
    assert messages.allocation(placed, "a", SETTINGS, node="n2").nodeID == "n2"


@pytest.mark.parametrize(("kind", "value"), [("Node", "static"), ("ReplicaSet", "default")])
def test_k91_a_foreign_allocation_has_no_application(kind: str, value: str) -> None:
    one = pod(
        ownerReferences=[{"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u"}],
        spec={"schedulerName": "x", "nodeName": "n1", "containers": [container(cpu="1")]},
    )
    found = messages.foreign_allocation(one)
    assert (found.allocationKey, found.nodeID, found.applicationID) == ("uid-web-1", "n1", "")
    assert found.allocationTags["foreign"] == value
    assert found.allocationTags["kubernetes.io/meta/podName"] == "web-1"
    assert amounts(found.resourcePerAlloc) == {"vcore": 1000, "pods": 1}


def test_k93_a_release_names_its_pod() -> None:
    found = messages.release("uid-1", "app-1", TerminationType.TIMEOUT, "uid-1-0", "why")
    assert (found.allocationKey, found.applicationID, found.UUID) == ("uid-1", "app-1", "uid-1-0")
    assert (found.terminationType, found.message) == (TerminationType.TIMEOUT, "why")
    assert messages.release("uid-1").terminationType == TerminationType.STOPPED_BY_RM
    with pytest.raises(ValueError, match="names its pod"):
        messages.release("", "app-1")


def test_k93_the_release_of_an_ask_names_pod_and_application() -> None:
    found = messages.release_ask("uid-1", "app-1")
    assert (found.allocationKey, found.applicationID, found.partitionName) == (
        "uid-1",
        "app-1",
        "default",
    )
    for uid, application_id in (("", "app-1"), ("uid-1", "")):
        with pytest.raises(ValueError, match="names its pod and its application"):
            messages.release_ask(uid, application_id)


def test_a_request_without_releases_has_none() -> None:
    assert not messages.allocations(SETTINGS).HasField("releases")


# -- nodes -----------------------------------------------------------------------------------------


def test_k94_a_new_node_is_closed() -> None:
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "large",
        "topology.kubernetes.io/zone": "z1",
        "topology.kubernetes.io/region": "r1",
        "other": "x",
    }
    found = messages.node_created(node(labels=labels), SETTINGS)
    assert (found.nodeID, found.action) == ("n1", NodeInfo.CREATE_DRAIN)
    assert amounts(found.schedulableResource) == {"vcore": 4000, "memory": 8 << 30, "pods": 110}
    assert not found.HasField("occupiedResource")
    assert dict(found.attributes) == {
        "si/hostname": "n1",
        "si/rackname": "/rack-default",
        "si/arch": "amd64",
        "si/os": "linux",
        "si/instance-type": "large",
        "si/zone": "z1",
        "si/region": "r1",
        "ready": "true",
    }


def test_k94_attributes_by_their_old_labels_and_by_a_setting() -> None:
    labels = {
        "beta.kubernetes.io/arch": "arm64",
        "beta.kubernetes.io/os": "linux",
        "failure-domain.beta.kubernetes.io/zone": "z1",
        "failure-domain.beta.kubernetes.io/region": "r1",
        "machine": "m1",
    }
    found = messages.node_created(
        node(labels=labels), replace(SETTINGS, instance_type_label="machine")
    )
    names = ("si/arch", "si/os", "si/zone", "si/region", "si/instance-type")
    assert [found.attributes[name] for name in names] == ["arm64", "linux", "z1", "r1", "m1"]


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_k95_a_node_that_is_not_ready_says_so(status: str) -> None:
    conditions = ({"type": "Ready", "status": status},)
    assert (
        messages.node_created(node(conditions=conditions), SETTINGS).attributes["ready"] == "false"
    )
    assert messages.node_created(node(conditions=()), SETTINGS).attributes["ready"] == "false"


def test_k94_what_happens_to_a_node() -> None:
    updated = messages.node_updated(node(allocatable={"cpu": "8"}), SETTINGS)
    assert (updated.action, amounts(updated.schedulableResource)) == (
        NodeInfo.UPDATE,
        {"vcore": 8000},
    )
    assert updated.attributes["si/hostname"] == "n1"
    assert messages.node_drained("n1").action == NodeInfo.DRAIN_NODE
    assert messages.node_opened("n1").action == NodeInfo.DRAIN_TO_SCHEDULABLE
    assert messages.node_removed("n1").action == NodeInfo.DECOMISSION


# -- the core takes them ---------------------------------------------------------------------------


def answers(outputs: list[Any], kind: type) -> list[Any]:
    return [message for _, message in outputs if isinstance(message, kind)]


def test_the_core_takes_every_message() -> None:
    core = Scheduler()
    core.apply(messages.register(SETTINGS, {}), 0)
    one = node(allocatable={"cpu": "2", "memory": "4Gi", "pods": "3"})
    said = core.apply(messages.nodes(SETTINGS, [messages.node_created(one, SETTINGS)]), 1)
    assert [each.nodeID for each in answers(said, NodeResponse)[0].accepted] == ["n1"]

    real = pod(
        labels={APP_ID: "app-1"},
        annotations={
            DOMAIN + "task-groups": json.dumps([{**GROUP, "minMember": 1}]),
            DOMAIN + "task-group-name": "workers",
        },
        spec={"containers": [container(cpu="500m", memory="1Gi")]},
    )
    request = messages.add_application(application(real), force=False)
    said = core.apply(messages.applications(SETTINGS, [request]), 2)
    assert [each.applicationID for each in answers(said, ApplicationResponse)[0].accepted] == [
        "app-1"
    ]

    foreign = pod("dns", spec={"nodeName": "n1", "containers": [container(cpu="1")]})
    core.apply(messages.allocations(SETTINGS, existing=[messages.foreign_allocation(foreign)]), 3)
    core.apply(messages.nodes(SETTINGS, [messages.node_opened("n1")]), 4)

    flag = {
        "internal.yunikorn.apache.org/placeholder": "true",
        DOMAIN + "task-group-name": "workers",
    }
    placeholder = pod(
        "ph", annotations=flag, spec={"containers": [container(cpu="500m", memory="1Gi")]}
    )
    core.apply(
        messages.allocations(SETTINGS, asks=[messages.ask(placeholder, "app-1", SETTINGS)]), 5
    )
    (found,) = answers(core.schedule(6), AllocationResponse)[0].new
    assert (found.allocationKey, found.nodeID, found.placeholder) == ("uid-ph", "n1", True)

    core.apply(messages.allocations(SETTINGS, asks=[messages.ask(real, "app-1", SETTINGS)]), 7)
    (gone,) = answers(core.schedule(8), AllocationResponse)[0].released
    assert (gone.allocationKey, gone.terminationType) == (
        "uid-ph",
        TerminationType.PLACEHOLDER_REPLACED,
    )
    confirmed = messages.release("uid-ph", "app-1", TerminationType.PLACEHOLDER_REPLACED)
    said = core.apply(messages.allocations(SETTINGS, releases=[confirmed]), 9)
    (found,) = [each for message in answers(said, AllocationResponse) for each in message.new]
    assert (found.allocationKey, found.placeholder) == ("uid-web-1", False)

    said = core.apply(
        messages.allocations(
            SETTINGS, releases=[messages.release("uid-web-1", "app-1"), messages.release("uid-dns")]
        ),
        10,
    )
    released = [each for message in answers(said, AllocationResponse) for each in message.released]
    assert {each.allocationKey for each in released} == {"uid-web-1", "uid-dns"}
    core.apply(messages.applications(SETTINGS, remove=[messages.remove_application("app-1")]), 11)
    core.apply(messages.nodes(SETTINGS, [messages.node_removed("n1")]), 12)
    core.apply(messages.update_configuration(SETTINGS), 13)
    assert core.notes == ()


def test_the_core_takes_running_pods_back() -> None:
    core = Scheduler()
    core.apply(messages.register(SETTINGS, {}), 0)
    core.apply(messages.nodes(SETTINGS, [messages.node_created(node(), SETTINGS)]), 1)
    running = pod(
        labels={APP_ID: "app-1", DOMAIN + "queue": "root.gone"},
        spec={"nodeName": "n1", "containers": [container(cpu="1")]},
    )
    request = messages.add_application(application(running), force=True)
    core.apply(messages.applications(SETTINGS, [request]), 2)
    existing = messages.allocation(running, "app-1", SETTINGS, originator=True)
    said = core.apply(messages.allocations(SETTINGS, existing=[existing]), 3)
    (echo,) = answers(said, AllocationResponse)[0].new
    assert (echo.allocationKey, echo.nodeID) == ("uid-web-1", "n1")
