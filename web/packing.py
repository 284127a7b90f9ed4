"""Answers packed with gzip for clients that ask for it (2.21, RFC 9110 8.4 and 12.5.3).

Around the application, so every path has it. A stream is left alone: it has no length, and what it
says must not wait in a buffer. An answer that several readers share is packed once; a long one in a
thread, as zlib needs no interpreter for its work.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["LEAST", "Packing", "Shared", "wants_gzip"]

#: bytes; a shorter answer stays as it is
LEAST: Final = 1400
#: bytes up to which an answer is packed at once, in a millisecond at most
_AT_ONCE: Final = 64 * 1024
#: the fastest one: ten times smaller for JSON, and a tenth of the time of the best one
_LEVEL: Final = 1

#: what gets smaller; pictures and fonts are packed already
_KINDS: Final = (
    "text/",
    "application/json",
    "application/javascript",
    "application/x-yaml",
    "application/openmetrics-text",
    "image/svg+xml",
)
#: answers without a body, or with a part of one
_NEVER: Final = frozenset({204, 206, 304})


class Shared(bytes):
    """A text that more than one reader may get: it is packed once for all of them."""

    packed: Future[bytes] | None = None


def wants_gzip(accepted: Iterable[str]) -> bool:
    """Whether these values of ``Accept-Encoding`` prefer gzip to the plain text. ``*`` stands for what
    is not named; ``q=0``, in any spelling, and what is no number mean no."""
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
    """A weight of RFC 9110 12.4.2; 0 for what is none."""
    plain = text.isascii() and text.replace(".", "", 1).isdecimal()
    return float(text) if plain and len(text) <= 5 and float(text) <= 1 else 0.0


class Packing:
    """Around the application."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        # One at a time: there is one processor beside the scheduler's to be counted on.
        self._packers = ThreadPoolExecutor(1, "quadriga-packing")

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
                if wanted and _can_be_packed(message["status"], headers):
                    start = message  # until its length is known
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
            if body.packed is None:
                body.packed = self._packers.submit(_pack, body)
            return await asyncio.shield(asyncio.wrap_future(body.packed))
        if len(body) <= _AT_ONCE:
            return _pack(body)
        return await asyncio.wrap_future(self._packers.submit(_pack, body))


def _can_be_packed(status: int, headers: Headers) -> bool:
    length = headers.get("content-length", "")
    return (
        status not in _NEVER
        and length.isdecimal()
        and int(length) >= LEAST
        and "content-encoding" not in headers
        and headers.get("content-type", "").lower().startswith(_KINDS)
    )


def _describe(start: Message, length: int) -> None:
    """The headers of a packed answer. Its ETag is a weak one: the bytes differ, what they say does not."""
    headers = MutableHeaders(scope=start)
    headers["Content-Encoding"] = "gzip"
    if length:
        headers["Content-Length"] = str(length)
    else:  # to HEAD, for a file that was not read: nobody knows
        del headers["content-length"]
    tag = headers.get("etag", "")
    if tag and not tag.startswith("W/"):
        headers["ETag"] = f"W/{tag}"
    if "accept-ranges" in headers:
        del headers["accept-ranges"]


def _pack(body: bytes) -> bytes:
    return gzip.compress(body, _LEVEL, mtime=0)
