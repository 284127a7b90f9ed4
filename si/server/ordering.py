"""One order of all that is said to a resource manager (RM), across its streams, for one that wants it.

gRPC keeps the order within a stream only. So the scheduler tells in Callbacks on which streams it put
its messages, one after the other, and the RM reads them in that order.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from itertools import islice

from quadriga.si.extension.extension_pb2 import Order

__all__ = ["Ordering"]

#: so many messages that the RM has not confirmed, and it is not one that confirms
_MOST = 1 << 20


class Ordering:
    """The streams of the messages that the RM has not confirmed. Not safe for threads: its `Session`
    has a lock."""

    __slots__ = ("_confirmed", "_first", "_kinds", "_last", "_untold")

    def __init__(self) -> None:
        self._kinds: deque[int] = deque()
        self._confirmed: Counter[int] = Counter()
        #: how many were confirmed altogether, and how many of the others were not told yet
        self._first = 0
        self._untold = 0
        self._last = 0

    def follows(self, kind: int) -> bool:
        """Whether the message before was of this kind too, so that both may be one."""
        return self._last == kind

    def add(self, kind: int) -> None:
        """A message was put on the stream of this kind."""
        self._kinds.append(kind)
        self._last = kind
        self._untold += 1

    @property
    def is_full(self) -> bool:
        """Whether more waits to be confirmed than an honest RM leaves."""
        return len(self._kinds) > _MOST

    @property
    def is_new(self) -> bool:
        """Whether there is something to tell."""
        return self._untold > 0

    def tell(self) -> Order | None:
        """What to tell the RM now."""
        if not self._untold:
            return None
        # from the end, which is where a deque is quick
        kinds = [*islice(reversed(self._kinds), self._untold)]
        first = self._first + len(self._kinds) - self._untold
        self._untold = 0
        return Order(first=first, messages=reversed(kinds))  # type: ignore[arg-type]

    def confirm(self, received: Mapping[int, int]) -> None:
        """The RM has read so many of each kind."""
        kinds, confirmed = self._kinds, self._confirmed
        while kinds and confirmed[kinds[0]] < received.get(kinds[0], 0):
            confirmed[kinds.popleft()] += 1
            self._first += 1
        self._untold = min(self._untold, len(kinds))

    def resume(self, received: Mapping[int, int]) -> None:
        """The RM is back and has read so many of each kind: tell it of all others."""
        self.confirm(received)
        self._untold = len(self._kinds)
