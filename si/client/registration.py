"""The state of one registration of a resource manager. It outlasts single connections."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from quadriga.si.client.channels import Metadata
from quadriga.si.client.outgoing import OutgoingRequests
from quadriga.si.client.streams import CHANNELS, STREAMS
from quadriga.si.extension.extension_pb2 import CALLBACK, Channel
from quadriga.si.wire import EPOCH, RM_ID


class IncomingMessages:
    """Messages of the scheduler, delivered in the order in which it sent them, which gRPC does not keep between
    streams: the scheduler tells on which stream it has put each message.

    `received` counts the messages that were delivered, by stream, over all connections.

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


#: at most this many undelivered messages are kept before the client stops reading
_MAX_UNDELIVERED: Final = 4096

#: one call of the callback: a method and its arguments
Delivery = tuple[Callable[..., Any], tuple[Any, ...]]


class Registration:
    """`undelivered` holds the calls that the resource manager has not received yet, each with the
    stream of its message (None: from the client itself)."""

    def __init__(self, rm_id: str, callback: object, outgoing: OutgoingRequests) -> None:
        self.rm_id = rm_id
        self.callback: Any = callback
        self.epoch = ""
        self.outgoing = outgoing
        self.incoming = IncomingMessages()
        self.undelivered: deque[tuple[Channel | None, list[Delivery]]] = deque()
        #: set after each delivery
        self.delivered_some = asyncio.Event()
        #: number of messages delivered, by stream
        self.delivered: dict[Channel, int] = dict.fromkeys(CHANNELS, 0)
        #: the stream that ended because of a request that was too large, and the size that the
        #: server allows
        self.too_large: tuple[Channel, int] | None = None
        #: number of messages announced by steps
        self.stepped = 0

    @property
    def metadata(self) -> Metadata:
        """Identifies this registration to the scheduler."""
        return ((RM_ID, self.rm_id), (EPOCH, self.epoch))

    @property
    def delivered_count(self) -> int:
        """The number of messages that the resource manager has received."""
        return sum(self.delivered.values())

    async def room(self) -> None:
        """Wait while too many messages are undelivered. Messages that are not read wait at the
        scheduler, which then decides nothing more for this resource manager."""
        while len(self.undelivered) >= _MAX_UNDELIVERED:
            self.delivered_some.clear()
            await self.delivered_some.wait()

    def deliver_ready(self) -> None:
        """Move all messages that are next in order to `undelivered`."""
        for stream, message in self.incoming.take():
            self.undelivered.append((stream, self._deliveries(stream, message)))

    def _deliveries(self, stream: Channel, message: Any) -> list[Delivery]:
        callback = self.callback
        if stream != CALLBACK:
            return [(getattr(callback, STREAMS[stream].callback), (message,))]
        if message.HasField("events"):
            return [(callback.send_event, (list(message.events.events),))]
        tell = callback.update_container_scheduling_state
        return [(tell, (state,)) for state in message.schedulingStates.states]
