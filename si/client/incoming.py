"""What the scheduler says, in the order in which it was said.

It comes on several streams, between which gRPC promises no order. The scheduler tells in which order
it put its messages on them, and so they are handed on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from quadriga.si.client.streams import ALL
from quadriga.si.extension.extension_pb2 import Channel

__all__ = ["Incoming"]


class Incoming:
    """`received` counts the messages of each stream whose turn has come, over all connections.

    The scheduler keeps what was not confirmed, and no more than so much of it: that is the bound of
    what can wait here.
    """

    def __init__(self) -> None:
        self.received: dict[Channel, int] = dict.fromkeys(ALL, 0)
        self._arrived: dict[Channel, deque[Any]] = {stream: deque() for stream in ALL}
        self._order: deque[Channel] = deque()
        #: of how many messages the order is known
        self._known = 0

    def arrive(self, stream: Channel, message: Any) -> None:
        """A message came on its stream."""
        self._arrived[stream].append(message)

    def order(self, first: int, streams: Sequence[Channel]) -> bool:
        """The messages after the `first` so many were put on these streams, in this order; some of
        that may be known. False where something in between was not told."""
        if first > self._known:
            return False
        new = streams[self._known - first :]
        self._order.extend(new)
        self._known += len(new)
        return True

    def take(self) -> list[tuple[Channel, Any]]:
        """Those whose turn has come, in order; each is given once."""
        taken = []
        while self._order and (arrived := self._arrived[self._order[0]]):
            stream = self._order.popleft()
            self.received[stream] += 1
            taken.append((stream, arrived.popleft()))
        return taken

    def lose(self) -> None:
        """The connection is lost: what had not its turn yet will be said again."""
        self._order.clear()
        self._known = sum(self.received.values())
        for arrived in self._arrived.values():
            arrived.clear()
