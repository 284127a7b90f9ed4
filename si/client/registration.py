"""What lasts from one registration of a resource manager to the next, over all connections."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from quadriga.si.client.incoming import Incoming
from quadriga.si.client.line import Metadata
from quadriga.si.client.outgoing import Outgoing
from quadriga.si.client.streams import ALL, STREAMS
from quadriga.si.extension.extension_pb2 import CALLBACK, Channel
from quadriga.si.wire import EPOCH, RM_ID

__all__ = ["Delivery", "Registration"]

#: so many messages are read before they are heard
_MOST: Final = 4096

#: one thing for the resource manager to hear: a method, and what with
Delivery = tuple[Callable[..., Any], tuple[Any, ...]]


class Registration:
    """`undelivered` is what the resource manager is to hear, each with the stream on which it came
    (None: from the client itself)."""

    def __init__(self, rm_id: str, callback: object, outgoing: Outgoing) -> None:
        self.rm_id = rm_id
        self.callback: Any = callback
        self.epoch = ""
        self.outgoing = outgoing
        self.incoming = Incoming()
        self.undelivered: deque[tuple[Channel | None, list[Delivery]]] = deque()
        #: set again and again, when some of that was delivered
        self.relieved = asyncio.Event()
        #: messages of each stream that it has heard
        self.delivered: dict[Channel, int] = dict.fromkeys(ALL, 0)
        #: a stream that has ended because of a request that was too large, and how large it may be
        self.too_large: tuple[Channel, int] | None = None
        #: messages that steps have brought altogether
        self.stepped = 0

    @property
    def metadata(self) -> Metadata:
        """Names this registration to the scheduler."""
        return ((RM_ID, self.rm_id), (EPOCH, self.epoch))

    @property
    def heard(self) -> int:
        """How many messages the resource manager has heard."""
        return sum(self.delivered.values())

    async def room(self) -> None:
        """Wait while more is to be heard than is good to keep here: what is not read waits at the
        scheduler, which then decides nothing more for this resource manager."""
        while len(self.undelivered) >= _MOST:
            self.relieved.clear()
            await self.relieved.wait()

    def hand_on(self) -> None:
        """Let the resource manager hear all that has its turn."""
        for stream, message in self.incoming.take():
            self.undelivered.append((stream, self._deliveries(stream, message)))

    def _deliveries(self, stream: Channel, message: Any) -> list[Delivery]:
        callback = self.callback
        if stream != CALLBACK:
            return [(getattr(callback, STREAMS[stream].heard), (message,))]
        if message.HasField("events"):
            return [(callback.send_event, (list(message.events.events),))]
        tell = callback.update_container_scheduling_state
        return [(tell, (state,)) for state in message.schedulingStates.states]
