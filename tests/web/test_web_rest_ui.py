"""What YuniKorn's web UI reads of its nine calls is there, with the type it expects (section 3).

The scheduler is at work, the server a real one, and every object that comes is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_cluster import LiveCluster
from on_a_port import Client, on_a_port

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


def fields(**checks: Check) -> Check:
    """An object with these fields; what is wrong is told by an assertion."""

    def check(value: Any) -> bool:
        assert isinstance(value, dict), value
        for name, each in checks.items():
            assert name in value, f"{name} is missing in {value}"
            assert each(value[name]), f"{name} is {value[name]!r}"
        return True

    return check


ALLOCATION = fields(
    allocationKey=text,
    allocationID=text,
    allocationTags=texts,
    resource=resources,
    priority=digits,
    nodeId=text,
    applicationId=text,
    partition=text,
)
APPLICATION = fields(
    applicationID=text,
    partition=text,
    queueName=text,
    submissionTime=ns,
    stateLog=list_of(fields(time=ns, applicationState=text)),
    applicationState=text,
    usedResource=resources,
    maxUsedResource=resources,
    pendingResource=resources,
    allocations=list_of(ALLOCATION),
)
NODE = fields(
    nodeID=text,
    hostName=text,
    rackName=text,
    partition=text,
    capacity=resources,
    allocated=resources,
    occupied=resources,
    available=resources,
    utilized=resources,
    attributes=texts,
    allocations=list_of(ALLOCATION),
    foreignAllocations=list_of(fields(allocationKey=text, resource=resources, priority=digits)),
)
CLUSTER = fields(
    startTime=ns,
    clusterName=text,
    partition=text,
    rmBuildInformation=list_of(
        fields(buildDate=text, buildVersion=text, isPluginVersion=text, rmId=text)
    ),
)
PARTITION = fields(
    name=text,
    clusterId=text,
    state=text,
    totalNodes=number,
    totalContainers=number,
    applications=lambda value: resources(value) and number(value["total"]),
    capacity=fields(capacity=resources, usedCapacity=resources, utilization=resources),
    nodeSortingPolicy=fields(type=text),
)
HEALTH = fields(
    Healthy=flag,
    HealthChecks=list_of(
        fields(Name=text, Succeeded=flag, Description=text, DiagnosisMessage=text)
    ),
)
UTILISATION = fields(
    clusterId=text,
    partition=text,
    utilizations=list_of(
        fields(
            type=text,
            utilization=list_of(
                fields(bucketName=text, numOfNodes=number, nodeNames=list_of(text))
            ),
        )
    ),
)


def queue(value: Any) -> bool:
    check = fields(
        queuename=text,
        status=text,
        isLeaf=flag,
        isManaged=flag,
        partition=text,
        children=list_of(queue),
        pendingResource=resources,
        maxResource=resources,
        guaranteedResource=resources,
        allocatedResource=resources,
        absUsedCapacity=resources,
        properties=texts,
        maxRunningApps=number,
        runningApps=number,
        currentPriority=number,
    )
    template = fields(maxResource=resources, guaranteedResource=resources, properties=texts)
    return check(value) and ("template" not in value or template(value["template"]))


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
    (tmp_path / "secret").write_text("not for you")
    (folder / "way-out").symlink_to(tmp_path / "secret")
    return folder


@pytest.mark.asyncio
async def test_the_nine_calls(dist: Path, busy: LiveCluster) -> None:
    async with on_a_port(busy, ui=dist) as client:

        async def get(path: str) -> Any:
            response = await client.get(f"/ws/v1/{path}")
            assert response.status_code == 200, response.text
            assert response.headers["content-type"] == "application/json; charset=UTF-8"
            assert b"null" not in response.content
            return response.json()

        for _ in range(5):
            clusters = await get("clusters")
            assert list_of(CLUSTER)(clusters) and clusters
            partitions = await get("partitions")
            assert list_of(PARTITION)(partitions) and partitions[0]["name"] == "default"
            root = await get("partition/default/queues")
            assert queue(root) and root["partition"] == "default"
            apps = [
                app
                for name in names(root)
                for app in await get(f"partition/default/queue/{name}/applications")
            ]
            assert list_of(APPLICATION)(apps) and len(apps) > 5
            pods = [a for app in apps for a in app["allocations"]]
            assert any("kubernetes.io/meta/podName" in a["allocationTags"] for a in pods)
            assert any(a["placeholder"] for a in pods)
            nodes = await get("partition/default/nodes")
            assert list_of(NODE)(nodes) and len(nodes) == 9
            assert any(node["foreignAllocations"] for node in nodes)
            assert any(node["isReserved"] for node in nodes)
            assert list_of(fields(timestamp=ns, totalApplications=digits))(
                await get("history/apps")
            )
            assert list_of(fields(timestamp=ns, totalContainers=digits))(
                await get("history/containers")
            )
            assert list_of(UTILISATION)(await get("scheduler/node-utilizations"))
            health = await get("scheduler/healthcheck")
            assert HEALTH(health) and health["Healthy"]


@pytest.mark.asyncio
async def test_what_there_is_none_of_is_an_empty_list(remote: Client) -> None:
    for path in (
        "partition/default/queue/root.prod.idle/applications",
        "partition/default/queue/root/applications",
    ):
        response = await remote.get(f"/ws/v1/{path}")
        assert (response.status_code, response.content) == (200, b"[]")


@pytest.mark.asyncio
async def test_the_ui_is_served_beside_the_api(dist: Path, cluster: LiveCluster) -> None:
    async with on_a_port(cluster, ui=dist) as client:
        index = await client.get("/")
        assert (index.status_code, index.headers["content-type"]) == (
            200,
            "text/html; charset=utf-8",
        )
        assert (await client.get("/main.js")).text.startswith("fetch")
        assert (await client.get("/assets/config/envconfig.json")).json() == {}
        # its own ways are its own affair
        assert (await client.get("/some/view")).text == index.text
        # what is the API's stays so
        missing = await client.get("/ws/v1/nothing")
        assert (missing.status_code, missing.json()["message"]) == (404, "Not Found")
        assert (await client.post("/main.js")).status_code == 405


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "path", ["/../secret", "/%2e%2e/secret", "/assets/..%2f..%2fsecret", "//etc/passwd", "/way-out",
             "/assets/%00", "/..%5csecret", "/" + "x" * 5000]
)  # fmt: skip
async def test_nothing_outside_of_the_folder_is_served(
    dist: Path, path: str, cluster: LiveCluster
) -> None:
    async with on_a_port(cluster, ui=dist) as client:
        address = client.base_url.copy_with(raw_path=path.encode())  # as it is, not tidied up
        response = await client.get(address)
        assert "not for you" not in response.text and "root:" not in response.text
        assert response.status_code in (200, 404)


def test_a_folder_without_a_ui_is_refused(tmp_path: Path) -> None:
    from quadriga.web.ui import WebUI

    with pytest.raises(ValueError, match=r"holds no index\.html"):
        WebUI(tmp_path)
