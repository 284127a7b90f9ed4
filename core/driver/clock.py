"""The clock of the live drivers: monotonic, and near the time of day; and what notices that time stands still.

A timer must not depend on changes of the time of day: if somebody sets it forward by an hour, a gang has
not waited for an hour, and after it was set back a retry "in 1 s" comes in a second. What is written down
(states, events, creation times) is to agree with other programs. So this clock begins with the time of day
and advances by the monotonic clock; where the two differ, it is up to a twentieth faster or slower until
they agree again (as ``adjtime`` does). One step of an hour changes a time limit of 10 minutes by 30 s at most.
"""

from __future__ import annotations

import logging
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


_log = logging.getLogger("quadriga.service")

#: rounds without any change after which a driver pauses
_ROUNDS: Final = 1000
#: the first and the longest pause (s)
_SHORTEST: Final = 0.01
_LONGEST: Final = 1.0


class Standstill:
    """Notices that timers fire again and again, and nothing changes.

    A driver that follows ``next_deadline`` would then loop without a pause. It is a bug of the scheduler, which
    the driver reports with the timer's name; it goes on with pauses, which grow to a second.

    ``timer`` names the timer that is due. Ask ``pause`` after each round (a number of s)."""

    __slots__ = ("_idle", "_pause", "_timer")

    def __init__(self, timer: Callable[[], str]) -> None:
        self._timer = timer
        self._idle = 0
        self._pause = 0.0

    def pause(self, *, changed: bool) -> float:
        """The time (s) to wait before the next round, 0 as long as all is well.

        ``changed``: the round did something, or no timer is due after it.
        """
        if changed:
            self._idle, self._pause = 0, 0.0
            return 0.0
        self._idle += 1
        if self._idle < _ROUNDS:
            return 0.0
        if not self._pause:
            _log.error(
                "time stands still: the timer %s was due %d times and changed nothing; "
                "going on with pauses",
                self._timer(),
                self._idle,
            )
        self._pause = min(2 * self._pause or _SHORTEST, _LONGEST)
        return self._pause
