"""The port for probes and Prometheus (K16)."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from quadriga.cli.serving.health import HealthServer


async def scraped() -> bytes:
    return b"quadriga_up 1\n"


async def fetched(server: HealthServer, *paths: str, method: str = "GET") -> list[tuple[int, str]]:
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


def test_k16_a_process_that_schedules_is_alive_and_ready() -> None:
    server = HealthServer(alive=lambda: "", ready=lambda: "", metrics=scraped)
    assert asyncio.run(fetched(server, "/healthz", "/readyz", "/metrics")) == [
        (200, "ok\n"),
        (200, "ok\n"),
        (200, "quadriga_up 1\n"),
    ]


def test_k16_a_process_that_is_starting_is_alive_and_not_ready() -> None:
    server = HealthServer(alive=lambda: "", ready=lambda: "not listed yet: pods", metrics=scraped)
    assert asyncio.run(fetched(server, "/healthz", "/readyz")) == [
        (200, "ok\n"),
        (503, "not listed yet: pods\n"),
    ]


def test_k16_a_process_that_stands_by_is_ready_and_says_for_whom() -> None:
    says = "other-1 leads, this process stands by"
    server = HealthServer(alive=lambda: "", ready=lambda: "", metrics=scraped, standby=lambda: says)
    assert asyncio.run(fetched(server, "/healthz", "/readyz")) == [
        (200, "ok\n"),
        (200, f"{says}\n"),
    ]


def test_k16_a_loop_that_stands_still_is_not_alive() -> None:
    server = HealthServer(alive=lambda: "no turn for 12 s", ready=lambda: "", metrics=scraped)
    assert asyncio.run(fetched(server, "/healthz")) == [(503, "no turn for 12 s\n")]


@pytest.mark.parametrize("path", ["/", "/ws/v1/queues", "/healthz/../ui/", "/readyz/x"])
def test_there_is_nothing_else_on_the_port(path: str) -> None:
    server = HealthServer(alive=lambda: "", ready=lambda: "", metrics=scraped)
    assert asyncio.run(fetched(server, path))[0][0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_changed_there(method: str) -> None:
    server = HealthServer(alive=lambda: "", ready=lambda: "", metrics=scraped)
    answers = asyncio.run(fetched(server, "/healthz", "/metrics", method=method))
    assert [status for status, _ in answers] == [405, 405]
