"""An API server in memory, as far as admission needs one: objects by their paths, with versions."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from quadriga.k8s.transport.requester import JSON, NoAnswer

#: collections of which the server has objects
_LAST = {"POST": 201, "PUT": 200}


class _Quiet:
    """A watch in which nothing happens."""

    status = 200

    async def body(self) -> bytes:
        return b""

    async def chunks(self) -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""


class MemoryServer:
    """A client of itself. ``writes`` counts writes; ``down`` makes each request fail."""

    def __init__(self, version: str = "1.36") -> None:
        major, minor = version.split(".")
        self.objects: dict[str, dict[str, Any]] = {"/version": {"major": major, "minor": minor}}
        self.requests: list[tuple[str, str]] = []
        self.writes = 0
        self.down = False
        #: answers instead of what the server would do, once each: by method
        self.refusals: list[tuple[str, int]] = []

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = JSON,
        *,
        timeout: float | None = None,
        lane: str = "",
    ) -> tuple[int, bytes]:
        self.requests.append((method, path))
        if self.down:
            raise NoAnswer("nobody listens")
        for each in self.refusals:
            if each[0] == method:
                self.refusals.remove(each)
                return each[1], b"{}"
        collection, query, _ = path.partition("?")
        if query:
            items = [each for key, each in self.objects.items() if key.startswith(collection + "/")]
            page = {"metadata": {"resourceVersion": "1"}, "items": items}
            return 200, json.dumps(page).encode()
        if method == "GET":
            found = self.objects.get(path)
            return (404, b"{}") if found is None else (200, json.dumps(found).encode())
        if method == "DELETE":
            return (404 if self.objects.pop(path, None) is None else 200), b"{}"
        assert body is not None
        return self._write(method, path, json.loads(body))

    def _write(self, method: str, path: str, found: dict[str, Any]) -> tuple[int, bytes]:
        if method == "POST":
            path = f"{path}/{found['metadata']['name']}"
            if path in self.objects:
                return 409, b"{}"
        elif path not in self.objects:
            return 404, b"{}"
        else:
            before = self.objects[path]["metadata"].get("resourceVersion")
            if found["metadata"].get("resourceVersion") not in (None, before):
                return 409, b"{}"
        self.writes += 1
        found["metadata"]["resourceVersion"] = str(self.writes)
        self.objects[path] = found
        return _LAST[method], json.dumps(found).encode()

    @asynccontextmanager
    async def stream(self, path: str, timeout: float) -> AsyncGenerator[_Quiet]:
        yield _Quiet()
