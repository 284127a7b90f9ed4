"""One order of all messages to a resource manager (RM), across its streams, for RMs that ask for
it.

gRPC keeps the order within one stream only. The server therefore tells in Callbacks on which stream
it has put each message, and the RM reads its streams in that order. See D113.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from itertools import islice

from quadriga.si.extension.extension_pb2 import Order

#: an RM that leaves more messages unconfirmed than this does not confirm at all
_MAX_UNCONFIRMED = 1 << 20


class MessageOrder:
    """The channels of the messages that the RM has not confirmed. Not safe for threads: the
    `Mailbox` holds a lock."""

    __slots__ = ("_confirmed", "_first", "_channels", "_last", "_unsent")

    def __init__(self) -> None:
        self._channels: deque[int] = deque()
        self._confirmed: Counter[int] = Counter()
        #: number of confirmed messages, and number of unconfirmed ones whose order the RM does not
        #: know yet
        self._first = 0
        self._unsent = 0
        self._last = 0

    def continues(self, channel: int) -> bool:
        """Whether the last message was on this channel too, so that the next one may be joined to
        it."""
        return self._last == channel

    def add(self, channel: int) -> None:
        """Append a message on this channel."""
        self._channels.append(channel)
        self._last = channel
        self._unsent += 1

    @property
    def is_full(self) -> bool:
        """Whether too many messages are unconfirmed."""
        return len(self._channels) > _MAX_UNCONFIRMED

    @property
    def has_unsent(self) -> bool:
        """Whether the RM does not know the order of some messages yet."""
        return self._unsent > 0

    def take_unsent(self) -> Order | None:
        """The next part of the order to send to the RM, or ``None``."""
        if not self._unsent:
            return None
        # read from the right end, where a deque is fast
        channels = [*islice(reversed(self._channels), self._unsent)]
        first = self._first + len(self._channels) - self._unsent
        self._unsent = 0
        return Order(first=first, messages=reversed(channels))  # type: ignore[arg-type]

    def confirm(self, received: Mapping[int, int]) -> None:
        """The RM has received this many messages on each channel."""
        channels, confirmed = self._channels, self._confirmed
        while channels and confirmed[channels[0]] < received.get(channels[0], 0):
            confirmed[channels.popleft()] += 1
            self._first += 1
        self._unsent = min(self._unsent, len(channels))

    def resume(self, received: Mapping[int, int]) -> None:
        """The RM is back and has received this many messages on each channel. The order of all
        others is sent again."""
        self.confirm(received)
        self._unsent = len(self._channels)
