"""The one queue of what the shim hears, in the order in which it came (K3, K15).

Any thread puts, the shim's loop takes. The queue has no bound, its sources have: a watch is not read while
too much waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from quadriga.k8s.shim.inputs import Input

__all__ = ["Inbox"]

#: more that wait stop the watches
_MOST: Final = 100_000


class Inbox:
    """Made on the shim's loop."""

    def __init__(self, most: int = _MOST) -> None:
        self._waiting: deque[Input] = deque()
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        #: whether the loop has been told, or need not be
        self._called = False
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, heard: Input) -> None:
        """From the loop's own thread."""
        self._waiting.append(heard)
        self._rung.set()

    def put_from_thread(self, heard: Input) -> None:
        """From any thread. After the loop has ended nobody hears it."""
        self._waiting.append(heard)
        if not self._called:
            self._called = True
            try:
                self._loop.call_soon_threadsafe(self._ring)
            except RuntimeError:
                return  # the loop is closed

    def _ring(self) -> None:
        # Before the queue is read: what is put later rings again.
        self._called = False
        self._rung.set()

    def ring(self) -> None:
        """End a wait, from the loop's own thread."""
        self._rung.set()

    async def wait(self, seconds: float) -> None:
        """Return when something waits, or after this time at the latest."""
        if not self._waiting:
            self._ring_by(self._loop.time() + seconds)
            await self._rung.wait()
        self._rung.clear()

    def _ring_by(self, when: float) -> None:
        """A timer that rings earlier stays: it is not made anew for each wait."""
        timer = self._timer
        if timer is None or timer.when() > when:
            if timer is not None:
                timer.cancel()
            self._timer = self._loop.call_at(when, self._time_is_up)

    def _time_is_up(self) -> None:
        self._timer = None
        self._rung.set()

    def take(self, most: int) -> list[Input]:
        """The first ones, at most so many."""
        waiting = self._waiting
        taken = [waiting.popleft() for _ in range(min(most, len(waiting)))]
        if waiting:
            self._rung.set()
        if not self._room.is_set() and len(waiting) <= self._most:
            self._room.set()
        return taken

    async def room(self) -> None:
        """Return when no more than the bound wait (K15)."""
        if len(self._waiting) > self._most:
            self._room.clear()
            await self._room.wait()
