"""A token bucket, which limits the rate of requests and of their items."""

from __future__ import annotations

from collections.abc import Callable


class TokenBucket:
    """Holds at most ``burst`` tokens and refills at ``rate`` tokens per second of the ``clock``."""

    __slots__ = ("_burst", "_clock", "_left", "_rate", "_when")

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._left = self._burst
        self._when = clock()

    def take(self, tokens: int = 1) -> float:
        """Take tokens, into debt if need be. Return how long to wait until the debt is paid, in s;
        0 if there is none."""
        self._fill()
        self._left -= tokens
        return max(0.0, -self._left / self._rate)

    def try_take(self) -> bool:
        """Take a token if there is one."""
        self._fill()
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True

    def _fill(self) -> None:
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._when) * self._rate)
        self._when = now
