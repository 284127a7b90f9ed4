"""How fast requests and their items may come: a bucket that fills at a steady rate."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Bucket"]


class Bucket:
    """Holds ``burst`` tokens at most, and gets ``rate`` in a second of the ``clock`` (seconds)."""

    __slots__ = ("_burst", "_clock", "_left", "_rate", "_when")

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._left = self._burst
        self._when = clock()

    def take(self, tokens: int = 1) -> float:
        """Take tokens. Returns how long to wait until they would have been there, in s; mostly 0."""
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
