"""Who runs at whose cost: application IDs of namespaces, users, and claims that nobody checks (K52, K58, K169)."""

import json
from typing import Any

import pytest
from k8s_queues import QUEUES
from k8s_world import World, gang

from quadriga.k8s.admission.registration import Service, configurations
from quadriga.k8s.conversion.settings import Settings, from_maps
from quadriga.k8s.objects import ConfigMap
from quadriga.si import ApplicationRequest
from tests.k8s.admission_cases import CASES, USER_INFO, Case
from tests.k8s.cel_or_skip import evaluate
from tests.k8s.test_k8s_manifests import objects

PER_NAMESPACE = {"service.applicationIdsPerNamespace": "true"}


def user(name: str) -> dict[str, str]:
    return {USER_INFO: json.dumps({"user": name, "groups": ["g"]})}


def cluster(**values: str) -> World:
    world = World(values=values, queues=QUEUES)
    world.add_namespace("team-a")
    world.add_namespace("team-b")
    world.add_node("n1", cpu="16")
    return world


def added(world: World) -> dict[str, str]:
    requests = [each for each in world.sent if isinstance(each, ApplicationRequest)]
    return {new.applicationID: new.ugi.user for each in requests for new in each.new}


def shared(world: World, uid: str) -> list[str]:
    found = [each for each in world.records if each.uid == uid]
    return [each.note for each in found if each.reason == "ApplicationShared"]


def test_k52_one_id_in_two_namespaces_is_two_applications_by_a_setting() -> None:
    world = cluster(**PER_NAMESPACE)
    world.add_pod("b", "etl", namespace="team-b", annotations=user("bob"))
    guest = world.add_pod("a", "etl", namespace="team-a", annotations=user("ann"))
    world.add_pod("unnamed", namespace="team-a")
    world.run(2)
    assert added(world) == {
        "team-b.etl": "bob",
        "team-a.etl": "ann",
        "team-a.yunikorn-team-a-autogen": "nobody",
    }
    assert world.phases() == {"Running": 3}
    assert shared(world, guest.uid) == []
    world.restart()
    world.run(2)
    world.check()


def test_k52_no_id_of_one_namespace_is_that_of_another() -> None:
    world = cluster(**PER_NAMESPACE)
    world.add_pod("b", "b.c", namespace="team-a")
    world.add_pod("c", "team-a.b.c", namespace="team-b")
    world.add_pod("d", "yunikorn-team-a-autogen", namespace="team-b")
    world.run(2)
    assert {*added(world)} == {"team-a.b.c", "team-b.team-a.b.c", "team-b.yunikorn-team-a-autogen"}


def test_k69_placeholders_name_the_application_as_its_pods_do() -> None:
    world = cluster(**PER_NAMESPACE)
    world.add_node("n1", cpu="1")
    groups = [gang("w", 2)]
    for n in range(2):
        world.add_pod(f"m-{n}", "etl", namespace="team-a", group="w", groups=groups)
    world.run(2)
    assert len(world.placeholders) == 2
    for each in world.placeholders:
        assert each.metadata.labels["yunikorn.apache.org/app-id"] == "etl"
        assert each.metadata.name.startswith("tg-etl-w-")
    world.add_node("n2")
    world.run(2)
    assert world.phases("m-") == {"Running": 2}, "each has taken a placeholder's place"
    assert world.app_state("team-a.etl") == "Running"


def test_k58_without_the_setting_pods_of_another_namespace_and_of_nobody_are_warned() -> None:
    world = cluster()
    world.add_pod("b", "etl", namespace="team-b", annotations=user("bob"))
    guest = world.add_pod("a", "etl", namespace="team-a", annotations=user("bob"))
    own = world.add_pod("b-2", "etl", namespace="team-b", annotations=user("bob"))
    world.run(2)
    assert added(world) == {"etl": "bob"}, "as in YuniKorn"
    (note,) = shared(world, guest.uid)
    assert "created in namespace 'team-b', the pod in 'team-a'" in note
    assert "service.applicationIdsPerNamespace" in note
    assert shared(world, own.uid) == []
    world = cluster()
    world.add_pod("b", "etl", annotations=user("admin"))
    guest = world.add_pod("a", "etl")
    world.run(2)
    (note,) = shared(world, guest.uid)
    assert "its user is 'admin' of g, the pod has no annotation" in note
    assert "is of 'nobody'" in note


def test_k58_a_second_gang_of_another_namespace_is_told_that_it_gets_no_placeholders() -> None:
    world = cluster()
    world.add_node("n1", cpu="1")
    guests = []
    for namespace, members in (("team-b", 2), ("team-a", 3)):
        groups = [gang("w", members)]
        guests = [
            world.add_pod(f"{namespace}-{n}", "etl", namespace=namespace, group="w", groups=groups)
            for n in range(members)
        ]
        world.run(2)
    assert [each.metadata.namespace for each in world.placeholders] == ["team-b"] * 2
    for guest in guests:
        (note,) = shared(world, guest.uid)
        assert "'team-a', and its gang gets no placeholders of its own; service." in note


def mutating(version: tuple[int, int], **more: Any) -> list[dict[str, Any]]:
    target = Service("quadriga", "yunikorn-admission-controller-service")
    (found, _) = configurations(Settings(**more), "quadriga", target, version, b"bundle")
    return list(found["webhooks"])


def test_k169_a_webhook_that_does_not_answer_refuses_unfounded_claims_only_by_a_setting() -> None:
    (plain,) = mutating((1, 36))
    claims, mutate = mutating((1, 36), admission_fails_closed=True)
    assert mutate == plain
    assert (claims["failurePolicy"], mutate["failurePolicy"]) == ("Fail", "Ignore")
    assert claims["namespaceSelector"] == mutate["namespaceSelector"]
    assert claims["matchConditions"][:-1] == mutate["matchConditions"]
    assert len(mutating((1, 27), admission_fails_closed=True)) == 1, "it knows no conditions"


def is_unfounded(case: Case) -> bool:
    """What the server evaluates before it calls the webhook."""
    claims, _ = mutating((1, 36), **case.settings, admission_fails_closed=True)
    variables: dict[str, Any] = {
        "request": {
            "operation": case.operation,
            "resource": {"resource": case.resource},
            "userInfo": {"username": case.user, "groups": list(case.groups)},
        },
        "object": case.object(),
        "oldObject": case.old(),
    }
    return all(evaluate(each["expression"], variables) for each in claims["matchConditions"])


#: admission looks at these; a claim elsewhere is refused as well, because conditions see no settings of a namespace
SERVED = [
    case
    for case in CASES
    if case.namespace == "team"
    and not case.namespace_annotations
    and not {"process_namespaces", "bypass_namespaces"} & case.settings.keys()
    and case.resource in ("pods", "deployments", "cronjobs")
]


@pytest.mark.parametrize("case", SERVED, ids=lambda case: case.name)
def test_k169_an_unfounded_claim_is_one_that_the_webhook_would_deny(case: Case) -> None:
    denied = case.denied.startswith("user ") or "cannot be changed" in case.denied
    assert is_unfounded(case) is denied


def test_the_installed_settings_keep_namespaces_apart_and_fail_closed() -> None:
    (found,) = [each for each in objects() if each["kind"] == "ConfigMap"]
    reading = from_maps(None, ConfigMap(data=found["data"]))
    assert reading.settings is not None
    assert reading.settings.ids_per_namespace
    assert reading.settings.admission_fails_closed
    assert not Settings().ids_per_namespace, "that of YuniKorn's ConfigMaps"
