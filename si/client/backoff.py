"""Delays between attempts to reach the scheduler."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass


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
