"""Readers who follow the events as they happen.

A stream is a plain object: whoever opened it polls it. One that does not keep up is closed, so that
nobody's slowness costs more than a bounded buffer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quadriga.core.events.records import Entry, Record, records_of

__all__ = ["STREAM_BUFFER", "EventsRefused", "Stream"]

#: records that may wait for a reader
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
    """The events since it was opened, after a piece of history. ``closed`` says why it ended."""

    __slots__ = ("_history", "_number", "_waiting", "closed", "host", "opened")

    def __init__(self, host: str, opened: int, history: Iterable[Record]) -> None:
        self.host = host
        #: ns
        self.opened = opened
        self.closed = ""
        self._history = list(history)
        self._waiting: list[Entry] = []
        #: of records that wait
        self._number = 0

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
        if self._number > STREAM_BUFFER:
            self.closed = f"too slow: {STREAM_BUFFER} events were waiting"
            return False
        self._waiting.append(entry)
        return True
