"""Where event records go: to the resource manager, into the ring buffer, to streams (2.16).

There is one ring buffer, and one list of streams, for the whole scheduler. Each resource manager has
an ``EventLog``: its records enter there, and it stores those that are to be sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from quadriga.base.times import SECOND
from quadriga.core.events.records import Bundle, Entry, Record, message_of, records_of
from quadriga.core.events.settings import EventSettings
from quadriga.fsm import RESOURCE_MANAGER
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm

if TYPE_CHECKING:
    from quadriga.core.model.resource_manager import ResourceManager
    from quadriga.core.model.timer import Timer
    from quadriga.core.runtime.kernel import Kernel


#: at most this many records wait for a reader that asks for no other buffer
STREAM_BUFFER: Final = 1000


class EventsRefused(Exception):
    """A stream cannot be opened: events are not tracked, or too many are open (``too_many``)."""

    def __init__(self, reason: str, *, too_many: bool) -> None:
        super().__init__(reason, too_many)
        self.reason = reason
        self.too_many = too_many

    def __str__(self) -> str:
        return self.reason


class Stream:
    """The events since it was opened, after some earlier ones. ``closed`` says why it ended.

    Its reader polls. The stream of a reader that is too slow is closed, so that a slow reader costs no more
    memory than its buffer.

    ``wake`` is called when a record begins to wait for the reader, and when the stream is closed because
    the reader is too slow. It is called in the middle of a step: it must return at once, and must not
    call the scheduler.
    """

    __slots__ = ("_buffer", "_history", "_number", "_waiting", "_wake", "closed", "host", "opened")

    def __init__(
        self,
        host: str,
        opened: int,
        history: Iterable[Record],
        buffer: int = STREAM_BUFFER,
        wake: Callable[[], None] | None = None,
    ) -> None:
        self.host = host
        #: ns
        self.opened = opened
        self.closed = ""
        self._history = list(history)
        self._waiting: list[Entry] = []
        #: the number of records that wait
        self._number = 0
        self._buffer = buffer
        self._wake = wake

    def poll(self) -> list[Record]:
        """The records since the last poll, oldest first. A closed stream still has its last ones."""
        found = self._history
        for entry in self._waiting:
            found.extend(records_of(entry))
        self._history, self._waiting, self._number = [], [], 0
        return found

    def close(self) -> None:
        """The reader needs no more records."""
        self.closed = self.closed or "closed by its reader"

    def take(self, entry: Entry, number: int) -> bool:
        """Let an entry of ``number`` records wait for the reader. Return False if the stream is closed."""
        if self.closed:
            return False
        self._number += number
        fits = self._number <= self._buffer
        if fits:
            self._waiting.append(entry)
        else:
            self.closed = f"too slow: {self._buffer} events were waiting"
        if self._wake is not None and (self._number == number or not fits):
            self._wake()
        return fits


#: a resource manager is sent its records at multiples of this since it registered (2.10)
PUSH_INTERVAL: Final = 2 * SECOND


#: the number of records in a bundle
_number_in = itemgetter(1)


def _number_of(entry: Entry) -> int:
    """The number of records in an entry."""
    return 1 if isinstance(entry[0], int) else entry[1]


class EventBatch(NamedTuple):
    """Records of the ring buffer from the id on that was asked for. ``lowest`` and ``highest`` are the
    first and the last id in the ring buffer, both 0 before the first event."""

    lowest: int
    highest: int
    records: tuple[Record, ...]


class Ring(NamedTuple):
    """The ring buffer, or a copy of it: the ``lowest`` id in it, the number of records made so far, the
    latest entries."""

    lowest: int
    created: int
    entries: Sequence[Entry]

    def batch(self, start: int, count: int) -> EventBatch:
        """As ``Events.batch``. A copy may be read in any thread."""
        found: tuple[Record, ...] = ()
        if start >= self.lowest and count > 0:
            found = tuple(islice(self.records_from(start), count))
        return EventBatch(self.lowest, max(0, self.created - 1), found)

    def records_from(self, start: int) -> Iterator[Record]:
        """The records from this id on, which must be in the ring buffer."""
        at = self.created
        found: list[tuple[int, Entry]] = []
        for entry in reversed(self.entries):
            if at <= start:
                break
            at -= _number_of(entry)
            found.append((at, entry))
        for at, entry in reversed(found):
            yield from records_of(entry)[max(0, start - at) :]


class EventCounts(NamedTuple):
    """Numbers of records since the scheduler started. There is no channel that could lose a record, so all
    are channeled and processed. ``not_stored`` did not fit the store, ``collected`` were sent."""

    created: int
    channeled: int
    not_channeled: int
    processed: int
    stored: int
    not_stored: int
    collected: int


class EventLog:
    """Takes the records of one resource manager. ``kernel`` has the time."""

    __slots__ = (
        "_events",
        "_room",
        "heard",
        "kernel",
        "rm",
        "settings",
        "since",
        "store",
        "timer",
    )

    def __init__(self, events: Events, rm: ResourceManager) -> None:
        self._events = events
        self.kernel: Kernel = events.kernel
        self.rm = rm
        self.settings = EventSettings()
        #: when it registered (ns)
        self.since = self.kernel.now
        #: whether the resource manager wants its records: else no messages are made of them
        self.heard = True
        #: what is to be sent next; ``_room`` is the number of records that still fit
        self.store: list[Entry] = []
        self._room = self.settings.request_capacity
        self.timer: Timer | None = None

    def configure(self) -> None:
        """Take over the extraConfig of the resource manager."""
        before = self.settings.request_capacity
        self.settings = EventSettings.read(self.rm.extra)
        self._room = max(0, self._room + self.settings.request_capacity - before)

    def add(self, *records: Record) -> None:
        """Take records, in this order."""
        for record in records:
            self.enter(record)

    def enter(self, entry: Entry, number: int = 1) -> None:
        """Take one entry, which is ``number`` records."""
        events = self._events
        events.entries.append(entry)
        events.created += number
        if self._room:
            self._keep(entry, number)
        if events.streams:
            events.streams = [stream for stream in events.streams if stream.take(entry, number)]

    def enter_all(self, bundles: Sequence[Bundle]) -> None:
        """Take many bundles."""
        events = self._events
        if self._room or events.streams:
            for bundle in bundles:
                self.enter(bundle, bundle[1])
        else:
            events.entries.extend(bundles)
            events.created += sum(map(_number_in, bundles))

    def _keep(self, entry: Entry, number: int) -> None:
        """Store as many of its records as fit, and let the timer send them."""
        if number <= self._room:
            self.store.append(entry)
        else:
            number = self._room
            self.store.extend(records_of(entry)[:number])
        self._room -= number
        self._events.stored += number
        if self.timer is None:
            self._arm()

    def _arm(self) -> None:
        now = self.kernel.now
        left = PUSH_INTERVAL - (now - self.since) % PUSH_INTERVAL
        self.timer = self.kernel.timers.start(now, left, "events.push", self)

    def push(self) -> None:
        """Send what is stored, one output for each record. A resource manager that is disconnected gets
        it when it is back (I6)."""
        self.timer = None
        if not RESOURCE_MANAGER.allows(self.rm.state, resource_manager_fsm.DISCONNECT):
            self._arm()
            return
        entries, self.store = self.store, []
        if not self.heard:
            self._events.collected += sum(map(_number_of, entries))
            entries = []
        self._room = self.settings.request_capacity
        for entry in entries:
            for record in records_of(entry):
                self.kernel.outbox.add(self.rm, message_of(record))
                self._events.collected += 1

    def drop(self) -> None:
        """The resource manager is gone: send nothing any more."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.store = []
        self._room = self.settings.request_capacity


class Events:
    """All events of a scheduler, by an id that counts from 0."""

    __slots__ = (
        "_logs",
        "_oldest",
        "collected",
        "created",
        "entries",
        "kernel",
        "stored",
        "streams",
    )

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        #: the latest entries; the bound is one for records, so there may be more records than that
        self.entries: deque[Entry] = deque(maxlen=EventSettings().ring_capacity)
        #: records so far; the last one has the id ``created - 1``
        self.created = 0
        self.stored = 0
        self.collected = 0
        self.streams: list[Stream] = []
        #: no lower id is in the ring buffer, even if it has become larger since
        self._oldest = 0
        self._logs: dict[str, EventLog] = {}

    # -- settings --------------------------------------------------------------------------------

    def configure(self, rm: ResourceManager) -> EventLog | None:
        """Take over what the resource manager's extraConfig says about events. Return its log, or
        ``None`` where its events are not tracked."""
        log = self._logs.get(rm.rm_id)
        if log is None:
            log = self._logs[rm.rm_id] = EventLog(self, rm)
        log.configure()
        self._resize()
        return log if log.settings.tracking else None

    def forget(self, rm: ResourceManager) -> None:
        """The resource manager's state is dropped (I6, I7). Its records stay in the ring buffer."""
        log = self._logs.pop(rm.rm_id, None)
        if log is not None:
            log.drop()

    def hear(self, rm: ResourceManager, heard: bool) -> None:
        """Whether the resource manager wants its records."""
        log = self._logs.get(rm.rm_id)
        if log is not None:
            log.heard = heard

    def _resize(self) -> None:
        size = self.settings.ring_capacity
        if size != self.entries.maxlen:
            self._oldest = self._lowest
            self.entries = deque(self.entries, maxlen=size)

    @property
    def _lowest(self) -> int:
        """The lowest id in the ring buffer; a full one counts as having just its capacity."""
        assert self.entries.maxlen is not None
        return max(self._oldest, self.created - self.entries.maxlen)

    @property
    def tracking(self) -> bool:
        """Whether any resource manager tracks events."""
        return any(log.settings.tracking for log in self._logs.values())

    @property
    def settings(self) -> EventSettings:
        """The settings of the scheduler: where resource managers differ, the largest value of each."""
        every = [log.settings for log in self._logs.values()] or [EventSettings()]
        return EventSettings(
            tracking=any(each.tracking for each in every),
            request_capacity=max(each.request_capacity for each in every),
            ring_capacity=max(each.ring_capacity for each in every),
            max_streams=max(each.max_streams for each in every),
            max_streams_per_host=max(each.max_streams_per_host for each in every),
            response_size=max(each.response_size for each in every),
        )

    # -- reading ---------------------------------------------------------------------------------

    def batch(self, start: int = 0, count: int = 10_000) -> EventBatch:
        """At most ``count`` records from the id ``start`` on.

        For an id that has left the ring buffer, or does not exist yet, there are no records. The range
        shows a reader that it has missed some; it continues at ``lowest``.
        """
        return Ring(self._lowest, self.created, self.entries).batch(start, count)

    def ring(self) -> Ring:
        """A copy of the ring buffer. A full one takes a millisecond."""
        return Ring(self._lowest, self.created, tuple(self.entries))

    def open_stream(
        self,
        host: str,
        history: int = 0,
        *,
        buffer: int = STREAM_BUFFER,
        wake: Callable[[], None] | None = None,
    ) -> Stream:
        """Follow the events from now on, after the last ``history`` ones. Raises ``EventsRefused``.

        ``host`` names the reader: a host has at most event.maxStreamsPerHost streams. ``buffer`` and
        ``wake`` are those of the stream.
        """
        settings = self.settings
        if not settings.tracking:
            raise EventsRefused("Event tracking is disabled", too_many=False)
        self.streams = [stream for stream in self.streams if not stream.closed]
        own = sum(stream.host == host for stream in self.streams)
        if len(self.streams) >= settings.max_streams or own >= settings.max_streams_per_host:
            raise EventsRefused("Too many streaming connections", too_many=True)
        ring = Ring(self._lowest, self.created, self.entries)
        past = ring.records_from(max(ring.lowest, self.created - max(0, history)))
        stream = Stream(host, self.kernel.now, past, buffer, wake)
        self.streams.append(stream)
        return stream

    @property
    def counts(self) -> EventCounts:
        """The counters that metrics show (2.15)."""
        created = self.created
        return EventCounts(
            created=created,
            channeled=created,
            not_channeled=0,
            processed=created,
            stored=self.stored,
            not_stored=created - self.stored,
            collected=self.collected,
        )
