"""The application on a port of this machine, with clients, for tests."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import httpx

from quadriga.web.app import create_app
from quadriga.web.server import WebServer

Client = httpx.AsyncClient

#: s; nothing here takes this long, it only ends a test that would hang
PATIENCE = 120.0


@asynccontextmanager
async def on_a_port(cluster: Any, **settings: Any) -> AsyncIterator[Client]:
    """A client of a real server."""
    server = WebServer(create_app(cluster.service, cluster.views, **settings), port=0)
    port = await server.start()
    try:
        address = f"http://127.0.0.1:{port}"
        async with Client(base_url=address, timeout=PATIENCE) as client:
            yield client
    finally:
        await server.stop()


@contextmanager
def serving(cluster: Any, **settings: Any) -> Iterator[str]:
    """A real server, whose loop is in a thread of its own; gives its address."""
    up, done = threading.Event(), asyncio.Event()
    found: list[Any] = []

    async def run() -> None:
        found.append(asyncio.get_running_loop())
        async with on_a_port(cluster, **settings) as client:
            found.append(str(client.base_url).rstrip("/"))
            up.set()
            await done.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()), name="web")
    thread.start()
    try:
        assert up.wait(PATIENCE)
        yield found[1]
    finally:
        if found:
            found[0].call_soon_threadsafe(done.set)
        thread.join()


@asynccontextmanager
async def client_of(cluster: Any, **settings: Any) -> AsyncIterator[Client]:
    """A client without a server between: no port, no lifespan."""
    app = create_app(cluster.service, cluster.views, **settings)
    transport = httpx.ASGITransport(app)
    async with Client(transport=transport, base_url="http://127.0.0.1:1") as client:
        yield client


async def all_said(client: Client, sent: bytes) -> bytes:
    """What the server says to these bytes until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
    writer.write(sent)
    said = b""
    with suppress(ConnectionResetError):  # it was closed with something unread
        async with asyncio.timeout(PATIENCE):
            said = await reader.read()
    writer.close()
    with suppress(ConnectionResetError):
        await writer.wait_closed()
    return said
