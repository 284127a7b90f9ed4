"""One registration of a resource manager (RM): what the scheduler says to it, and over which streams.

A session begins with ``RegisterResourceManager`` and ends when the RM registers again, leaves, or is
given up. It is the callback that the scheduler has for the RM, so that what is said to an older
registration never reaches a newer one (I7).

Messages wait in a `Box` for each kind of stream until the stream has taken them, and while it is away
(I6). Whether the RM is connected follows from what is here: it is while every kind of stream that it
has opened is there, and it keeps up. `Registry` tells the scheduler of every change.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import grpc

from quadriga.si import NullCallback
from quadriga.si.extension.extension_pb2 import (
    Callback,
    Channel,
    Counts,
    Events,
    Hello,
    SchedulingStates,
)
from quadriga.si.server.asking import Asking
from quadriga.si.server.box import Box
from quadriga.si.server.flow import call_soon
from quadriga.si.server.limits import Limits
from quadriga.si.server.ordering import Ordering
from quadriga.si.server.rates import Bucket
from quadriga.si.server.statuses import Ending
from quadriga.si.wire import counted, counts

if TYPE_CHECKING:
    from quadriga.si.server.streams import Stream
    from quadriga.si.v1.si_pb2 import (
        AllocationResponse,
        ApplicationResponse,
        EventRecord,
        NodeResponse,
        UpdateContainerSchedulingStateRequest,
    )
    from quadriga.si.wire import Request

__all__ = ["ALLOCATION", "APPLICATION", "CALLBACK", "NODE", "SI_KINDS", "Session"]

ALLOCATION: Final = Channel.ALLOCATION
APPLICATION: Final = Channel.APPLICATION
NODE: Final = Channel.NODE
CALLBACK: Final = Channel.CALLBACK
SI_KINDS: Final = (ALLOCATION, APPLICATION, NODE)


class Session(NullCallback):
    """``epoch`` is the number of the registration. Methods of the callback are called by the
    scheduler's thread, ``take`` and what follows by the server's loop."""

    def __init__(
        self,
        rm_id: str,
        epoch: int,
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
        changed: Callable[[Session], None],
        begin: Callable[[Callable[[], list[Any]]], object],
        *,
        waits: bool,
        in_order: bool,
    ) -> None:
        self.rm_id = rm_id
        self.epoch = epoch
        #: the streams that are there, and every kind that ever was
        self.live: dict[int, Stream] = {}
        self.wanted: set[int] = set()
        #: kinds on which the RM has said that it will say no more
        self.half_closed: set[int] = set()
        #: how many requests were taken from each kind of stream
        self.taken: Counter[int] = Counter()
        #: requests that wait for a step of the client's clock
        self.inbound: dict[int, deque[Request]] = {kind: deque() for kind in SI_KINDS}
        self.inbound_bytes = 0
        self.arrived = asyncio.Event()
        #: what the scheduler was told: whether the RM is connected
        self.connected = True
        #: registration is being asked for again: nothing is handed on until that is decided
        self.held: asyncio.Event | None = None
        #: the RM has left: its streams only say what is left to say
        self.leaving = False
        #: why it is over; requests and messages go nowhere then
        self.over: Ending | None = None
        self.settling = asyncio.Lock()
        self.requests = Bucket(limits.requests_per_second, limits.request_burst, loop.time)
        self.items = Bucket(limits.items_per_second, limits.item_burst, loop.time)
        self.hello = Hello(rmID=rm_id)
        self.asking = Asking(limits, loop, self._question, begin, waits=waits)
        self.waits = waits
        #: news that found no room
        self.dropped = 0
        self._limits = limits
        self._loop = loop
        self._changed = changed
        self._lock = threading.Lock()
        self._boxes: dict[int, Box] = {
            int(kind): Box(0 if waits else limits.batch_bytes, limits.replay_bytes)
            for kind in (*SI_KINDS, CALLBACK)
        }
        self._backlog = 0
        #: what is said in Callbacks beside its messages: of no use to a later stream, so not kept
        self._asides: deque[Callback] = deque()
        self._ordering = Ordering() if in_order else None
        self._untold_taken = False
        self._relieved = asyncio.Event()
        self._relieved.set()
        self._overrun = False
        #: the writers that wait for a message
        self._asleep: dict[int, asyncio.Event] = {}
        #: with the client's clock: kinds in the order of the messages, since the last step
        self._order: list[int] | None = [] if waits else None

    # -- the callback: the scheduler's thread ----------------------------------------------------

    def update_allocation(self, response: AllocationResponse) -> None:
        self._put(ALLOCATION, response)

    def update_application(self, response: ApplicationResponse) -> None:
        self._put(APPLICATION, response)

    def update_node(self, response: NodeResponse) -> None:
        self._put(NODE, response)

    def send_event(self, events: Sequence[EventRecord]) -> None:
        if not self.hello.events:
            return
        if self._order is not None:
            for event in events:
                self._tell(Callback(events=Events(events=[event])), 1)
        else:
            for start in range(0, len(events), 1000):
                some = events[start : start + 1000]
                self._tell(Callback(events=Events(events=some)), len(some))

    def update_container_scheduling_state(
        self, request: UpdateContainerSchedulingStateRequest
    ) -> None:
        if self.hello.schedulingStates:
            self._tell(Callback(schedulingStates=SchedulingStates(states=[request])), 1)

    def _put(self, kind: int, response: Any) -> None:
        fields = response.ListFields()
        field = fields[0][0].number if len(fields) == 1 else 0
        self._add(kind, response.SerializeToString(), field)

    def _tell(self, callback: Callback, count: int) -> None:
        """News for people: dropped where the RM does not read them."""
        if len(self._boxes[CALLBACK]) >= self._limits.news:
            self.dropped += count
            return
        self._add(CALLBACK, callback.SerializeToString(), 0)

    def _add(self, kind: int, message: bytes, field: int) -> None:
        limits = self._limits
        awake: list[asyncio.Event] = []
        with self._lock:
            if self.over is not None or self._overrun:
                return
            self._put_in_order(kind, message, field)
            if self._order is not None:
                self._order.append(kind)
            full = self._ordering is not None and self._ordering.is_full
            if self._backlog > limits.backlog_bytes or full:
                self._overrun = True
                self._forget()
                self._call(self._fell_behind)
            elif self._backlog > limits.backlog_bytes // 2 and self._relieved.is_set():
                self._call(self._press)
            self._rouse(kind, awake)
            if self._ordering is not None:
                self._rouse(CALLBACK, awake)
        for event in awake:
            self._call(event.set)

    def _put_in_order(self, kind: int, message: bytes, field: int) -> None:
        box, ordering = self._boxes[kind], self._ordering
        before = box.bytes
        if ordering is None:
            box.put(message, field)
        elif box.put(message, field, anew=not ordering.follows(kind)):
            ordering.add(kind)
        self._backlog += box.bytes - before

    def _rouse(self, kind: int, awake: list[asyncio.Event]) -> None:
        """Note whom to wake up, once the lock is free."""
        event = self._asleep.pop(kind, None)
        if event is not None:
            awake.append(event)

    def _call(self, what: Callable[[], object]) -> None:
        call_soon(self._loop, what)

    # -- back-pressure: the server's loop --------------------------------------------------------

    def _press(self) -> None:
        """Half of what may wait does: nothing more is read of the RM, and nothing decided for it."""
        with self._lock:
            if not self._overrun and self._backlog > self._limits.backlog_bytes // 2:
                self._relieved.clear()
        self._changed(self)

    def _fell_behind(self) -> None:
        self.retire(
            Ending(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "I43",
                f"more than {self._limits.backlog_bytes} bytes waited for resource manager "
                f"{self.rm_id!r}: register again",
                again=True,
            )
        )
        self._changed(self)

    @property
    def keeps_up(self) -> bool:
        return self._relieved.is_set()

    async def relief(self) -> None:
        """Wait until the RM keeps up."""
        await self._relieved.wait()

    # -- streams: the server's loop --------------------------------------------------------------

    async def decided(self) -> None:
        """Wait while it is being decided whether there is another registration."""
        while self.held is not None:
            await self.held.wait()

    @property
    def is_whole(self) -> bool:
        """Whether every kind of stream that the RM has opened is there."""
        return self.wanted <= self.live.keys()

    @property
    def backlog(self) -> int:
        """What waits for the RM, in bytes."""
        return self._backlog

    def take(self, kind: int) -> bytes | None:
        """The next message to write, or ``None``."""
        with self._lock:
            aside = self._aside() if kind == CALLBACK else None
            if aside is not None:
                return aside.SerializeToString()
            box = self._boxes[kind]
            before = box.bytes
            found = box.take()
            if found is None:
                return None
            self._backlog += box.bytes - before
            relieved = (
                not self._relieved.is_set() and self._backlog < self._limits.backlog_bytes // 8
            )
            if relieved:
                self._relieved.set()
        if relieved:
            self._changed(self)
        return found

    def _aside(self) -> Callback | None:
        """What to say in Callbacks before its next message."""
        if self._asides:
            return self._asides.popleft()
        if self._ordering is not None:
            order = self._ordering.tell()
            if order is not None:
                return Callback(order=order)
            if self._untold_taken:
                self._untold_taken = False
                return Callback(taken=counts(self.taken))
        return None

    def took(self, kind: int) -> None:
        """A request of this kind was taken from its stream."""
        self.taken[kind] += 1
        if self._ordering is not None:
            self._untold_taken = True
            self.wake(CALLBACK)

    @property
    def is_in_order(self) -> bool:
        """Whether the RM wants one order of all messages."""
        return self._ordering is not None

    def confirm(self, received: Counts) -> None:
        """The RM has read so much."""
        if self._ordering is not None:
            with self._lock:
                self._ordering.confirm(counted(received))

    async def sleep(self, kind: int) -> None:
        """Until there is a message of this kind."""
        with self._lock:
            if len(self._boxes[kind]) or (kind == CALLBACK and self._has_aside):
                return
            event = self._asleep[kind] = asyncio.Event()
        await event.wait()

    @property
    def _has_aside(self) -> bool:
        ordering = self._ordering
        return (
            bool(self._asides) or self._untold_taken or (ordering is not None and ordering.is_new)
        )

    def wake(self, kind: int) -> None:
        """The writer looks at its stream again."""
        with self._lock:
            asleep = self._asleep.pop(kind, None)
        if asleep is not None:
            asleep.set()

    def rewind(self, kind: int, received: int) -> bool:
        """The RM has got so many messages of this kind; whether what it has not is still known."""
        with self._lock:
            box = self._boxes[kind]
            before = box.bytes
            known = box.rewind(received)
            self._backlog += box.bytes - before
            return known

    def waits_for(self, kind: int) -> int:
        """How many messages of the kind wait."""
        return len(self._boxes[kind])

    def retire(self, why: Ending) -> None:
        """It is over: its streams end, and nothing is kept."""
        with self._lock:
            if self.over is not None:
                return
            self.over = why
            self._forget()
        self._relieved.set()
        self.arrived.set()
        self.asking.close()
        for stream in [*self.live.values()]:
            stream.end(why)

    def _forget(self) -> None:
        for box in self._boxes.values():
            box.clear()
        self._asides.clear()
        self._backlog = 0
        for requests in self.inbound.values():
            requests.clear()
        self.inbound_bytes = 0

    # -- a step of the client's clock ------------------------------------------------------------

    def order(self) -> list[int]:
        """The kinds of the messages since it was last asked for."""
        with self._lock:
            order, self._order = self._order or [], []
            return order

    # -- callbacks of the extension --------------------------------------------------------------

    def greet(self, hello: Hello) -> None:
        """The RM has these callbacks from now on."""
        self.hello = hello
        with self._lock:
            self._asides.clear()  # what was asked of an older stream
            if self._ordering is not None:
                self._ordering.resume(counted(hello.received))
                self._untold_taken = True
        self.asking.greet()
        if hello.stateDump:
            # an attribute of this one only: who has it is a `StateDumpPlugin`
            vars(self)["get_state_dump"] = self.asking.state_dump
        else:
            vars(self).pop("get_state_dump", None)

    def say(self, callback: Callback) -> None:
        """Something for the stream that there is now, and no message that is numbered."""
        awake: list[asyncio.Event] = []
        with self._lock:
            if self.over is not None or self._overrun:
                return
            self._asides.append(callback)
            self._rouse(CALLBACK, awake)
        for event in awake:
            self._call(event.set)

    def _question(self, question: Callback) -> bool:
        if CALLBACK not in self.live:
            return False
        self.say(question)
        return True

    @property
    def unanswered(self) -> int:
        """How many questions were not answered in time."""
        return self.asking.unanswered
