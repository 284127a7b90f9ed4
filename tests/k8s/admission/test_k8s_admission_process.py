"""The webhook with all that it needs, against an API server in memory."""

import asyncio
import base64
import random
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from quadriga.k8s.admission.certificates import bundle_of, issue, renew
from quadriga.k8s.admission.process import Plan, run
from quadriga.k8s.admission.validators import ask_core
from tests.k8s.admission.test_k8s_admission_certificates import NOW
from tests.k8s.admission_server import MemoryServer

MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/quadriga-admission"
MAPS = "/api/v1/namespaces/own/configmaps"
TRUST = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/quadriga-admission"


class Timing:
    """Every sleep waits until the test says so."""

    def __init__(self) -> None:
        self.sleeping = asyncio.Event()
        self.wake = asyncio.Event()

    def now(self) -> int:
        return 0

    def random(self) -> float:
        return random.random()

    async def sleep(self, seconds: float) -> None:
        self.sleeping.set()
        await self.wake.wait()
        self.wake.clear()


@asynccontextmanager
async def running(
    server: MemoryServer, timing: Timing, **more: Any
) -> AsyncGenerator[tuple[int, Callable[[], asyncio.Task[None]]]]:
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    plan = Plan("own", "127.0.0.1", 0, **more)
    running = run(server, plan, timing, validate=ask_core, ready=ready.set_result)  # type: ignore[arg-type]
    task = asyncio.create_task(running)
    try:
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        yield ready.result() if ready.done() else 0, lambda: task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def health(port: int, bundle: bytes, name: str) -> int:
    trust = ssl.create_default_context(cadata=bundle.decode())
    async with aiohttp.ClientSession() as session:
        url = f"https://127.0.0.1:{port}/health"
        async with session.get(url, ssl=trust, server_hostname=name) as response:
            return response.status


def bundle_in(server: MemoryServer) -> bytes:
    return base64.b64decode(server.objects[MUTATING]["webhooks"][0]["clientConfig"]["caBundle"])


async def test_k158_it_serves_with_what_the_api_server_was_told() -> None:
    server = MemoryServer("1.20")
    server.objects[f"{MAPS}/yunikorn-configs"] = {
        "metadata": {"name": "yunikorn-configs", "namespace": "own", "uid": "1"},
        "data": {"admissionController.webHook.amServiceName": "mine"},
    }
    async with running(server, Timing()) as (port, _):
        assert await health(port, bundle_in(server), "mine.own.svc") == 200
        webhook = server.objects[MUTATING]["webhooks"][0]
        assert webhook["clientConfig"]["service"]["name"] == "mine"
        assert "matchConditions" not in webhook
    # The registration stays: another replica may serve, and without one it is passed by.
    assert MUTATING in server.objects


async def test_a_registration_that_was_deleted_comes_back() -> None:
    server, timing = MemoryServer(), Timing()
    async with running(server, timing):
        writes = server.writes
        await timing.sleeping.wait()
        timing.sleeping.clear()
        del server.objects[TRUST]
        timing.wake.set()
        await timing.sleeping.wait()
        assert TRUST in server.objects
        assert server.writes == writes + 1


async def test_it_waits_for_a_certificate() -> None:
    server, timing = MemoryServer(), Timing()
    server.refusals = [("POST", 500)]
    task = asyncio.create_task(_first_port(server, timing))
    await timing.sleeping.wait()
    assert not task.done()
    timing.wake.set()
    assert await task > 0


async def _first_port(server: MemoryServer, timing: Timing) -> int:
    async with running(server, timing) as (port, _):
        return port


async def test_k166_with_a_mounted_certificate_and_a_url(tmp_path: Path) -> None:
    renewal = renew((None, None), NOW)
    found = issue(renewal, ["hook.example"], NOW)
    chain, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    chain.write_bytes(found.chain_pem)
    key.write_bytes(found.key_pem)
    (tmp_path / "ca.crt").write_bytes(bundle_of(renewal.authorities))
    server = MemoryServer()
    more = {"mounted": (chain, key), "url": "https://hook.example:1"}
    async with running(server, Timing(), **more) as (port, _):
        assert await health(port, bundle_in(server), "hook.example") == 200
        client = server.objects[MUTATING]["webhooks"][0]["clientConfig"]
        assert client["url"] == "https://hook.example:1/mutate"
    assert not any("secrets" in path for path in server.objects)


async def test_a_port_that_is_taken_ends_it() -> None:
    server = MemoryServer()
    async with running(server, Timing()) as (port, _):
        plan = Plan("own", "127.0.0.1", port)
        with pytest.raises(OSError):
            await run(server, plan, Timing(), validate=ask_core)  # type: ignore[arg-type]
