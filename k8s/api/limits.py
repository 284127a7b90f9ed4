"""How many requests go to the API server: a second, and at a time (K13).

One object for all requests of the process. Requests wait in the order in which they came. When the server
says ``Retry-After``, nothing is sent until that time has passed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

__all__ = ["Limits"]

SECOND: Final = 1_000_000_000


class Limits:
    """A token bucket of ``qps`` a second and ``burst`` at once, and ``inflight`` requests at a time.

    ``clock`` returns ns. ``later(seconds, call)`` calls later; by default it is the event loop's.
    """

    def __init__(
        self,
        qps: int,
        burst: int,
        inflight: int,
        *,
        clock: Callable[[], int],
        later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self._per_token = SECOND // qps
        #: time (ns) at which the bucket is full; a token moves it on by ``_per_token``
        self._full_at = 0
        self._depth = self._per_token * burst
        self._free = inflight
        self._clock = clock
        self._later = later
        self._paused_until = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timed = False

    @property
    def waiting(self) -> int:
        """Requests that wait for their turn."""
        return len(self._waiting)

    async def enter(self) -> None:
        """Wait for a turn. Each one is ended by `leave`."""
        if not self._waiting and self._take():
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._go_on()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """A request has its answer."""
        self._free += 1
        if self._waiting:
            self._go_on()

    def pause(self, seconds: float) -> None:
        """The server wants no request for this time."""
        self._paused_until = max(self._paused_until, self._clock() + int(seconds * SECOND))

    def _take(self) -> bool:
        return self._free > 0 and self._wait(self._clock()) <= 0 and self._taken()

    def _taken(self) -> bool:
        self._free -= 1
        self._full_at = max(self._full_at, self._clock()) + self._per_token
        return True

    def _wait(self, now: int) -> int:
        """ns until the next request may be sent."""
        token_at = self._full_at + self._per_token - self._depth
        return max(token_at, self._paused_until) - now

    def _go_on(self) -> None:
        """Let those go whose turn it is."""
        waiting = self._waiting
        while waiting:
            if waiting[0].done():
                waiting.popleft()
                continue
            if self._free <= 0:
                return
            wait = self._wait(self._clock())
            if wait > 0:
                self._go_on_in(wait)
                return
            self._taken()
            waiting.popleft().set_result(None)

    def _go_on_in(self, wait: int) -> None:
        if self._timed:
            return
        self._timed = True
        later = self._later or asyncio.get_running_loop().call_later
        later(wait / SECOND, self._timer)

    def _timer(self) -> None:
        self._timed = False
        self._go_on()
