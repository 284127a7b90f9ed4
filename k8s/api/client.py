"""The client of the API server: requests, and streams for watches.

One session for everything, with connections that are kept (K191). What a reply means is not decided here:
a request gives its status and its body, whatever the status is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
from yarl import URL

from quadriga.k8s.api.limits import Limits
from quadriga.k8s.api.login import Login, LoginError
from quadriga.k8s.api.requester import JSON, NoAnswer

__all__ = ["Client", "Stream"]

#: a request without an answer for this time (s) has none
REQUEST_TIMEOUT: Final = 10.0
#: a page of a list may take longer (s)
LIST_TIMEOUT: Final = 60.0
_CONNECT_TIMEOUT: Final = 10.0

UNAUTHORIZED: Final = 401
TOO_MANY: Final = 429
#: the wait (s) where a 429 names none, and the longest one that is obeyed
_RETRY_AFTER: Final = 1.0
_LONGEST_RETRY_AFTER: Final = 60.0

_FAILED: Final = (aiohttp.ClientError, TimeoutError, OSError)


class Stream:
    """The answer to a watch: its status, and its body as it comes."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status

    async def body(self) -> bytes:
        """The whole body, of a refusal. Raises `NoAnswer`."""
        try:
            return await self._response.read()
        except _FAILED as error:
            raise NoAnswer(_text(error)) from error

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, until the server ends it. Raises `NoAnswer`."""
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except _FAILED as error:
            raise NoAnswer(_text(error)) from error


class Client:
    """A `Requester` with the login's credentials, within the limits. Made on the event loop.

    ``observe(method, path, status)`` hears of each answer; the status is 0 if there was none.
    """

    def __init__(
        self,
        login: Login,
        limits: Limits,
        *,
        timeout: float = REQUEST_TIMEOUT,
        observe: Callable[[str, str, int], None] | None = None,
    ) -> None:
        self._server = login.server
        self._credentials = login.credentials
        self._limits = limits
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._observe = observe
        connector = aiohttp.TCPConnector(
            limit=0, ssl=login.ssl if login.ssl is not None else True, keepalive_timeout=60
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": "quadriga"},
            timeout=self._timeout,
            auto_decompress=False,
        )
        self._headers: dict[tuple[str, str | None], dict[str, str]] = {}

    async def close(self) -> None:
        await self._session.close()

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
    ) -> tuple[int, bytes]:
        """One request; returns the status and the body. Raises `NoAnswer`.

        With a status of 401 it is sent once more if there are other credentials.
        """
        status, reply = await self._once(method, path, body, content_type, timeout)
        if status == UNAUTHORIZED and self._credentials.refused():
            status, reply = await self._once(method, path, body, content_type, timeout)
        return status, reply

    async def _once(
        self, method: str, path: str, body: bytes | None, content_type: str, timeout: float | None
    ) -> tuple[int, bytes]:
        headers = await self._prepare(content_type if body is not None else "")
        await self._limits.enter()
        status = 0
        try:
            async with self._session.request(
                method,
                URL(self._server + path, encoded=True),
                data=body,
                headers=headers,
                allow_redirects=False,
                timeout=self._timeout if timeout is None else aiohttp.ClientTimeout(total=timeout),
            ) as response:
                # Read to the end, whatever it is: only then is the connection kept.
                reply = await response.read()
                status = response.status
                if status == TOO_MANY:
                    self._limits.pause(_retry_after(response))
        except _FAILED as error:
            raise NoAnswer(_text(error)) from error
        finally:
            self._limits.leave()
            if self._observe is not None:
                self._observe(method, path, status)
        return status, reply

    @asynccontextmanager
    async def stream(self, path: str, timeout: float) -> AsyncGenerator[Stream]:
        """A watch. ``timeout`` (s) is for the whole of it. It counts in the limits until it has begun.

        Raises `NoAnswer`.
        """
        headers = await self._prepare("")
        await self._limits.enter()
        status = 0
        try:
            try:
                response = await self._session.get(
                    URL(self._server + path, encoded=True),
                    headers=headers,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=_CONNECT_TIMEOUT),
                )
                status = response.status
            finally:
                self._limits.leave()
                if self._observe is not None:
                    self._observe("WATCH", path, status)
        except _FAILED as error:
            raise NoAnswer(_text(error)) from error
        if status == TOO_MANY:
            self._limits.pause(_retry_after(response))
        elif status == UNAUTHORIZED:
            self._credentials.refused()
        try:
            yield Stream(response)
        finally:
            # A watch is left before its end: its connection is not used again.
            response.close()

    async def _prepare(self, content_type: str) -> dict[str, str]:
        try:
            value = await self._credentials.header()
        except LoginError as error:
            raise NoAnswer(str(error)) from error
        headers = self._headers.get((content_type, value))
        if headers is None:
            headers = {}
            if content_type:
                headers["Content-Type"] = content_type
            if value is not None:
                headers["Authorization"] = value
            if len(self._headers) > 32:
                self._headers.clear()  # of tokens before
            self._headers[content_type, value] = headers
        return headers


def _retry_after(response: aiohttp.ClientResponse) -> float:
    try:
        seconds = float(response.headers["Retry-After"])
    except (KeyError, ValueError):
        return _RETRY_AFTER
    return min(max(seconds, 0.0), _LONGEST_RETRY_AFTER) if seconds == seconds else _RETRY_AFTER


def _text(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__
