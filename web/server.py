"""The HTTP server of the application: uvicorn, with limits for each client."""

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

from quadriga.si.descriptors import lowered
from quadriga.si.open_connections import OpenConnections

if TYPE_CHECKING:
    from quadriga.web.site import Site

#: bytes of a request line with its headers
HEAD_LIMIT: Final = 32 * 1024

#: s for a client to send these; s until an idle connection is closed
HEAD_TIMEOUT: Final = 10.0
IDLE_TIMEOUT: Final = 30

#: s for a client to read what is buffered for it (64 kB)
WRITE_TIMEOUT: Final = 30.0

#: open connections, beyond which requests get 503; further connections, beyond which new ones are
#: dropped
CONNECTIONS: Final = 1000
OVERFLOW_CONNECTIONS: Final = 100
#: open connections of one address; a further one gets 503 and is closed at once
CLIENT_CONNECTIONS: Final = 500

_REFUSED: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s\n"
)


class WebServer:
    """Serves an application made by ``create_app``. Signals are left to the caller.

    ``tls`` is made by ``quadriga.base.tls.server_context``; the names in a client's certificate are then in
    ``scope["state"]["certificate"]``. ``port`` 0 means any free port. Beyond ``connections`` open
    connections, or fewer if ``ulimit -n`` allows no more, requests get 503; far beyond, the newest
    connections are dropped. One address may have ``connections_per_client`` of them.
    """

    def __init__(
        self,
        app: Starlette,
        *,
        host: str = "127.0.0.1",
        port: int = 9080,
        tls: ssl.SSLContext | None = None,
        connections: int = CONNECTIONS,
        connections_per_client: int = CLIENT_CONNECTIONS,
    ) -> None:
        self._site: Site = app.state.site
        self._address = host, port
        clients = OpenConnections("HTTP", connections, connections_per_client)
        most = lowered(connections + OVERFLOW_CONNECTIONS)
        connections = max(1, min(connections, most - OVERFLOW_CONNECTIONS))
        self._server = _Server(
            uvicorn.Config(
                app,
                http=type("Connection", (_LimitedProtocol,), {"most": most, "clients": clients}),
                ws="none",
                loop="asyncio",
                lifespan="on",
                interface="asgi3",
                # The client is the peer of the connection; no header may say otherwise.
                proxy_headers=False,
                server_header=False,
                access_log=False,
                log_config=None,
                limit_concurrency=connections + 1,  # uvicorn counts the current connection too
                timeout_keep_alive=IDLE_TIMEOUT,
            )
        )
        self._server.config.load()
        self._server.config.ssl = tls
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> int:
        """Start serving and return the port. Raises ``OSError`` if the port is not available."""
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
        """Wait until the server has ended. Raises the error that ended it, unless that was
        ``stop``."""
        task = self._task
        if task is not None:
            await asyncio.wait({task})
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def stop(self, grace: float = 5.0) -> None:
        """Accept no more requests, and let those in progress finish within ``grace`` seconds.
        Streams end at once."""
        if self._task is None:
            return
        self._site.leaving.set()
        self._server.config.timeout_graceful_shutdown = max(1, round(grace))
        self._server.should_exit = True
        with suppress(asyncio.CancelledError):
            await self._task
        self._task = None


class _Server(uvicorn.Server):
    """Ignores signals and reports when the server is up."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


class _Heads(h11.Connection):
    """h11 bounds a head that is not complete yet; this one also refuses a larger one that comes at once."""

    def next_event(self) -> Any:
        begins = self.their_state is h11.IDLE
        before = len(self.trailing_data[0]) if begins else 0
        event = super().next_event()
        if isinstance(event, h11.Request) and before - len(self.trailing_data[0]) > HEAD_LIMIT:
            raise h11.RemoteProtocolError(f"the head has more than {HEAD_LIMIT} bytes")
        return event


class _LimitedProtocol(H11Protocol):
    """Limits each connection: the head of a request must arrive within ``HEAD_TIMEOUT`` s, the
    client must read its response, and at most ``most`` connections are open, of one address as many as
    ``clients`` allows. Also passes the client's certificate to the application."""

    most = CONNECTIONS + OVERFLOW_CONNECTIONS
    clients: OpenConnections
    _timer: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _taken = False

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.conn = _Heads(h11.SERVER, HEAD_LIMIT)

    def connection_made(self, transport: Any) -> None:
        if len(self.connections) >= self.most:
            transport.abort()
            return
        if why := self.clients.add(transport):
            transport.write(_REFUSED % (len(why) + 1, why.encode()))
            transport.close()
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
        """Answer an unparsable request, unless a response has begun. A pending response of the
        application to the beginning of the request is dropped."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # a response has begun, or it may have no body (HEAD)
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(WRITE_TIMEOUT, self.transport.abort)

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
            self._timer = self.loop.call_later(HEAD_TIMEOUT, self._give_up)

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def names_of(certificate: dict[str, Any] | None) -> tuple[str, ...]:
    """The common name and the alternative names in a verified client certificate."""
    if not certificate:
        return ()
    common = (pair for part in certificate.get("subject", ()) for pair in part)
    found = [value for kind, value in common if kind == "commonName"]
    found += [value for _, value in certificate.get("subjectAltName", ())]
    return tuple(dict.fromkeys(found))
