"""Messages to the core (K6, K8, K45, K46, K87, K91, K93, K94)."""

import json
from dataclasses import replace
from typing import Any

import pytest

from quadriga import si
from quadriga.k8s.conversion import applications, messages
from quadriga.k8s.conversion.applications import ApplicationMetadata
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import Namespace, Pod, PriorityClass
from quadriga.k8s.shim.model import order_of
from tests.k8s.decoded import container, decoded, namespace, node, pod
from tests.k8s.small_cluster import node_affinity

DOMAIN = "yunikorn.apache.org/"
APP_ID = DOMAIN + "app-id"
#: 2026-01-02T03:04:05Z
CREATED = "1767323045"
SETTINGS = Settings()
FLAG = {"internal.yunikorn.apache.org/placeholder": "true"}
GROUP = {"name": "workers", "minMember": 2, "minResource": {"cpu": "500m", "memory": "1Gi"}}


def application(
    one: Pod | None = None, where: Namespace | None = None, settings: Settings = SETTINGS
) -> ApplicationMetadata:
    return applications.read(one or pod(labels={APP_ID: "app-1"}), where, settings)


def amounts(resource: si.Resource) -> dict[str, int]:
    return {name: quantity.value for name, quantity in resource.resources.items()}


def test_k6_k8_k49_the_registration_and_the_configuration() -> None:
    blue = replace(SETTINGS, cluster_id="prod", policy_group="blue", queues="q", extra={"a": "b"})
    for request in (messages.register(blue, {"version": "1"}), messages.update_configuration(blue)):
        assert (request.rmID, request.policyGroup, request.config) == ("prod", "blue", "q")
        assert dict(request.extraConfig) == {"a": "b", "si.stateNames": "yunikorn"}
    request = messages.register(SETTINGS, {"version": "1"})
    assert (request.version, dict(request.buildInfo)) == ("1.5", {"version": "1"})


def test_k45_an_application_without_a_gang() -> None:
    one = pod(
        labels={APP_ID: "app-1", DOMAIN + "queue": "root.a"},
        annotations={DOMAIN + "user.info": '{"user": "ann", "groups": ["dev"]}'},
        spec={"imagePullSecrets": [{"name": "one"}, {"name": "two"}]},
    )
    request = messages.add_application(application(one), force=False)
    where = (request.applicationID, request.queueName, request.partitionName)
    assert where == ("app-1", "root.a", "default")
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
    assert (request.executionTimeoutMilliSeconds, request.gangSchedulingStyle) == (0, "Soft")


def test_k45_tags_of_the_namespace_of_time_and_the_force_flag() -> None:
    where = namespace(namespace_quota='{"cpu": "1"}', parentqueue="root.x")
    tags = messages.add_application(application(where=where), force=True).tags
    assert (tags["application.create.force"], tags["namespace.parentqueue"]) == ("true", "root.x")
    assert json.loads(tags["namespace.resourcequota"]) == {"resources": {"vcore": {"value": 1000}}}
    found = application(pod(namespace="", creationTimestamp="soon"))
    assert (found.namespace, found.created, found.tags["namespace"]) == ("default", None, "default")
    assert not found.tags.keys() & {DOMAIN + "creationTime", "imagePullSecrets"}


def gang(parameters: str) -> ApplicationMetadata:
    annotations = {
        DOMAIN + "task-groups": json.dumps([GROUP]),
        DOMAIN + "schedulingPolicyParameters": parameters,
    }
    return application(pod(labels={APP_ID: "app-1"}, annotations=annotations))


def test_k64_k67_k77_a_gang_and_what_is_none_or_has_resumed() -> None:
    found = gang("placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard")
    request = messages.add_application(found, force=False)
    assert amounts(request.placeholderAsk) == {"vcore": 1000, "memory": 2 << 30, "pods": 2}
    assert (request.executionTimeoutMilliSeconds, request.gangSchedulingStyle) == (30_000, "Hard")
    assert json.loads(request.tags[DOMAIN + "task-groups"]) == [GROUP]
    said = "placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard"
    assert request.tags[DOMAIN + "schedulingPolicyParameters"] == said
    limited = "placeholderTimeoutInSeconds=30"
    alone = application(pod(annotations={DOMAIN + "schedulingPolicyParameters": limited}))
    resumed = messages.add_application(gang(limited), force=False, gang=False)
    for request in (messages.add_application(alone, force=False), resumed):
        assert not request.HasField("placeholderAsk")
        assert request.executionTimeoutMilliSeconds == 0


@pytest.mark.parametrize(
    ("seconds", "milliseconds"),
    # one that is longer than its bound is none (Q16)
    [(0, 0), (-1, -1000), (31_536_000, 31_536_000_000), (2**62, 0), (-(2**62), -(2**63) + 1)],
)
def test_k67_the_timeout_stays_within_64_bits(seconds: int, milliseconds: int) -> None:
    request = messages.add_application(gang(f"placeholderTimeoutInSeconds={seconds}"), force=False)
    assert request.executionTimeoutMilliSeconds == milliseconds


HALF_A_MINUTE = "placeholderTimeoutInSeconds=30"


@pytest.mark.parametrize(
    ("policy", "tags"),
    [
        (HALF_A_MINUTE, {"wait.limit": "30", "elastic": "true"}),
        (f"{HALF_A_MINUTE} gangSchedulingStyle=Soft", {"wait.limit": "30", "elastic": "true"}),
        (f"{HALF_A_MINUTE} gangSchedulingStyle=Hard", {"wait.limit": "30"}),
        ("gangSchedulingStyle=Soft", {}),
        ("placeholderTimeoutInSeconds=-1", {}),
        (f"placeholderTimeoutInSeconds={10**9}", {}),
    ],
)
def test_k76_a_timeout_of_the_manifest_bounds_the_wait_of_a_gang_that_holds_nothing(
    policy: str, tags: dict[str, str]
) -> None:
    found = messages.add_application(gang(policy), force=False).tags
    assert {name[5:]: text for name, text in found.items() if name[:5] == "gang."} == tags


def test_k58_problems_come_with_the_application_that_real_pods_create() -> None:
    one = pod(annotations={DOMAIN + "user.info": "ann", DOMAIN + "task-groups": "none"})
    found = application(one, namespace(namespace_maxApps="many"))
    assert [each.reason for each in found.problems] == ["Scheduling", "GangScheduling"]
    assert (len(found.namespace_problems), found.groups) == (1, ())


OTHER_QUEUE = "queue 'root.b', the application has 'root.a'"
OTHER_USER = "user 'bob', the application has 'ann'"


@pytest.mark.parametrize(
    ("labels", "user", "note"),
    [
        ({}, None, None),
        ({DOMAIN + "queue": "root.a"}, '{"user": "ann"}', None),
        ({"queue": "root.b"}, None, OTHER_QUEUE),
        ({}, '{"user": "bob"}', OTHER_USER),
        ({}, '{"user": "ann", "groups": ["dev"]}', OTHER_USER.replace("'bob'", "'ann' of dev")),
        ({"queue": "root.b"}, '{"user": "bob"}', f"{OTHER_QUEUE}; {OTHER_USER}"),
    ],
)
def test_k58_a_later_pod(labels: dict[str, str], user: str | None, note: str | None) -> None:
    info = DOMAIN + "user.info"
    queue = {APP_ID: "app-1", DOMAIN + "queue": "root.a"}
    first = application(pod(labels=queue, annotations={info: '{"user": "ann"}'}))
    later = pod(labels=labels, annotations={info: user} if user else {})
    found = applications.deviation(later, first)
    assert (found and found.note) == (note and f"ignored of the pod: {note}")


def test_k59_the_order_of_pods() -> None:
    made = (
        (5, "b", "team"),
        (5, "a", "zoo"),
        (1, "first", "team"),
        (5, "a", "team"),
        (7, "late", "team"),
    )
    pods = [
        pod(name, namespace=space, creationTimestamp=f"2026-01-02T03:04:{second:02}Z")
        for second, name, space in made
    ]
    order = [(each.metadata.namespace, each.metadata.name) for each in sorted(pods, key=order_of)]
    assert order == [(s, name) for _, name, s in (made[2], made[3], made[0], made[1], made[4])]


def test_k87_k66_an_ask() -> None:
    one = pod(
        labels={"app": "x", "app.kubernetes.io/name": "y"},
        annotations={DOMAIN + "task-group-name": "workers"},
        spec={"containers": [container(cpu="1", memory="1Ki")], "priority": 7},
    )
    request = messages.ask(one, "app-1", SETTINGS)
    assert (request.allocationKey, request.applicationID) == ("uid-web-1", "app-1")
    assert (request.partitionName, request.maxAllocations) == ("default", 1)
    assert amounts(request.resourceAsk) == {"vcore": 1000, "memory": 1024, "pods": 1}
    assert (request.priority, request.taskGroupName) == (7, "workers")
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
    no_gangs = replace(SETTINGS, disable_gang_scheduling=True)
    assert messages.ask(one, "app-1", no_gangs).taskGroupName == ""


@pytest.mark.parametrize(
    ("text", "bound", "tags"),
    [
        ("90", None, {"expected.runtime": "90"}),
        ("1h0.5s", 7200, {"expected.runtime": "3601", "expected.runtime.bound": "7200"}),
        ("", 60, {"expected.runtime.bound": "60"}),
        ("soon", None, {"expected.runtime": "soon"}),  # the core notes that it is ignored
        ("-5m", None, {"expected.runtime": "-300"}),
    ],
)
def test_q11_a_pod_tells_its_run_time(text: str, bound: int | None, tags: dict[str, str]) -> None:
    spec = {"activeDeadlineSeconds": bound} if bound else {}
    annotations = {"quadriga/expected-runtime": text} if text else {}
    one = pod(labels={APP_ID: "app-1"}, annotations=annotations, spec=spec)
    for said in (
        messages.ask(one, "a", SETTINGS).tags,
        messages.allocation(one, "a", SETTINGS).allocationTags,
    ):
        assert {name: value for name, value in said.items() if name.startswith("expected")} == tags
    gang = annotations | {DOMAIN + "task-groups": json.dumps([GROUP])}
    for given, there in ((gang, tags), (annotations, {})):  # for its placeholders
        told = application(pod(labels={APP_ID: "app-1"}, annotations=given, spec=spec)).tags
        assert {name: value for name, value in told.items() if name.startswith("expected")} == there


def test_k87_flags_and_preemption_of_an_ask() -> None:
    assert messages.ask(pod(annotations=FLAG), "a", SETTINGS).placeholder
    assert messages.ask(pod(), "a", SETTINGS, originator=True).Originator
    assert messages.ask(pod(), "a", SETTINGS).priority == 0
    assert messages.ask(pod(spec={"priority": -5}), "a", SETTINGS).priority == -5
    annotations = {DOMAIN + "allow-preemption": "false"}
    protected = decoded(PriorityClass, {"metadata": {"annotations": annotations}})
    never = pod(spec={"preemptionPolicy": "Never"})
    policy = messages.ask(never, "a", SETTINGS, priority_class=protected).preemptionPolicy
    assert (policy.allowPreemptSelf, policy.allowPreemptOther) == (False, False)
    policy = messages.allocation(pod(), "a", SETTINGS, priority_class=protected).preemptionPolicy
    assert (policy.allowPreemptSelf, policy.allowPreemptOther) == (False, True)


def daemon(*terms: dict[str, Any], kind: str = "DaemonSet") -> Pod:
    return pod(
        ownerReferences=[{"apiVersion": "apps/v1", "kind": kind, "name": "d", "uid": "u"}],
        spec={"affinity": node_affinity(*terms)},
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
    assert messages.ask(one, "a", SETTINGS).tags.get(DOMAIN + "requiredNode") == required


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


def test_k93_a_release_names_its_pod_and_of_an_ask_its_application() -> None:
    found = messages.release("uid-1", "app-1", si.TerminationType.TIMEOUT, "uid-1-0", "why")
    assert (found.allocationKey, found.applicationID, found.UUID) == ("uid-1", "app-1", "uid-1-0")
    assert (found.terminationType, found.message) == (si.TerminationType.TIMEOUT, "why")
    assert messages.release("uid-1").terminationType == si.TerminationType.STOPPED_BY_RM
    with pytest.raises(ValueError, match="names its pod"):
        messages.release("", "app-1")
    found = messages.release_ask("uid-1", "app-1")
    named = (found.allocationKey, found.applicationID, found.partitionName)
    assert named == ("uid-1", "app-1", "default")
    for uid, application_id in (("", "app-1"), ("uid-1", "")):
        with pytest.raises(ValueError, match="names its pod and its application"):
            messages.release_ask(uid, application_id)
    assert not messages.allocations(SETTINGS).HasField("releases")


def attributes(labels: dict[str, str], settings: Settings = SETTINGS, **more: Any) -> Any:
    return messages.node_created(node(labels=labels, **more), settings).attributes


def test_k94_a_new_node_is_closed_and_what_happens_to_it() -> None:
    found = messages.node_created(node(), SETTINGS)
    assert (found.nodeID, found.action) == ("n1", si.NodeInfo.CREATE_DRAIN)
    assert amounts(found.schedulableResource) == {"vcore": 4000, "memory": 8 << 30, "pods": 110}
    assert not found.HasField("occupiedResource")
    updated = messages.node_updated(node(allocatable={"cpu": "8"}), SETTINGS)
    size = amounts(updated.schedulableResource)
    assert (updated.action, size) == (si.NodeInfo.UPDATE, {"vcore": 8000})
    assert updated.attributes["si/hostname"] == "n1"
    assert messages.node_drained("n1").action == si.NodeInfo.DRAIN_NODE
    assert messages.node_opened("n1").action == si.NodeInfo.DRAIN_TO_SCHEDULABLE
    assert messages.node_removed("n1").action == si.NodeInfo.DECOMISSION


def test_k94_k95_the_attributes_of_a_node() -> None:
    always = {"si/hostname": "n1", "si/rackname": "/rack-default", "ready": "true"}
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "large",
        "topology.kubernetes.io/zone": "z1",
        "topology.kubernetes.io/region": "r1",
    }
    names = ("si/arch", "si/os", "si/instance-type", "si/zone", "si/region")
    expected = always | dict(zip(names, labels.values(), strict=True))
    assert attributes({**labels, "other": "x"}) == expected
    old = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "machine": "large",
        "failure-domain.beta.kubernetes.io/zone": "z1",
        "failure-domain.beta.kubernetes.io/region": "r1",
    }
    assert attributes(old, replace(SETTINGS, instance_type_label="machine")) == expected
    for status in ("False", "Unknown"):
        conditions = ({"type": "Ready", "status": status},)
        assert attributes({}, conditions=conditions)["ready"] == "false"
    assert attributes({}, conditions=())["ready"] == "false"
