"""The application on a port of this machine, with clients, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from live_cluster import LiveCluster

from quadriga.web.app import create_app
from quadriga.web.server import WebServer

__all__ = ["PATIENCE", "client_of", "on_a_port"]

#: s; nothing here takes this long, it only ends a test that would hang
PATIENCE = 20.0


@asynccontextmanager
async def on_a_port(cluster: LiveCluster, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a real server."""
    server = WebServer(create_app(cluster.service, cluster.views, **settings), port=0)
    port = await server.start()
    try:
        address = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
            yield client
    finally:
        await server.stop()


@asynccontextmanager
async def client_of(cluster: LiveCluster, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a server between: no port, no lifespan."""
    app = create_app(cluster.service, cluster.views, **settings)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:1") as client:
        yield client
