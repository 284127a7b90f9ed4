"""Streams: readers that follow the events as they happen.

A stream is a plain object that its reader polls. The stream of a reader that is too slow is closed, so
that a slow reader costs no more memory than its buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from quadriga.core.events.records import Entry, Record, records_of

#: at most this many records wait for a reader that asks for no other buffer
STREAM_BUFFER: Final = 1000


class EventsRefused(Exception):
    """A stream cannot be opened: events are not tracked, or too many are open (``too_many``)."""

    def __init__(self, reason: str, *, too_many: bool) -> None:
        super().__init__(reason, too_many)
        self.reason = reason
        self.too_many = too_many

    def __str__(self) -> str:
        return self.reason


class Stream:
    """The events since it was opened, after some earlier ones. ``closed`` says why it ended.

    ``wake`` is called when a record begins to wait for the reader, and when the stream is closed because
    the reader is too slow. It is called in the middle of a step: it must return at once, and must not
    call the scheduler.
    """

    __slots__ = ("_buffer", "_history", "_number", "_waiting", "_wake", "closed", "host", "opened")

    def __init__(
        self,
        host: str,
        opened: int,
        history: Iterable[Record],
        buffer: int = STREAM_BUFFER,
        wake: Callable[[], None] | None = None,
    ) -> None:
        self.host = host
        #: ns
        self.opened = opened
        self.closed = ""
        self._history = list(history)
        self._waiting: list[Entry] = []
        #: the number of records that wait
        self._number = 0
        self._buffer = buffer
        self._wake = wake

    def poll(self) -> list[Record]:
        """The records since the last poll, oldest first. A closed stream still has its last ones."""
        found = self._history
        for entry in self._waiting:
            found.extend(records_of(entry))
        self._history, self._waiting, self._number = [], [], 0
        return found

    def close(self) -> None:
        """The reader needs no more records."""
        self.closed = self.closed or "closed by its reader"

    def take(self, entry: Entry, number: int) -> bool:
        """Let an entry of ``number`` records wait for the reader. Return False if the stream is closed."""
        if self.closed:
            return False
        self._number += number
        fits = self._number <= self._buffer
        if fits:
            self._waiting.append(entry)
        else:
            self.closed = f"too slow: {self._buffer} events were waiting"
        if self._wake is not None and (self._number == number or not fits):
            self._wake()
        return fits
