"""Whose a pod is: application, queue, user, and what kind of pod it is (K7, K40, K41, K52 to K57)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quadriga.k8s.conversion import identity
from quadriga.k8s.conversion.identity import User, application_id, queue_of, user_of
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import PriorityClass
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


def with_keys(places: tuple[tuple[bool, str], ...], *values: str) -> tuple[dict[str, str], ...]:
    """Labels and annotations with a value for each place."""
    given = list(zip(places, values, strict=True))
    return (
        {key: value for (is_label, key), value in given if is_label},
        {key: value for (is_label, key), value in given if not is_label},
    )


@pytest.mark.parametrize("first", range(len(APPLICATION_KEYS)))
def test_k52_the_first_key_that_is_not_empty_is_the_application(first: int) -> None:
    values = [f"app-{index}" for index in range(len(APPLICATION_KEYS))]
    for empty in range(first):
        values[empty] = ""
    labels, annotations = with_keys(APPLICATION_KEYS, *values)
    assert application_id(pod(labels=labels, annotations=annotations), SETTINGS) == f"app-{first}"


def test_k52_the_label_wins_over_the_annotation() -> None:
    one = pod(labels={APP_ID: "label"}, annotations={APP_ID: "annotation"})
    assert application_id(one, SETTINGS) == "label"


def test_k52_a_foreign_pod_has_no_application() -> None:
    foreign = pod(labels={APP_ID: "a"}, spec={"schedulerName": "default-scheduler"})
    assert not identity.is_ours(foreign, SETTINGS)
    assert application_id(foreign, SETTINGS) == ""


def test_k7_the_names_of_our_schedulers_are_a_setting() -> None:
    settings = replace(SETTINGS, scheduler_names=("quadriga",))
    assert identity.is_ours(pod(spec={"schedulerName": "quadriga"}), settings)
    assert not identity.is_ours(pod(), settings)


def test_k53_the_suffix_of_admission_becomes_the_uid() -> None:
    one = pod(labels={APP_ID: "team-uniqueautogen"}, uid="1234")
    assert application_id(one, SETTINGS) == "team-1234"
    inside = pod(labels={APP_ID: "a-uniqueautogen-b"})
    assert application_id(inside, SETTINGS) == "a-uniqueautogen-b"


def test_k54_pods_without_a_name_share_the_application_of_their_namespace() -> None:
    assert application_id(pod("a"), SETTINGS) == "yunikorn-team-autogen"
    assert application_id(pod("b"), SETTINGS) == "yunikorn-team-autogen"
    assert application_id(pod(namespace=""), SETTINGS) == "yunikorn-default-autogen"


def test_k54_or_have_one_each() -> None:
    uid = "0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f"
    one = pod(namespace="n" * 40, uid=uid)
    assert application_id(one, UNIQUE) == "n" * 26 + "-" + uid
    assert len(application_id(one, UNIQUE)) == 63


def test_k54_a_generated_id_is_a_label() -> None:
    assert application_id(pod(namespace="n" * 63), SETTINGS) == "yunikorn-" + "n" * 54


def test_k54_admission_has_no_uid_yet() -> None:
    generated = identity.unnamed_application_id("team", "", UNIQUE)
    assert generated == "team-uniqueautogen"
    assert application_id(pod(labels={APP_ID: generated}, uid="7"), UNIQUE) == "team-7"


@pytest.mark.parametrize("first", range(len(QUEUE_KEYS)))
def test_k55_the_first_key_that_is_not_empty_is_the_queue(first: int) -> None:
    values = [f"root.q{index}" for index in range(len(QUEUE_KEYS))]
    for empty in range(first):
        values[empty] = ""
    labels, annotations = with_keys(QUEUE_KEYS, *values)
    assert queue_of(pod(labels=labels, annotations=annotations)) == f"root.q{first}"


def test_k55_there_is_no_default_queue() -> None:
    assert queue_of(pod()) == ""


def test_k56_keys_with_the_same_value_are_not_ambiguous() -> None:
    labels, annotations = with_keys(APPLICATION_KEYS, "a", "a", "a", "")
    assert identity.ambiguity(pod(labels=labels, annotations=annotations)) is None
    assert identity.ambiguity(pod()) is None


def test_k56_the_losers_are_named() -> None:
    labels = {APP_ID: "a", "applicationId": "b", "spark-app-selector": "a", "queue": "root.x"}
    problem = identity.ambiguity(pod(labels=labels, annotations={QUEUE: "root.y", APP_ID: "c"}))
    assert problem is not None
    assert (problem.reason, problem.action) == ("Scheduling", "Scheduling")
    assert problem.note == (
        f"the pod has several application ids: 'a' of label {APP_ID} is used, "
        f"ignored: 'c' of annotation {APP_ID}, 'b' of label applicationId; "
        f"the pod has several queues: 'root.y' of annotation {QUEUE} is used, "
        "ignored: 'root.x' of label queue"
    )


# -- user ------------------------------------------------------------------------------------------

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
    ],
)
def test_k57_user_and_groups(text: str, user: User) -> None:
    found = user_of(pod(annotations={USER_INFO: text}))
    assert found.user == user
    assert found.problem is None


@pytest.mark.parametrize(
    "text",
    [
        *("ann", '{"user": "ann"', "[]", "null", "7", '{"user": 7}', '{"user": ["ann"]}'),
        *('{"user": "ann", "groups": "dev"}', '{"user": "ann", "groups": [1]}', "[" * 100_000),
    ],
)
def test_k57_what_cannot_be_read_is_nobody_with_a_warning(text: str) -> None:
    found = user_of(pod(annotations={USER_INFO: text}))
    assert found.user == User("nobody", ())
    assert found.problem is not None
    assert found.problem.reason == "Scheduling"
    assert USER_INFO in found.problem.note
    assert len(found.problem.note) < 600


def test_k57_without_the_annotation_it_is_nobody() -> None:
    assert user_of(pod()) == user_of(pod(annotations={USER_INFO: ""}))
    assert user_of(pod()).user == User("nobody")
    assert user_of(pod()).problem is None


def test_k57_the_old_label_names_the_user_where_the_annotation_does_not() -> None:
    old = {DOMAIN + "username": "finance.test"}
    assert user_of(pod(labels=old)).user == User("finance.test")
    assert user_of(pod(labels=old)).problem is None
    both = pod(labels=old, annotations={USER_INFO: '{"user": "ann"}'})
    assert user_of(both).user == User("ann")
    unreadable = user_of(pod(labels=old, annotations={USER_INFO: "ann"}))
    assert unreadable.user == User("nobody"), "a claim that admission has not seen"


def test_k168_admission_leaves_pods_of_the_scheduler_alone_so_their_old_label_says_nothing() -> (
    None
):
    labels = {DOMAIN + "username": "root", "app": "yunikorn"}
    assert user_of(pod(labels=labels)).user == User("nobody")


# -- kinds of pods ---------------------------------------------------------------------------------

FLAG = "internal.yunikorn.apache.org/placeholder"


def test_k40_the_placeholder_flag_by_its_new_and_its_old_names() -> None:
    assert identity.is_placeholder(pod(annotations={FLAG: "true"}))
    assert identity.is_placeholder(pod(annotations={DOMAIN + "placeholder": "T"}))
    assert identity.is_placeholder(pod(labels={"placeholder": "1"}))
    assert not identity.is_placeholder(pod())


@pytest.mark.parametrize("text", ["false", "0", "", "yes", "tRUE"])
def test_k40_any_other_text_is_no_flag(text: str) -> None:
    assert not identity.is_placeholder(pod(annotations={FLAG: text}))


def test_k40_the_new_name_of_the_flag_wins() -> None:
    one = pod(annotations={FLAG: "false"}, labels={"placeholder": "true"})
    assert not identity.is_placeholder(one)


def test_k41_a_resumed_gang() -> None:
    key = "internal.yunikorn.apache.org/gang-resumed"
    assert identity.is_resumed(pod(annotations={key: "true"}))
    assert not identity.is_resumed(pod(annotations={key: "false"}))
    assert not identity.is_resumed(pod())


def test_k66_without_gang_scheduling_a_pod_has_no_group_but_its_flag() -> None:
    one = pod(annotations={DOMAIN + "task-group-name": "g", FLAG: "true"})
    off = replace(SETTINGS, disable_gang_scheduling=True)
    assert identity.task_group_name(one, SETTINGS) == "g"
    assert identity.task_group_name(one, off) == ""
    assert identity.task_group_name(pod(), SETTINGS) == ""
    assert identity.is_placeholder(one)


def test_k46_a_pod_of_its_node_is_static() -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}
    assert identity.is_static(pod(ownerReferences=[owner]))
    assert not identity.is_static(pod(ownerReferences=[{**owner, "kind": "ReplicaSet"}]))
    assert not identity.is_static(pod())


def test_k90_a_pod_that_is_deleted_without_a_node_needs_none() -> None:
    deleted = {"deletionTimestamp": "2026-01-02T03:04:06Z"}
    assert identity.is_being_deleted_unplaced(pod(**deleted))
    assert not identity.is_being_deleted_unplaced(pod(spec={"nodeName": "n1"}, **deleted))
    assert not identity.is_being_deleted_unplaced(pod())


# -- preemption ------------------------------------------------------------------------------------

ALLOW = DOMAIN + "allow-preemption"


def priority_class(value: str | None) -> PriorityClass:
    annotations = {} if value is None else {ALLOW: value}
    return decoded(PriorityClass, {"metadata": {"name": "c", "annotations": annotations}})


@pytest.mark.parametrize(
    ("own", "of_class", "allowed"),
    [
        (None, None, True),
        (None, "true", True),
        (None, "false", False),
        (None, "no", True),
        ("true", "false", True),
        ("false", "true", False),
        ("True", "false", False),
        ("no", "true", True),
    ],
)
def test_k87_the_pod_says_whether_it_may_be_preempted_else_its_class(
    own: str | None, of_class: str | None, allowed: bool
) -> None:
    one = pod(annotations={} if own is None else {ALLOW: own})
    assert identity.may_be_preempted(one, priority_class(of_class)) is allowed


def test_k87_without_any_word_a_pod_may_be_preempted() -> None:
    assert identity.may_be_preempted(pod(), None)
    assert not identity.may_be_preempted(pod(annotations={ALLOW: "false"}), None)


def test_k87_the_policy_never_preempts_nobody() -> None:
    assert identity.may_preempt(pod())
    assert identity.may_preempt(pod(spec={"preemptionPolicy": "PreemptLowerPriority"}))
    assert not identity.may_preempt(pod(spec={"preemptionPolicy": "Never"}))
