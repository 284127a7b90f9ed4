"""What YuniKorn's web UI reads of its nine calls is there, with the type it expects (section 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from live_cluster import LiveCluster
from on_a_port import PATIENCE, Client, client_of, serving

from quadriga.web.ui import WebUI

Check = Callable[[Any], bool]


def text(value: Any) -> bool:
    return isinstance(value, str)


def number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def flag(value: Any) -> bool:
    return isinstance(value, bool)


def resources(value: Any) -> bool:
    return isinstance(value, dict) and all(text(k) and number(v) for k, v in value.items())


def texts(value: Any) -> bool:
    return isinstance(value, dict) and all(text(k) and text(v) for k, v in value.items())


def ns(value: Any) -> bool:
    """A time in ns: 2001 to 2286 is 1e18 to 1e19."""
    return number(value) and 10**18 < value < 10**19


def digits(value: Any) -> bool:
    return text(value) and value.lstrip("-").isdecimal()


def list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def fields(checks: Mapping[str, Check]) -> Check:
    """An object with these fields, several of a kind in one text."""

    def check(value: Any) -> bool:
        assert isinstance(value, dict), value
        for kind, each in checks.items():
            for name in kind.split():
                assert name in value, f"{name} is missing in {value}"
                assert each(value[name]), f"{name} is {value[name]!r}"
        return True

    return check


ALLOCATION = fields(
    {
        "allocationKey allocationID nodeId applicationId partition": text,
        "allocationTags": texts,
        "resource": resources,
        "priority": digits,
    }
)
APPLICATION = fields(
    {
        "applicationID partition queueName applicationState": text,
        "submissionTime": ns,
        "stateLog": list_of(fields({"time": ns, "applicationState": text})),
        "usedResource maxUsedResource pendingResource": resources,
        "allocations": list_of(ALLOCATION),
    }
)
FOREIGN = fields({"allocationKey": text, "resource": resources, "priority": digits})
NODE = fields(
    {
        "nodeID hostName rackName partition": text,
        "capacity allocated occupied available utilized": resources,
        "attributes": texts,
        "allocations": list_of(ALLOCATION),
        "foreignAllocations": list_of(FOREIGN),
    }
)
BUILD = fields({"buildDate buildVersion isPluginVersion rmId": text})
CLUSTER = fields(
    {"startTime": ns, "clusterName partition": text, "rmBuildInformation": list_of(BUILD)}
)
PARTITION = fields(
    {
        "name clusterId state": text,
        "totalNodes totalContainers": number,
        "applications": lambda value: resources(value) and number(value["total"]),
        "capacity": fields({"capacity usedCapacity utilization": resources}),
        "nodeSortingPolicy": fields({"type": text}),
    }
)
VERDICT = fields({"Name Description DiagnosisMessage": text, "Succeeded": flag})
HEALTH = fields({"Healthy": flag, "HealthChecks": list_of(VERDICT)})
BUCKET = fields({"bucketName": text, "numOfNodes": number, "nodeNames": list_of(text)})
OF_TYPE = fields({"type": text, "utilization": list_of(BUCKET)})
UTILISATION = fields({"clusterId partition": text, "utilizations": list_of(OF_TYPE)})
TEMPLATE = fields({"maxResource guaranteedResource": resources, "properties": texts})
QUEUE = fields(
    {
        "queuename status partition": text,
        "isLeaf isManaged": flag,
        "pendingResource maxResource guaranteedResource": resources,
        "allocatedResource absUsedCapacity": resources,
        "properties": texts,
        "maxRunningApps runningApps currentPriority": number,
        "children": lambda value: list_of(queue)(value),
    }
)


def queue(value: Any) -> bool:
    return QUEUE(value) and ("template" not in value or TEMPLATE(value["template"]))


def history(what: str) -> Check:
    return list_of(fields({"timestamp": ns, what: digits}))


def nine_calls(get: Callable[[str], Any]) -> tuple[Any, Any]:
    """Everything that the web UI reads, as it does; the applications and the nodes."""
    clusters, partitions = get("clusters"), get("partitions")
    assert list_of(CLUSTER)(clusters) and clusters
    assert list_of(PARTITION)(partitions) and partitions[0]["name"] == "default"
    root = get("partition/default/queues")
    assert queue(root) and root["partition"] == "default"
    each = [get(f"partition/default/queue/{name}/applications") for name in names(root)]
    apps = [app for some in each for app in some]
    nodes = get("partition/default/nodes")
    assert list_of(APPLICATION)(apps)
    assert list_of(NODE)(nodes)
    assert history("totalApplications")(get("history/apps"))
    assert history("totalContainers")(get("history/containers"))
    assert list_of(UTILISATION)(get("scheduler/node-utilizations"))
    health = get("scheduler/healthcheck")
    assert HEALTH(health) and health["Healthy"]
    return apps, nodes


def names(root: Any) -> Iterator[str]:
    yield root["queuename"]
    for child in root["children"]:
        yield from names(child)


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """A web UI as it was built, or what of it matters here."""
    folder = tmp_path / "dist"
    (folder / "assets" / "config").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>UI</title>")
    (folder / "main.js").write_text("fetch('/ws/v1/partitions')")
    (folder / "assets" / "config" / "envconfig.json").write_text("{}")
    return folder


def test_the_nine_calls(dist: Path, busy: LiveCluster) -> None:
    with serving(busy, ui=dist) as address, httpx.Client(base_url=address) as client:

        def get(path: str) -> Any:
            response = client.get(f"/ws/v1/{path}", timeout=PATIENCE)
            assert response.status_code == 200, response.text
            assert response.headers["content-type"] == "application/json; charset=UTF-8"
            assert b"null" not in response.content
            return response.json()

        for _ in range(3):
            apps, nodes = nine_calls(get)
            assert len(apps) > 5
            pods = [a for app in apps for a in app["allocations"]]
            assert any("kubernetes.io/meta/podName" in a["allocationTags"] for a in pods)
            assert any(a["placeholder"] for a in pods)
            assert len(nodes) == 9
            assert any(node["foreignAllocations"] for node in nodes)
            assert any(node["isReserved"] for node in nodes)


@pytest.mark.asyncio
async def test_what_there_is_none_of_is_an_empty_list(remote: Client) -> None:
    for queue in ("root.prod.idle", "root"):
        response = await remote.get(f"/ws/v1/partition/default/queue/{queue}/applications")
        assert (response.status_code, response.content) == (200, b"[]")


@pytest.mark.asyncio
async def test_the_ui_is_served_beside_the_api(dist: Path, still: LiveCluster) -> None:
    async with client_of(still, ui=dist) as client:
        index = await client.get("/")
        assert index.status_code == 200
        assert index.headers["content-type"] == "text/html; charset=utf-8"
        assert (await client.get("/main.js")).text.startswith("fetch")
        assert (await client.get("/assets/config/envconfig.json")).json() == {}
        # its own ways are its own affair
        assert (await client.get("/some/view")).text == index.text
        # what is the API's stays so
        missing = await client.get("/ws/v1/nothing")
        assert (missing.status_code, missing.json()["message"]) == (404, "Not Found")
        assert (await client.post("/main.js")).status_code == 405
    with pytest.raises(ValueError, match=r"holds no index\.html"):
        WebUI(dist / "assets")
