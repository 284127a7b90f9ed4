"""When the next write may go: a budget per second, and an alarm for the task that waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

__all__ = ["Wakeup", "Clock", "RateLimiter", "backoff_ns"]

#: the time in ns. Only differences matter, and it never goes back.
Clock = Callable[[], int]

SECOND: Final = 1_000_000_000
_FIRST_PAUSE: Final = SECOND
_LONGEST_PAUSE: Final = 30 * SECOND


class RateLimiter:
    """At most ``per_second`` on average, and ``burst`` at once."""

    def __init__(self, per_second: int, burst: int) -> None:
        self._interval = SECOND // per_second
        self._slack = (burst - 1) * self._interval
        #: when all that was taken is paid for
        self._even_at = 0

    def ready_at(self) -> int:
        """The time (ns) from which the next one may go."""
        return self._even_at - self._slack

    def take(self, now: int) -> None:
        """One goes now."""
        self._even_at = max(now, self._even_at) + self._interval


class Wakeup:
    """One task sleeps until a time, or until something happens. All on one event loop."""

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
    """The pause after so many failures in a row: 1 s, doubled up to 30 s."""
    return min(_LONGEST_PAUSE, _FIRST_PAUSE << min(failures - 1, 10))
