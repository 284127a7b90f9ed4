"""A pace for log lines that others can cause at any rate."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_MINUTE: Final = 60.0


class LogPace:
    """At most one line a minute. Use it from one thread at a time."""

    __slots__ = ("_clock", "_left_out", "_next")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = float("-inf")
        self._left_out = 0

    def due(self) -> int | None:
        """The number of lines left out since the last one, if a line may be logged now; else ``None``."""
        now = self._clock()
        if now < self._next:
            self._left_out += 1
            return None
        self._next = now + _MINUTE
        left_out, self._left_out = self._left_out, 0
        return left_out
