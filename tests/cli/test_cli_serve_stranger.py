"""`quadriga serve` from the outside: reflection, a client, the web UI, Prometheus and a probe at once."""

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

from quadriga.si import AllocationResponse, TerminationType
from quadriga.si.client import Client
from tests.si.remote_side import Heard, placed
from tests.si.requests import apps, asks, nodes, register, releases
from tests.si.server.test_si_server_generic import Generic, Stranger
from tests.si.wire import PATIENCE, until
from tests.web.rest.test_web_rest_ui import nine_calls


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
                found, _ = nine_calls(lambda path: self._service.get(f"/ws/v1/{path}"))
                self.apps = max(self.apps, len(found))
                self.looks += 1
        except BaseException as error:
            self.error = error

    def close(self) -> None:
        self._over.set()
        self._thread.join()


class Confirming(Heard):
    """Confirms replacements as a shim does."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client

    def update_allocation(self, response: AllocationResponse) -> None:
        kind = TerminationType.PLACEHOLDER_REPLACED
        gone = [each.UUID for each in response.released if each.terminationType == kind]
        if gone:
            self._client.update_allocation(releases("gang", *gone, kind=kind, rm_id="ours"))
        self._note(response)


def our_gang(client: Client) -> None:
    """The same with `quadriga.si.client`."""
    heard = Confirming(client)
    client.register_resource_manager(register("ours"), heard)

    def states(messages: list[Any]) -> set[str]:
        return {each.state for m in messages for each in getattr(m, "updated", ())}

    client.update_node(nodes("n1", rm_id="ours"))
    client.update_application(apps("gang", gang={"vcore": 3000}, rm_id="ours"))
    for names, placeholder in ((["h0", "h1", "h2"], True), (["p0", "p1", "p2"], False)):
        ask = {"vcore": 1000, "group": "workers", "placeholder": placeholder, "rm_id": "ours"}
        client.update_allocation(asks("gang", *names, **ask))
        heard.wait_for(lambda messages, names=names: {*names} <= {*placed(messages)})
    assert "Running" in states(heard.messages)
    new = [each for m in heard.messages for each in getattr(m, "new", ()) if not each.placeholder]
    client.update_allocation(releases("gang", *(each.UUID for each in new), rm_id="ours"))
    heard.wait_for(lambda messages: bool({"Waiting", "Completing"} & states(messages)))


@pytest.mark.asyncio
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
            ours = asyncio.to_thread(our_gang, client)
            await asyncio.gather(stranger.run_a_gang(), ours)
            await stranger.end_the_gang()
            await until(lambda: browser.looks >= 2 or browser.error)
        finally:
            await asyncio.to_thread(client.close)
            browser.close()
        if browser.error is not None:
            raise browser.error
        assert browser.apps > 0
        assert service.ask("/")[1] == b"<title>UI</title>"

        page = service.ask("/ws/v1/metrics")[1].decode()
        families = {each.name: each for each in text_string_to_metric_families(page)}
        assert "yunikorn_scheduler_container_allocation_attempt" in families, sorted(families)
        (streams,) = families["quadriga_grpc_streams"].samples
        assert streams.value == 3

        service.send(signal.SIGTERM)
        for stream in stranger.streams:
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await asyncio.wait_for(stream.task, PATIENCE)
            assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "the scheduler stops" in (ended.value.details() or "")
    assert await asyncio.to_thread(service.wait) == 0
