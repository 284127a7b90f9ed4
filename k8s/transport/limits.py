"""Limits on requests to the API server: per second, and concurrent (K13).

There is one object for all requests of the process. Requests of one lane wait in the order of their arrival.
Thousands of binds may wait, and the lease must be renewed all the same: urgent requests go first, and events
and other small requests have every eighth turn while writes to pods wait. Writes to placeholders come after all
of them, with every eighth turn while others wait, and are at most half of the concurrent requests (Q16). After
a ``Retry-After`` nothing is sent until that time has passed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Literal

__all__ = ["Lane", "Limits"]

SECOND: Final = 1_000_000_000

#: ``urgent``: the lease, lists and watches. ``pods``: binds and other writes to pods. ``placeholders``: writes
#: to placeholders, of which one gang may have thousands.
Lane = Literal["urgent", "pods", "other", "placeholders"]

#: every this many turns one is for the other requests while writes to pods wait
_SHARE: Final = 8


class Limits:
    """A token bucket of ``qps`` per second with a burst of ``burst``, and at most ``inflight`` concurrent
    requests.

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
        self._urgent: deque[asyncio.Future[None]] = deque()
        self._pods: deque[asyncio.Future[None]] = deque()
        self._other: deque[asyncio.Future[None]] = deque()
        self._behind: deque[asyncio.Future[None]] = deque()
        self._lanes: dict[Lane, deque[asyncio.Future[None]]] = {
            "urgent": self._urgent,
            "pods": self._pods,
            "other": self._other,
            "placeholders": self._behind,
        }
        #: how many more requests of the lane ``placeholders`` may be sent before one of them is answered
        self._free_behind = max(1, inflight // 2)
        #: turns of others since the last one of placeholders
        self._since_behind = 0
        #: turns of writes to pods since the last one of the others
        self._in_a_row = 0
        self._timed = False

    @property
    def waiting(self) -> int:
        """The number of requests that wait for their turn."""
        return sum(map(len, self._lanes.values()))

    @property
    def pods_wait(self) -> bool:
        """Whether writes to pods wait for their turn."""
        return len(self._pods) > 0

    async def enter(self, lane: Lane = "other") -> None:
        """Wait for a turn. End each one by `leave`."""
        is_behind = lane == "placeholders"
        if not (self._pods or self._other or self._urgent or (is_behind and self._behind)):
            if (not is_behind or self._free_behind > 0) and self._take():
                self._free_behind -= is_behind
                return
        turn = asyncio.get_running_loop().create_future()
        self._lanes[lane].append(turn)
        self._go_on()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(lane)
            raise

    def leave(self, lane: Lane = "other") -> None:
        """Note that a request of this lane is answered."""
        self._free += 1
        self._free_behind += lane == "placeholders"
        if self._pods or self._other or self._urgent or self._behind:
            self._go_on()

    def pause(self, seconds: float) -> None:
        """Send no request for this time, because the server says so."""
        self._paused_until = max(self._paused_until, self._clock() + int(seconds * SECOND))

    def _take(self) -> bool:
        return self._free > 0 and self._wait(self._clock()) <= 0 and self._taken()

    def _taken(self) -> bool:
        self._free -= 1
        self._full_at = max(self._full_at, self._clock()) + self._per_token
        return True

    def _wait(self, now: int) -> int:
        """Return the ns until the next request may be sent."""
        token_at = self._full_at + self._per_token - self._depth
        return max(token_at, self._paused_until) - now

    def _go_on(self) -> None:
        """Start the requests whose turn it is."""
        while (lane := self._next_lane()) is not None:
            if self._free <= 0:
                return
            wait = self._wait(self._clock())
            if wait > 0:
                self._go_on_in(wait)
                return
            self._taken()
            if lane is self._behind:
                self._free_behind -= 1
                self._since_behind = 0
            else:
                self._since_behind += 1
                self._in_a_row = self._in_a_row + 1 if lane is self._pods else 0
            lane.popleft().set_result(None)

    def _next_lane(self) -> deque[asyncio.Future[None]] | None:
        """Return the lane whose first request is next. Cancelled requests are dropped."""
        for lane in self._lanes.values():
            while lane and lane[0].done():
                lane.popleft()
        if self._urgent:
            return self._urgent
        behind = self._behind if self._behind and self._free_behind > 0 else None
        if behind is not None and self._since_behind >= _SHARE - 1:
            return behind
        if self._pods and not (self._other and self._in_a_row >= _SHARE - 1):
            return self._pods
        return self._other or behind

    def _go_on_in(self, wait: int) -> None:
        if self._timed:
            return
        self._timed = True
        later = self._later or asyncio.get_running_loop().call_later
        later(wait / SECOND, self._timer)

    def _timer(self) -> None:
        self._timed = False
        self._go_on()
