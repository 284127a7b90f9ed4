"""The application on a port: uvicorn, with limits on what a client may do to it."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from quadriga.web.tls import names_of

if TYPE_CHECKING:
    from quadriga.web.site import Site

__all__ = ["WebServer"]

#: bytes of a request's line and headers
HEAD_LIMIT: Final = 32 * 1024

#: s that a client may take to send them; s that an idle connection is kept
HEAD_PATIENCE: Final = 10.0
IDLE: Final = 30

#: s in which a client has to take what is buffered for it (64 kB)
STALL: Final = 30.0

#: connections at a time; more get 503, and so many more nothing
CONNECTIONS: Final = 1000
CUT_OFF: Final = 100


class WebServer:
    """Serves an application made by ``create_app``. Signals are for whoever makes it.

    ``tls`` is what ``tls.server_context`` makes; the names of a client's certificate are then in
    ``scope["state"]["certificate"]``. ``port`` 0 is any that is free. Of more than ``connections`` at
    a time some get 503, and of many more the newest are cut off.
    """

    def __init__(
        self,
        app: Starlette,
        *,
        host: str = "127.0.0.1",
        port: int = 9080,
        tls: ssl.SSLContext | None = None,
        connections: int = CONNECTIONS,
    ) -> None:
        self._site: Site = app.state.site
        self._address = host, port
        most = connections + CUT_OFF
        self._server = _Server(
            uvicorn.Config(
                app,
                http=type("Connection", (_Patient,), {"most": most}),
                ws="none",
                loop="asyncio",
                lifespan="on",
                interface="asgi3",
                # Whoever asks is who is connected: no header says otherwise.
                proxy_headers=False,
                server_header=False,
                access_log=False,
                log_config=None,
                limit_concurrency=connections + 1,  # this one is not counted
                timeout_keep_alive=IDLE,
                h11_max_incomplete_event_size=HEAD_LIMIT,
            )
        )
        self._server.config.load()
        self._server.config.ssl = tls
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> int:
        """Begin to serve. Returns the port; raises ``OSError`` where it cannot be had."""
        family, kind, protocol, _, address = socket.getaddrinfo(
            *self._address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            listener.bind(address)
            listener.setblocking(False)
        except OSError:
            listener.close()
            raise
        self._task = asyncio.create_task(self._server.serve([listener]), name="web server")
        up = asyncio.create_task(self._server.up.wait())
        await asyncio.wait((self._task, up), return_when=asyncio.FIRST_COMPLETED)
        up.cancel()
        if self._task.done():
            listener.close()
            await self._task
        found: int = listener.getsockname()[1]
        return found

    async def ended(self) -> None:
        """Wait until it serves no more, and raise why if that is not because of ``stop``."""
        task = self._task
        if task is not None:
            await asyncio.wait({task})
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def stop(self, grace: float = 5.0) -> None:
        """Take no more requests, let those under way come to an end, but not for longer than ``grace``
        (s). Streams end at once."""
        if self._task is None:
            return
        self._site.leaving.set()
        self._server.config.timeout_graceful_shutdown = max(1, round(grace))
        self._server.should_exit = True
        with suppress(asyncio.CancelledError):
            await self._task
        self._task = None


class _Server(uvicorn.Server):
    """Leaves signals alone, and says when it is up."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


class _Patient(H11Protocol):
    """Up to a point: a request whose head does not come within ``HEAD_PATIENCE`` s is not waited for,
    nor a client that does not take its answer, and of connections there are at most ``most``. Tells
    the application who is there."""

    most = CONNECTIONS + CUT_OFF
    _timer: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _taken = False

    def connection_made(self, transport: Any) -> None:
        if len(self.connections) >= self.most:
            transport.abort()
            return
        self._taken = True
        super().connection_made(transport)
        secure = transport.get_extra_info("ssl_object")
        if secure is not None:
            self.app_state = {**self.app_state, "certificate": names_of(secure.getpeercert())}
        self._watch()

    def data_received(self, data: bytes) -> None:
        if self._taken:
            super().data_received(data)
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._flows()
        if self._taken:
            super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what cannot be read, unless an answer has begun; what the application may still have
        to say about the beginning of it goes nowhere."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # an answer has begun, or it may have no text (HEAD)
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(STALL, self.transport.abort)

    def resume_writing(self) -> None:
        self._flows()
        super().resume_writing()

    def _flows(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _watch(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD_PATIENCE, self._give_up)

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
