"""Readers who follow the events as they happen.

A stream is a plain object: whoever opened it polls it. One that does not keep up is closed, so that
nobody's slowness costs more than a bounded buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from quadriga.core.events.records import Entry, Record, records_of

__all__ = ["STREAM_BUFFER", "EventsRefused", "Stream"]

#: records that may wait for a reader, unless he asks for room for more
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
    """The events since it was opened, after a piece of history. ``closed`` says why it ended.

    ``wake`` is called when something begins to wait for the reader, and when the stream is closed
    because he is too slow. It is called in the middle of a step, so it must only pass the word.
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
        #: of records that wait
        self._number = 0
        self._buffer = buffer
        self._wake = wake

    def poll(self) -> list[Record]:
        """What has come since the last poll, oldest first. A closed stream still has its rest."""
        found = self._history
        for entry in self._waiting:
            found.extend(records_of(entry))
        self._history, self._waiting, self._number = [], [], 0
        return found

    def close(self) -> None:
        """The reader is done with it."""
        self.closed = self.closed or "closed by its reader"

    def take(self, entry: Entry, number: int) -> bool:
        """Let so many records wait for the reader. ``False``: the stream is closed."""
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
