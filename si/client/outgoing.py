"""What a client has to say: requests in their order, until the scheduler has taken them.

The order of the requests of one resource manager is kept (`SchedulerAPI`), also across the three
streams, between which gRPC promises no order. So a request goes out when all before it went out on
the same stream, or have been taken by the scheduler. What was not taken when a connection was lost
goes out again on the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from quadriga.si.extension.extension_pb2 import Channel

__all__ = ["Outgoing", "Said"]


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """One request as bytes, the stream it belongs on, and its place among those of that stream
    (from 1)."""

    stream: Channel
    number: int
    data: bytes


class Outgoing:
    """At most `most` requests of `most_bytes` altogether; a single larger one is let in alone."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._numbers: dict[Channel, int] = {}
        self._waiting: deque[Said] = deque()
        self._on_the_way: deque[Said] = deque()
        #: requests that were ever added
        self.added = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._on_the_way)

    @property
    def over(self) -> int:
        """Requests that the scheduler has seen to."""
        return self.added - len(self)

    def has_room(self, size: int) -> bool:
        """Whether a request of so many bytes may be added."""
        return not len(self) or (len(self) < self._most and self._bytes + size <= self._most_bytes)

    def add(self, stream: Channel, data: bytes) -> None:
        """Put a request at the end. Whoever adds asks `has_room` first."""
        number = self._numbers[stream] = self._numbers.get(stream, 0) + 1
        self._waiting.append(Said(stream, number, data))
        self._bytes += len(data)
        self.added += 1

    def next(self) -> Said | None:
        """The next request to put on its stream; None while it has to wait, or there is none."""
        if not self._waiting:
            return None
        if self._on_the_way and self._on_the_way[-1].stream != self._waiting[0].stream:
            return None
        said = self._waiting.popleft()
        self._on_the_way.append(said)
        return said

    def taken(self, counts: Mapping[Channel, int]) -> None:
        """The scheduler has seen to so many requests of each stream."""
        way = self._on_the_way
        while way and way[0].number <= counts.get(way[0].stream, 0):
            self._bytes -= len(way.popleft().data)

    def forgo(self, stream: Channel, most: int) -> list[bytes]:
        """Give up the requests of the stream that are longer than `most` bytes, since they can never
        be taken; those behind them move up. Which were these?"""
        gone: list[bytes] = []
        kept: deque[Said] = deque()
        for said in self._waiting:
            if said.stream == stream and len(said.data) > most:
                gone.append(said.data)
            elif said.stream == stream:
                kept.append(replace(said, number=said.number - len(gone)))
            else:
                kept.append(said)
        self._waiting = kept
        self._numbers[stream] -= len(gone)
        self._bytes -= sum(map(len, gone))
        return gone

    def resume(self, stream: Channel, count: int) -> None:
        """The stream is open again, and the scheduler has seen to so many of its requests: the others
        go out again, in their order."""
        self.taken({stream: count})
        way = self._on_the_way
        if way and way[0].stream == stream:  # there is never more than one stream in it
            self._waiting.extendleft(reversed(way))
            way.clear()
