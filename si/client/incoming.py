"""Messages of the scheduler, in the order in which it sent them.

They arrive on several streams, between which gRPC keeps no order. The scheduler tells on which
stream it has put each message, and they are delivered in that order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from quadriga.si.client.streams import CHANNELS
from quadriga.si.extension.extension_pb2 import Channel


class IncomingMessages:
    """`received` counts the messages that were delivered, by stream, over all connections.

    The scheduler keeps unconfirmed messages up to a limit, which also bounds the messages that wait
    here.
    """

    def __init__(self) -> None:
        self.received: dict[Channel, int] = dict.fromkeys(CHANNELS, 0)
        self._arrived: dict[Channel, deque[Any]] = {stream: deque() for stream in CHANNELS}
        self._order: deque[Channel] = deque()
        #: number of messages whose order is known
        self._known = 0

    def arrive(self, stream: Channel, message: Any) -> None:
        """Add a message that arrived on its stream."""
        self._arrived[stream].append(message)

    def order(self, first: int, streams: Sequence[Channel]) -> bool:
        """The messages after the first `first` ones are on these streams, in this order. A part of
        it may be known already. Return False if there is a gap."""
        if first > self._known:
            return False
        new = streams[self._known - first :]
        self._order.extend(new)
        self._known += len(new)
        return True

    def take(self) -> list[tuple[Channel, Any]]:
        """Take the messages that are next in order, each of them once."""
        taken = []
        while self._order and (arrived := self._arrived[self._order[0]]):
            stream = self._order.popleft()
            self.received[stream] += 1
            taken.append((stream, arrived.popleft()))
        return taken

    def lose(self) -> None:
        """The connection is lost. Drop messages that were not next in order; the scheduler sends
        them again."""
        self._order.clear()
        self._known = sum(self.received.values())
        for arrived in self._arrived.values():
            arrived.clear()
