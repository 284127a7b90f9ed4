"""Names what a loop works at for too long (Q16).

The loop says what it begins, and when it waits for work. What took longer than ``slow`` is named in one line
of the log and counted. A loop that does not come back at all says nothing any more, so `stuck` may be asked by
any other thread, as a probe does: it names what the loop is at now. See D266.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from quadriga.base.times import SECOND

_log = logging.getLogger("quadriga.watchdog")

#: ns: what takes longer is named
SLOW: Final = SECOND


class Watchdog:
    """``clock`` gives ns and never goes back; ``describe`` makes a text of what ``at`` was given."""

    __slots__ = ("_clock", "_describe", "_named", "_now_at", "_slow", "count", "detail", "longest")

    def __init__(
        self, clock: Callable[[], int], describe: Callable[[Any], str] = str, slow: int = SLOW
    ) -> None:
        self._clock = clock
        self._describe = describe
        self._slow = slow
        #: what the loop is at, and since when: replaced as a whole, since other threads read it
        self._now_at: tuple[Any, int] | None = None
        #: since when that is at which a look of another thread has named
        self._named = -1
        #: what the loop asks about in what it is at, "" for nothing
        self.detail = ""
        #: how often something took too long, and the longest time (ns)
        self.count = 0
        self.longest = 0

    def at(self, thing: Any) -> None:
        """The loop begins with this, and is done with what it was at before."""
        now = self._clock()
        if self._now_at is not None:
            self._done(*self._now_at, now)
        self._now_at = (thing, now)
        self.detail = ""

    def idle(self) -> None:
        """The loop is done, and waits."""
        if self._now_at is not None:
            self._done(*self._now_at, self._clock())
            self._now_at = None

    def busy(self) -> int:
        """For how long (ns) the loop has been at the same thing. From any thread."""
        found = self._now_at
        return 0 if found is None else max(0, self._clock() - found[1])

    def stuck(self, longest: int) -> str:
        """What the loop is at for more than ``longest`` (ns), "" if it is not. From any thread; the log
        names it once."""
        found = self._now_at
        if found is None:
            return ""
        took = self._clock() - found[1]
        if took <= longest:
            return ""
        text = f"its loop has been at {self._text(found[0])} for {took / SECOND:.1f} s"
        if self._named != found[1]:
            self._named = found[1]
            _log.error("%s", text)
        return text

    def _done(self, thing: Any, since: int, now: int) -> None:
        took = now - since
        if took > self._slow:
            self.count += 1
            self.longest = max(self.longest, took)
            _log.warning("the loop spent %.1f s on %s", took / SECOND, self._text(thing))

    def _text(self, thing: Any) -> str:
        detail = self.detail
        return self._describe(thing) + (f" (last question: {detail})" if detail else "")
