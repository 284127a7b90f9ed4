"""What a pod costs in the shim and the core, without an API server: one thread, and binds that end at once.

Each pod comes as the line of a watch, is asked for, placed and assumed, and is confirmed by the end of its
bind and by another line of the watch. The requests and the connections are not in it.
"""

from __future__ import annotations

import itertools
import json
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bench._kubernetes.plane import Pods, node_object, pod_object
from quadriga.core.driver.service import SchedulerService
from quadriga.k8s.cluster.cache import ClusterCache
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.driver.core_callback import CoreCallback
from quadriga.k8s.objects import Namespace, Node, Pod
from quadriga.k8s.shim.actions import Action, Bind, Send
from quadriga.k8s.shim.inputs import BindEnded, Changed, CoreAnswered, Input, LeaseHeld, Synced
from quadriga.k8s.shim.shim import Shim
from quadriga.k8s.transport.listing import Decoders, WatchError
from quadriga.si import (
    AllocationRequest,
    ApplicationRequest,
    NodeRequest,
    RegisterResourceManagerRequest,
)

_BATCH = 256
_NOW = 1_800_000_000_000_000_000


class Deciding:
    """A shim and a core with ``nodes`` nodes. ``place`` adds pods; ``spent`` has the processor time by
    stage (ns), ``asked`` the number of predicates."""

    def __init__(self, nodes: int) -> None:
        self.spent: dict[str, int] = {}
        self.asked = 0
        self._now = _NOW
        self._versions = itertools.count(1)
        self._decoders: Decoders[Pod] = Decoders(Pod)
        self._answers: deque[Input] = deque()
        self._service = SchedulerService(manual=True, clock=lambda: self._now)
        self._cache = _Counted(self, lambda: self._now)
        self._callback = CoreCallback(self._cache, self._answers.append, lambda: "{}")
        self._shim = Shim(Settings(), self._cache, suffix=lambda: "0000000000")
        self._calls: dict[type, Any] = {
            RegisterResourceManagerRequest: self._register,
            ApplicationRequest: self._service.update_application,
            AllocationRequest: self._service.update_allocation,
            NodeRequest: self._service.update_node,
        }
        namespace = Decoders(Namespace)
        heard: list[Any] = [
            namespace.event(_line("ADDED", {"metadata": {"name": "bench", "uid": "bench"}}))
        ]
        node_decoders: Decoders[Node] = Decoders(Node)
        heard += [node_decoders.event(_line("ADDED", node_object(at))) for at in range(nodes)]
        first: list[Input] = [Changed("ADDED", _object(each)) for each in heard]
        self._settle([*first, Synced(), LeaseHeld()])
        if not self._shim.serving:
            raise AssertionError(f"the shim is {self._shim.state}")

    def close(self) -> None:
        self._service.stop()

    def place(self, pods: Pods) -> int:
        """Returns how many were bound; what is measured is in ``spent``."""
        self.spent = {}
        self.asked = 0
        objects = [
            pod_object(pods, number) for number in range(pods.first, pods.first + pods.count)
        ]
        bound = 0
        for first in range(0, len(objects), _BATCH):
            bound += self._batch(objects[first : first + _BATCH])
        return bound

    def _batch(self, objects: Sequence[dict[str, Any]]) -> int:
        lines = [_line("ADDED", self._versioned(each)) for each in objects]
        by_uid = {each["metadata"]["uid"]: each for each in objects}
        with self._stage("decode"):
            changes: list[Input] = [
                Changed("ADDED", _object(self._decoders.event(x))) for x in lines
            ]
        binds: list[Bind] = []
        waiting = changes
        while waiting:
            binds += self._round(waiting)
            waiting = list(self._answers)
            self._answers.clear()
        for bind in binds:
            by_uid[bind.pod.uid]["spec"]["nodeName"] = bind.node
        lines = [_line("MODIFIED", self._versioned(by_uid[each.pod.uid])) for each in binds]
        with self._stage("decode"):
            changes = [Changed("MODIFIED", _object(self._decoders.event(x))) for x in lines]
        ended = [BindEnded(each.pod.uid, "bound", each.node) for each in binds]
        # Every second reply is overtaken by the watch.
        late = [
            pair if at % 2 else pair[::-1]
            for at, pair in enumerate(zip(changes, ended, strict=True))
        ]
        self._settle([each for pair in late for each in pair])
        return len(binds)

    def _settle(self, heard: Iterable[Input]) -> None:
        waiting = list(heard)
        while waiting:
            self._round(waiting)
            waiting = list(self._answers)
            self._answers.clear()

    def _round(self, heard: Iterable[Input]) -> list[Bind]:
        """The shim hears, and the core does what the shim sends."""
        actions: list[Action] = []
        with self._stage("shim"):
            for each in heard:
                actions += self._shim.handle(each, self._now)
            actions += self._shim.advance(self._now)
            actions += self._shim.flush()
        requests = [each.request for each in actions if isinstance(each, Send)]
        with self._stage("core"):
            for request in requests:
                self._calls[type(request)](request)
            while self._service.step(self._now):
                pass
        return [each for each in actions if isinstance(each, Bind)]

    def _register(self, request: RegisterResourceManagerRequest) -> None:
        answer = self._service.register_resource_manager(request, self._callback)
        self._answers.append(CoreAnswered(answer))

    def _versioned(self, thing: dict[str, Any]) -> dict[str, Any]:
        thing["metadata"]["resourceVersion"] = str(next(self._versions))
        return thing

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        began = time.process_time_ns()
        yield
        self.spent[name] = self.spent.get(name, 0) + time.process_time_ns() - began


class _Counted(ClusterCache):
    """Counts the predicates, without measuring them one by one."""

    def __init__(self, deciding: Deciding, clock: Any) -> None:
        super().__init__(clock)
        self._deciding = deciding

    def predicates(self, uid: str, node: str, allocate: bool) -> str | None:
        self._deciding.asked += 1
        return super().predicates(uid, node, allocate)


def _line(change: str, thing: dict[str, Any]) -> bytes:
    return json.dumps({"type": change, "object": thing}, separators=(",", ":")).encode()


def _object(event: Any) -> Any:
    if isinstance(event, WatchError) or event.object is None:
        raise AssertionError(f"this is no event: {event}")
    return event.object
