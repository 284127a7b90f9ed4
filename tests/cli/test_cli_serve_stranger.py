"""`quadriga serve` from the outside, all of it at once: a client that knows only what reflection tells, the
repository's own client, the web UI's nine calls, Prometheus and a probe; then a clean end."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families
from service_process import Service

from quadriga import si
from quadriga.si.client import Client
from tests.si.test_si_server_generic import Conversation, Generic
from tests.web import test_web_rest_ui as ui

PATIENCE = 30.0
QUEUES = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: gangs
            resources: {guaranteed: {vcore: 1}, max: {vcore: 100}}
"""
MEMBERS = 3
TAGS = {"kubernetes.io/meta/namespace": "a", "kubernetes.io/meta/podName": "pod"}

pytestmark = pytest.mark.asyncio


async def until(true: Callable[[], Any], what: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.01)
    assert true(), what


# -- the web UI -------------------------------------------------------------------------------------


def nine_calls(service: Service) -> int:
    """Everything that the web UI reads, as it does; how many applications there were."""

    def get(path: str) -> Any:
        return service.get(f"/ws/v1/{path}")

    assert ui.list_of(ui.CLUSTER)(get("clusters"))
    for partition in get("partitions"):
        assert ui.PARTITION(partition)
    root = get("partition/default/queues")
    assert ui.queue(root)
    apps = [
        app
        for name in ui.names(root)
        for app in get(f"partition/default/queue/{name}/applications")
    ]
    assert ui.list_of(ui.APPLICATION)(apps)
    assert ui.list_of(ui.NODE)(get("partition/default/nodes"))
    history = ui.fields(timestamp=ui.ns)
    assert ui.list_of(history)(get("history/apps"))
    assert ui.list_of(history)(get("history/containers"))
    assert ui.list_of(ui.UTILISATION)(get("scheduler/node-utilizations"))
    assert ui.HEALTH(get("scheduler/healthcheck"))
    return len(apps)


class Browser:
    """Somebody who looks all the time."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.looks = 0
        self.apps = 0
        self.error: BaseException | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="browser")
        self._thread.start()

    def _look(self) -> None:
        try:
            while not self._over.is_set():
                self.apps = max(self.apps, nine_calls(self._service))
                self.looks += 1
        except BaseException as error:
            self.error = error

    def close(self) -> None:
        self._over.set()
        self._thread.join()


# -- a client without anything of ours --------------------------------------------------------------


class Stranger:
    def __init__(self, client: Generic) -> None:
        self._client = client

    async def begin(self) -> None:
        """Find out what there is, and register."""
        client = self._client
        assert {"si.v1.Scheduler", "quadriga.v1.Extension"} <= {*await client.services()}
        await client.learn("si.v1.Scheduler")
        path = "si.v1.Scheduler/RegisterResourceManager"
        await client.unary(path, rmID="stranger", version="1.4", config=QUEUES)
        self.nodes, self.apps, self.pods = (
            client.stream(f"si.v1.Scheduler/Update{kind}")
            for kind in ("Node", "Application", "Allocation")
        )

    @property
    def streams(self) -> tuple[Conversation, ...]:
        return self.nodes, self.apps, self.pods

    async def run_a_gang(self) -> None:
        """Placeholders, members in their place, and their end."""
        one = {"resources": {"vcore": {"value": 1000}}}
        capacity = {"resources": {"vcore": {"value": 4000}}}
        node = {"nodeID": "n1", "action": "CREATE", "schedulableResource": capacity}
        await self.nodes.say(rmID="stranger", nodes=[node])
        await until(lambda: self.nodes.items("accepted"), "a node")
        app = {
            "applicationID": "gang",
            "queueName": "root.gangs",
            "ugi": {"user": "u", "groups": ["g"]},
            "placeholderAsk": {"resources": {"vcore": {"value": 1000 * MEMBERS}}},
            "gangSchedulingStyle": "Hard",
        }
        await self.apps.say(rmID="stranger", new=[app])
        await until(lambda: self.apps.items("accepted"), "an application")
        ask = {
            "applicationID": "gang",
            "taskGroupName": "workers",
            "resourceAsk": one,
            "maxAllocations": 1,
            "tags": TAGS,
        }
        holders = [
            {**ask, "allocationKey": f"hold-{at}", "placeholder": True} for at in range(MEMBERS)
        ]
        await self.pods.say(rmID="stranger", asks=holders)
        await until(lambda: len(self.pods.items("new")) == MEMBERS, "placeholders")
        await until(lambda: "Running" in self.states(), "that it runs")
        members = [{**ask, "allocationKey": f"pod-{at}"} for at in range(MEMBERS)]
        await self.pods.say(rmID="stranger", asks=members)
        await until(lambda: len(self.pods.items("released")) == MEMBERS, "replacements")
        for release in self.pods.items("released"):
            assert release["terminationType"] == "PLACEHOLDER_REPLACED"
            await self.pods.say(rmID="stranger", releases={"allocationsToRelease": [release]})
        await until(lambda: len(self.pods.items("new")) == 2 * MEMBERS, "members")
        real = [each for each in self.pods.items("new") if not each.get("placeholder")]
        assert sorted(each["allocationKey"] for each in real) == ["pod-0", "pod-1", "pod-2"]

    async def end_the_gang(self) -> None:
        real = [each for each in self.pods.items("new") if not each.get("placeholder")]
        stops = [
            {
                "applicationID": "gang",
                "UUID": each["UUID"],
                "allocationKey": each["allocationKey"],
                "terminationType": "STOPPED_BY_RM",
            }
            for each in real
        ]
        await self.pods.say(rmID="stranger", releases={"allocationsToRelease": stops})
        await until(lambda: len(self.pods.items("released")) == 2 * MEMBERS, "their end")
        await until(lambda: {"Waiting", "Completing"} & {*self.states()}, "that it completes")

    def states(self) -> list[str]:
        return [each["state"] for each in self.apps.items("updated")]


# -- our own client ---------------------------------------------------------------------------------


class Heard(si.NullCallback):
    """Confirms replacements as a shim does."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.nodes: list[str] = []
        self.states: list[str] = []
        self.new: list[Any] = []
        self.released: list[Any] = []
        self.accepted: list[str] = []

    def update_node(self, response: si.NodeResponse) -> None:
        self.nodes += [each.nodeID for each in response.accepted]

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.accepted += [each.applicationID for each in response.accepted]
        self.states += [each.state for each in response.updated]

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.new += response.new
        self.released += response.released
        request = si.AllocationRequest(rmID="ours")
        for each in response.released:
            if each.terminationType == si.TerminationType.PLACEHOLDER_REPLACED:
                request.releases.allocationsToRelease.append(each)
        if request.releases.allocationsToRelease:
            self._client.update_allocation(request)


async def our_gang(client: Client) -> Heard:
    """The same with `quadriga.si.client`."""
    heard = Heard(client)
    await asyncio.to_thread(
        client.register_resource_manager,
        si.RegisterResourceManagerRequest(rmID="ours", version="1.4", config=QUEUES),
        heard,
    )

    def amount(vcore: int) -> si.Resource:
        return si.Resource(resources={"vcore": si.Quantity(value=vcore)})

    node = si.NodeInfo(nodeID="n1", action=si.NodeInfo.CREATE, schedulableResource=amount(4000))
    client.update_node(si.NodeRequest(rmID="ours", nodes=[node]))
    app = si.AddApplicationRequest(
        applicationID="gang",
        queueName="root.gangs",
        ugi=si.UserGroupInformation(user="u", groups=["g"]),
        placeholderAsk=amount(1000 * MEMBERS),
        gangSchedulingStyle="Soft",
    )
    client.update_application(si.ApplicationRequest(rmID="ours", new=[app]))
    for name, placeholder in (("hold", True), ("pod", False)):
        request = si.AllocationRequest(rmID="ours")
        for at in range(MEMBERS):
            ask = si.AllocationAsk(
                allocationKey=f"{name}-{at}",
                applicationID="gang",
                resourceAsk=amount(1000),
                maxAllocations=1,
                taskGroupName="workers",
                placeholder=placeholder,
                tags=TAGS,
            )
            request.asks.append(ask)
        client.update_allocation(request)
        more = MEMBERS if placeholder else 2 * MEMBERS
        await until(lambda more=more: len(heard.new) == more, name)  # type: ignore[misc]
    assert "Running" in heard.states
    request = si.AllocationRequest(rmID="ours")
    for each in heard.new[MEMBERS:]:
        request.releases.allocationsToRelease.add(
            applicationID="gang",
            UUID=each.UUID,
            terminationType=si.TerminationType.STOPPED_BY_RM,
        )
    client.update_allocation(request)
    await until(lambda: {"Waiting", "Completing"} & {*heard.states}, "that it completes")
    return heard


async def test_everybody_at_once(start: Callable[..., Service], tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    dist.mkdir()
    (dist / "index.html").write_text("<title>UI</title>", encoding="utf-8")
    service = start("--ui", dist)
    target = f"127.0.0.1:{service.ports['grpc']}"
    async with grpc.aio.insecure_channel(target) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for name in ("", "si.v1.Scheduler", "quadriga.v1.Extension"):
            found = await health.Check(health_pb2.HealthCheckRequest(service=name))
            assert found.status == health_pb2.HealthCheckResponse.SERVING

        stranger = Stranger(Generic(channel))
        await stranger.begin()
        browser = Browser(service)
        client = Client(target)
        try:
            _, heard = await asyncio.gather(stranger.run_a_gang(), our_gang(client))
            await stranger.end_the_gang()
            assert sorted(heard.accepted) == ["gang"]
            await until(lambda: browser.looks >= 3 or browser.error, "looks")
        finally:
            await asyncio.to_thread(client.close)
            browser.close()
        if browser.error is not None:
            raise browser.error
        assert browser.apps > 0
        assert service.ask("/")[1] == b"<title>UI</title>"

        families = {
            family.name: family
            for family in text_string_to_metric_families(service.ask("/ws/v1/metrics")[1].decode())
        }
        assert {"yunikorn_scheduler_container_allocation_attempt", "quadriga_grpc_streams"} <= (
            families.keys() | {f"{name}_total" for name in families}
        ), sorted(families)
        (streams,) = families["quadriga_grpc_streams"].samples
        assert streams.value == 3

        service.send(signal.SIGTERM)
        for stream in stranger.streams:
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await asyncio.wait_for(stream.task, PATIENCE)
            assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
    assert await asyncio.to_thread(service.wait) == 0
