"""The clock of the live drivers: monotonic, and near the time of day.

A timer must not depend on changes of the time of day: if somebody sets it forward by an hour, a gang has
not waited for an hour, and after it was set back a retry "in 1 s" comes in a second. What is written down
(states, events, creation times) is to agree with other programs. So this clock begins with the time of day
and advances by the monotonic clock; where the two differ, it is up to a twentieth faster or slower until
they agree again (as ``adjtime`` does). One step of an hour changes a time limit of 10 minutes by 30 s at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Final

#: the largest correction, as a part of the time that has passed
_SLEW: Final = 20


class SteadyClock:
    """Callable from any thread: the time in ns since 1970; it never goes back.

    ``wall`` gives the time of day and ``monotonic`` a time that nobody sets, both in ns.
    """

    __slots__ = ("_latest", "_lock", "_monotonic", "_since", "_wall")

    def __init__(
        self,
        wall: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._lock = Lock()
        self._since = monotonic()
        self._latest = wall()

    def __call__(self) -> int:
        with self._lock:
            since = self._monotonic()
            passed = since - self._since
            most = passed // _SLEW
            behind = self._wall() - self._latest - passed
            self._since = since
            self._latest += passed + max(-most, min(most, behind))
            return self._latest
