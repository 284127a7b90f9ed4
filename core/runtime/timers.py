"""The timers of a scheduler, as a heap by instant.

The timer of a state carries the entity's entry count at its start. If the entity has entered a state
since then, the timer is dead and dropped when it reaches the top of the heap. Other timers are cancelled
explicitly. Timers of the same instant fire in the order in which they were started.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, Final

from quadriga.core.model.timer import Timer

#: below this size of the heap dead timers are not removed early
_SMALL: Final = 1024


class Timers:
    """All timers of a scheduler. Above ``_SMALL``, at most half of them are dead."""

    __slots__ = ("_count", "_full", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._count = 0
        #: at this size of the heap dead timers are removed
        self._full = _SMALL

    def start(self, now: int, delay: int, name: str, entity: Any, entries: int = -1) -> Timer:
        """Start a timer of this name for the entity; it fires after ``delay`` ns."""
        timer = Timer(now + delay, name, entity, delay, entries)
        self._count += 1
        heappush(self._heap, (timer.when, self._count, timer))
        if len(self._heap) >= self._full:
            self._keep([entry for entry in self._heap if not entry[2].dead])
        return timer

    def clear_out(self, forgotten: Callable[[Any], bool]) -> None:
        """Remove dead timers, and the timers of entities for which ``forgotten`` holds."""
        living = [entry for entry in self._heap if not entry[2].dead]
        self._keep([entry for entry in living if not forgotten(entry[2].entity)])

    def _keep(self, living: list[tuple[int, int, Timer]]) -> None:
        heapify(living)  # the keys are unchanged, and so is the order in which timers fire
        self._heap = living
        self._full = max(_SMALL, 2 * len(living))

    def next(self) -> int | None:
        """The instant of the earliest living timer, or ``None``."""
        heap = self._heap
        while heap:
            timer = heap[0][2]
            entity, entries = timer.entity, timer.entries
            if entity is not None and (entries < 0 or entity.entries == entries):  # ``dead``
                return timer.when
            heappop(heap)
        return None

    def describe_next(self) -> str:
        """The name of the earliest living timer and the key of its entity, for reports."""
        if self.next() is None:
            return "none"
        timer = self._heap[0][2]
        return (
            f"{timer.name} of {getattr(timer.entity, 'key', None) or type(timer.entity).__name__}"
        )

    def pop(self, now: int) -> Timer | None:
        """Remove and return the earliest living timer that is due, or ``None``."""
        when = self.next()
        if when is None or when > now:
            return None
        return heappop(self._heap)[2]

    def __len__(self) -> int:
        return len(self._heap)
