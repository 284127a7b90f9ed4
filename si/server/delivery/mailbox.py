"""Outgoing messages of one session: they wait here until a stream of the resource manager (RM) takes them.

Each channel has a replay buffer, so that messages survive a broken stream. The mailbox bounds the bytes
that wait: above half of ``backlog_bytes`` the RM no longer keeps up, above all of it the mailbox overflows.

The scheduler's thread adds messages; the server's event loop takes them. One lock guards both sides.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from itertools import islice

from quadriga.si.extension.extension_pb2 import Callback, Counts, Order
from quadriga.si.server.channels import CALLBACK, SI_CHANNELS
from quadriga.si.server.delivery.flow_control import call_soon
from quadriga.si.server.delivery.replay_buffer import ReplayBuffer
from quadriga.si.server.limits import Limits
from quadriga.si.wire import from_counts, to_counts

#: an RM that leaves more messages unconfirmed than this does not confirm at all
_MAX_UNCONFIRMED = 1 << 20


class MessageOrder:
    """The channels of the messages that the RM has not confirmed, for RMs that ask for one order.

    gRPC keeps the order within one stream only. The server therefore tells in Callbacks on which stream it
    has put each message, and the RM reads its streams in that order. See D113. Not safe for threads: the
    `Mailbox` holds a lock.
    """

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


class Mailbox:
    """``changed`` is called in the loop whenever `keeps_up` changes, ``overflowed`` when the mailbox has
    overflowed; it accepts no message after that.

    ``received`` counts the RM's requests by channel; the mailbox acknowledges them in Callbacks when
    messages are ``in_order``. With ``client_clock`` messages are never joined, and `take_order` tells
    their order.
    """

    def __init__(
        self,
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
        received: Mapping[int, int],
        changed: Callable[[], None],
        overflowed: Callable[[], None],
        *,
        client_clock: bool,
        in_order: bool,
    ) -> None:
        self._limits = limits
        self._loop = loop
        self._received = received
        self._changed = changed
        self._on_overflow = overflowed
        self._lock = threading.Lock()
        self._buffers: dict[int, ReplayBuffer] = {
            int(channel): ReplayBuffer(
                0 if client_clock else limits.batch_bytes, limits.replay_bytes
            )
            for channel in (*SI_CHANNELS, CALLBACK)
        }
        #: bytes that wait in all buffers
        self._backlog = 0
        #: unnumbered messages of Callbacks: they concern the open stream only and are never replayed
        self._unnumbered: deque[Callback] = deque()
        self._ordering = MessageOrder() if in_order else None
        #: whether requests were received that Callbacks has not acknowledged yet
        self._unacknowledged = False
        self._keeping_up = asyncio.Event()
        self._keeping_up.set()
        self._overflowed = False
        self._closed = False
        #: channel -> the event for which its idle writer waits
        self._idle: dict[int, asyncio.Event] = {}
        #: channels of the messages since the last step; ``None`` without a client's clock
        self._step_order: list[int] | None = [] if client_clock else None

    # -- state -----------------------------------------------------------------------------------

    @property
    def backlog(self) -> int:
        """Bytes that wait for the RM, overhead included."""
        return self._backlog

    def waiting(self, channel: int) -> int:
        """The number of messages that wait on this channel."""
        return len(self._buffers[channel])

    @property
    def is_in_order(self) -> bool:
        """Whether the RM asked for one order of all messages."""
        return self._ordering is not None

    @property
    def keeps_up(self) -> bool:
        """Whether the backlog is small enough to read more of the RM's requests."""
        return self._keeping_up.is_set()

    async def wait_until_keeping_up(self) -> None:
        """Wait until the RM keeps up, or the mailbox is closed."""
        await self._keeping_up.wait()

    # -- adding messages: the scheduler's thread -------------------------------------------------

    def add(self, channel: int, message: bytes, field: int) -> None:
        """Add an encoded message. ``field`` is the only field that it sets, or 0; consecutive messages
        with the same single field may be joined."""
        half = self._limits.backlog_bytes // 2
        woken: list[asyncio.Event] = []
        with self._lock:
            if self._closed or self._overflowed:
                return
            self._put(channel, message, field)
            if self._step_order is not None:
                self._step_order.append(channel)
            full = self._ordering is not None and self._ordering.is_full
            if self._backlog > self._limits.backlog_bytes or full:
                self._overflowed = True
                self._clear()
                call_soon(self._loop, self._on_overflow)
            elif self._backlog > half and self._keeping_up.is_set():
                call_soon(self._loop, self._fall_behind)
            self._pop_idle(channel, woken)
            if self._ordering is not None:
                self._pop_idle(CALLBACK, woken)
        for event in woken:
            call_soon(self._loop, event.set)

    def _put(self, channel: int, message: bytes, field: int) -> None:
        buffer, ordering = self._buffers[channel], self._ordering
        before = buffer.bytes
        if ordering is None:
            buffer.put(message, field)
        elif buffer.put(message, field, anew=not ordering.continues(channel)):
            ordering.add(channel)
        self._backlog += buffer.bytes - before

    def add_unnumbered(self, callback: Callback) -> None:
        """Add a message for the Callbacks stream that is open now; from any thread."""
        woken: list[asyncio.Event] = []
        with self._lock:
            if self._closed or self._overflowed:
                return
            self._unnumbered.append(callback)
            self._pop_idle(CALLBACK, woken)
        for event in woken:
            call_soon(self._loop, event.set)

    def _pop_idle(self, channel: int, woken: list[asyncio.Event]) -> None:
        """Collect the event of an idle writer, to be set after the lock is released."""
        event = self._idle.pop(channel, None)
        if event is not None:
            woken.append(event)

    def _fall_behind(self) -> None:
        """More than half of the backlog is used: the server stops reading the RM's requests, and the
        scheduler stops deciding for it."""
        with self._lock:
            if not self._overflowed and self._backlog > self._limits.backlog_bytes // 2:
                self._keeping_up.clear()
        self._changed()

    # -- taking messages: the server's loop ------------------------------------------------------

    def take(self, channel: int) -> bytes | None:
        """The next message to write, or ``None`` if none waits."""
        with self._lock:
            unnumbered = self._next_unnumbered() if channel == CALLBACK else None
            if unnumbered is not None:
                return unnumbered.SerializeToString()
            buffer = self._buffers[channel]
            before = buffer.bytes
            message = buffer.take()
            if message is None:
                return None
            self._backlog += buffer.bytes - before
            caught_up = (
                not self._keeping_up.is_set() and self._backlog < self._limits.backlog_bytes // 8
            )
            if caught_up:
                self._keeping_up.set()
        if caught_up:
            self._changed()
        return message

    def _next_unnumbered(self) -> Callback | None:
        """What goes out in Callbacks before its next numbered message."""
        if self._unnumbered:
            return self._unnumbered.popleft()
        if self._ordering is not None:
            order = self._ordering.take_unsent()
            if order is not None:
                return Callback(order=order)
            if self._unacknowledged:
                self._unacknowledged = False
                return Callback(taken=to_counts(self._received))
        return None

    async def wait(self, channel: int) -> None:
        """Wait until a message is there for this channel, or `wake` is called."""
        with self._lock:
            if len(self._buffers[channel]) or (channel == CALLBACK and self._has_unnumbered):
                return
            event = self._idle[channel] = asyncio.Event()
        await event.wait()

    @property
    def _has_unnumbered(self) -> bool:
        ordering = self._ordering
        return (
            bool(self._unnumbered)
            or self._unacknowledged
            or (ordering is not None and ordering.has_unsent)
        )

    def wake(self, channel: int) -> None:
        """Wake up the channel's writer, so that it checks its stream again."""
        with self._lock:
            event = self._idle.pop(channel, None)
        if event is not None:
            event.set()

    # -- acknowledgements: the server's loop -----------------------------------------------------

    def acknowledge(self) -> None:
        """Note that another request was received; Callbacks acknowledges it if messages are in order."""
        if self._ordering is not None:
            self._unacknowledged = True
            self.wake(CALLBACK)

    def confirm(self, received: Counts) -> None:
        """The RM has received this many messages of each channel."""
        if self._ordering is not None:
            with self._lock:
                self._ordering.confirm(from_counts(received))

    def resume(self, received: Counts) -> None:
        """A new Callbacks stream begins, and the RM has received this many messages of each channel."""
        with self._lock:
            self._unnumbered.clear()  # they concerned the older stream
            if self._ordering is not None:
                self._ordering.resume(from_counts(received))
                self._unacknowledged = True

    def rewind(self, channel: int, received: int) -> bool:
        """Prepare to write again what the RM has not received of this channel. Return False if some of
        it is no longer in the buffer."""
        with self._lock:
            buffer = self._buffers[channel]
            before = buffer.bytes
            known = buffer.rewind(received)
            self._backlog += buffer.bytes - before
            return known

    def take_order(self) -> list[int]:
        """The channels of the messages since the last call, in order. Needs a client's clock."""
        with self._lock:
            order, self._step_order = self._step_order or [], []
            return order

    def close(self) -> None:
        """Drop all messages and accept no more."""
        with self._lock:
            self._closed = True
            self._clear()
        self._keeping_up.set()

    def _clear(self) -> None:
        for buffer in self._buffers.values():
            buffer.clear()
        self._unnumbered.clear()
        self._backlog = 0
