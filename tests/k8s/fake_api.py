"""A small API server on loopback, with faults by script: pods, their bindings, lists and watches."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from quadriga.k8s.transport.client import Client
from quadriga.k8s.transport.limits import Limits
from quadriga.k8s.transport.login import Fixed, Login

Json = dict[str, Any]

#: Faults: the connection ends before the request is looked at; after it took effect; or nothing happens.
DROP, LOST, HANG = "drop", "lost", "hang"
Fault = int | str | tuple[int, dict[str, str]] | Callable[["FakeApi"], None] | None


def pod(name: str, *, uid: str = "", version: int = 1, node: str = "", **more: Any) -> Json:
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
    }
    metadata |= more.pop("metadata", {})
    return {
        "metadata": metadata,
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": "Pending"},
    } | more


def event(kind: str, object: Json) -> bytes:
    return json.dumps({"type": kind, "object": object}).encode() + b"\n"


def marked(version: int) -> bytes:
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})


def expired() -> bytes:
    return event("ERROR", {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired"})


def status(code: int, reason: str, message: str = "") -> web.Response:
    body = {
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }
    return web.json_response(body, status=code)


class FakeApi:
    """``faults`` maps "METHOD path's end" to what happens to the next such requests, one after the other.
    ``watches`` holds what the next watches send: bytes, ``HANG``, or a status instead of a watch.
    """

    def __init__(self) -> None:
        self.url = ""
        self.pods: dict[str, Json] = {}
        self.version = 1
        self.requests: list[tuple[str, str, Any]] = []
        self.headers: list[Any] = []
        self.faults: dict[str, deque[Fault]] = {}
        self.watches: deque[list[Any]] = deque()
        self.pages: deque[Any] = deque()
        self.connections: set[Any] = set()
        self.stopping = asyncio.Event()
        #: of every list and watch
        self.queries: list[str] = []
        #: the other kinds, by plural, and what is found under a path
        self.others: dict[str, list[Json]] = {}
        self.found: dict[str, Json] = {}
        self._watching: dict[str, web.StreamResponse] = {}
        self._ended = asyncio.Event()

    # -- script ----------------------------------------------------------------------------------

    def add(self, *pods: Json) -> None:
        for each in pods:
            self.pods[each["metadata"]["name"]] = each

    def fault(self, what: str, *faults: Fault) -> None:
        self.faults.setdefault(what, deque()).extend(faults)

    def made(self, method: str, end: str = "") -> list[Any]:
        return [body for verb, path, body in self.requests if verb == method and path.endswith(end)]

    async def say(self, line: bytes, plural: str = "pods") -> None:
        while plural not in self._watching:
            await asyncio.sleep(0.001)
        await self._watching[plural].write(line)

    async def end(self) -> None:
        while "pods" not in self._watching:
            await asyncio.sleep(0.001)
        del self._watching["pods"]
        self._ended.set()

    # -- server ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[FakeApi]:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}"
        try:
            yield self
        finally:
            self.stopping.set()
            self._ended.set()
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.connections.add(request.transport)
        text = await request.text()
        body = json.loads(text) if text else None
        self.requests.append((request.method, request.path, body))
        self.headers.append(request.headers)
        if request.method == "GET" and request.path.endswith("/pods"):
            self.queries.append(request.query_string)
        if "watch" in request.query:
            return await self._watch(request)
        fault = self._fault_of(request)
        if callable(fault):
            fault(self)
        elif fault == HANG:
            await self.stopping.wait()
            raise asyncio.CancelledError
        elif isinstance(fault, int):
            return status(fault, "Scripted", "as the test says")
        elif isinstance(fault, tuple):
            return web.Response(status=fault[0], headers=fault[1])
        elif fault == DROP:
            return self._drop(request)
        reply = self._answer(request, body)
        return self._drop(request) if fault == LOST else reply

    def _fault_of(self, request: web.Request) -> Fault:
        for what, faults in self.faults.items():
            method, end = what.split(" ")
            if faults and request.method == method and request.path.endswith(end):
                return faults.popleft()
        return None

    @staticmethod
    def _drop(request: web.Request) -> web.Response:
        request.transport.abort()
        return web.Response()

    def _answer(self, request: web.Request, body: Any) -> web.Response:
        *_, last = parts = request.path.strip("/").split("/")
        if last == "pods":
            if request.method == "GET":
                return self._list(request)
            return self._create(body)
        if last in self.others:
            return web.json_response(
                {"metadata": {"resourceVersion": "1"}, "items": self.others[last]}
            )
        if request.path in self.found:
            return web.json_response(self.found[request.path])
        if "pods" not in parts:
            return status(404, "NotFound")
        name = parts[parts.index("pods") + 1]
        found = self.pods.get(name)
        if found is None:
            return status(404, "NotFound")
        if last == "binding":
            return self._bind(found, body)
        uid = found["metadata"]["uid"]
        if request.method == "DELETE":
            if body["preconditions"]["uid"] != uid:
                return status(409, "Conflict", "Precondition failed: UID in precondition")
            del self.pods[name]
            return web.json_response({})
        if request.method == "PATCH":
            if body["metadata"].get("uid", uid) != uid:
                return status(409, "Conflict", "Precondition failed: UID in object meta")
            found.setdefault("patches", []).append(body)
        return web.json_response(found)

    def _create(self, body: Json) -> web.Response:
        if body["metadata"]["name"] in self.pods:
            return status(409, "AlreadyExists")
        self.add(body)
        return web.json_response(body, status=201)

    @staticmethod
    def _bind(found: Json, body: Json) -> web.Response:
        if body["metadata"]["uid"] != found["metadata"]["uid"]:
            return status(409, "Conflict", "Precondition failed: UID")
        if found["spec"].get("nodeName") or found["metadata"].get("deletionTimestamp"):
            return status(409, "Conflict", "is already assigned to a node")
        found["spec"]["nodeName"] = body["target"]["name"]
        return web.json_response({"kind": "Status", "status": "Success"}, status=201)

    def _list(self, request: web.Request) -> web.Response:
        if self.pages:
            page = self.pages.popleft()
            if isinstance(page, int):
                return status(page, "Expired" if page == 410 else "Scripted")
            return web.json_response(page)
        every = sorted(self.pods.values(), key=lambda each: each["metadata"]["name"])
        start = int(request.query.get("continue", 0))
        end = start + int(request.query.get("limit", len(every) or 1))
        rest = {"continue": str(end)} if end < len(every) else {}
        metadata = {"resourceVersion": str(self.version), **rest}
        return web.json_response({"metadata": metadata, "items": every[start:end]})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        mine = request.path.endswith("/pods") and self.watches
        steps = self.watches.popleft() if mine else [HANG]
        if steps and isinstance(steps[0], int):
            return status(steps[0], "Scripted")
        response = web.StreamResponse()
        await response.prepare(request)
        for step in steps:
            if step == HANG:
                self._watching[request.path.rpartition("/")[2]] = response
                if request.path.endswith("/pods"):
                    self._ended.clear()
                    await self._ended.wait()
                else:
                    await self.stopping.wait()
            elif step == DROP:
                self._drop(request)
            else:
                await response.write(step)
        return response


class FakeTime:
    """Time that passes while somebody sleeps, and no faster."""

    def __init__(self, chance: float = 1.0) -> None:
        self.ns = 1_000_000_000_000
        self.slept: list[float] = []
        self.chance = chance

    def now(self) -> int:
        return self.ns

    def random(self) -> float:
        return self.chance

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.ns += int(seconds * 1e9)
        await asyncio.sleep(0)


@asynccontextmanager
async def client_of(
    api: FakeApi, time: FakeTime | None = None, *, timeout: float = 600.0, **limits: int
) -> AsyncIterator[Client]:
    time = time or FakeTime()
    numbers = {"qps": 1_000_000, "burst": 1_000_000, "inflight": 32} | limits
    login = Login(api.url, None, Fixed("Bearer secret"))
    async with Client(
        login, Limits(**numbers, clock=time.now, later=_at_once(time)), timeout=timeout
    ) as client:
        yield client


def _at_once(time: FakeTime) -> Callable[[float, Callable[[], None]], object]:
    def later(seconds: float, call: Callable[[], None]) -> None:
        def now() -> None:
            time.ns += int(seconds * 1e9) + 1
            call()

        time.slept.append(seconds)
        asyncio.get_running_loop().call_soon(now)

    return later
