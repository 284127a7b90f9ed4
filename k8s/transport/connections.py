"""Connections to the API server: HTTP/1.1, kept open, one request at a time.

A bind is one small request and one small response, and there are thousands of them. A general HTTP library
takes 200 to 240 µs of processor time for each, which is most of what the whole shim may take (D222). httptools
parses the responses; this module is the life of a connection, limited to what the API server needs: no
redirects, cookies, compression or proxies.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio import AbstractEventLoop, Future
from collections import deque
from typing import Final
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from quadriga.k8s.transport.sockets import Wire, connect

#: seconds after which an unused connection is not reused: the server may be closing it
_IDLE: Final = 60.0
_MAX_HEAD: Final = 64 << 10
_CONNECT_TIMEOUT: Final = 10.0
#: at most this many bytes of a stream wait for their reader; then the server has to wait
_MAX_UNREAD: Final = 1 << 20

#: methods that may be sent twice without harm
_REPEATABLE: Final = frozenset({"GET", "DELETE", "PATCH"})


class Broken(Exception):
    """No complete response was received. ``untouched`` says that a reused connection ended before any part of
    it, so the server has most likely closed it for being idle."""

    def __init__(self, why: str, *, untouched: bool = False) -> None:
        super().__init__(why)
        self.untouched = untouched


class Reply:
    """A response; ``body`` is empty for a stream."""

    __slots__ = ("_headers", "body", "status")

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.status = status
        self._headers = headers
        self.body = body

    def header(self, name: bytes) -> str | None:
        """Return the value of a header; the name is in lower case."""
        return next((v.decode("latin-1") for n, v in self._headers if n.lower() == name), None)


class Connection:
    """One connection. A response is complete by its length, by its last chunk, or by the end of the connection."""

    __slots__ = (
        "_body",
        "_deadlines",
        "_headers",
        "_keep",
        "_loop",
        "_parser",
        "_size",
        "_status",
        "_streams",
        "_unread",
        "_used",
        "_waiter",
        "_whole",
        "_why",
        "_wire",
        "deadline",
        "idle_since",
    )

    def __init__(self, loop: AbstractEventLoop, deadlines: _Deadlines | None = None) -> None:
        self._loop = loop
        self._deadlines = deadlines or _Deadlines(loop)
        self._wire: Wire | None = None
        #: waits for the response; for a stream first for its head, then for more of its body
        self._waiter: Future[Reply | None] | None = None
        self._parser = HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        #: status of the current response; 0 before its head is complete
        self._status = 0
        #: bytes of the response before its head was complete
        self._size = 0
        self._whole = False
        #: the connection may be reused
        self._keep = False
        self._used = False
        self._streams = False
        self._unread = 0
        #: why a stream has ended prematurely
        self._why = ""
        #: when (s, of the loop) the awaited data is overdue
        self.deadline = 0.0
        self.idle_since = 0.0

    @property
    def open(self) -> bool:
        """Whether the connection is open."""
        return self._wire is not None and self._wire.open

    async def connect(self, host: str, port: int, context: ssl.SSLContext | None) -> None:
        """Connect to the server. Raises OSError."""
        sock = await connect(self._loop, host, port, context)
        self._wire = Wire(self._loop, sock, self.received, self._ended)

    def close(self) -> None:
        """Close the connection."""
        self._deadlines.connections.pop(self, None)
        if self._wire is not None:
            self._wire.close()

    async def exchange(self, request: bytes, timeout: float) -> Reply:
        """Send the request and return its response. Raises `Broken`. The connection may be closed afterwards."""
        waiter: Future[Reply | None] = self._loop.create_future()
        self._waiter = waiter
        self.deadline = self._loop.time() + timeout
        self._deadlines.watch(self)
        assert self._wire is not None
        self._wire.send(request)
        try:
            reply = await waiter
        except BaseException:
            self._waiter = None
            self.close()
            raise
        self._used = True
        assert reply is not None
        return reply

    async def stream(self, request: bytes, timeout: float) -> Reply:
        """Send the request and return the head of its response; `more` returns the body. All of it must arrive
        within ``timeout`` seconds. Raises `Broken`. Close the connection afterwards."""
        self._streams = True
        self._waiter = self._loop.create_future()
        self.deadline = self._loop.time() + timeout
        self._deadlines.watch(self)
        assert self._wire is not None
        self._wire.send(request)
        reply = await self._waiter
        assert reply is not None
        return reply

    async def more(self) -> bytes:
        """Wait for and return what has arrived of a stream since the last call; empty at the end. Raises
        `Broken`."""
        while not self._body:
            if self._whole:
                return b""
            if self._why:
                raise Broken(self._why)
            self._waiter = self._loop.create_future()
            await self._waiter
        found = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body.clear()
        self._unread = 0
        if self._wire is not None:
            self._wire.resume()
        return found

    def expire(self) -> None:
        """Fail what is awaited because its deadline is over. A connection that awaits nothing stays open."""
        self._fail("no answer in time")

    # -- what comes ------------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """Parse received bytes."""
        if self._waiter is None and not self._streams:
            # This response was not requested: later ones could be taken for those of other requests.
            self.close()
            return
        if not self._status:
            self._size += len(data)
        odd = False
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            odd = True
        if self._whole:
            self._complete(keep=self._keep and not odd)
        elif odd or (not self._status and self._size > _MAX_HEAD):
            self._fail("the reply is no HTTP")
            self.close()

    def _complete(self, *, keep: bool) -> None:
        if self._streams:
            self._wake(None)
            return
        waiter, self._waiter = self._waiter, None
        reply = Reply(self._status, self._headers, b"".join(self._body))
        self._status = self._size = 0
        self._whole = False
        if not keep:
            self.close()
        if waiter is not None and not waiter.done():
            waiter.set_result(reply)

    def _ended(self, why: str) -> None:
        """Close the connection and fail what is awaited."""
        if self._status and not why and not self._whole and _is_until_the_end(self._headers):
            self._whole = True
            self._complete(keep=False)
            return
        untouched = self._used and not self._status and not self._size
        self._fail(why or "the connection was closed", untouched=untouched)

    def _fail(self, why: str, *, untouched: bool = False) -> None:
        if self._streams and self._status:
            if not self._whole:
                self._why = why
            self._wake(None)
            return
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(Broken(why, untouched=untouched))

    def _wake(self, reply: Reply | None) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(reply)

    # -- what the parser says --------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Parser callback: a response begins."""
        if self._whole:
            raise ValueError("a second reply")
        self._headers = []
        self._body = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Parser callback: a header is complete."""
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Parser callback: the head is complete."""
        status = self._parser.get_status_code()
        if status >= 200:  # informational responses precede the final one
            self._status = status
            if self._streams:
                self._wake(Reply(status, self._headers, b""))

    def on_body(self, body: bytes) -> None:
        """Parser callback: a part of the body."""
        self._body.append(body)
        if self._streams:
            self._unread += len(body)
            if self._unread > _MAX_UNREAD and self._wire is not None:
                self._wire.pause()
            self._wake(None)

    def on_message_complete(self) -> None:
        """Parser callback: the response is complete."""
        self._whole = self._status > 0
        self._keep = self._parser.should_keep_alive()


def _is_until_the_end(headers: list[tuple[bytes, bytes]]) -> bool:
    return not any(n.lower() in (b"content-length", b"transfer-encoding") for n, _ in headers)


class _Deadlines:
    """One timer for all connections: a timer for each request would cost as much as parsing its response."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        #: open connections that have sent a request
        self.connections: dict[Connection, None] = {}

    def watch(self, connection: Connection) -> None:
        """Let the connection expire at its deadline."""
        self.connections[connection] = None
        if self._timer is None or self._timer.when() > connection.deadline:
            self.stop()
            self._timer = self._loop.call_at(connection.deadline, self._look)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        for each in [each for each in self.connections if each.deadline <= now]:
            del self.connections[each]
            each.expire()
        if self.connections:
            first = min(each.deadline for each in self.connections)
            self._timer = self._loop.call_at(first, self._look)


class Connections:
    """Connections to one server, as many as there are concurrent requests. Create them on the event loop."""

    def __init__(self, server: str, context: ssl.SSLContext | None) -> None:
        parts = urlsplit(server)
        secure = parts.scheme == "https"
        self._ssl = (context or ssl.create_default_context()) if secure else None
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if secure else 80)
        #: precedes each path
        self.prefix = parts.path.rstrip("/")
        self.host_header = parts.netloc.rpartition("@")[2]
        self._loop = asyncio.get_running_loop()
        #: the most recently used one is last
        self._idle: deque[Connection] = deque()
        self._deadlines = _Deadlines(self._loop)
        self._closed = False

    async def exchange(self, method: str, request: bytes, timeout: float) -> Reply:
        """Send one request and return its response. Raises `Broken`, `OSError` and `TimeoutError`."""
        while True:
            connection = self._take()
            if connection is None:
                connection = await self.connect(timeout)
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
        """Close all connections."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
        self._deadlines.stop()

    def _take(self) -> Connection | None:
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

    async def connect(self, timeout: float) -> Connection:
        """Return a new connection. Raises `OSError` and `TimeoutError`."""
        connection = Connection(self._loop, self._deadlines)
        async with asyncio.timeout(min(timeout, _CONNECT_TIMEOUT)):
            await connection.connect(self._host, self._port, self._ssl)
        return connection
