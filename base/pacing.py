"""How fast and how often: pauses that grow with each failure, the token bucket, and a pace for log lines that
others can cause at any rate, which alone reads a clock. Integer times are nanoseconds.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from quadriga.base.times import SECOND

Pause = TypeVar("Pause", int, float)

#: pauses are doubled at most this often; any further doubling exceeds every limit
_MAX_DOUBLINGS = 62


def doubled(pause: Pause, longest: Pause) -> Pause:
    """Return the pause that follows this one: twice as long, at most ``longest``, and never shorter."""
    return max(pause, min(2 * pause, longest))


def backoff(first: Pause, longest: Pause, failures: int) -> Pause:
    """Return the pause after ``failures`` failures in a row: ``first``, doubled up to ``longest``."""
    times: int = 2 ** max(0, min(failures - 1, _MAX_DOUBLINGS))
    return min(longest, first * times)


def pauses(first: Pause, longest: Pause) -> Iterator[Pause]:
    """Yield ``first`` and then twice the pause before, up to ``longest``, without end."""
    pause = first
    while True:
        yield pause
        pause = doubled(pause, longest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential backoff with jitter, so that many clients do not reconnect at the same moment.

    The first delay is at most `first_s`; each further one may be `factor` times as long, up to
    `most_s`. `jitter` is the random share of a delay; `draw` returns random numbers from 0 to 1.
    Raises `ValueError` for a value out of range. All times in s.
    """

    first_s: float = 0.1
    most_s: float = 15.0
    factor: float = 2.0
    jitter: float = 0.5
    draw: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if not 0 < self.first_s <= self.most_s < float("inf"):
            raise ValueError(f"first_s {self.first_s:g} is not within 0 and most_s {self.most_s:g}")
        if not 1 <= self.factor < float("inf"):
            raise ValueError(f"factor is {self.factor:g}, less than 1 or without bound")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter is {self.jitter:g}, not a share within 0 and 1")

    def waits(self) -> Iterator[float]:
        """The delays, in s, without end."""
        longest = self.first_s
        while True:
            yield longest * (1.0 - self.jitter * self.draw())
            longest = min(longest * self.factor, self.most_s)


class TokenBucket:
    """Holds at most ``burst`` tokens and gets ``per_second`` of them per second. It is full at first."""

    __slots__ = ("_burst", "_full_at", "_per_token")

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_token = int(SECOND // per_second)
        self._burst = burst
        #: when (ns) the bucket is full again
        self._full_at = 0

    def ready_at(self) -> int:
        """Return the time (ns) from which there is a token."""
        return self._full_at - (self._burst - 1) * self._per_token

    def take(self, now: int, tokens: int = 1) -> int:
        """Take tokens, into debt if need be. Return the ns until the debt is paid; 0 if there is none."""
        self._full_at = max(now, self._full_at) + tokens * self._per_token
        return max(0, self._full_at - self._burst * self._per_token - now)


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
