"""Pacing of writes: a rate limit, a wakeup for the task that waits, and the pause after failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from quadriga.fsm.table import SECOND

#: the time in ns. Only differences matter, and it never goes back.
Clock = Callable[[], int]

_FIRST_PAUSE: Final = SECOND
_LONGEST_PAUSE: Final = 30 * SECOND


class RateLimiter:
    """A token bucket: at most ``per_second`` on average, and ``burst`` at once."""

    def __init__(self, per_second: int, burst: int) -> None:
        self._interval = SECOND // per_second
        self._slack = (burst - 1) * self._interval
        #: when all tokens that were taken are paid for
        self._even_at = 0

    def ready_at(self) -> int:
        """Return the time (ns) from which the next write may go."""
        return self._even_at - self._slack

    def take(self, now: int) -> None:
        """Take a token for a write now."""
        self._even_at = max(now, self._even_at) + self._interval


class Wakeup:
    """Lets one task sleep until a time or until it is woken, all on one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung = asyncio.Event()

    def wake(self) -> None:
        """Wake the task; if it does not sleep, its next sleep ends at once."""
        self._rung.set()

    async def sleep_until(self, when: int | None) -> None:
        """Sleep until this time (ns), or without end for ``None``."""
        delay = None if when is None else max(0, when - self._clock()) / SECOND
        try:
            async with asyncio.timeout(delay):
                await self._rung.wait()
        except TimeoutError:
            pass
        self._rung.clear()


def backoff_ns(failures: int) -> int:
    """Return the pause after this many failures in a row: 1 s, doubled up to 30 s."""
    return min(_LONGEST_PAUSE, _FIRST_PAUSE << min(failures - 1, 10))
