"""The client of the API server: requests, and streams for watches.

Requests use connections that are kept open (``connections``, K191); each watch uses one of its own. The meaning
of a response is not decided here: a request returns status and body, whatever the status is.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

from quadriga.k8s.transport.connections import Broken, Connection, Connections, Reply
from quadriga.k8s.transport.limits import Lane, Limits
from quadriga.k8s.transport.login import Login, LoginError
from quadriga.k8s.transport.requester import JSON, NoAnswer
from quadriga.k8s.tuning import TUNING

AGENT: Final = "quadriga"

_FAILED: Final = (Broken, TimeoutError, OSError)


class Stream:
    """The response to a watch: its status, and its body as it arrives."""

    def __init__(self, connection: Connection, reply: Reply) -> None:
        self._connection = connection
        self.status = reply.status

    async def body(self) -> bytes:
        """Return the whole body of a refusal. Raises `NoAnswer`."""
        return b"".join([each async for each in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, until the server ends it. Raises `NoAnswer`."""
        try:
            while chunk := await self._connection.more():
                yield chunk
        except _FAILED as error:
            raise NoAnswer(_text(error)) from error


class Client:
    """A `Requester` with the credentials of the login, within the limits. Create it on the event loop.

    ``observe(method, path, status)`` is called for each response; the status is 0 if there was none.
    """

    def __init__(
        self,
        login: Login,
        limits: Limits,
        *,
        timeout: float = TUNING.request_timeout_s,
        observe: Callable[[str, str, int], None] | None = None,
    ) -> None:
        self._server = login.server
        self._credentials = login.credentials
        self._limits = limits
        self._timeout = timeout
        self._observe = observe
        self._connections = Connections(login.server, login.ssl)
        #: what follows the path in a request, by content type and credentials
        self._heads: dict[tuple[str, str | None], bytes] = {}

    async def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = JSON,
        *,
        timeout: float | None = None,
        lane: Lane = "other",
    ) -> tuple[int, bytes]:
        """Send one request; return the status and the body. Raises `NoAnswer`.

        After a status of 401 it is sent once more if there are other credentials.
        """
        reply = await self._once(method, path, body, content_type, timeout, lane)
        if reply.status == HTTPStatus.UNAUTHORIZED and self._credentials.refused():
            reply = await self._once(method, path, body, content_type, timeout, lane)
        return reply.status, reply.body

    def on(self, lane: Lane) -> OnLane:
        """Return the same client with its requests in this lane of the limits."""
        return OnLane(self, lane)

    async def _once(
        self,
        method: str,
        path: str,
        body: bytes | None,
        content_type: str,
        timeout: float | None,
        lane: Lane,
    ) -> Reply:
        head = self._head(content_type if body is not None else "", await self._authorization())
        request = self._line(method, path, head)
        if body is not None:
            request = b"%bContent-Length: %d\r\n\r\n%b" % (request, len(body), body)
        else:
            request += b"\r\n"
        began = await self._limits.enter(lane)
        status = 0
        try:
            reply = await self._connections.exchange(method, request, timeout or self._timeout)
            status = reply.status
        except _FAILED as error:
            raise NoAnswer(_text(error)) from error
        finally:
            if status == HTTPStatus.TOO_MANY_REQUESTS:
                self._limits.pause(_retry_after(reply.header(b"retry-after")))
            self._limits.leave(lane, began)
            if self._observe is not None:
                self._observe(method, path, status)
        return reply

    def _line(self, method: str, path: str, head: bytes) -> bytes:
        target = (self._connections.prefix + path).encode("ascii")
        return b"%b %b%b" % (method.encode(), target, head)

    def _head(self, content_type: str, authorization: str | None) -> bytes:
        head = self._heads.get((content_type, authorization))
        if head is None:
            lines = [
                " HTTP/1.1",
                f"Host: {self._connections.host_header}",
                f"Accept: {JSON}",
                f"User-Agent: {AGENT}",
            ]
            if authorization is not None:
                lines.append(f"Authorization: {authorization}")
            if content_type:
                lines.append(f"Content-Type: {content_type}")
            head = "".join(f"{line}\r\n" for line in lines).encode("ascii")
            if len(self._heads) > 32:
                self._heads.clear()  # these have old tokens
            self._heads[content_type, authorization] = head
        return head

    @asynccontextmanager
    async def stream(self, path: str, timeout: float) -> AsyncGenerator[Stream]:
        """Start a watch. ``timeout`` (s) is for the whole of it. It counts in the limits until it has begun.

        Raises `NoAnswer`.
        """
        head = self._head("", await self._authorization())
        request = self._line("GET", path, head) + b"\r\n"
        await self._limits.enter("urgent")
        connection, status = None, 0
        try:
            try:
                connection = await self._connections.connect(timeout)
                reply = await connection.stream(request, timeout)
                status = reply.status
            except _FAILED as error:
                raise NoAnswer(_text(error)) from error
            finally:
                self._limits.leave("urgent")
                if self._observe is not None:
                    self._observe("WATCH", path, status)
            if status == HTTPStatus.TOO_MANY_REQUESTS:
                self._limits.pause(_retry_after(reply.header(b"retry-after")))
            elif status == HTTPStatus.UNAUTHORIZED:
                self._credentials.refused()
            yield Stream(connection, reply)
        finally:
            # The watch was left before its end, so its connection cannot be reused.
            if connection is not None:
                connection.close()

    async def _authorization(self) -> str | None:
        try:
            return await self._credentials.header()
        except LoginError as error:
            raise NoAnswer(str(error)) from error


class OnLane:
    """A client whose requests wait in one lane of the limits."""

    __slots__ = ("_client", "_lane")

    def __init__(self, client: Client, lane: Lane) -> None:
        self._client = client
        self._lane = lane

    async def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON
    ) -> tuple[int, bytes]:
        """Send one request like the client's."""
        return await self._client.request(method, path, body, content_type, lane=self._lane)


def _retry_after(text: str | None) -> float:
    """Return the seconds of the header ``Retry-After``."""
    try:
        seconds = float(text or "")
    except ValueError:
        return TUNING.retry_after_s
    if not math.isfinite(seconds):
        return TUNING.retry_after_s
    return min(max(seconds, 0.0), TUNING.longest_retry_after_s)


def _text(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__
