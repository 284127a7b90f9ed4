"""Events over HTTP: stored events in batches, and a stream of new ones (2.16)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from quadriga.core.events import EventBatch, EventsRefused, Ring, Stream, text_of
from quadriga.web.resource import Operation, Query, Resource
from quadriga.web.responses import HEADERS, JSON, Refusal, encode, text_response
from quadriga.web.rest.objects import EventBatchObject, EventObject
from quadriga.web.rest.viewing import NUMBER, number

if TYPE_CHECKING:
    from quadriga.core.events.records import Record
    from quadriga.core.scheduler import Scheduler
    from quadriga.web.site import Site

#: records that may wait for a reader. More than YuniKorn's 1000: one slice of the scheduler's work
#: has up to 256 decisions with several records each, and no reader can run in between.
BUFFER: Final = 10_000

#: records that are encoded at a time, before other tasks run
_CHUNK: Final = 500

#: s for a reader to read the rest after its stream was closed
_GRACE: Final = 1.0

_OFF: Final = "Event tracking is disabled"


def resources(site: Site) -> list[Resource]:
    async def batch(request: Request) -> Response:
        given = request.query_params
        start, count = number(given.get("start"), 0), number(given.get("count"), 10_000)
        if count == 0:
            raise Refusal(400, '0 is not a valid value for "count"')

        def look(scheduler: Scheduler) -> tuple[Ring, int]:
            events = scheduler.events
            if not events.tracking:
                raise Refusal(500, _OFF)
            return events.ring(), events.settings.response_size

        # The look is the same for every requested range.
        ring, most = await site.reader.read("events", look)
        text = await asyncio.to_thread(lambda: told(ring.batch(start, min(count, most))))
        return text_response(text, JSON)

    def told(found: EventBatch) -> bytes:
        answer: EventBatchObject = {
            "InstanceUUID": site.instance,
            "LowestID": found.lowest,
            "HighestID": found.highest,
            "EventRecords": [event_object(record) for record in found.records],
        }
        return encode(answer)

    async def stream(request: Request) -> Response:
        count = number(request.query_params.get("count"), 0)
        if request.method == "HEAD":
            return text_response("", JSON)
        host = request.client.host if request.client is not None else "unknown"
        return await EventStream.open(site, host, count)

    events_batch = Operation(
        batch,
        "Stored events from the id `start` on; at most `event.RESTResponseSize`.",
        {JSON: EventBatchObject},
        (400, 500),
        (
            Query("start", NUMBER, "The first id, 0 if absent."),
            Query(
                "count", {**NUMBER, "minimum": 1}, "The maximum number of events, 10000 if absent."
            ),
        ),
    )
    events_stream = Operation(
        stream,
        "New events, one JSON object per line; the first line identifies the run of the "
        "scheduler. The stream ends if its reader is too slow.",
        {JSON: None},
        (400, 500, 503),
        (Query("count", NUMBER, "The number of earlier events to send first, 0 if absent."),),
    )
    return [
        Resource("/ws/v1/events/batch", {"GET": events_batch}, "events"),
        Resource("/ws/v1/events/stream", {"GET": events_stream}, "events"),
    ]


def event_object(record: Record) -> EventObject:
    """The record as JSON: kinds are numbers, zero and empty values are left out."""
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
    """A stream of events to one reader. It ends when the reader leaves or is too slow, or the
    server stops."""

    def __init__(self, site: Site) -> None:
        super().__init__(headers={**HEADERS, "Content-Type": JSON})
        del self.headers["content-length"]  # the length is unknown
        self._site = site
        self._stream: Stream | None = None
        self._more = asyncio.Event()
        self._ending = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(cls, site: Site, host: str, count: int) -> EventStream:
        """Open a stream. Raises ``Refusal`` if events are not tracked (500) or too many streams are
        open (503)."""
        made = cls(site)

        def look(scheduler: Scheduler) -> None:
            events = scheduler.events
            past = min(count, events.settings.response_size)
            made._stream = events.open_stream(host, past, buffer=BUFFER, wake=made._wake)

        try:
            await site.reader.once("stream", look)
        except EventsRefused as refused:
            raise Refusal(503 if refused.too_many else 500, refused.reason) from None
        except asyncio.CancelledError:  # the client has gone, but the stream may still be opened
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
            if not gone.done():  # the client may read the rest
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
        await _say(send, encode({"InstanceUUID": self._site.instance}) + b"\n")
        over = False
        while not over:
            over = self._ending.is_set()
            self._more.clear()
            records = await self._poll()
            for at in range(0, len(records), _CHUNK):
                lines = [encode(event_object(each)) for each in records[at : at + _CHUNK]]
                await _say(send, b"\n".join(lines) + b"\n")
            if not over:
                await self._more.wait()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _poll(self) -> list[Record]:
        stream = self._stream
        assert stream is not None
        records: list[Record] = await self._site.reader.once("poll", lambda _: stream.poll())
        return records

    # -- the other side --------------------------------------------------------------------------

    def _wake(self) -> None:
        """Called in the owner thread, in the middle of its work."""
        with suppress(RuntimeError):  # the loop is closed, so the stream ends anyway
            self._loop.call_soon_threadsafe(self._woken)

    def _woken(self) -> None:
        self._more.set()
        if self._stream is not None and self._stream.closed:
            self._ending.set()

    def _free(self) -> None:
        """Close the stream, so that its slot is free."""

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
