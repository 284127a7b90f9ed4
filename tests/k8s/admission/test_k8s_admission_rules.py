"""What admission decides (K159 to K164), row by row."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from quadriga.k8s.admission.rules import Decision, Request, Surroundings, decide, user_info
from quadriga.k8s.conversion import identity
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import Metadata, Pod
from tests.k8s.admission_cases import CASES, USER_INFO, Case, difference


def applied(found: Mapping[str, Any], patch: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A JSON patch of additions (RFC 6902): the parent of each has to be there."""
    changed: dict[str, Any] = copy.deepcopy(dict(found))
    for operation in patch:
        assert operation["op"] == "add"
        *path, last = operation["path"].split("/")[1:]
        target = changed
        for name in path:
            target = target[name.replace("~1", "/").replace("~0", "~")]
        target[last.replace("~1", "/").replace("~0", "~")] = operation["value"]
    return changed


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_request_is_decided_as_the_table_says(case: Case) -> None:
    request = case.request()
    before = copy.deepcopy(request.object)
    decision = decide(request, case.around())
    assert request.object == before
    if case.denied:
        assert case.denied in decision.denied
        assert decision.patch == ()
    else:
        assert decision.denied == ""
        changed = applied(before, decision.patch)
        assert difference(before, changed, case.resource) == case.changed
        assert decide(again(case, changed), trusting(case)) == Decision(), "nothing is left to do"


def again(case: Case, changed: Mapping[str, Any]) -> Request:
    """Another webhook can make the API server ask a second time, with what was changed."""
    return replace(case.request(), object=dict(changed))


def trusting(case: Case) -> Surroundings:
    """The user who is named then is our own answer, so the controllers' check is passed by for this."""
    return replace(case.around(), settings=Settings(**{**case.settings, "bypass_auth": True}))


@pytest.mark.parametrize(
    ("found", "paths"),
    [
        ({}, ["/spec", "/metadata"]),
        ({"metadata": None, "spec": None}, ["/spec", "/metadata"]),
        (
            {"metadata": {"labels": None}, "spec": {}},
            ["/spec", "/metadata/labels", "/metadata/annotations"],
        ),
        (
            {"metadata": {"name": "x", "labels": []}, "spec": {"containers": []}},
            ["/spec/schedulerName", "/metadata/labels", "/metadata/annotations"],
        ),
    ],
)
def test_parents_that_are_missing_are_made(found: dict[str, Any], paths: list[str]) -> None:
    request = Request("CREATE", "pods", "team", "alice", (), found)
    decision = decide(request, Surroundings(Settings()))
    assert [each["path"] for each in decision.patch] == paths
    changed = applied(found, decision.patch)
    assert changed["spec"]["schedulerName"] == "yunikorn"
    assert changed["metadata"]["annotations"][USER_INFO] == user_info("alice", ())


def test_keys_are_escaped_in_paths() -> None:
    found = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": {"x": 1}}
    request = Request("CREATE", "pods", "team", "alice", (), found)
    paths = [each["path"] for each in decide(request, Surroundings(Settings())).patch]
    assert "/metadata/labels/yunikorn.apache.org~1app-id" in paths
    assert "/metadata/annotations/yunikorn.apache.org~1user.info" in paths


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT", ""])
@pytest.mark.parametrize("resource", ["pods", "jobs", "services"])
def test_other_operations_and_resources_are_allowed(operation: str, resource: str) -> None:
    request = Request(operation, resource, "team", "alice", (), {})
    assert decide(request, Surroundings(Settings())) == Decision()


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("length", [1, 26, 27, 47, 53, 60, 63])
def test_k161_the_label_names_the_application_of_the_shim(unique: bool, length: int) -> None:
    settings = Settings(generate_unique_app_id=unique)
    namespace = "n" * length
    request = Request("CREATE", "pods", namespace, "alice", (), {"spec": {"x": 1}})
    patch = decide(request, Surroundings(settings)).patch
    metadata = applied({"spec": {"x": 1}}, patch)["metadata"]
    spec = Pod().spec
    pod = Pod(
        Metadata(namespace=namespace, uid="u-1", labels=metadata.get("labels", {})),
        type(spec)(scheduler_name="yunikorn"),
    )
    without = Pod(Metadata(namespace=namespace, uid="u-1"), pod.spec)
    assert identity.application_id(pod, settings) == identity.application_id(without, settings)
    for value in metadata.get("labels", {}).values():
        assert len(value) <= 63
        assert value[-1].isalnum()
