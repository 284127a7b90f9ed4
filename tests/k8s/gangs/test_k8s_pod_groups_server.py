"""PodGroups and the API server: which version it has, what is read and written, and the rights for it (K204, K205)."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from quadriga.k8s.conversion.bounds import Bounds
from quadriga.k8s.driver import watches
from quadriga.k8s.objects import PodGroup, PodGroupSpec, SchedulingGroup
from quadriga.k8s.shim.actions import PodRef, SetGroupCondition
from quadriga.k8s.transport.discovery import patiently, pod_group_version, readable_pod_groups
from quadriga.k8s.transport.requester import STRATEGIC_MERGE_PATCH, NoAnswer
from quadriga.k8s.tuning import TUNING
from quadriga.k8s.writers.condition_writer import GroupConditionWriter
from tests.k8s import virtual_time
from tests.k8s.fake_api import FakeApi, Json, event
from tests.k8s.test_k8s_driver import at_work, ours
from tests.k8s.virtual_time import ScriptedServer, clock, virtual, wall

GROUPS = "/apis/scheduling.k8s.io"
STATUS = "/podgroups/workers/status"


def serves(version: str) -> dict[str, Json]:
    return {f"{GROUPS}/{version}": {"resources": [{"name": "podgroups"}, {"name": "workloads"}]}}


class Server:
    """Answers by path; 404 for others."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def request(self, method: str, path: str, *_: Any) -> tuple[int, bytes]:
        self.asked.append(path)
        answer = self.answers.get(path.removeprefix(f"{GROUPS}/"), 404)
        return (answer, b"") if isinstance(answer, int) else (200, json.dumps(answer).encode())


def resources(*names: str) -> Json:
    return {"resources": [{"name": name} for name in names]}


@pytest.mark.parametrize(
    ("answers", "version"),
    [
        ({}, ""),
        ({"v1beta1": resources("priorityclasses")}, ""),
        ({"v1alpha2": resources("podgroups", "podgroups/status")}, "v1alpha2"),
        ({"v1beta1": resources("priorityclasses"), "v1alpha2": resources("podgroups")}, "v1alpha2"),
        ({"v1beta1": resources("podgroups"), "v1alpha2": resources("podgroups")}, "v1beta1"),
    ],
)
def test_k204_the_resource_is_looked_for(answers: dict[str, Any], version: str) -> None:
    assert asyncio.run(pod_group_version(Server(**answers))) == version


def test_k204_without_the_right_it_goes_on_and_without_an_answer_it_asks_again() -> None:
    answers = {"v1beta1": resources("podgroups"), "v1beta1/podgroups?limit=1": 403}
    assert asyncio.run(readable_pod_groups(Server(**answers))) == ""
    assert asyncio.run(pod_group_version(Server(**answers))) == "v1beta1"
    server = Server(v1beta1=500)
    slept: list[float] = []

    async def sleep(pause: float) -> None:
        slept.append(pause)
        server.answers["v1beta1"] = "nothing" if len(slept) == 1 else resources("podgroups")

    assert asyncio.run(patiently(lambda: pod_group_version(server), sleep)) == "v1beta1"
    assert len(slept) == 2
    with pytest.raises(NoAnswer, match="status 500"):
        asyncio.run(pod_group_version(Server(v1beta1=500)))


@pytest.fixture(scope="session")
def schemas(shared: Path) -> dict[str, Any]:
    """As a server of 1.36 prints them."""
    found: dict[str, Any] = {}
    for name in ("core-v1-pod-scheduling", "scheduling.k8s.io-v1alpha2"):
        text = (shared / "data" / "openapi" / f"{name}.json").read_text(encoding="utf-8")
        found |= json.loads(text)["components"]["schemas"]
    return {name.rpartition(".")[2]: schema for name, schema in found.items()}


def names(kind: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


def test_k204_the_fields_that_are_read_are_those_of_the_server(schemas: dict[str, Any]) -> None:
    spec = set(schemas["PodGroupSpec"]["properties"])
    newer = {"parentCompositePodGroupName"}  # since 1.37
    assert names(PodGroupSpec) - newer <= spec
    assert names(SchedulingGroup) == set(schemas["PodSchedulingGroup"]["properties"])
    assert set(schemas["PodGroupSchedulingPolicy"]["properties"]) == {"basic", "gang"}
    assert "minCount" in schemas["GangSchedulingPolicy"]["properties"]


def group(name: str = "workers", **policy: Any) -> Json:
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "generation": 3,
            "labels": {"a": "b"},
            "annotations": {"long": "x" * 1000},
            "ownerReferences": [{"kind": "Job", "name": "job"}] * 100,
        },
        "spec": {"schedulingPolicy": policy},
        "status": {"conditions": [{"type": "Other"}] * 100 + [{"type": "PodGroupScheduled"}]},
    }


def test_q16_what_is_long_and_not_read_is_not_kept() -> None:
    found = msgspec.convert(group(gang={"minCount": 2}), PodGroup)
    found = Bounds().pod_group(found)
    meta = found.metadata
    assert (meta.labels, meta.annotations, meta.owner_references) == ({}, {}, ())
    assert [each.type for each in found.status.conditions] == ["PodGroupScheduled"]


def says(reason: str = "Unschedulable", message: str = "no room", version: str = "v1alpha2") -> Any:
    return SetGroupCondition(PodRef("ns", "workers", "uid-workers"), reason, message, version, 3)


@virtual
async def test_k205_the_condition_is_written_as_the_api_wants_it(schemas: dict[str, Any]) -> None:
    server = ScriptedServer()
    async with virtual_time.at_work(GroupConditionWriter(server, clock=clock, wall=wall)) as writer:
        writer.set(says())
        await asyncio.sleep(2)
        writer.set(says(message="less room"))
        await asyncio.sleep(120)
        writer.set(says("Scheduled", "all have a node", "v1beta1"))
        await asyncio.sleep(1)
    assert [path for _, _, path, *_ in server.requests] == [
        f"{GROUPS}/v1alpha2/namespaces/ns{STATUS}",
        f"{GROUPS}/v1alpha2/namespaces/ns{STATUS}",
        f"{GROUPS}/v1beta1/namespaces/ns{STATUS}",
    ]
    first, second, last = (each["status"]["conditions"][0] for each in server.bodies)
    assert {each[4] for each in server.requests} == {STRATEGIC_MERGE_PATCH}
    assert [each["metadata"] for each in server.bodies] == [{"uid": "uid-workers"}] * 3
    assert (first["type"], first["status"], first["reason"], first["observedGeneration"]) == (
        *("PodGroupScheduled", "False", "Unschedulable"),
        3,
    )
    assert second["message"] == "less room" and "lastTransitionTime" not in second
    assert (last["type"], last["status"]) == ("PodGroupInitiallyScheduled", "True")
    for each in (first, last):
        assert set(schemas["Condition"]["required"]) <= set(each)
        assert set(each) <= set(schemas["Condition"]["properties"])


@virtual
async def test_k205_the_condition_is_bounded_in_length_and_rate() -> None:
    server = ScriptedServer()
    async with virtual_time.at_work(GroupConditionWriter(server, clock=clock, wall=wall)) as writer:
        for number in range(600):
            writer.set(says(message=f"{number} " + "x" * 5000))
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
    assert len(server.requests) <= 3
    assert all(len(each["status"]["conditions"][0]["message"]) <= 1024 for each in server.bodies)


def member(name: str) -> Json:
    pod = ours(name)
    pod["spec"]["schedulingGroup"] = {"podGroupName": "workers"}
    return pod


def with_groups(api: FakeApi, version: str = "v1alpha2") -> None:
    api.found |= serves(version)
    api.found[f"{GROUPS}/{version}/namespaces/ns{STATUS}"] = {}
    api.others["podgroups"] = [group(basic={})]


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1"])
async def test_k204_k205_a_pod_of_a_basic_group_is_bound_and_it_says_so(version: str) -> None:
    async with at_work(member("one"), prepare=lambda api: with_groups(api, version)) as found:
        api = found.api
        await found.until(lambda: api.made("POST", "/one/binding"))
        pod = api.pods["one"]
        pod["metadata"]["resourceVersion"] = "2"
        await api.say(event("MODIFIED", pod))
        await found.until(lambda: api.made("PATCH", STATUS))
        condition = api.made("PATCH", STATUS)[-1]["status"]["conditions"][0]
        kinds = {"v1alpha2": "PodGroupScheduled", "v1beta1": "PodGroupInitiallyScheduled"}
        assert (condition["type"], condition["status"]) == (kinds[version], "True")


def tells(event: Json) -> bool:
    return event["regarding"]["name"] == "one" and "ns/workers" in event["note"]


async def test_k204_a_gang_is_bound_through_the_api_server() -> None:
    def prepare(api: FakeApi) -> None:
        with_groups(api)
        api.others["podgroups"] = [group(gang={"minCount": 2})]

    async with at_work(member("one"), prepare=prepare) as found:
        api = found.api
        await found.until(lambda: api.made("PATCH", STATUS))
        said = api.made("PATCH", STATUS)[0]["status"]["conditions"][0]
        assert said["message"] == "PodGroup ns/workers wants 2 pods together, 1 exist"
        assert not api.made("POST", "/binding")
        api.add(member("two"))
        await api.say(event("ADDED", member("two")))
        await found.until(lambda: len(api.made("POST", "/binding")) == 2)


async def test_k204_a_server_that_is_upgraded_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "TUNING", replace(TUNING, pod_groups_check_s=0.01))
    async with at_work(member("one"), ours("two")) as found:
        api = found.api
        await found.until(lambda: api.made("POST", "/two/binding"))
        assert not api.made("POST", "/one/binding")
        await found.until(lambda: [each for each in api.made("POST", "/events") if tells(each)])
        with_groups(api)
        await found.until(lambda: api.made("POST", "/one/binding"))
        with_groups(api, "v1beta1")
        assert found.shim.health().ready
