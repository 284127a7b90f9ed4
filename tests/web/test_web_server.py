"""The port: how many may come, how it ends, whose certificates are read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
from live_cluster import LiveCluster

from quadriga.base.tls import server_context
from quadriga.web import server as web_server
from quadriga.web.app import create_app
from quadriga.web.server import WebServer, names_of

PATIENCE = 20.0
REQUEST = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@asynccontextmanager
async def served(cluster: LiveCluster, connections: int, **bounds: int) -> AsyncIterator[int]:
    """The port of a server that has room for so many."""
    app = create_app(cluster.service, cluster.views)
    server = WebServer(app, port=0, connections=connections, **bounds)
    try:
        yield await server.start()
    finally:
        await server.stop()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def status(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes = REQUEST
) -> bytes:
    """The status of one answer; empty where there is none."""
    with suppress(ConnectionError):
        writer.write(request)
        async with asyncio.timeout(PATIENCE):
            return (await reader.readline())[9:12]
    return b""


async def test_more_connections_than_there_is_room_for_are_told_so_and_then_cut_off(
    monkeypatch: pytest.MonkeyPatch, still: LiveCluster
) -> None:
    monkeypatch.setattr(web_server, "OVERFLOW_CONNECTIONS", 1)
    async with served(still, 2) as port, AsyncExitStack() as stack:
        for said in (b"200", b"200", b"503"):
            assert await status(*await stack.enter_async_context(connected(port))) == said
        await stack.enter_async_context(connected(port))  # says nothing, and is kept for a while
        assert await status(*await stack.enter_async_context(connected(port))) == b""


@pytest.mark.parametrize(("size", "said"), [(32 << 10, b"200"), ((32 << 10) + 1, b"400")])
async def test_q16_a_head_beyond_its_bound_is_refused_also_if_it_comes_at_once(
    size: int, said: bytes, still: LiveCluster
) -> None:
    head = REQUEST[:-2] + b"X: " + b"x" * (size - len(REQUEST) - 5) + b"\r\n\r\n"
    assert len(head) == size
    async with served(still, 1) as port, connected(port) as ends:
        assert await status(*ends, head) == said


async def test_who_goes_makes_room(still: LiveCluster) -> None:
    async with served(still, 1) as port:
        for _ in range(3):
            async with connected(port) as ends:
                assert await status(*ends) == b"200"
                ends[1].write_eof()
                async with asyncio.timeout(PATIENCE):
                    await ends[0].read()


async def test_it_says_when_it_ends(cluster: LiveCluster) -> None:
    server = WebServer(create_app(cluster.service, cluster.views), port=0)
    await server.ended()
    await server.start()
    ended = asyncio.create_task(server.ended())
    await server.stop()
    async with asyncio.timeout(PATIENCE):
        await ended


def test_the_names_of_a_certificate_are_all_that_it_goes_by() -> None:
    certificate = {
        "subject": ((("organizationName", "o"),), (("commonName", "shim-a"),)),
        "subjectAltName": (("DNS", "shim-a"), ("URI", "spiffe://x/shim-a"), ("DNS", "b")),
    }
    assert names_of(certificate) == ("shim-a", "spiffe://x/shim-a", "b")
    assert names_of({}) == names_of(None) == ()


def test_files_that_are_not_what_they_should_be_are_named(tmp_path: Path) -> None:
    gone, text = tmp_path / "gone.pem", tmp_path / "text.pem"
    text.write_text("text", encoding="utf-8")
    with pytest.raises(ValueError, match="gone.pem.*No such file"):
        server_context(gone, gone)
    with pytest.raises(ValueError, match="text.pem are not a certificate and its key"):
        server_context(text, text)


async def test_q16_one_address_cannot_take_all_connections(still: LiveCluster) -> None:
    async with served(still, 4, connections_per_client=1) as port, connected(port) as first:
        assert await status(*first) == b"200"
        async with connected(port) as (reader, _), asyncio.timeout(PATIENCE):
            answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"127.0.0.1 has 1 connections" in answer
    assert b"--max-connections-per-client" in answer
