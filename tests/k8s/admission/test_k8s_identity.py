"""Whose a pod is: application, queue, user, and what kind of pod it is (K7, K40, K41, K52 to K57)."""

from dataclasses import replace

import pytest

from quadriga.k8s.conversion import identity, keys
from quadriga.k8s.conversion.identity import User, application_id, queue_of, user_of
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import Pod, PriorityClass
from tests.k8s.decoded import decoded, pod

DOMAIN = "yunikorn.apache.org/"
APP_ID, QUEUE = DOMAIN + "app-id", DOMAIN + "queue"
SETTINGS = Settings()
UNIQUE = replace(SETTINGS, generate_unique_app_id=True)

#: the places of an application id and of a queue, the first one wins: (is it a label?, key)
APPLICATION_KEYS = (
    (True, APP_ID),
    (False, APP_ID),
    (True, "applicationId"),
    (True, "spark-app-selector"),
)
QUEUE_KEYS = ((True, QUEUE), (False, QUEUE), (True, "queue"))


def with_keys(places: tuple[tuple[bool, str], ...], *values: str) -> Pod:
    given = list(zip(places, values, strict=True))
    labels = {key: value for (is_label, key), value in given if is_label}
    return pod(labels=labels, annotations={k: value for (label, k), value in given if not label})


@pytest.mark.parametrize(
    ("keys", "first"),
    [
        *(pytest.param(APPLICATION_KEYS, n, id=f"K52 application, {n}") for n in range(4)),
        *(pytest.param(QUEUE_KEYS, n, id=f"K55 queue, {n}") for n in range(3)),
    ],
)
def test_k52_k55_the_first_key_with_a_value(keys: tuple[tuple[bool, str], ...], first: int) -> None:
    one = with_keys(keys, *("" if n < first else f"v{n}" for n in range(len(keys))))
    found = queue_of(one) if keys is QUEUE_KEYS else application_id(one, SETTINGS)
    assert found == f"v{first}"


def test_k7_k52_a_foreign_pod_has_no_application() -> None:
    foreign = pod(labels={APP_ID: "a"}, spec={"schedulerName": "default-scheduler"})
    assert not identity.is_ours(foreign, SETTINGS)
    assert application_id(foreign, SETTINGS) == ""
    settings = replace(SETTINGS, scheduler_names=("quadriga",))
    assert identity.is_ours(pod(spec={"schedulerName": "quadriga"}), settings)
    assert not identity.is_ours(pod(), settings)


def test_k53_k54_ids_of_pods_without_a_name() -> None:
    one = pod(labels={APP_ID: "team-uniqueautogen"}, uid="1234")
    assert application_id(one, SETTINGS) == "team-1234"
    inside = pod(labels={APP_ID: "a-uniqueautogen-b"})
    assert application_id(inside, SETTINGS) == "a-uniqueautogen-b"
    generated = identity.unnamed_application_id("team", "", UNIQUE)
    assert generated == "team-uniqueautogen"
    assert application_id(pod(labels={APP_ID: generated}, uid="7"), UNIQUE) == "team-7"
    assert application_id(pod("a"), SETTINGS) == "yunikorn-team-autogen"
    assert application_id(pod("b"), SETTINGS) == "yunikorn-team-autogen"
    assert application_id(pod(namespace=""), SETTINGS) == "yunikorn-default-autogen"
    uid = "0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f"
    each = application_id(pod(namespace="n" * 40, uid=uid), UNIQUE)
    assert each == "n" * 26 + "-" + uid
    assert len(each) == 63, "a generated id is a label"
    assert application_id(pod(namespace="n" * 63), SETTINGS) == "yunikorn-" + "n" * 54


def test_k56_the_losers_of_several_keys_are_named() -> None:
    labels = {APP_ID: "a", "applicationId": "b", "spark-app-selector": "a", "queue": "root.x"}
    problem = identity.ambiguity(pod(labels=labels, annotations={QUEUE: "root.y", APP_ID: "c"}))
    assert (problem.reason, problem.action) == ("Scheduling", "Scheduling")
    assert problem.note == (
        f"the pod has several application ids: 'a' of label {APP_ID} is used, "
        f"ignored: 'c' of annotation {APP_ID}, 'b' of label applicationId; "
        f"the pod has several queues: 'root.y' of annotation {QUEUE} is used, "
        "ignored: 'root.x' of label queue"
    )
    assert identity.ambiguity(with_keys(APPLICATION_KEYS, "a", "a", "a", "")) is None
    assert identity.ambiguity(pod()) is None
    assert queue_of(pod()) == "", "there is no default queue"


USER_INFO = DOMAIN + "user.info"


@pytest.mark.parametrize(
    ("text", "user"),
    [
        ('{"user": "ann", "groups": ["dev", "ops"]}', User("ann", ("dev", "ops"))),
        ('{"user": "ann"}', User("ann")),
        ('{"User": "ann", "GROUPS": null, "uid": 7}', User("ann")),
        ('{"user": "", "groups": ["dev"]}', User("nobody", ("dev",))),
        ('{"user": null}', User("nobody")),
        ("{}", User("nobody")),
        ("", User("nobody")),
        (None, User("nobody")),
    ],
)
def test_k57_user_and_groups(text: str | None, user: User) -> None:
    found = user_of(pod(annotations={} if text is None else {USER_INFO: text}))
    assert (found.user, found.problem) == (user, None)


@pytest.mark.parametrize(
    "text",
    [
        *("ann", '{"user": "ann"', "[]", "null", "7", '{"user": 7}', '{"user": ["ann"]}'),
        *('{"user": "ann", "groups": "dev"}', '{"user": "ann", "groups": [1]}', "[" * 100_000),
    ],
)
def test_k57_what_cannot_be_read_is_nobody_with_a_warning(text: str) -> None:
    found = user_of(pod(annotations={USER_INFO: text}))
    assert (found.user, found.problem.reason) == (User("nobody", ()), "Scheduling")
    assert USER_INFO in found.problem.note
    assert len(found.problem.note) < 600


def test_k57_k168_the_old_label_names_the_user_where_the_annotation_does_not() -> None:
    old = {DOMAIN + "username": "finance.test"}
    found = user_of(pod(labels=old))
    assert (found.user, found.problem) == (User("finance.test"), None)
    assert user_of(pod(labels=old, annotations={USER_INFO: '{"user": "ann"}'})).user == User("ann")
    unreadable = user_of(pod(labels=old, annotations={USER_INFO: "ann"}))
    assert unreadable.user == User("nobody"), "a claim that admission has not seen"
    # admission leaves pods of the scheduler alone, so their old label says nothing
    labels = {DOMAIN + "username": "root", "app": "yunikorn"}
    assert user_of(pod(labels=labels)).user == User("nobody")


FLAG = "internal.yunikorn.apache.org/placeholder"


RESUMED = "internal.yunikorn.apache.org/gang-resumed"


@pytest.mark.parametrize(
    ("labels", "annotations", "is_one"),
    [
        ({}, {FLAG: "true"}, True),
        ({}, {DOMAIN + "placeholder": "T"}, True),
        ({"placeholder": "1"}, {}, True),
        ({}, {}, False),
        *(({}, {FLAG: text}, False) for text in ("false", "0", "", "yes", "tRUE")),
        ({"placeholder": "true"}, {FLAG: "false"}, False),  # the new name wins
    ],
)
def test_k40_the_placeholder_flag_by_its_new_and_its_old_names(
    labels: dict[str, str], annotations: dict[str, str], is_one: bool
) -> None:
    assert identity.is_placeholder(pod(labels=labels, annotations=annotations)) is is_one


def test_k40_k41_k46_k66_k87_k90_what_the_annotations_of_a_pod_say() -> None:
    assert identity.is_resumed(pod(annotations={RESUMED: "true"}))
    assert not identity.is_resumed(pod(annotations={RESUMED: "false"}))
    assert not identity.is_resumed(pod())
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}
    assert identity.is_static(pod(ownerReferences=[owner]))
    assert not identity.is_static(pod(ownerReferences=[{**owner, "kind": "ReplicaSet"}]))
    assert not identity.is_static(pod())
    deleted = {"deletionTimestamp": "2026-01-02T03:04:06Z"}
    assert identity.is_being_deleted_unplaced(pod(**deleted))
    assert not identity.is_being_deleted_unplaced(pod(spec={"nodeName": "n1"}, **deleted))
    assert not identity.is_being_deleted_unplaced(pod())
    one = pod(annotations={DOMAIN + "task-group-name": "g", FLAG: "true"})
    off = replace(SETTINGS, disable_gang_scheduling=True)
    assert identity.task_group_name(one, SETTINGS) == "g"
    assert identity.task_group_name(one, off) == ""
    assert identity.task_group_name(pod(), SETTINGS) == ""
    assert identity.is_placeholder(one)
    assert identity.may_preempt(pod())
    assert identity.may_preempt(pod(spec={"preemptionPolicy": "PreemptLowerPriority"}))
    assert not identity.may_preempt(pod(spec={"preemptionPolicy": "Never"}))


ALLOW = DOMAIN + "allow-preemption"


@pytest.mark.parametrize(
    ("own", "of_class", "allowed"),
    [
        (None, None, True),
        (None, "", True),
        (None, "true", True),
        (None, "false", False),
        (None, "no", True),
        ("true", "false", True),
        ("false", "true", False),
        ("false", None, False),
        ("True", "false", False),
        ("no", "true", True),
    ],
)
def test_k87_the_pod_says_whether_it_may_be_preempted_else_its_class(
    own: str | None, of_class: str | None, allowed: bool
) -> None:
    """ "" is a class that says nothing."""
    one = pod(annotations={} if own is None else {ALLOW: own})
    annotations = {ALLOW: of_class} if of_class else {}
    manifest = {"metadata": {"name": "c", "annotations": annotations}}
    found = None if of_class is None else decoded(PriorityClass, manifest)
    assert identity.may_be_preempted(one, found) is allowed


#: the name here and the key, in the domain of YuniKorn
OF_YUNIKORN = """
    APP_ID app-id  QUEUE queue  TASK_GROUP_NAME task-group-name  TASK_GROUPS task-groups
    POLICY_PARAMETERS schedulingPolicyParameters  USER_INFO user.info  ALLOW_PREEMPTION allow-preemption
    OLD_PLACEHOLDER placeholder  PARENT_QUEUE parentqueue  NAMESPACE_QUOTA namespace.quota
    NAMESPACE_GUARANTEED namespace.guaranteed  NAMESPACE_MAX_APPS namespace.maxApps
    NAMESPACE_MAX_CPU namespace.max.cpu  NAMESPACE_MAX_MEMORY namespace.max.memory
    NAMESPACE_ENABLE namespace.enableYuniKorn  NAMESPACE_GENERATE_APP_ID namespace.generateAppId
""".split()
#: and as a whole
OTHERS = """
    OLD_APP_ID applicationId  SPARK_APP_ID spark-app-selector  OLD_QUEUE queue
    OLD_PLACEHOLDER_LABEL placeholder  PLACEHOLDER internal.yunikorn.apache.org/placeholder
    GANG_RESUMED internal.yunikorn.apache.org/gang-resumed
""".split()


def test_k40_to_k42_the_keys_are_those() -> None:
    written = dict(zip(OTHERS[::2], OTHERS[1::2], strict=True))
    for name, key in zip(OF_YUNIKORN[::2], OF_YUNIKORN[1::2], strict=True):
        written[name] = f"yunikorn.apache.org/{key}"
    assert {name: key for name, key in vars(keys).items() if name in written} == written
