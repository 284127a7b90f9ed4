"""Events over HTTP: what is remembered, in batches, and what happens, as it does (2.16)."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from quadriga.core.events import EventBatch, EventsRefused, Ring, Stream, text_of
from quadriga.web.answers import HEADERS, JSON, Refusal, spell, text_answer
from quadriga.web.resource import Operation, Query, Resource
from quadriga.web.rest.objects import EventBatchObject, EventObject

if TYPE_CHECKING:
    from quadriga.core.events.records import Record
    from quadriga.core.scheduler import Scheduler
    from quadriga.web.site import Site

__all__ = ["BUFFER", "EventStream", "event_object", "resources"]

#: records that may wait for a reader. More than YuniKorn's 1000: a slice of the scheduler's work is up
#: to 256 decisions, of several records each, and nobody can read in the middle of it.
BUFFER: Final = 10_000

#: records that are spelled without a look at anything else
_AT_ONCE: Final = 500

#: s that a reader whose stream was closed has to take the rest
_GRACE: Final = 1.0

#: the largest number that YuniKorn's parameters can have
_LARGEST: Final = 2**64 - 1

_NUMBER: Final = {"type": "integer", "minimum": 0, "maximum": _LARGEST}

_OFF: Final = "Event tracking is disabled"


def resources(site: Site) -> list[Resource]:
    async def batch(request: Request) -> Response:
        start, count = _number(request, "start", 0), _number(request, "count", 10_000)
        if count == 0:
            raise Refusal(400, '0 is not a valid value for "count"')

        def look(scheduler: Scheduler) -> tuple[Ring, int]:
            events = scheduler.events
            if not events.tracking:
                raise Refusal(500, _OFF)
            return events.ring(), events.settings.response_size

        # Whatever of them is asked for, the look is the same.
        ring, most = await site.reader.read("events", look)
        text = await asyncio.to_thread(lambda: told(ring.batch(start, min(count, most))))
        return text_answer(text, JSON)

    def told(found: EventBatch) -> bytes:
        answer: EventBatchObject = {
            "InstanceUUID": site.instance,
            "LowestID": found.lowest,
            "HighestID": found.highest,
            "EventRecords": [event_object(record) for record in found.records],
        }
        return spell(answer)

    async def stream(request: Request) -> Response:
        count = _number(request, "count", 0)
        if request.method == "HEAD":
            return text_answer("", JSON)
        host = request.client.host if request.client is not None else "unknown"
        return await EventStream.open(site, host, count)

    events_batch = Operation(
        batch,
        "Events that are remembered, from the id `start` on; `event.RESTResponseSize` at most.",
        {JSON: EventBatchObject},
        (400, 500),
        (
            Query("start", _NUMBER, "The first id, 0 if absent."),
            Query("count", {**_NUMBER, "minimum": 1}, "How many at most, 10000 if absent."),
        ),
    )
    events_stream = Operation(
        stream,
        "Events as they happen, one JSON object a line; the first line names the run of the "
        "scheduler. Ends when its reader is too slow.",
        {JSON: None},
        (400, 500, 503),
        (Query("count", _NUMBER, "How many of those before come first, 0 if absent."),),
    )
    return [
        Resource("/ws/v1/events/batch", {"GET": events_batch}, "events"),
        Resource("/ws/v1/events/stream", {"GET": events_stream}, "events"),
    ]


def _number(request: Request, name: str, absent: int) -> int:
    text = request.query_params.get(name, "")
    if not text:
        return absent
    if not (text.isascii() and text.isdecimal()):
        raise Refusal(400, f"strconv.ParseUint: parsing {json.dumps(text)}: invalid syntax")
    if len(text.lstrip("0")) > len(str(_LARGEST)) or int(text) > _LARGEST:
        raise Refusal(400, f"strconv.ParseUint: parsing {json.dumps(text)}: value out of range")
    return int(text)


def event_object(record: Record) -> EventObject:
    """The record as JSON has it: kinds are numbers, what is zero or empty is left out."""
    time, kind, change, detail, subject, reference, registry, quantities, _ = record
    found: EventObject = {}
    if kind:
        found["type"] = kind
    if subject:
        found["objectID"] = subject
    if text := text_of(record):
        found["message"] = text
    if time:
        found["timestampNano"] = time
    if reference:
        found["referenceID"] = reference
    if change:
        found["eventChangeType"] = change
    if detail:
        found["eventChangeDetail"] = detail
    if registry is not None:
        amounts = registry.mapping(quantities)
        found["resource"] = {
            "resources": {name: {"value": amounts[name]} for name in sorted(amounts)}
        }
    return found


class EventStream(Response):
    """Lines of events to one reader, until he leaves, is too slow, or the server stops."""

    def __init__(self, site: Site) -> None:
        super().__init__(headers={**HEADERS, "Content-Type": JSON})
        del self.headers["content-length"]  # nobody knows it
        self._site = site
        self._stream: Stream | None = None
        self._more = asyncio.Event()
        self._ending = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(cls, site: Site, host: str, count: int) -> EventStream:
        """Raises ``Refusal`` where events are not tracked (500) or too many streams are open (503)."""
        made = cls(site)

        def look(scheduler: Scheduler) -> None:
            events = scheduler.events
            past = min(count, events.settings.response_size)
            made._stream = events.open_stream(host, past, buffer=BUFFER, wake=made._wake)

        try:
            await site.reader.once("stream", look)
        except EventsRefused as refused:
            raise Refusal(503 if refused.too_many else 500, refused.reason) from None
        except asyncio.CancelledError:  # he has left, and the stream may be opened yet
            made._free()
            raise
        return made

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        leaving = asyncio.create_task(self._site.leaving.wait())
        ending = asyncio.create_task(self._ending.wait())
        gone = asyncio.create_task(_gone(receive))
        writer = asyncio.create_task(self._write(send))
        tasks = (writer, gone, ending, leaving)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not gone.done():  # he may have the rest, if he takes it
                self._ending.set()
                self._more.set()
                await asyncio.wait((writer, gone), timeout=_GRACE)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._free()

    async def _write(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        await _say(send, spell({"InstanceUUID": self._site.instance}) + b"\n")
        over = False
        while not over:
            over = self._ending.is_set()
            self._more.clear()
            records = await self._poll()
            for at in range(0, len(records), _AT_ONCE):
                lines = [spell(event_object(each)) for each in records[at : at + _AT_ONCE]]
                await _say(send, b"\n".join(lines) + b"\n")
            if not over:
                await self._more.wait()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _poll(self) -> list[Record]:
        stream = self._stream
        assert stream is not None
        return await self._site.reader.once("poll", lambda scheduler: stream.poll())

    # -- the other side --------------------------------------------------------------------------

    def _wake(self) -> None:
        """Called by the scheduler's owner, in the middle of its work."""
        with suppress(RuntimeError):  # the loop is closed: nobody reads, and the stream will end
            self._loop.call_soon_threadsafe(self._woken)

    def _woken(self) -> None:
        self._more.set()
        if self._stream is not None and self._stream.closed:
            self._ending.set()

    def _free(self) -> None:
        """Give the place back to others."""

        def look(scheduler: Scheduler) -> None:
            if self._stream is not None:
                self._stream.close()

        with suppress(RuntimeError):  # the service has been stopped
            self._site.service.read_later(look)


async def _say(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
