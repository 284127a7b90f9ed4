"""gzip compression of responses, for clients that accept it (2.21, RFC 9110 8.4 and 12.5.3).

This is a middleware, so it applies to every path. A stream is not compressed: it has no length, and
its lines must not wait in a buffer. A response that several readers share is compressed once. A
long one is compressed in a thread, as zlib runs without the interpreter lock.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: bytes; shorter responses are not compressed
MIN_BYTES: Final = 1400
#: bytes; responses up to this size are compressed in the event loop, within a millisecond
_INLINE_BYTES: Final = 64 * 1024
#: the fastest level: JSON shrinks to a tenth, in a tenth of the time of the best level
_LEVEL: Final = 1

#: media types worth compressing; images and fonts are compressed already
_KINDS: Final = (
    "text/",
    "application/json",
    "application/javascript",
    "application/x-yaml",
    "application/openmetrics-text",
    "image/svg+xml",
)
#: statuses without a body, or with a part of one
_NEVER: Final = frozenset({204, 206, 304})


class Shared(bytes):
    """A response body for several readers; it is compressed once for all of them."""

    compressed: Future[bytes] | None = None


def wants_gzip(accepted: Iterable[str]) -> bool:
    """Whether these ``Accept-Encoding`` values prefer gzip to no compression. ``*`` stands for
    unnamed encodings. A weight of zero, or one that is not a number, excludes an encoding."""
    weights: dict[str, float] = {}
    for part in ",".join(accepted).split(","):
        name, *parameters = (each.strip().lower() for each in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip() == "q":
                weight = _weight(value.strip())
        weights["gzip" if name == "x-gzip" else name] = weight
    gzipped = weights.get("gzip", weights.get("*", 0.0))
    return gzipped > 0 and gzipped >= weights.get("identity", 0.0)


def _weight(text: str) -> float:
    """A weight of RFC 9110 12.4.2; 0 for an invalid one."""
    plain = text.isascii() and text.replace(".", "", 1).isdecimal()
    return float(text) if plain and len(text) <= 5 and float(text) <= 1 else 0.0


class Compression:
    """The middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        # A single thread: only one processor besides the scheduler's can be expected to be free.
        self._compressors = ThreadPoolExecutor(1, "quadriga-packing")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        wanted = wants_gzip(Headers(scope=scope).getlist("accept-encoding"))
        start: Message | None = None
        chunks: list[bytes] = []

        async def sent(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if "content-length" in headers or message["status"] == 304:
                    headers.add_vary_header("Accept-Encoding")
                if wanted and _is_compressible(message["status"], headers):
                    start = message  # held back until the length is known
                    return
            elif start is not None and message["type"] == "http.response.body":
                chunks.append(message.get("body", b""))
                if message.get("more_body"):
                    return
                whole = chunks[0] if len(chunks) == 1 else b"".join(chunks)
                body = await self._packed(whole) if whole else b""
                _describe(start, len(body))
                await send(start)
                message = {"type": "http.response.body", "body": body}
            await send(message)

        await self.app(scope, receive, sent)

    async def _packed(self, body: bytes) -> bytes:
        if isinstance(body, Shared):
            if body.compressed is None:
                body.compressed = self._compressors.submit(_compress, body)
            return await asyncio.shield(asyncio.wrap_future(body.compressed))
        if len(body) <= _INLINE_BYTES:
            return _compress(body)
        return await asyncio.wrap_future(self._compressors.submit(_compress, body))


def _is_compressible(status: int, headers: Headers) -> bool:
    length = headers.get("content-length", "")
    return (
        status not in _NEVER
        and length.isdecimal()
        and int(length) >= MIN_BYTES
        and "content-encoding" not in headers
        and headers.get("content-type", "").lower().startswith(_KINDS)
    )


def _describe(start: Message, length: int) -> None:
    """Set the headers of a compressed response. Its ETag is weak: the bytes differ, the content
    does not."""
    headers = MutableHeaders(scope=start)
    headers["Content-Encoding"] = "gzip"
    if length:
        headers["Content-Length"] = str(length)
    else:  # a response to HEAD for a file that was not read has no known length
        del headers["content-length"]
    tag = headers.get("etag", "")
    if tag and not tag.startswith("W/"):
        headers["ETag"] = f"W/{tag}"
    if "accept-ranges" in headers:
        del headers["accept-ranges"]


def _compress(body: bytes) -> bytes:
    return gzip.compress(body, _LEVEL, mtime=0)
