"""The condition PodScheduled=False of waiting pods, with the reason (K155 to K157).

Autoscalers grow the cluster because of the reason ``Unschedulable``; people read the message. A patch names the
condition only, so it cannot overwrite what others have written meanwhile. It is sent when status or reason
change; a changed message alone follows at most once a minute. ``kubectl describe`` does not show messages of
conditions, so each one is recorded as an event too (K153).

What a quota or a gang keeps waiting is often placed at once, such as members of a gang that are created one after
the other. So its first condition is written after a moment only; `Unschedulable`, which autoscalers wait for, at once.

Explanations cost time of the core. They take at most half a percent of it, so in a cluster with many waiting
pods a message is renewed less often than once a minute.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, ClassVar, Final
from urllib.parse import quote

from quadriga.base.pacing import TokenBucket, backoff
from quadriga.base.texts import shortened_bytes
from quadriga.base.times import whole_time
from quadriga.k8s.conversion.pod_groups import CONDITIONS
from quadriga.k8s.conversion.settings_table import DEFAULTS
from quadriga.k8s.objects import PodCondition
from quadriga.k8s.shim.actions import PodRef, Record, SetCondition, SetGroupCondition
from quadriga.k8s.transport.discovery import pod_groups_path
from quadriga.k8s.transport.requester import (
    STRATEGIC_MERGE_PATCH,
    Clock,
    NoAnswer,
    Refusal,
    Requester,
    Wakeup,
    refusal_of,
)
from quadriga.k8s.tuning import TUNING

_log = logging.getLogger("quadriga.kubernetes.conditions")

#: returns the explanation of a waiting pod, or ``None`` if it does not wait any more
Explain = Callable[[PodRef], Awaitable[str | None]]

_CONDITION: Final = "PodScheduled"


@dataclass(slots=True, eq=False)
class _Waiting:
    """A waiting pod, what the shim reports about it, and what the cluster has."""

    pod: PodRef
    said: SetCondition
    reason: str = ""
    message: str = ""
    #: the condition in the cluster; ``None`` if it is not False there
    written: tuple[str, str] | None = None
    written_at: int = 0
    #: the text of an explanation that is still to be written
    explained: str | None = None
    #: the shim's message has changed since the last write
    renewed: bool = False
    #: its place in the queue of changes, if it is queued: due, order
    place: tuple[int, int] | None = None
    #: set when its patch, which is under way, has ended
    settled: asyncio.Event | None = None


class ConditionWriter:
    """Writes conditions, on one event loop.

    ``current`` returns the condition PodScheduled of a pod in the cluster. Without ``explain`` the message is
    the shim's. ``clock`` and ``wall`` return ns; ``wall`` since 1970.
    """

    #: a first condition with another reason is written after a moment
    _at_once: ClassVar[frozenset[str]] = frozenset({"Unschedulable"})

    def __init__(
        self,
        requester: Requester,
        *,
        current: Callable[[str], PodCondition | None],
        clock: Clock,
        wall: Callable[[], int],
        explain: Explain | None = None,
        record: Callable[[Record], None] | None = None,
        per_second: int = DEFAULTS["conditions_per_second"],
        interval: int = DEFAULTS["condition_interval"],
    ) -> None:
        self._requester = requester
        self._current = current
        self._clock = clock
        self._wall = wall
        self._explain = explain
        self._record = record
        self._wakeup = Wakeup(clock)
        self._limiter = TokenBucket(per_second, burst=per_second)
        self._interval = interval
        self._pods: dict[str, _Waiting] = {}
        #: due, order, UID; an entry counts only if its pod has the same place
        self._changes: list[tuple[int, int, str]] = []
        self._order = 0
        #: pods whose message may be renewed, by the time of the last explanation
        self._looks: OrderedDict[str, int] = OrderedDict()
        #: the time up to which explanations are paid for
        self._explain_from = clock() - TUNING.explaining_saved_ns * TUNING.explaining_share
        self._failures = 0
        self._paused_until = 0
        self._complained: set[int] = set()
        #: written and refused patches, and requested explanations
        self.counts: Counter[str] = Counter(written=0, failed=0, explained=0)

    @property
    def waiting(self) -> int:
        """The number of pods with a change that is not written yet. Thread-safe."""
        return sum(each.place is not None for each in list(self._pods.values()))

    def set(self, action: SetCondition) -> None:
        """Write the condition if it differs from the cluster's."""
        pod, now = action.pod, self._clock()
        entry = self._pods.get(pod.uid)
        message = shortened_bytes(action.message, TUNING.condition_message_bytes)
        if entry is None:
            entry = self._pods[pod.uid] = _Waiting(pod, action)
            found = self._current(pod.uid)
            if found is not None and found.status == "False":
                entry.written, entry.written_at = (found.reason, found.message), now
                # after a restart the text is an older explanation, which the next one renews
                entry.renewed = self._explain is None
                self._look_later(entry, now)
        elif message != entry.message:
            entry.renewed = True
        entry.said, entry.reason, entry.message = action, action.reason, message
        self._review(entry, now)

    def drop(self, uid: str) -> None:
        """Forget the pod, which does not wait any more. A patch under way ends; `settled` waits for it."""
        self._pods.pop(uid, None)
        self._looks.pop(uid, None)

    async def settled(self, pod: PodRef) -> None:
        """Drop unwritten changes of the pod, and wait for its patch that is under way.

        Call it before a bind: the patch could set the condition of a bound pod to False.
        """
        entry = self._pods.get(pod.uid)
        self.drop(pod.uid)
        if entry is not None and entry.settled is not None:
            await entry.settled.wait()

    async def run(self) -> None:
        """Write changes until cancelled."""
        slots = asyncio.Semaphore(TUNING.condition_writes)
        async with asyncio.TaskGroup() as writes:
            while True:
                await slots.acquire()
                entry, text = await self._next()
                entry.settled = asyncio.Event()
                task = writes.create_task(self._write(entry, entry.settled, entry.reason, text))
                task.add_done_callback(lambda _: slots.release())

    # -- what waits ------------------------------------------------------------------------------

    def _review(self, entry: _Waiting, now: int) -> None:
        """Queue the pod if its condition has to be written; during a patch, when that ends."""
        if entry.settled is not None:
            return
        if entry.written is None or entry.written[0] != entry.reason:
            may_pass = entry.written is None and entry.reason not in self._at_once
            self._queue(entry, now + TUNING.condition_grace_ns if may_pass else now)
            return
        text = entry.explained or (entry.message if entry.renewed else entry.written[1])
        if text != entry.written[1]:
            self._queue(entry, entry.written_at + self._interval)
        else:
            entry.place = None  # the cluster has it already

    def _queue(self, entry: _Waiting, due: int) -> None:
        """Queue the pod. One that is queued keeps its place unless it is due earlier."""
        if entry.place is not None and entry.place[0] <= due:
            return
        self._order += 1
        entry.place = (due, self._order)
        heappush(self._changes, (due, self._order, entry.pod.uid))
        if self._changes[0][1] == self._order:
            self._wakeup.wake()

    def _look_later(self, entry: _Waiting, now: int) -> None:
        if self._explain is not None:
            self._looks[entry.pod.uid] = now + self._interval
            self._looks.move_to_end(entry.pod.uid)
            self._wakeup.wake()

    async def _next(self) -> tuple[_Waiting, str]:
        """Return the next pod to write, and the message."""
        while True:
            now = self._clock()
            change = self._first_change()
            when = self._change_from()
            if change is not None and when is not None and when <= now:
                heappop(self._changes)
                change.place = None
                text = change.explained or await self._explained(change) or change.message
                change.explained, change.renewed = None, False
                if not self._is_needed(change, text):
                    continue
                self._limiter.take(self._clock())
                return change, text
            look = self._look_from()
            if look is not None and look <= now:
                await self._look()
                continue
            times = [each for each in (when, look) if each is not None]
            await self._wakeup.sleep_until(min(times, default=None))

    def _is_needed(self, entry: _Waiting, text: str) -> bool:
        """Return whether the pod still waits, and the cluster has something else for it."""
        if self._pods.get(entry.pod.uid) is not entry or entry.settled is not None:
            return False
        return entry.written != (entry.reason, text)

    def _first_change(self) -> _Waiting | None:
        while self._changes:
            due, order, uid = self._changes[0]
            entry = self._pods.get(uid)
            if entry is not None and entry.place == (due, order):
                return entry
            heappop(self._changes)
        return None

    def _change_from(self) -> int | None:
        """Return when the first change may be written."""
        if not self._changes:
            return None
        return max(self._changes[0][0], self._limiter.ready_at(), self._paused_until)

    def _look_from(self) -> int | None:
        """Return when the next explanation may be requested."""
        if not self._looks:
            return None
        return max(next(iter(self._looks.values())), self._explain_from)

    # -- explanations ----------------------------------------------------------------------------

    async def _look(self) -> None:
        """Explain the pod whose last explanation is the oldest; a new text is a change."""
        entry = self._pods[next(iter(self._looks))]
        self._look_later(entry, self._clock())
        text = await self._explained(entry)
        if text is None or self._pods.get(entry.pod.uid) is not entry:
            return
        entry.explained = text
        self._review(entry, self._clock())

    async def _explained(self, entry: _Waiting) -> str | None:
        """Return an explanation if one may be requested now."""
        began = self._clock()
        if self._explain is None or began < self._explain_from:
            return None
        self.counts["explained"] += 1
        text = await self._explain(entry.pod)
        ended = self._clock()
        earned_from = max(
            self._explain_from, began - TUNING.explaining_saved_ns * TUNING.explaining_share
        )
        self._explain_from = earned_from + TUNING.explaining_share * (ended - began)
        return shortened_bytes(text, TUNING.condition_message_bytes) if text else None

    # -- writing ---------------------------------------------------------------------------------

    async def _write(self, entry: _Waiting, settled: asyncio.Event, reason: str, text: str) -> None:
        pod = entry.pod
        path = self._path(entry)
        body = json.dumps(self._body(entry, reason, text)).encode()
        reply = b""
        try:
            status, reply = await self._requester.request(
                "PATCH", path, body, STRATEGIC_MERGE_PATCH
            )
        except NoAnswer:
            status = 0
        finally:
            settled.set()
            entry.settled = None
        now = self._clock()
        if status in (0, 429) or status >= 500:
            self._failures += 1
            self._paused_until = now + backoff(*TUNING.write_pauses_ns, self._failures)
            if self._pods.get(pod.uid) is entry:
                entry.renewed = True
                self._review(entry, now)
            return
        self._failures = 0
        if status in (404, 409, 410) or (status == 422 and b"metadata.uid" in reply):
            if self._pods.get(pod.uid) is entry:  # else it is gone, or another pod has its name
                self.drop(pod.uid)
            return
        if status == 200:
            self.counts["written"] += 1
        else:
            self.counts["failed"] += 1
            self._complain(pod, refusal_of(status, reply))
        entry.written, entry.written_at = (reason, text), now
        if self._record is not None:
            self._record(_event(pod, text))
        if self._pods.get(pod.uid) is entry:
            self._look_later(entry, now)
            self._review(entry, now)

    def _path(self, entry: _Waiting) -> str:
        pod = entry.pod
        return f"/api/v1/namespaces/{quote(pod.namespace)}/pods/{quote(pod.name)}/status"

    def _body(self, entry: _Waiting, reason: str, text: str) -> dict[str, Any]:
        condition = {"type": _CONDITION, "status": "False", "reason": reason, "message": text}
        if entry.written is None:
            condition["lastTransitionTime"] = whole_time(self._wall())
        # the UID makes the server refuse the patch for another pod with that name
        return {"metadata": {"uid": entry.pod.uid}, "status": {"conditions": [condition]}}

    def _complain(self, pod: PodRef, refusal: Refusal) -> None:
        if refusal.code not in self._complained:
            self._complained.add(refusal.code)
            _log.warning("the condition of %s/%s: %s", pod.namespace, pod.name, refusal)


class GroupConditionWriter(ConditionWriter):
    """Writes the condition of PodGroups at the same rate (K205): ``Scheduled`` is True, any other reason False."""

    _at_once = frozenset({"Scheduled"})

    def __init__(
        self,
        requester: Requester,
        *,
        clock: Clock,
        wall: Callable[[], int],
        per_second: int = DEFAULTS["conditions_per_second"],
    ) -> None:
        super().__init__(
            requester, current=lambda uid: None, clock=clock, wall=wall, per_second=per_second
        )

    def _path(self, entry: _Waiting) -> str:
        group, said = entry.pod, entry.said
        assert isinstance(said, SetGroupCondition)
        collection, _, name = pod_groups_path(said.version).rpartition("/")
        return f"{collection}/namespaces/{quote(group.namespace)}/{name}/{quote(group.name)}/status"

    def _body(self, entry: _Waiting, reason: str, text: str) -> dict[str, Any]:
        said = entry.said
        assert isinstance(said, SetGroupCondition)
        condition = {
            "type": CONDITIONS[said.version],
            "status": "True" if reason == "Scheduled" else "False",
            "reason": reason,
            "message": text,
            "observedGeneration": said.generation,
        }
        if entry.written is None or entry.written[0] != reason:
            condition["lastTransitionTime"] = whole_time(self._wall())
        return {"metadata": {"uid": said.pod.uid}, "status": {"conditions": [condition]}}


def _event(pod: PodRef, text: str) -> Record:
    about = (pod.namespace, pod.name, pod.uid)
    return Record("Pod", *about, "Normal", "PodUnschedulable", "Scheduling", text)
