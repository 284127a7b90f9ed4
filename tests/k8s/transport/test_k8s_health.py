"""The port for probes and Prometheus (K16)."""

import asyncio
from typing import Any

import aiohttp

from quadriga.cli.serving.health import HealthServer


async def scraped() -> bytes:
    return b"quadriga_up 1\n"


def fetched(*paths: str, method: str = "GET", standby: str = "", **not_ok: str) -> list[Any]:
    """What the server answers while this keeps it from being ``alive``, or ``ready``."""

    async def fetch() -> list[Any]:
        server = HealthServer(
            alive=lambda: not_ok.get("alive", ""),
            ready=lambda: not_ok.get("ready", ""),
            metrics=scraped,
            standby=lambda: standby,
        )
        port = await server.start("127.0.0.1", 0)
        try:
            async with aiohttp.ClientSession() as session:
                found = []
                for path in paths:
                    async with session.request(method, f"http://127.0.0.1:{port}{path}") as answer:
                        found.append((answer.status, await answer.text()))
                return found
        finally:
            await server.stop()

    return asyncio.run(fetch())


OK = (200, "ok\n")


def test_k16_whether_a_process_is_alive_and_ready() -> None:
    assert fetched("/healthz", "/readyz", "/metrics") == [OK, OK, (200, "quadriga_up 1\n")]
    by = "not listed yet: pods"
    assert fetched("/healthz", "/readyz", ready=by) == [OK, (503, f"{by}\n")]
    leader = "other-1 leads, this process stands by"
    assert fetched("/healthz", "/readyz", standby=leader) == [OK, (200, f"{leader}\n")]
    stands_still = "no turn for 12 s"
    stopped = (503, f"{stands_still}\n")
    assert fetched("/livez", "/healthz", alive=stands_still) == [stopped, stopped]


def test_there_is_nothing_else_on_the_port_and_nothing_can_be_changed() -> None:
    others = fetched("/", "/ws/v1/queues", "/healthz/../ui/", "/readyz/x")
    assert [status for status, _ in others] == [404] * 4
    for method in ("POST", "PUT", "DELETE"):
        answers = fetched("/healthz", "/metrics", method=method)
        assert [status for status, _ in answers] == [405, 405]
