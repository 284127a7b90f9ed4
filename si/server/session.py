"""One registration of a resource manager (RM), with the streams that belong to it.

A session begins with ``RegisterResourceManager``. It ends when the RM registers again, leaves, or the
scheduler gives it up. The session is the callback that the scheduler has for the RM, so a message to an
older registration never reaches a newer one (I7).

Outgoing messages wait in a `Mailbox`, also while a stream is down (I6). The RM counts as connected while
every channel that it ever opened has a stream, and while it keeps up. `Registry` reports each change of
that to the scheduler.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import grpc

from quadriga.base.pacing import TokenBucket
from quadriga.si import NullCallback
from quadriga.si.extension.extension_pb2 import Callback, Events, Hello, SchedulingStates
from quadriga.si.server.callbacks import CallbackQuestions
from quadriga.si.server.channels import ALLOCATION, APPLICATION, CALLBACK, NODE, SI_CHANNELS
from quadriga.si.server.delivery.mailbox import Mailbox
from quadriga.si.server.limits import Limits
from quadriga.si.server.status import StatusError
from quadriga.si.v1.si_pb2 import (
    AllocationResponse,
    ApplicationResponse,
    EventRecord,
    NodeResponse,
    UpdateContainerSchedulingStateRequest,
)
from quadriga.si.wire import Request

#: one Callback message carries at most this many events
_EVENTS_PER_MESSAGE = 1000


class OpenStream(Protocol):
    """What a session needs of its streams."""

    def end(self, status: StatusError | None) -> None:
        """End with this status; ``None`` is success."""

    def drain(self) -> None:
        """End with success as soon as no message waits."""


class Session(NullCallback):
    """``epoch`` is the number of the registration. The scheduler's thread calls the methods of the
    callback; all other methods are called in the server's loop."""

    def __init__(
        self,
        rm_id: str,
        epoch: int,
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
        changed: Callable[[Session], None],
        begin: Callable[[Callable[[], list[Any]]], object],
        *,
        client_clock: bool,
        in_order: bool,
    ) -> None:
        self.rm_id = rm_id
        self.epoch = epoch
        #: channel -> its open stream
        self.streams: dict[int, OpenStream] = {}
        #: channels that the RM has opened at least once
        self.opened: set[int] = set()
        #: channels on which the RM has sent its last request
        self.half_closed: set[int] = set()
        #: number of requests received, by channel
        self.received: Counter[int] = Counter()
        #: requests that wait for a step of the client's clock, by channel
        self.inbound: dict[int, deque[Request]] = {channel: deque() for channel in SI_CHANNELS}
        self.inbound_bytes = 0
        #: set when a request was added to `inbound`
        self.request_arrived = asyncio.Event()
        #: whether the RM is connected, as last reported to the scheduler
        self.connected = True
        #: set while another registration of the RM is pending; no request is handed on until then
        self.pending_registration: asyncio.Event | None = None
        #: the RM has left; its streams only write what still waits
        self.leaving = False
        #: the status with which the session ended; requests and messages are dropped from then on
        self.ended: StatusError | None = None
        #: held while the scheduler is told about the RM's connection
        self.connection_lock = asyncio.Lock()
        self.requests = TokenBucket(limits.requests_per_second, limits.request_burst)
        self.items = TokenBucket(limits.items_per_second, limits.item_burst)
        self.hello = Hello(rmID=rm_id)
        self.mailbox = Mailbox(
            limits,
            loop,
            self.received,
            lambda: changed(self),
            self._overflowed,
            client_clock=client_clock,
            in_order=in_order,
        )
        self.questions = CallbackQuestions(
            limits, loop, self._send_question, begin, client_clock=client_clock
        )
        self.client_clock = client_clock
        #: number of events and scheduling states that were dropped because too many waited
        self.dropped = 0
        self._limits = limits
        self._changed = changed

    # -- the callback: the scheduler's thread ----------------------------------------------------

    def update_allocation(self, response: AllocationResponse) -> None:
        self._send(ALLOCATION, response)

    def update_application(self, response: ApplicationResponse) -> None:
        self._send(APPLICATION, response)

    def update_node(self, response: NodeResponse) -> None:
        self._send(NODE, response)

    def send_event(self, events: Sequence[EventRecord]) -> None:
        if not self.hello.events:
            return
        # a client's clock counts messages, so each event is one of its own
        size = 1 if self.client_clock else _EVENTS_PER_MESSAGE
        for start in range(0, len(events), size):
            some = events[start : start + size]
            self._send_optional(Callback(events=Events(events=some)), len(some))

    def update_container_scheduling_state(
        self, request: UpdateContainerSchedulingStateRequest
    ) -> None:
        if self.hello.schedulingStates:
            callback = Callback(schedulingStates=SchedulingStates(states=[request]))
            self._send_optional(callback, 1)

    def _send(self, channel: int, response: Any) -> None:
        fields = response.ListFields()
        field = fields[0][0].number if len(fields) == 1 else 0
        self.mailbox.add(channel, response.SerializeToString(), field)

    def _send_optional(self, callback: Callback, count: int) -> None:
        """Send informational messages; they are dropped if the RM does not read them."""
        if self.mailbox.waiting(CALLBACK) >= self._limits.pending_events:
            self.dropped += count
            return
        self.mailbox.add(CALLBACK, callback.SerializeToString(), 0)

    # -- streams: the server's loop --------------------------------------------------------------

    async def registration_settled(self) -> None:
        """Wait while another registration of the RM is pending."""
        while self.pending_registration is not None:
            await self.pending_registration.wait()

    @property
    def has_all_streams(self) -> bool:
        """Whether every channel that the RM has opened has a stream."""
        return self.opened <= self.streams.keys()

    def count_request(self, channel: int) -> None:
        """Count a request received on this channel, and acknowledge it."""
        self.received[channel] += 1
        self.mailbox.acknowledge()

    def announce_callbacks(self, hello: Hello) -> None:
        """Use the callbacks that the RM announces on a new Callbacks stream."""
        self.hello = hello
        self.mailbox.resume(hello.received)
        self.questions.reset()
        if hello.stateDump:
            # an attribute of this instance only: an object that has it is a `StateDumpPlugin`
            vars(self)["get_state_dump"] = self.questions.state_dump
        else:
            vars(self).pop("get_state_dump", None)

    def _send_question(self, question: Callback) -> bool:
        if CALLBACK not in self.streams:
            return False
        self.mailbox.add_unnumbered(question)
        return True

    @property
    def backlog(self) -> int:
        """Bytes that wait for the RM, overhead included."""
        return self.mailbox.backlog

    @property
    def timed_out(self) -> int:
        """The number of questions that were not answered in time."""
        return self.questions.timed_out

    # -- the end: the server's loop --------------------------------------------------------------

    def _overflowed(self) -> None:
        self.end(
            StatusError(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "I43",
                f"more than {self._limits.backlog_bytes} bytes waited for resource manager "
                f"{self.rm_id!r}: register again",
                register_again=True,
            )
        )
        self._changed(self)

    def end(self, status: StatusError) -> None:
        """End the session and its streams with this status, and drop what waits."""
        if self.ended is not None:
            return
        self.ended = status
        self.mailbox.close()
        for requests in self.inbound.values():
            requests.clear()
        self.inbound_bytes = 0
        self.request_arrived.set()
        self.questions.close()
        for stream in [*self.streams.values()]:
            stream.end(status)
