"""Pacing of writes: a wakeup for the task that waits, and the pauses after failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quadriga.base.times import SECOND

#: the time in ns. Only differences matter, and it never goes back.
Clock = Callable[[], int]


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
