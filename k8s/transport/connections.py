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
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from quadriga.fsm.table import Effect, Info
from quadriga.k8s.lifecycles import connection as lifecycle
from quadriga.k8s.lifecycles.connection import CONNECTION
from quadriga.k8s.lifecycles.effects import Answer, CloseSocket, Fail, WakeReader
from quadriga.k8s.transport.sockets import Wire, connect
from quadriga.k8s.tuning import TUNING

_NOTHING: Final[Mapping[str, Any]] = {}

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
    """One connection; its lifecycle is ``CONNECTION``."""

    __slots__ = (
        "_body",
        "_deadlines",
        "_headers",
        "_keep",
        "_loop",
        "_parser",
        "_size",
        "_status",
        "_unread",
        "_waiter",
        "_why",
        "_wire",
        "deadline",
        "idle_since",
        "state",
        "streams",
        "used",
    )

    key: Final = "connection"

    def __init__(self, loop: AbstractEventLoop, deadlines: _Deadlines | None = None) -> None:
        self.state: lifecycle.State = CONNECTION.initial
        #: the request is a watch
        self.streams = False
        #: it has had a response before
        self.used = False
        self._loop = loop
        self._deadlines = deadlines or _Deadlines(loop)
        self._wire: Wire | None = None
        #: waits for the response; for a stream first for its head, then for more of its body
        self._waiter: Future[Reply | None] | None = None
        self._parser = HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._status = 0
        #: bytes of the response before its head was complete
        self._size = 0
        #: the server keeps the connection open
        self._keep = False
        self._unread = 0
        #: why it is closed, for the reader of a stream
        self._why = "the connection is closed"
        #: when (s, of the loop) the awaited data is overdue
        self.deadline = 0.0
        self.idle_since = 0.0

    @property
    def open(self) -> bool:
        """Whether the connection is open."""
        return self.state != lifecycle.CLOSED

    @property
    def lasts_to_the_end(self) -> bool:
        """Whether the end of the connection ends the response."""
        return not any(
            name.lower() in (b"content-length", b"transfer-encoding") for name, _ in self._headers
        )

    async def connect(self, host: str, port: int, context: ssl.SSLContext | None) -> None:
        """Connect to the server. Raises OSError."""
        sock = await connect(self._loop, host, port, context)
        self._wire = Wire(self._loop, sock, self.received, self._ended)

    def close(self) -> None:
        """Close the connection."""
        if self.open:
            self._fire(lifecycle.CLOSE)

    async def exchange(self, request: bytes, timeout: float) -> Reply:
        """Send the request and return its response. Raises `Broken`. The connection may be closed afterwards."""
        waiter = self._send(request, timeout)
        try:
            reply = await waiter
        except BaseException:
            self._waiter = None
            self.close()
            raise
        self.used = True
        assert reply is not None
        return reply

    async def stream(self, request: bytes, timeout: float) -> Reply:
        """Send the request and return the head of its response; `more` returns the body. All of it must arrive
        within ``timeout`` seconds. Raises `Broken`. Close the connection afterwards."""
        self.streams = True
        reply = await self._send(request, timeout)
        assert reply is not None
        return reply

    def _send(self, request: bytes, timeout: float) -> Future[Reply | None]:
        """Send the request and return the future of its response."""
        waiter = self._waiter = self._loop.create_future()
        self._fire(lifecycle.SEND)
        self.deadline = self._loop.time() + timeout
        self._deadlines.watch(self)
        assert self._wire is not None
        self._wire.send(request)
        return waiter

    async def more(self) -> bytes:
        """Wait for and return what has arrived of a stream since the last call; empty at the end. Raises
        `Broken`."""
        while not self._body:
            if self.state in lifecycle.PARSED:
                return b""
            if not self.open:
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
        if self.open:
            self._fire(lifecycle.EXPIRE)

    # -- what comes ------------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """Parse received bytes."""
        self._fire(lifecycle.ARRIVE)
        state = self.state
        if state == lifecycle.HEAD:
            self._size += len(data)
        elif state == lifecycle.CLOSED:
            return
        odd = False
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            odd = True
        if self.state == lifecycle.COMPLETE:
            self._fire(lifecycle.REUSE if self._keep and not odd else lifecycle.RETIRE)
        elif odd or (self.state == lifecycle.HEAD and self._size > TUNING.reply_head_bytes):
            self._fire(lifecycle.SPOIL)

    def _ended(self, why: str) -> None:
        """Note the end of the socket: by the other side, or by an error."""
        self._fire(lifecycle.END, {"why": why})

    # -- effects ---------------------------------------------------------------------------------

    def _fire(self, trigger: lifecycle.Trigger, info: Info = _NOTHING) -> None:
        for effect in CONNECTION.take(self, trigger, info).effects:
            _EXECUTE[effect.__class__](self, effect)

    def _answer(self, _: Effect) -> None:
        self._wake(Reply(self._status, self._headers, b"".join(self._body)))
        self._size = 0

    def _fail(self, effect: Fail) -> None:
        self._why = effect.why
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(Broken(effect.why, untouched=effect.untouched))

    def _close_socket(self, _: Effect) -> None:
        self._deadlines.connections.pop(self, None)
        if self._wire is not None:
            self._wire.close()

    def _wake(self, reply: Reply | None) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(reply)

    # -- what the parser says --------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Parser callback: a response begins."""
        if self.state in lifecycle.PARSED:
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
            self._fire(lifecycle.HEAD_)

    def on_body(self, body: bytes) -> None:
        """Parser callback: a part of the body."""
        self._body.append(body)
        if self.streams:
            self._unread += len(body)
            if self._unread > TUNING.stream_unread_bytes and self._wire is not None:
                self._wire.pause()
            self._wake(None)

    def on_message_complete(self) -> None:
        """Parser callback: the response is complete."""
        self._keep = self._parser.should_keep_alive()
        self._fire(lifecycle.WHOLE)


_EXECUTE: Final[dict[type[Effect], Callable[[Connection, Any], None]]] = {
    Answer: Connection._answer,
    Fail: Connection._fail,
    WakeReader: lambda connection, _: connection._wake(None),
    CloseSocket: Connection._close_socket,
}


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
        old = self._loop.time() - TUNING.connection_idle_s
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
        async with asyncio.timeout(min(timeout, TUNING.connect_timeout_s)):
            await connection.connect(self._host, self._port, self._ssl)
        return connection
