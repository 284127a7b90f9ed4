"""A proxy before the API server, without TLS, that does wrong what a test tells it to.

It counts all writes, so that a test can end the client at any of them.
"""

import asyncio
import contextlib
import json
import re
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import aiohttp
from aiohttp import web

Kind = Literal["answer", "lost", "cut", "hang"]

_HOP = {"connection", "transfer-encoding", "content-length", "content-encoding", "host"}


@dataclass
class Fault:
    """What happens to the next ``times`` requests of this method whose path matches.

    ``answer``: the status, without asking the server. ``lost``: the server does it and its answer is lost.
    ``cut``: the connection ends, and the server hears nothing. ``hang``: nothing for ``seconds``, and then
    as ``cut``.
    """

    method: str
    path: str
    kind: Kind
    times: int = 1
    status: int = 500
    reason: str = "InternalError"
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 30
    #: how often it happened
    happened: int = 0


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    query: str
    body: bytes = b""


class FaultProxy:
    """``url`` after ``start``. ``writes`` are all POST, PUT, PATCH and DELETE, in their order."""

    def __init__(self, server: str, tls: ssl.SSLContext | None) -> None:
        self._server = server
        self._tls = tls
        self.url = ""
        self.faults: list[Fault] = []
        self.requests: list[Seen] = []
        self.writes: list[Seen] = []
        #: Called with each write: once before the server hears of it and once when it is done there. The
        #: connection is cut if it returns true.
        self.on_write: Callable[[Seen, Literal["before", "after"]], object] | None = None
        #: While true no connection gets an answer.
        self.down = False
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._end: asyncio.Event
        self._watches_go_on: asyncio.Event
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._session: aiohttp.ClientSession
        self._open: set[asyncio.Transport] = set()

    def start(self) -> None:
        self._thread.start()
        if not self._ready.wait(30):
            raise RuntimeError("the proxy does not come up")

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(30)

    def fault(self, method: str, path: str, kind: Kind, **more: object) -> Fault:
        """``path`` is a regular expression for the whole path."""
        made = Fault(method, path, kind, **more)  # type: ignore[arg-type]
        self.faults.append(made)
        return made

    def hold_watches(self, held: bool) -> None:
        """Let no watch get anything until it is called again with false."""
        change = self._watches_go_on.clear if held else self._watches_go_on.set
        self._loop.call_soon_threadsafe(change)

    def cut_all(self) -> None:
        """End all connections now."""
        self._loop.call_soon_threadsafe(self._cut_all)

    def _cut_all(self) -> None:
        for each in list(self._open):
            each.abort()

    # -- its own thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            # Watches of clients that are gone.
            for task in (left := asyncio.all_tasks(self._loop)):
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            # aiohttp leaves the end of TLS connections to the loop.
            self._loop.run_until_complete(asyncio.sleep(0.1))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _serve(self) -> None:
        self._end = asyncio.Event()
        self._watches_go_on = asyncio.Event()
        self._watches_go_on.set()
        application = web.Application(client_max_size=64 * 1024 * 1024)
        application.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls or True),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        ) as self._session:
            self._ready.set()
            await self._end.wait()
            self._cut_all()
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        assert transport is not None
        self._open.add(transport)
        try:
            return await self._answer(request)
        finally:
            self._open.discard(transport)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        seen = Seen(request.method, request.path, request.query_string, body)
        self.requests.append(seen)
        if self.down:
            return self._cut(request)
        is_write = request.method != "GET"
        if is_write:
            self.writes.append(seen)
            if self._tell(seen, "before"):
                return self._cut(request)
        fault = self._fault_of(request)
        if fault is not None and fault.kind == "answer":
            return _status(fault)
        if fault is not None and fault.kind in ("cut", "hang"):
            if fault.kind == "hang":
                await asyncio.sleep(fault.seconds)
            return self._cut(request)
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP}
        try:
            async with self._session.request(
                request.method,
                self._server + request.path_qs,
                data=body or None,
                headers=headers,
                allow_redirects=False,
            ) as answer:
                if is_write:
                    await answer.read()
                    if self._tell(seen, "after"):
                        return self._cut(request)
                if fault is not None:
                    return self._cut(request)
                return await _pass_on(request, answer, self._watches_go_on)
        except (aiohttp.ClientError, OSError):
            return self._cut(request)

    def _tell(self, seen: Seen, when: Literal["before", "after"]) -> bool:
        return self.on_write is not None and bool(self.on_write(seen, when))

    def _fault_of(self, request: web.Request) -> Fault | None:
        for each in self.faults:
            if (
                each.happened < each.times
                and each.method == request.method
                and re.fullmatch(each.path, request.path)
            ):
                each.happened += 1
                return each
        return None

    def _cut(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=502)


async def _pass_on(
    request: web.Request, answer: aiohttp.ClientResponse, watches_go_on: asyncio.Event
) -> web.StreamResponse:
    headers = {
        k: v
        for k, v in answer.headers.items()
        if k.lower() not in _HOP or k.lower() == "content-encoding"
    }
    if request.query.get("watch") not in ("1", "true"):
        return web.Response(status=answer.status, body=await answer.read(), headers=headers)
    stream = web.StreamResponse(status=answer.status, headers=headers)
    await stream.prepare(request)
    with contextlib.suppress(ConnectionError):
        async for chunk in answer.content.iter_any():
            await watches_go_on.wait()
            await stream.write(chunk)
        await stream.write_eof()
    return stream


def _status(fault: Fault) -> web.Response:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": f"the proxy says {fault.status}",
        "reason": fault.reason,
        "code": fault.status,
    }
    return web.Response(
        status=fault.status,
        body=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **fault.headers},
    )
