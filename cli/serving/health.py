"""The port for probes and Prometheus: ``/livez``, ``/readyz`` and ``/metrics``, and nothing else (K16).

``/healthz`` is ``/livez`` by its older name.

It tells no names of the cluster except in metrics, and changes nothing, so that it may listen beyond
loopback while pages and REST do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from quadriga.si.open_connections import OpenConnections, listen

#: what is wrong, in a sentence, or "" if nothing is
Look = Callable[[], str]
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class HealthServer:
    """``alive`` and ``ready`` are asked for every request; ``metrics`` gives the text for Prometheus.
    ``standby`` says for whom a process that is ready stands by, "" if for nobody. The port has a tenth of
    the ``connections`` of a web server: a new one closes the oldest of its address, or of the address with
    most."""

    def __init__(
        self,
        *,
        alive: Look,
        ready: Look,
        metrics: Callable[[], Awaitable[bytes]],
        standby: Look = lambda: "",
        connections: tuple[int, int] = (1000, 500),
    ) -> None:
        self._metrics = metrics
        self._connections = OpenConnections("health port", *connections, share=10)
        self._listening: asyncio.Server | None = None
        app = web.Application()
        app.router.add_get("/livez", _answering(alive))
        app.router.add_get("/healthz", _answering(alive))
        app.router.add_get("/readyz", _answering(ready, standby))
        app.router.add_get("/metrics", self._scrape)
        self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=1.0
        )

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port. Raises `OSError`."""
        await self._runner.setup()
        self._listening = await listen(self._runner.server, self._connections, host, port)
        bound: int = self._listening.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        if self._listening is not None:
            self._listening.close()
        await self._runner.cleanup()

    async def _scrape(self, request: web.Request) -> web.Response:
        body = await self._metrics()
        return web.Response(body=body, headers={"Content-Type": _TEXT})


def _answering(
    look: Look, says: Look = lambda: ""
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        wrong = look()
        if wrong:
            return web.Response(status=503, text=f"{wrong}\n")
        return web.Response(text=f"{says() or 'ok'}\n")

    return answer
