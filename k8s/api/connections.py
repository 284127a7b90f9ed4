"""Connections to the API server for requests with a short reply: HTTP/1.1, kept open, one request at a time.

A bind is one small request and one small reply, and there are thousands of them. A general HTTP library
takes 200 to 240 µs of processor time for each, which is most of what the whole shim may take; this module
takes a fifth of that, because it does no more than the API server needs: no redirects, no cookies, no
compression, no proxies. Watches are read by the library.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio import AbstractEventLoop, Future, Transport
from collections import deque
from typing import Final, cast
from urllib.parse import urlsplit

__all__ = ["Broken", "Connections", "Reply"]

#: a connection that was not used for this time (s) is not used again: the server may be closing it
_IDLE: Final = 60.0
_MAX_HEAD: Final = 64 << 10
_CONNECT_TIMEOUT: Final = 10.0

#: requests that may be sent twice without harm
_REPEATABLE: Final = frozenset({"GET", "DELETE", "PATCH"})


class Broken(Exception):
    """There was no whole reply. ``untouched``: the connection ended before any of it, and was used
    before, so the server has most likely closed it for being idle."""

    def __init__(self, why: str, *, untouched: bool = False) -> None:
        super().__init__(why)
        self.untouched = untouched


class Reply:
    """``head`` is the header, in lower case."""

    __slots__ = ("body", "head", "status")

    def __init__(self, status: int, head: bytes, body: bytes) -> None:
        self.status = status
        self.head = head
        self.body = body

    def header(self, name: bytes) -> str | None:
        """The value of a header; the name in lower case."""
        return _header(self.head, name)


def _header(head: bytes, name: bytes) -> str | None:
    start = head.find(b"\r\n" + name + b":")
    if start < 0:
        return None
    start += len(name) + 3
    end = head.find(b"\r\n", start)
    return head[start : end if end >= 0 else len(head)].strip().decode("latin-1")


class _Connection(asyncio.Protocol):
    """One connection. A reply is complete by its length, by its last chunk, or by the end."""

    __slots__ = (
        "_body",
        "_buffer",
        "_chunked",
        "_head",
        "_left",
        "_loop",
        "_status",
        "_transport",
        "_used",
        "_waiter",
        "idle_since",
        "open",
    )

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: Transport | None = None
        self._waiter: Future[Reply] | None = None
        self._buffer = bytearray()
        self._status = 0
        self._head = b""
        #: bytes of the body that are still to come; below 0: until the end of the connection
        self._left = 0
        self._chunked = False
        self._body = bytearray()
        self._used = False
        self.open = False
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(Transport, transport)
        self.open = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        if self._waiter is None:
            return
        if self._status and self._left < 0 and not self._chunked and exc is None:
            self._complete(bytes(self._buffer), keep=False)
            return
        untouched = self._used and not self._status and not self._buffer
        self._fail(str(exc) if exc else "the connection was closed", untouched=untouched)

    async def exchange(self, request: bytes, timeout: float) -> Reply:
        """Send the request, return its reply. Raises `Broken`. Afterwards the connection may be closed."""
        assert self._transport is not None
        waiter: Future[Reply] = self._loop.create_future()
        self._waiter = waiter
        timer = self._loop.call_later(timeout, self._fail, "no answer in time")
        self._transport.write(request)
        try:
            reply = await waiter
        except BaseException:
            self._waiter = None
            self.close()
            raise
        finally:
            timer.cancel()
        self._used = True
        return reply

    def close(self) -> None:
        self.open = False
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, why: str, *, untouched: bool = False) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(Broken(why, untouched=untouched))

    def _complete(self, body: bytes, *, keep: bool) -> None:
        waiter, self._waiter = self._waiter, None
        status, self._status = self._status, 0
        if not keep or self._buffer:
            self.close()
        if waiter is not None and not waiter.done():
            waiter.set_result(Reply(status, self._head, body))

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:
            # A reply that nobody asked for: what comes later could be taken for another one's.
            self.close()
            return
        self._buffer += data
        try:
            self._read()
        except ValueError:
            self._fail("the reply is no HTTP")
            self.close()

    def _read(self) -> None:
        if not self._status and not self._read_head():
            return
        if self._chunked:
            self._read_chunks()
        elif self._left >= 0 and len(self._buffer) >= self._left:
            body = bytes(self._buffer[: self._left])
            del self._buffer[: self._left]
            self._complete(body, keep=b"\r\nconnection: close" not in self._head)

    def _read_head(self) -> bool:
        buffer = self._buffer
        while True:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(buffer) > _MAX_HEAD:
                    raise ValueError
                return False
            head = bytes(buffer[:end]).lower()
            if not head.startswith(b"http/1."):
                raise ValueError
            status = int(head[9:12])
            del buffer[: end + 4]
            if status >= 200:
                break
        self._head, self._status = head, status
        self._chunked = False
        if status in (204, 304):
            self._left = 0
            return True
        length = _header(head, b"content-length")
        if length is not None:
            self._left = int(length)
            if self._left < 0:
                raise ValueError
        elif (_header(head, b"transfer-encoding") or "").endswith("chunked"):
            self._chunked = True
            self._left = -1
            self._body = bytearray()
        else:
            self._left = -1
        return True

    def _read_chunks(self) -> None:
        """``_left`` is what is missing of a chunk, with the line's end after it; below 0: a size is next."""
        buffer, body = self._buffer, self._body
        while True:
            if self._left < 0:
                end = buffer.find(b"\r\n")
                if end < 0:
                    return
                size = int(bytes(buffer[:end]).split(b";")[0], 16)
                if size == 0:
                    # Trailers, and the empty line at their end.
                    if not buffer.startswith(b"\r\n", end + 2):
                        stop = buffer.find(b"\r\n\r\n", end)
                        if stop < 0:
                            return
                        end = stop
                    del buffer[: end + 4]
                    keep = b"\r\nconnection: close" not in self._head
                    self._complete(bytes(body), keep=keep)
                    return
                del buffer[: end + 2]
                self._left = size + 2
            if len(buffer) < self._left:
                return
            body += buffer[: self._left - 2]
            del buffer[: self._left]
            self._left = -1


class Connections:
    """Connections to one server, as many as there are requests at a time. Made on the event loop."""

    def __init__(self, server: str, context: ssl.SSLContext | None) -> None:
        parts = urlsplit(server)
        self._ssl = context if parts.scheme == "https" else None
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._ssl else 80)
        #: before each path
        self.prefix = parts.path.rstrip("/")
        self.host_header = parts.netloc.rpartition("@")[2]
        self._loop = asyncio.get_running_loop()
        #: the last used at the end
        self._idle: deque[_Connection] = deque()
        self._closed = False

    async def exchange(self, method: str, request: bytes, timeout: float) -> Reply:
        """One request, and its reply. Raises `Broken`, `OSError` and `TimeoutError`."""
        while True:
            connection = self._take()
            if connection is None:
                connection = await self._connect(timeout)
            try:
                reply = await connection.exchange(request, timeout)
            except Broken as broken:
                if broken.untouched and method in _REPEATABLE and not self._closed:
                    continue
                raise
            if connection.open:
                if self._closed:
                    connection.close()
                else:
                    connection.idle_since = self._loop.time()
                    self._idle.append(connection)
            return reply

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> _Connection | None:
        idle = self._idle
        if not idle:
            return None
        old = self._loop.time() - _IDLE
        while idle and idle[0].idle_since < old:
            idle.popleft().close()
        while idle:
            connection = idle.pop()
            if connection.open:
                return connection
        return None

    async def _connect(self, timeout: float) -> _Connection:
        async with asyncio.timeout(min(timeout, _CONNECT_TIMEOUT)):
            _, connection = await self._loop.create_connection(
                lambda: _Connection(self._loop),
                self._host,
                self._port,
                ssl=self._ssl,
                server_hostname=self._host if self._ssl is not None else None,
            )
        return connection
