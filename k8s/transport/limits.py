"""Limits on requests to the API server: per second, and concurrent (K13).

There is one object for all requests of the process. Requests of one lane wait in the order of their arrival.
Thousands of binds may wait, and the lease must be renewed all the same: urgent requests go first, and events
and other small requests have every eighth turn while writes to pods wait. After a ``Retry-After`` nothing is
sent until that time has passed.

Writes to placeholders come after all of them, with every eighth turn while others wait (Q16). They are at most
half of the concurrent requests, and fewer while they slow the others down: their number is halved when a write
to a pod takes three times as long as the quickest recent one, and increased by one when it does not. If one at a
time is too many, there are pauses between them. Where no pod was written to for a while, nobody is slowed down.
Binds of pods whose gangs have placeholders do not count for this: they wait for these very writes. See D296.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from quadriga.base.pacing import TokenBucket
from quadriga.base.times import SECOND
from quadriga.k8s.tuning import TUNING

#: ``urgent``: the lease, lists and watches. ``pods``: binds and other writes to pods; ``members``: binds of pods
#: whose gangs have placeholders, in turn with these. ``placeholders``: writes to placeholders, of which one gang
#: may have thousands.
Lane = Literal["urgent", "pods", "members", "other", "placeholders"]

#: what a pause is multiplied by when a write to a pod was not slow, and that which counts as none
_SHORTER: Final = 7 / 8
_NO_PAUSE: Final = 0.5


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
        self._bucket = TokenBucket(qps, burst)
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
            "members": self._pods,
            "other": self._other,
            "placeholders": self._behind,
        }
        self._queues = (self._urgent, self._pods, self._other, self._behind)
        #: numbers of requests of the lane ``placeholders``: under way, allowed now, and allowed at most
        self._under_way = 0
        self._allowed = self._half = max(1, inflight // 2)
        #: how long (ns) the quickest recent write to a pod took, and when the last one ended
        self._quickest = 0
        self._judged = 0
        #: the pause after a write to a placeholder, as a multiple of its own time, and its end (ns)
        self._pause = 0.0
        self._behind_from = 0
        #: turns of others since the last one of placeholders
        self._since_behind = 0
        #: turns of writes to pods since the last one of the others
        self._in_a_row = 0
        self._timed = False

    @property
    def waiting(self) -> int:
        """The number of requests that wait for their turn."""
        return sum(map(len, self._queues))

    @property
    def pods_wait(self) -> bool:
        """Whether writes to pods wait for their turn, or some were slow lately."""
        return len(self._pods) > 0 or (self._allowed < self._half and not self._is_forgotten())

    async def enter(self, lane: Lane = "other") -> int:
        """Wait for a turn and return the time (ns) at which it came. End each one by `leave`."""
        is_behind = lane == "placeholders"
        if not (self._pods or self._other or self._urgent or (is_behind and self._behind)):
            if (not is_behind or self._allows_behind()) and self._take():
                self._under_way += is_behind
                return self._clock()
        turn = asyncio.get_running_loop().create_future()
        self._lanes[lane].append(turn)
        self._go_on()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(lane)
            raise
        return self._clock()

    def leave(self, lane: Lane = "other", began: int | None = None) -> None:
        """Note that a request of this lane is answered; ``began`` is what `enter` returned."""
        self._free += 1
        self._under_way -= lane == "placeholders"
        if began is not None and lane in ("pods", "placeholders"):
            now = self._clock()
            if lane == "pods":
                self._learn(now - began)
                self._judged = now
            else:
                if self._is_forgotten():
                    self._allow_more()
                self._behind_from = now + int(self._pause * (now - began))
        if self._pods or self._other or self._urgent or self._behind:
            self._go_on()

    def pause(self, seconds: float) -> None:
        """Send no request for this time, because the server says so."""
        self._paused_until = max(self._paused_until, self._clock() + int(seconds * SECOND))

    def _learn(self, took: int) -> None:
        """Allow fewer writes to placeholders if a write to a pod was slow (ns), and else one more."""
        grown = self._quickest + self._quickest // TUNING.quickest_forgets + 1
        self._quickest = min(took, grown) if self._quickest else took
        if took <= TUNING.slow_write * self._quickest:
            self._allow_more()
        elif self._allowed > 1:
            self._allowed //= 2
        else:
            self._pause = min(2 * self._pause + 1, TUNING.behind_pause)

    def _allow_more(self) -> None:
        if self._pause > _NO_PAUSE:
            self._pause *= _SHORTER
        else:
            self._pause, self._allowed = 0.0, min(self._half, self._allowed + 1)

    def _is_forgotten(self) -> bool:
        return self._clock() - self._judged > TUNING.slow_forgotten_ns

    def _allows_behind(self) -> bool:
        return self._under_way < self._allowed and self._clock() >= self._behind_from

    def _take(self) -> bool:
        return self._free > 0 and self._wait(self._clock()) <= 0 and self._taken()

    def _taken(self) -> bool:
        self._free -= 1
        self._bucket.take(self._clock())
        return True

    def _wait(self, now: int) -> int:
        """Return the ns until the next request may be sent."""
        return max(self._bucket.ready_at(), self._paused_until) - now

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
                self._under_way += 1
                self._since_behind = 0
            else:
                self._since_behind += 1
                self._in_a_row = self._in_a_row + 1 if lane is self._pods else 0
            lane.popleft().set_result(None)
        if self._behind and self._under_way < self._allowed:
            self._go_on_in(self._behind_from - self._clock())

    def _next_lane(self) -> deque[asyncio.Future[None]] | None:
        """Return the lane whose first request is next. Cancelled requests are dropped."""
        for lane in self._queues:
            while lane and lane[0].done():
                lane.popleft()
        if self._urgent:
            return self._urgent
        behind = self._behind if self._behind and self._allows_behind() else None
        if behind is not None and self._since_behind >= TUNING.lane_share - 1:
            return behind
        if self._pods and not (self._other and self._in_a_row >= TUNING.lane_share - 1):
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
