"""How the API server hears of the webhook (K158)."""

from itertools import product
from typing import Any

import pytest

from quadriga.k8s.admission.registration import (
    Service,
    Version,
    configurations,
    register,
    server_version,
    unregister,
)
from quadriga.k8s.conversion.settings import Settings
from tests.k8s.admission_server import MemoryServer
from tests.k8s.cel_or_skip import evaluate

SERVICE = Service("quadriga", "yunikorn-admission-controller-service")
GROUP = "/apis/admissionregistration.k8s.io/v1/"
MUTATING = GROUP + "mutatingwebhookconfigurations/quadriga-admission"
VALIDATING = GROUP + "validatingwebhookconfigurations/quadriga-admission"


def webhooks(version: Version, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    both = configurations(
        Settings(**more), "quadriga", SERVICE, version, b"-----BEGIN CERTIFICATE-----"
    )
    (mutating,), (validating,) = (each["webhooks"] for each in both)
    return mutating, validating


@pytest.mark.parametrize("version", [(1, 20), (1, 21), (1, 28), (1, 36)])
def test_k158_scope_and_failure_policy(version: Version) -> None:
    mutating, validating = webhooks(version)
    for webhook, path in ((mutating, "/mutate"), (validating, "/validate-conf")):
        assert (webhook["failurePolicy"], webhook["sideEffects"]) == ("Ignore", "None")
        assert (webhook["admissionReviewVersions"], webhook["timeoutSeconds"]) == (["v1"], 2)
        assert webhook["clientConfig"]["service"] == {
            "namespace": "quadriga",
            "name": "yunikorn-admission-controller-service",
            "port": 9089,
            "path": path,
        }
        assert webhook["name"].count(".") >= 2
    found = {
        each
        for rule in mutating["rules"]
        for each in product(rule["apiGroups"], rule["resources"], rule["operations"])
    }
    names = {"": "pods replicationcontrollers", "batch": "jobs cronjobs"}
    names["apps"] = "deployments replicasets statefulsets daemonsets"
    assert found == {
        each
        for group, resources in names.items()
        for each in product([group], resources.split(), ("CREATE", "UPDATE"))
    }
    (rule,) = validating["rules"]
    assert (rule["resources"], rule["operations"]) == (["configmaps"], ["CREATE", "UPDATE"])


@pytest.mark.parametrize(
    ("version", "selects", "conditions"),
    [
        ((1, 20), False, False),
        ((1, 21), True, False),
        ((1, 27), True, False),
        ((1, 28), True, True),
    ],
)
def test_k158_what_each_version_knows(version: Version, selects: bool, conditions: bool) -> None:
    mutating, validating = webhooks(version)
    for webhook in (mutating, validating):
        assert ("namespaceSelector" in webhook) is selects
        assert ("matchConditions" in webhook) is conditions
    if selects:
        (left_out,) = mutating["namespaceSelector"]["matchExpressions"]
        assert (left_out["operator"], left_out["values"]) == ("NotIn", ["quadriga", "kube-system"])
        (own,) = validating["namespaceSelector"]["matchExpressions"]
        assert (own["operator"], own["values"]) == ("In", ["quadriga"])


@pytest.mark.parametrize(
    ("resource", "spec", "asked"),
    [
        ("pods", {}, True),
        ("pods", {"schedulerName": "default-scheduler"}, True),
        ("pods", {"schedulerName": "second"}, True),
        ("pods", {"schedulerName": "volcano"}, False),
        ("jobs", {"template": {"spec": {"schedulerName": "volcano"}}}, True),
    ],
)
def test_k158_pods_of_others_are_not_sent(resource: str, spec: dict[str, Any], asked: bool) -> None:
    mutating, _ = webhooks((1, 28), scheduler_names=("first", "second"))
    (condition,) = mutating["matchConditions"]
    variables = {"request": {"resource": {"resource": resource}}, "object": {"spec": spec}}
    assert evaluate(condition["expression"], variables) is asked


@pytest.mark.parametrize(("name", "asked"), [("yunikorn-configs", True), ("kube-root-ca", False)])
def test_k165_other_config_maps_are_not_sent(name: str, asked: bool) -> None:
    (condition,) = webhooks((1, 28))[1]["matchConditions"]
    assert evaluate(condition["expression"], {"request": {"name": name}}) is asked


@pytest.mark.parametrize(
    ("found", "version"),
    [
        ({"major": "1", "minor": "20"}, (1, 20)),
        ({"major": "1", "minor": "28+"}, (1, 28)),
        ({"major": "2", "minor": "0"}, (2, 0)),
        ({"major": "", "minor": ""}, (1, 0)),
        ({}, (1, 0)),
    ],
)
async def test_the_version_of_the_server(found: dict[str, str], version: Version) -> None:
    server = MemoryServer()
    server.objects["/version"] = found
    assert await server_version(server) == version


def wanted(bundle: bytes | None, version: Version = (1, 36)) -> list[dict[str, Any]]:
    return configurations(Settings(), "quadriga", SERVICE, version, bundle)


async def test_k158_it_is_written_once_and_again_when_it_differs() -> None:
    server = MemoryServer()
    assert await register(server, wanted(b"a")) == ""
    assert server.writes == 2
    # The server fills in what is not said.
    for path in (MUTATING, VALIDATING):
        server.objects[path]["webhooks"][0].update(matchPolicy="Equivalent", objectSelector={})
    assert await register(server, wanted(b"a")) == ""
    assert server.writes == 2
    assert await register(server, wanted(b"b")) == ""
    assert server.writes == 4
    assert server.objects[MUTATING]["webhooks"][0]["clientConfig"]["caBundle"] == "Yg=="
    server.objects[MUTATING]["webhooks"][0]["failurePolicy"] = "Fail"
    assert await register(server, wanted(b"b")) == ""
    assert server.objects[MUTATING]["webhooks"][0]["failurePolicy"] == "Ignore"
    server.objects[VALIDATING]["webhooks"] *= 2
    assert await register(server, wanted(b"b")) == ""
    assert len(server.objects[VALIDATING]["webhooks"]) == 1
    # A server that was set back to an older version has no conditions.
    assert await register(server, wanted(b"b", (1, 27))) == ""
    assert "matchConditions" not in server.objects[MUTATING]["webhooks"][0]
    writes = server.writes
    assert await register(server, wanted(b"b", (1, 27))) == ""
    assert server.writes == writes


async def test_k166_a_bundle_that_others_wrote_is_kept() -> None:
    server = MemoryServer()
    await register(server, wanted(None))
    assert "caBundle" not in server.objects[MUTATING]["webhooks"][0]["clientConfig"]
    server.objects[MUTATING]["webhooks"][0]["clientConfig"]["caBundle"] = "aW5qZWN0ZWQ="
    writes = server.writes
    assert await register(server, wanted(None)) == ""
    assert server.writes == writes
    server.objects[MUTATING]["webhooks"][0]["timeoutSeconds"] = 30
    assert await register(server, wanted(None)) == ""
    assert server.objects[MUTATING]["webhooks"][0]["clientConfig"]["caBundle"] == "aW5qZWN0ZWQ="


async def test_a_conflict_is_tried_again_and_a_refusal_is_named() -> None:
    server = MemoryServer()
    server.refusals = [("POST", 409)]
    assert await register(server, wanted(b"a")) == ""
    server.refusals = [("PUT", 409)] * 3
    problem = await register(server, wanted(b"b"))
    assert problem == "MutatingWebhookConfiguration quadriga-admission: status 409"
    server.refusals = [("GET", 403)]
    assert "status 403" in await register(server, wanted(b"b"))
    server.down = True
    assert await register(server, wanted(b"b")) == "nobody listens"


async def test_it_can_be_removed() -> None:
    server = MemoryServer()
    await register(server, wanted(b"a"))
    assert await unregister(server) == ""
    assert sorted(server.objects) == ["/version"]
    assert await unregister(server) == ""
    server.refusals = [("DELETE", 403)]
    assert await unregister(server) == "status 403"
    server.down = True
    assert await unregister(server) == "nobody listens"
