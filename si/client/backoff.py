"""How long to wait before the next try to reach the scheduler."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["Backoff"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential, with jitter, so that many clients do not come back at the same moment.

    `first_s` is the longest first wait, each further one is `factor` times as long, up to `most_s`.
    `jitter` is the share of a wait that is left to chance: `draw` gives numbers from 0 to 1. Raises
    `ValueError` in one line for a value that makes no sense. All times in s.
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
        """The waits one after another, in s, without end."""
        longest = self.first_s
        while True:
            yield longest * (1.0 - self.jitter * self.draw())
            longest = min(longest * self.factor, self.most_s)
