"""What YuniKorn's web UI reads of its nine calls is there, with the type it expects (section 3)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from live_cluster import LiveCluster
from on_a_port import PATIENCE, Client, client_of, serving

from quadriga.web.app import WebUI


def is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


BASIC: dict[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "number": is_number,
    "flag": lambda value: isinstance(value, bool),
    "resources": lambda value: all(map(is_number, value.values())),
    "texts": lambda value: all(isinstance(each, str) for each in value.values()),
    "ns": lambda value: is_number(value) and 10**18 < value < 10**19,  # 2001 to 2286
    "digits": lambda value: value.lstrip("-").isdecimal(),
}
#: object | a kind and the fields that are of it; a kind with a * is a list
OBJECTS: dict[str, list[list[str]]] = {
    line.split(" | ")[0]: [each.split() for each in line.split(" | ")[1:]]
    for line in """
allocation | text allocationKey allocationID nodeId applicationId partition | texts allocationTags | \
resources resource | digits priority
state | ns time | text applicationState
application | text applicationID partition queueName applicationState | ns submissionTime | \
state* stateLog | resources usedResource maxUsedResource pendingResource | allocation* allocations
foreign | text allocationKey | resources resource | digits priority
node | text nodeID hostName rackName partition | allocation* allocations | texts attributes | \
resources capacity allocated occupied available utilized | foreign* foreignAllocations
build | text buildDate buildVersion isPluginVersion rmId
cluster | ns startTime | text clusterName partition | build* rmBuildInformation
use | resources capacity usedCapacity utilization
policy | text type
partition | text name clusterId state | number totalNodes totalContainers | resources applications | \
use capacity | policy nodeSortingPolicy
verdict | text Name Description DiagnosisMessage | flag Succeeded
health | flag Healthy | verdict* HealthChecks
bucket | text bucketName | number numOfNodes | text* nodeNames
of_type | text type | bucket* utilization
utilisation | text clusterId partition | of_type* utilizations
template | resources maxResource guaranteedResource | texts properties
queue | text queuename status partition | flag isLeaf isManaged | texts properties | queue* children | \
resources pendingResource maxResource guaranteedResource allocatedResource absUsedCapacity | \
number maxRunningApps runningApps currentPriority
apps | ns timestamp | digits totalApplications
containers | ns timestamp | digits totalContainers
""".strip().splitlines()
}


def check(kind: str, value: Any) -> None:
    if kind.endswith("*"):
        assert isinstance(value, list), value
        for each in value:
            check(kind[:-1], each)
        return
    if kind in BASIC:
        assert BASIC[kind](value), f"{value!r} is not {kind}"
        return
    for inner, *names in OBJECTS[kind]:
        for name in names:
            assert name in value, f"{name} is missing in {value}"
            check(inner, value[name])
    if kind == "queue" and "template" in value:
        check("template", value["template"])


def nine_calls(get: Callable[[str], Any]) -> tuple[Any, Any]:
    """Everything that the web UI reads, as it does; the applications and the nodes."""
    clusters, partitions = get("clusters"), get("partitions")
    check("cluster*", clusters)
    check("partition*", partitions)
    assert clusters and partitions[0]["name"] == "default"
    assert is_number(partitions[0]["applications"]["total"])
    root = get("partition/default/queues")
    check("queue", root)
    assert root["partition"] == "default"
    each = [get(f"partition/default/queue/{name}/applications") for name in names(root)]
    apps = [app for some in each for app in some]
    nodes = get("partition/default/nodes")
    check("application*", apps)
    check("node*", nodes)
    check("apps*", get("history/apps"))
    check("containers*", get("history/containers"))
    check("utilisation*", get("scheduler/node-utilizations"))
    health = get("scheduler/healthcheck")
    check("health", health)
    assert health["Healthy"]
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


async def test_what_there_is_none_of_is_an_empty_list(remote: Client) -> None:
    for queue in ("root.prod.idle", "root"):
        response = await remote.get(f"/ws/v1/partition/default/queue/{queue}/applications")
        assert (response.status_code, response.content) == (200, b"[]")


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
