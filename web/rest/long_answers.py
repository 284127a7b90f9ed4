"""Answers with many members, which are read in slices between the decisions of the scheduler (D344, D346).

A list of few members is one text for all its readers (``reader``). A longer one, and a state dump, is sent
while it is read: each reader has a read of its own, and at most one slice of it is in memory.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from quadriga.core.driver.slices import Slices
from quadriga.web.compression import wants_gzip
from quadriga.web.responses import HEADERS, JSON, Refusal, text_response
from quadriga.web.rest.fragments import LONG, Fragments, Writer

if TYPE_CHECKING:
    from quadriga.core.runtime.stepwise import Steps
    from quadriga.core.scheduler import Scheduler
    from quadriga.web.reader import Reader

#: so many answers are sent at a time
_ANSWERS: Final = 32
#: bytes that are sent at a time
_CHUNK: Final = 64 * 1024

#: when the first member of a longer answer was read: the time (ns) and the number of transitions until then
READ_FROM: Final = "Quadriga-Read-From"

Look = Callable[["Scheduler"], Iterator[Any]]


class LongAnswers:
    """Answers to one question; ``writer`` makes what writes one from texts of its members."""

    def __init__(
        self, reader: Reader, fragments: Fragments, writer: Callable[[Fragments], Writer]
    ) -> None:
        self._reader = reader
        self._fragments = fragments
        self._writer = writer

    async def answer(self, request: Request, name: object, look: Look) -> Response:
        """The members that ``look`` yields. Equal names mean equal looks."""
        text = await self._reader.text(name, lambda s: _few(look(s)), self._encode, long=True)
        return text_response(text, JSON) if text else await self.stream(request, look)

    def _encode(self, members: list[Any] | None) -> bytes:
        if members is None:
            return b""
        writer = self._writer(self._fragments)
        return b"".join([*writer.pieces(members), writer.end()])

    async def stream(self, request: Request, look: Look) -> Response:
        """The same, sent while it is read."""
        reader = self._reader
        if reader.sending >= _ANSWERS:
            raise Refusal(503, "Too many long answers are being sent; ask for a page with limit")
        slices = Slices[Any](look)
        first = await reader.slice(slices)
        headers = {**HEADERS, "Content-Type": JSON, "Vary": "Accept-Encoding"}
        if slices.began is not None:
            headers[READ_FROM] = ";".join(map(str, slices.began))
        packer = None
        if wants_gzip(request.headers.getlist("accept-encoding")):
            headers["Content-Encoding"] = "gzip"
            packer = zlib.compressobj(1, wbits=31)
        return StreamingResponse(self._send(slices, first, packer), headers=headers)

    async def _send(
        self, slices: Slices[Any], members: list[Any], packer: Any
    ) -> AsyncIterator[bytes]:
        reader, writer = self._reader, self._writer(Fragments(0))
        reader.sending += 1
        try:
            while True:
                pieces = writer.pieces(members)
                while chunk := await reader.encode(_next_chunk, pieces):
                    yield await reader.encode(packer.compress, chunk) if packer else chunk
                if slices.over:
                    break
                members = await reader.slice(slices)
            yield packer.compress(writer.end()) + packer.flush() if packer else writer.end()
        finally:
            reader.sending -= 1


def _few(members: Iterator[Any]) -> Steps[list[Any] | None]:
    """The members, or ``None`` if there are too many to keep them all."""
    found, size = [], 0
    for member in members:
        if member is not None:
            found.append(member)
            size += _size(member)
            if size > LONG:
                return None
        yield
    return found


def _size(member: Any) -> int:
    if type(member) is tuple:  # a node
        return 1 + len(member[6])
    return 1 + len(member.allocations) + len(getattr(member, "asks", ()))


def _next_chunk(pieces: Iterator[bytes]) -> bytes:
    found, size = [], 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size >= _CHUNK:
            break
    return b"".join(found)
