"""Kubernetes events, which ``kubectl describe`` shows about a pod or a node (K153).

Events never delay anything else. A full queue drops them, and a separate budget keeps them from using up the
requests that binds need. An event costs the API server more than a bind, so while binds wait, events of type
Normal get a tenth of the budget. Those about nodes always do, and come last: at its start the scheduler has one
for each node of the cluster. The same event within ten minutes is not written again but counted in its series.
The name of an event is derived from its content, so that a restarted process finds it. See D244.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Any, Final
from urllib.parse import quote

from quadriga.base.pacing import TokenBucket, backoff
from quadriga.base.texts import shortened_bytes
from quadriga.base.times import micro_time
from quadriga.k8s.conversion.settings_table import DEFAULTS
from quadriga.k8s.shim.actions import Record
from quadriga.k8s.transport.requester import (
    JSON,
    MERGE_PATCH,
    Clock,
    NoAnswer,
    Requester,
    Wakeup,
    refusal_of,
)
from quadriga.k8s.tuning import TUNING

_log = logging.getLogger("quadriga.kubernetes.events")

#: limits of the API server in bytes
_NOTE, _WORD, _NAME = 1024, 128, 236

#: the namespace for events of objects without one; servers before 1.21 require the second one
_DEFAULT_NAMESPACE: Final = "default"
_SYSTEM_NAMESPACE: Final = "kube-system"
_CLUSTER_SCOPED: Final = frozenset({"Node", "Namespace"})
#: part of the API server's refusal for a namespace that is being deleted
_ENDING: Final = "because it is being terminated"

_WARNING: Final = "Warning"

_Key = tuple[str, str, str, str, str, str, str, str]


@dataclass(slots=True, eq=False)
class _Event:
    """One event with its series."""

    key: _Key
    record: Record
    #: by the wall clock, ns
    first: int
    last: int
    #: by the monotonic clock, ns
    seen: int
    count: int = 1
    #: name in the cluster; "" before it is written
    name: str = ""
    #: its name belongs to an earlier event with the same content
    name_taken: bool = False
    #: an attempt was not answered: the event may exist
    unanswered: bool = False
    written: int = 0
    written_at: int = 0
    waiting: bool = False
    tries: int = 0


#: due, order of arrival, event
_Heap = list[tuple[int, int, _Event]]


class EventWriter:
    """Writes events, on one event loop.

    ``clock`` and ``wall`` return ns; ``wall`` since 1970. ``controller`` is the scheduler's name, ``instance``
    this process. ``busy`` returns whether more important requests wait.
    """

    def __init__(
        self,
        requester: Requester,
        *,
        controller: str,
        instance: str,
        clock: Clock,
        wall: Callable[[], int],
        busy: Callable[[], bool] = lambda: False,
        per_second: int = DEFAULTS["events_per_second"],
    ) -> None:
        self._requester = requester
        self._controller = controller
        self._instance = shortened_bytes(instance, _WORD)
        self._clock = clock
        self._wall = wall
        self._wakeup = Wakeup(clock)
        self._busy = busy
        self._limiter = TokenBucket(per_second, burst=per_second)
        a_tenth = max(1, per_second // 10)
        #: for events of type Normal while binds wait, and for those about nodes
        self._slow_limiter = TokenBucket(a_tenth, burst=a_tenth)
        #: events of the last ten minutes, the most recent one last
        self._known: OrderedDict[_Key, _Event] = OrderedDict()
        self._warnings: _Heap = []
        self._others: _Heap = []
        self._about_nodes: _Heap = []
        self._arrivals = 0
        self._last_name = 0
        self._failures = 0
        self._paused_until = 0
        #: the namespace for events about nodes
        self._common_namespace = _DEFAULT_NAMESPACE
        self._complained: set[tuple[str, str]] = set()
        #: requests that wrote an event, dropped occurrences, events that could not be written
        self.counts: Counter[str] = Counter(written=0, dropped=0, failed=0)

    @property
    def waiting(self) -> int:
        """The number of events that wait to be written."""
        return len(self._warnings) + len(self._others) + len(self._about_nodes)

    def record(self, record: Record) -> None:
        """Write the event soon, or count it in the series of the same one."""
        key = _key(record)
        event = self._known.get(key)
        if event is None and len(self._heap(record)) >= TUNING.events_waiting:
            self.counts["dropped"] += 1
            return
        now, wall = self._clock(), self._wall()
        if event is not None and (event.waiting or now - event.seen <= TUNING.event_series_ns):
            event.count += 1
            event.last, event.seen = wall, now
            self._known.move_to_end(key)
        elif len(self._heap(record)) >= TUNING.events_waiting:
            self.counts["dropped"] += 1
            return
        else:
            event = _Event(key, record, wall, wall, now)
            self._known[key] = event
            self._known.move_to_end(key)
            self._forget_old(now)
        if not event.waiting:
            due = (
                max(now, event.written_at + TUNING.event_series_pause_ns) if event.written else now
            )
            self._queue(event, due)

    async def run(self) -> None:
        """Write events until cancelled."""
        slots = asyncio.Semaphore(TUNING.event_writes)
        async with asyncio.TaskGroup() as writes:
            while True:
                await slots.acquire()
                event = await self._next()
                task = writes.create_task(self._write(event))
                task.add_done_callback(lambda _: slots.release())

    # -- what waits ------------------------------------------------------------------------------

    def _queue(self, event: _Event, due: int) -> None:
        heap = self._heap(event.record)
        if len(heap) >= TUNING.events_waiting:
            self.counts["dropped"] += 1
            if not event.written:
                del self._known[event.key]
            return
        self._arrivals += 1
        event.waiting = True
        heappush(heap, (due, self._arrivals, event))
        if heap[0][2] is event:
            self._wakeup.wake()

    def _heap(self, record: Record) -> _Heap:
        if record.type == _WARNING:
            return self._warnings
        return self._about_nodes if record.kind == "Node" else self._others

    def _forget_old(self, now: int) -> None:
        """Forget events whose series has ended, and the oldest if there are too many."""
        while self._known:
            event = next(iter(self._known.values()))
            if (
                now - event.seen <= TUNING.event_series_ns
                and len(self._known) <= TUNING.events_known
            ):
                break
            if event.waiting:
                break
            del self._known[event.key]

    async def _next(self) -> _Event:
        """Return the next event: warnings come first, events about nodes last."""
        while True:
            now = self._clock()
            first = max(self._limiter.ready_at(), self._paused_until)
            slowly = max(first, self._slow_limiter.ready_at())
            times = []
            for heap, slow in (
                (self._warnings, False),
                (self._others, self._busy()),
                (self._about_nodes, True),
            ):
                if not heap:
                    continue
                times.append(max(heap[0][0], slowly if slow else first))
                if times[-1] <= now:
                    self._limiter.take(now)
                    if slow:
                        self._slow_limiter.take(now)
                    return heappop(heap)[2]
            await self._wakeup.sleep_until(min(times, default=None))

    # -- writing ---------------------------------------------------------------------------------

    async def _write(self, event: _Event) -> None:
        count = event.count
        if not event.name:
            name = self._new_name(event.record) if event.name_taken else _own_name(event)
            method, path, kind = "POST", self._path(event.record), JSON
            body = self._body(event, name)
        else:
            name = event.name
            method, path, kind = "PATCH", f"{self._path(event.record)}/{quote(name)}", MERGE_PATCH
            body = {"series": _series(event)}
        reply = b""
        try:
            status, reply = await self._requester.request(
                method, path, json.dumps(body).encode(), kind
            )
        except NoAnswer:
            status = 0
        event.waiting = False
        is_there = status == 409 and method == "POST" and not event.name_taken
        if status in (200, 201) or (is_there and (event.record.may_exist or event.unanswered)):
            self._failures = event.tries = 0
            self.counts["written"] += not is_there
            event.name, event.written, event.written_at = name, count, self._clock()
            if event.count > count:
                self._queue(event, event.written_at + TUNING.event_series_pause_ns)
        elif status == 409 and method == "POST":
            event.name_taken = True
            self._again(event)
        elif status == 422 and event.record.kind in _CLUSTER_SCOPED and not event.tries:
            self._common_namespace = _SYSTEM_NAMESPACE
            self._again(event)
        elif status == 404 and method == "PATCH":
            # it has expired: the occurrences that were not written are a new event
            event.name, event.count, event.written = "", event.count - event.written, 0
            event.first = event.last
            self._again(event)
        elif status in (0, 429) or status >= 500:
            event.unanswered = True
            self._failures += 1
            self._paused_until = self._clock() + backoff(*TUNING.write_pauses_ns, self._failures)
            self._again(event)
        else:
            refusal = refusal_of(status, reply)
            # An event about something that goes with its namespace is not worth a warning.
            self._give_up(event, str(refusal), quiet=_ENDING in refusal.message)

    def _again(self, event: _Event) -> None:
        event.tries += 1
        if event.tries >= TUNING.event_tries:
            self._give_up(event, "the API server does not answer")
            return
        self._queue(event, self._clock())

    def _give_up(self, event: _Event, why: str, *, quiet: bool = False) -> None:
        self.counts["failed"] += 1
        if self._known.get(event.key) is event:
            del self._known[event.key]
        kind = (event.record.reason, why[:3])
        if kind not in self._complained and not quiet:
            self._complained.add(kind)
            about = f"{event.record.reason} about {event.record.name}"
            _log.warning("event %s could not be written: %s", about, why)

    def _namespace(self, record: Record) -> str:
        """Return the namespace of the event."""
        common = record.kind in _CLUSTER_SCOPED
        return self._common_namespace if common else record.namespace

    def _path(self, record: Record) -> str:
        return f"/apis/events.k8s.io/v1/namespaces/{quote(self._namespace(record))}/events"

    def _new_name(self, record: Record) -> str:
        """Return a name that no other event of this object has: the time, or a later one if that is taken."""
        self._last_name = max(self._wall(), self._last_name + 1)
        return f"{record.name[:_NAME]}.{self._last_name:x}"

    def _body(self, event: _Event, name: str) -> dict[str, Any]:
        record = event.record
        regarding = {
            "apiVersion": "v1",
            "kind": record.kind,
            "name": record.name,
            "uid": record.uid,
        }
        if record.kind not in _CLUSTER_SCOPED:
            regarding["namespace"] = record.namespace
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": self._namespace(record)},
            "eventTime": micro_time(event.first),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "reason": shortened_bytes(record.reason, _WORD),
            "action": shortened_bytes(record.action or record.reason, _WORD),
            "type": record.type,
            "note": shortened_bytes(record.note, _NOTE),
            "regarding": regarding,
        }
        if event.count > 1:
            body["series"] = _series(event)
        return body


def _own_name(event: _Event) -> str:
    """Return a name that is the same for the same event in every process."""
    said = "\0".join(event.key).encode(errors="replace")
    return f"{event.record.name[:_NAME]}.{blake2b(said, digest_size=8).hexdigest()}"


def _key(record: Record) -> _Key:
    return (
        record.kind,
        record.namespace,
        record.name,
        record.uid,
        record.type,
        record.reason,
        record.action,
        record.note,
    )


def _series(event: _Event) -> dict[str, Any]:
    return {"count": event.count, "lastObservedTime": micro_time(event.last)}
