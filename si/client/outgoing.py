"""Requests of a client, in order, until the scheduler has taken them.

The scheduler processes the requests of one resource manager in order (`SchedulerAPI`), also across
the three streams, between which gRPC keeps no order. A request is therefore sent only when every
earlier request was sent on the same stream or has been taken by the scheduler. Requests that were
not taken when a connection was lost are sent again on the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from quadriga.si.extension.extension_pb2 import Channel


@dataclass(frozen=True, slots=True, eq=False)
class OutgoingRequest:
    """One encoded request, its stream, and its number among the requests of that stream, from 1."""

    stream: Channel
    number: int
    data: bytes


class OutgoingRequests:
    """Holds at most `limit` requests of together `max_bytes`. A single larger request is accepted
    alone."""

    def __init__(self, limit: int, max_bytes: int) -> None:
        self._limit = limit
        self._max_bytes = max_bytes
        self._bytes = 0
        self._numbers: dict[Channel, int] = {}
        self._waiting: deque[OutgoingRequest] = deque()
        self._in_flight: deque[OutgoingRequest] = deque()
        #: number of requests that were ever added
        self.added = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._in_flight)

    @property
    def done(self) -> int:
        """The number of requests that the scheduler has processed."""
        return self.added - len(self)

    def has_room(self, size: int) -> bool:
        """Whether a request of this size may be added."""
        return not len(self) or (len(self) < self._limit and self._bytes + size <= self._max_bytes)

    def add(self, stream: Channel, data: bytes) -> None:
        """Append a request. The caller checks `has_room` first."""
        number = self._numbers[stream] = self._numbers.get(stream, 0) + 1
        self._waiting.append(OutgoingRequest(stream, number, data))
        self._bytes += len(data)
        self.added += 1

    def next(self) -> OutgoingRequest | None:
        """The next request to send; None if it must wait, or there is none."""
        if not self._waiting:
            return None
        if self._in_flight and self._in_flight[-1].stream != self._waiting[0].stream:
            return None
        request = self._waiting.popleft()
        self._in_flight.append(request)
        return request

    def taken(self, counts: Mapping[Channel, int]) -> None:
        """The scheduler has processed this many requests of each stream."""
        in_flight = self._in_flight
        while in_flight and in_flight[0].number <= counts.get(in_flight[0].stream, 0):
            self._bytes -= len(in_flight.popleft().data)

    def drop_larger_than(self, stream: Channel, limit: int) -> list[bytes]:
        """Drop the requests of the stream that are longer than `limit` bytes, as they can never be
        taken, and return them. The requests behind them move up."""
        gone: list[bytes] = []
        kept: deque[OutgoingRequest] = deque()
        for request in self._waiting:
            if request.stream == stream and len(request.data) > limit:
                gone.append(request.data)
            elif request.stream == stream:
                kept.append(replace(request, number=request.number - len(gone)))
            else:
                kept.append(request)
        self._waiting = kept
        self._numbers[stream] -= len(gone)
        self._bytes -= sum(map(len, gone))
        return gone

    def resume(self, stream: Channel, count: int) -> None:
        """The stream is open again, and the scheduler has processed this many of its requests. The
        others are queued again, in order."""
        self.taken({stream: count})
        in_flight = self._in_flight
        if in_flight and in_flight[0].stream == stream:  # requests in flight are all on one stream
            self._waiting.extendleft(reversed(in_flight))
            in_flight.clear()
