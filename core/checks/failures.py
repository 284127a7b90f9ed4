"""Errors in the scheduler that the driver survived, for the health check.

Each failure is kept with its time: the health check reports what happened and when, and succeeds again
some time after the last failure.
"""

# Not compiled: it does not run for every ask.

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from quadriga.base.times import MINUTE, whole_time

#: ns for which a failure counts as recent
KEPT_FOR: Final = 10 * MINUTE

#: at most this many failures are kept with their time and text
_MOST: Final = 1000
#: at most this many different errors are listed
_LISTED: Final = 5
#: an error's text is cut to this many characters
_LONGEST: Final = 200


class Failure(NamedTuple):
    """The text of an error, and its time (ns)."""

    time: int
    text: str


class FailureLog:
    """``count`` is the number of all failures since the start; recent ones are kept with their text."""

    def __init__(self) -> None:
        self.count = 0
        self._kept: deque[Failure] = deque(maxlen=_MOST)

    def note(self, error: BaseException, now: int) -> None:
        """Add an error that was survived."""
        text = " ".join(f"{type(error).__name__}: {error}".split())
        if len(text) > _LONGEST:
            text = text[: _LONGEST - 3] + "..."
        self.count += 1
        self._kept.append(Failure(now, text))

    def recent(self, now: int, since: int | None = None) -> list[Failure]:
        """The failures of the last ten minutes and those after ``since``, oldest first."""
        begin = now - KEPT_FOR
        if since is not None:
            begin = min(begin, since)
        return [failure for failure in self._kept if failure.time > begin]

    def diagnosis(self, recent: list[Failure]) -> str:
        """A text for operators: what happened, when and how often."""
        summary = f"scheduling errors since the start: {self.count}"
        if not recent:
            return f"{summary}, none of them recent" if self.count else summary
        latest: dict[str, Failure] = {}
        times: dict[str, int] = {}
        for failure in reversed(recent):
            latest.setdefault(failure.text, failure)
            times[failure.text] = times.get(failure.text, 0) + 1
        number = f"at least {_MOST}" if len(recent) == _MOST < self.count else str(len(recent))
        listed = []
        for text, failure in latest.items():
            often = f"{times[text]} times, last" if times[text] > 1 else "once,"
            listed.append(f"{text} ({often} at {whole_time(failure.time)})")
        more = len(listed) - _LISTED
        if more > 0:
            listed[_LISTED:] = [f"and {more} other errors"]
        return f"{summary}, {number} of them recent: " + "; ".join(listed)
