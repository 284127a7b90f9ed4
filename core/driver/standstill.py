"""Notices that time stands still: timers fire again and again, and nothing changes.

A driver that follows ``next_deadline`` would then loop without a pause. It is a bug of the scheduler, which
the driver reports with the timer's name; it goes on with pauses, which grow to a second.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

_log = logging.getLogger("quadriga.service")

#: rounds without any change after which a driver pauses
_ROUNDS: Final = 1000
#: the first and the longest pause (s)
_SHORTEST: Final = 0.01
_LONGEST: Final = 1.0


class Standstill:
    """``timer`` names the timer that is due. Ask ``pause`` after each round (a number of s)."""

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
