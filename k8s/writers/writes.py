"""Writes to pods, with their retries and the responses that decide (K72, K104 to K107, K112, K113).

Writes to one pod are done one after the other, in their order; those to different pods concurrently, as far as
the client's limits allow. A failed write leaves a doubt whether it took effect: then the pod is read, and what
is found decides.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from quadriga.k8s.conversion.keys import DEVICES
from quadriga.k8s.objects import Pod
from quadriga.k8s.shim.actions import Annotate, Bind, Create, Delete, FailPod, PodRef
from quadriga.k8s.shim.inputs import BindEnded, CreateEnded
from quadriga.k8s.transport.requester import (
    JSON,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    NoAnswer,
    Requester,
    bind_waits,
    create_waits,
    delete_waits,
    is_again,
    patch_waits,
    refusal_of,
)
from quadriga.k8s.tuning import TUNING

_log = logging.getLogger("quadriga.kubernetes.writes")

PodWrite = Bind | Delete | Create | Annotate | FailPod
Ended = BindEnded | CreateEnded


_read_pod = msgspec.json.Decoder(Pod).decode


@dataclass(slots=True, eq=False)
class _Line:
    """The writes to one pod: the one under way, and those that wait."""

    waiting: deque[PodWrite] = field(default_factory=deque)
    #: set if a bind under way must not be retried
    hurry: asyncio.Event | None = None
    #: the reason for that, for the shim
    why: str = ""


class PodWrites:
    """Writes to pods. ``ended`` is called with the outcome of each bind and create. ``before_bind(pod)`` is
    awaited before a bind.

    ``bind_volumes(pod, node)`` binds the pod's claims before that, if it has any, and returns why it cannot.

    ``behind`` is the client for writes to placeholders, which come after those to other pods (Q16); ``members``
    that for binds of pods whose gangs have placeholders.

    ``bind_timeout`` is in ns. ``clock`` returns ns; ``stamp`` returns the wall clock's time in RFC 3339.
    """

    def __init__(
        self,
        client: Requester,
        ended: Callable[[Ended], None],
        *,
        scheduler: str,
        bind_timeout: int,
        clock: Callable[[], int],
        stamp: Callable[[], str],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        before_bind: Callable[[PodRef], Awaitable[None] | None] | None = None,
        bind_volumes: Callable[[PodRef, str], Awaitable[str | None] | None] | None = None,
        behind: Requester | None = None,
        members: Requester | None = None,
    ) -> None:
        self._client = client
        self._behind = behind or client
        self._members = members or client
        self._ended = ended
        self._scheduler = scheduler
        self._bind_timeout = bind_timeout
        self._clock = clock
        self._stamp = stamp
        self._sleep = sleep
        self._before_bind = before_bind
        self._bind_volumes = bind_volumes
        self._lines: dict[str, _Line] = {}
        #: those of them with writes to placeholders that have not begun, in their order
        self._unbegun: dict[str, None] = {}
        self._begun_behind = 0
        self._tasks: set[asyncio.Task[None]] = set()
        #: number of writes by outcome
        self.counts: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        """The number of pods and placeholders with a write that has not ended."""
        return len(self._lines)

    def submit(self, write: PodWrite) -> None:
        """Carry out the write after the earlier ones to the same pod."""
        key = _key_of(write)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line(deque((write,)))
            if _is_behind(write):
                self._unbegun[key] = None
                self._begin_behind()
            else:
                self._begin(self._work(key, line))
            return
        if isinstance(write, Delete):
            self._hurry(line, "the pod is to be deleted")
        if write not in line.waiting:
            line.waiting.append(write)

    def cancel_bind(self, uid: str, why: str) -> None:
        """Stop retrying the bind of the pod; it ends with what is known by then."""
        line = self._lines.get(uid)
        if line is not None:
            self._hurry(line, why)

    def cancel_create(self, namespace: str, name: str) -> None:
        """Forget the creation of the placeholder if it has not begun."""
        key = f"{namespace}/{name}"
        if key in self._unbegun:
            del self._unbegun[key], self._lines[key]

    def cancel_delete(self, uid: str) -> None:
        """Forget the deletion of the placeholder if it has not begun."""
        if uid in self._unbegun and all(isinstance(w, Delete) for w in self._lines[uid].waiting):
            del self._unbegun[uid], self._lines[uid]

    async def close(self) -> None:
        """Stop all writes. A request under way may still take effect."""
        self._unbegun.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _hurry(self, line: _Line, why: str) -> None:
        line.why = why
        if line.hurry is not None:
            line.hurry.set()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _begin_behind(self) -> None:
        while self._unbegun and self._begun_behind < TUNING.writes_behind:
            key = next(iter(self._unbegun))
            del self._unbegun[key]
            self._begun_behind += 1
            self._begin(self._work_behind(key, self._lines[key]))

    async def _work_behind(self, key: str, line: _Line) -> None:
        try:
            await self._work(key, line)
        finally:
            self._begun_behind -= 1
            self._begin_behind()

    async def _work(self, key: str, line: _Line) -> None:
        try:
            while line.waiting:
                write = line.waiting.popleft()
                try:
                    await self._one(write, line)
                except Exception as error:
                    # A bug must not leave the shim waiting for an outcome.
                    _log.exception("a write to %s failed", key)
                    self._fail(write, f"an internal error: {error!r}")
        finally:
            del self._lines[key]

    async def _one(self, write: PodWrite, line: _Line) -> None:
        if isinstance(write, Bind):
            bound = await self._bind(write, line)
            line.why = ""
            self._finish(bound)
        elif isinstance(write, Create):
            self._finish(await self._create(write))
        elif isinstance(write, Delete):
            await self._delete(write)
        elif isinstance(write, Annotate):
            body = annotations_payload(write.pod.uid, write.annotations)
            await self._patch(write.pod, "", body, MERGE_PATCH, patch_waits())
        else:
            body = failed_payload(write.pod.uid, write.reason, write.message)
            await self._patch(write.pod, "/status", body, STRATEGIC_MERGE_PATCH, patch_waits())

    def _finish(self, ended: Ended) -> None:
        self.counts[f"{type(ended).__name__}.{ended.outcome}"] += 1
        self._ended(ended)

    def _fail(self, write: PodWrite, reason: str) -> None:
        if isinstance(write, Bind):
            self._finish(BindEnded(write.pod.uid, "failed", reason=reason))
        elif isinstance(write, Create):
            name = str(write.manifest.get("metadata", {}).get("name", ""))
            self._finish(CreateEnded(write.application_id, write.group, name, "refused", reason))

    def _client_of(self, write: PodWrite) -> Requester:
        if _is_behind(write):
            return self._behind
        return self._members if isinstance(write, Bind) and write.member else self._client

    async def _try(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = JSON,
        *,
        client: Requester | None = None,
    ) -> tuple[int, bytes]:
        """Send a request. Status 0 stands for no response, with the reason as the body."""
        try:
            return await (client or self._client).request(method, path, body, content_type)
        except NoAnswer as error:
            return 0, str(error).encode()

    # -- bind ------------------------------------------------------------------------------------

    async def _bind(self, bind: Bind, line: _Line) -> BindEnded:
        pod, node = bind.pod, bind.node
        if self._bind_volumes is not None:
            binding = self._bind_volumes(pod, node)
            if binding is not None and (reason := await self._until_called(line, binding)):
                return BindEnded(pod.uid, "failed", step="volumes", reason=reason)
        if self._before_bind is not None:
            waits = self._before_bind(pod)
            if waits is not None:
                await waits
        path, body = f"{pod_path(pod)}/binding", binding_payload(pod, node, bind.devices)
        client = self._client_of(bind)
        began = self._clock()
        waits_left = bind_waits(self._bind_timeout)
        while True:
            status, reply = await self._try("POST", path, body, client=client)
            if 200 <= status < 300:
                return BindEnded(pod.uid, "bound", node)
            reason = _reason(status, reply)
            # A 404 alone is not believed: the watch would report nothing for an unchanged pod.
            if status not in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND) and not is_again(status):
                return BindEnded(pod.uid, "failed", reason=reason)
            found = await self._look(pod, node)
            if found is not None:
                return found
            wait = next(waits_left, None)
            if wait is None or self._clock() - began > self._bind_timeout + TUNING.bind_hangs_ns:
                return BindEnded(pod.uid, "failed", reason=reason)
            if await self._interrupted(line, wait):
                return BindEnded(pod.uid, "failed", reason=f"{line.why}; {reason}")

    async def _look(self, pod: PodRef, node: str) -> BindEnded | None:
        """Return the outcome according to the pod itself; ``None`` if it has no node or cannot be read (K106)."""
        status, body = await self._try("GET", pod_path(pod))
        if status == HTTPStatus.NOT_FOUND:
            return BindEnded(pod.uid, "gone")
        if status != HTTPStatus.OK:
            return None
        try:
            found = _read_pod(body)
        except msgspec.MsgspecError as error:
            _log.warning("%s/%s cannot be read: %s", pod.namespace, pod.name, error)
            return None
        if found.uid != pod.uid:
            return BindEnded(pod.uid, "gone")
        # A pod with our node is bound, even while it is terminating: it counts there until its end.
        if found.spec.node_name == node:
            return BindEnded(pod.uid, "bound", node)
        if found.terminating or found.ended:
            return BindEnded(pod.uid, "gone")
        if found.spec.node_name:
            return BindEnded(pod.uid, "elsewhere", found.spec.node_name)
        return None

    async def _interrupted(self, line: _Line, seconds: float) -> bool:
        """Wait; return true at once when a bind must not be retried."""
        if line.why or any(isinstance(each, Delete) for each in line.waiting):
            return True

        async def asleep() -> str | None:
            await self._sleep(seconds)
            return None

        return await self._until_called(line, asleep()) is not None

    async def _until_called(self, line: _Line, work: Awaitable[str | None]) -> str | None:
        """Return the result of the work, or why it was abandoned because the bind must not continue."""
        doing = asyncio.ensure_future(work)
        line.hurry = asyncio.Event()
        if line.why or any(isinstance(each, Delete) for each in line.waiting):
            line.hurry.set()
        called = asyncio.ensure_future(line.hurry.wait())
        try:
            await asyncio.wait((doing, called), return_when=asyncio.FIRST_COMPLETED)
            if called.done():
                return line.why or "the pod is to be deleted"
            return doing.result()
        finally:
            line.hurry = None
            for each in (doing, called):
                each.cancel()
            await asyncio.gather(doing, called, return_exceptions=True)

    # -- create ----------------------------------------------------------------------------------

    async def _create(self, create: Create) -> CreateEnded:
        metadata = create.manifest["metadata"]
        name, namespace = str(metadata["name"]), str(metadata["namespace"])
        path, body = pods_path(namespace), msgspec.json.encode(create.manifest)
        doubt = False
        waits = create_waits()

        def ended(outcome: str, reason: str = "") -> CreateEnded:
            """Return the outcome."""
            return CreateEnded(create.application_id, create.group, name, outcome, reason)  # type: ignore[arg-type]

        while True:
            status, reply = await self._try("POST", path, body, client=self._client_of(create))
            if 200 <= status < 300:
                return ended("created")
            reason = _reason(status, reply)
            taken = (
                status == HTTPStatus.CONFLICT
                and refusal_of(status, reply).reason == "AlreadyExists"
            )
            if taken:
                # Names are random: after an unanswered attempt a pod with that name is ours.
                return ended("created") if doubt else ended("name_taken", reason)
            if status != HTTPStatus.CONFLICT and not is_again(status):
                return ended("refused", reason)
            # Another 409 comes from a quota that changed meanwhile.
            doubt = doubt or status == 0 or status >= 500
            wait = next(waits, None)
            if wait is None:
                return ended("refused", reason)
            await self._sleep(wait)

    # -- delete and patches ----------------------------------------------------------------------

    async def _delete(self, delete: Delete) -> None:
        pod = delete.pod
        if delete.preempted:
            body = disruption_payload(pod.uid, self._scheduler, self._stamp())
            await self._patch(
                pod, "/status", body, STRATEGIC_MERGE_PATCH, iter(TUNING.disruption_waits_s)
            )
        path, body = pod_path(pod), delete_payload(pod.uid, delete.grace)
        for wait in delete_waits():
            status, reply = await self._try("DELETE", path, body, client=self._client_of(delete))
            # 409: a pod with that name and another UID
            if 200 <= status < 300 or status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                self.counts["Delete.done"] += 1
                return
            self.counts["Delete.again"] += 1
            _log.warning(
                "%s/%s could not be deleted, tried again in %g s: %s",
                pod.namespace, pod.name, wait, _reason(status, reply),
            )  # fmt: skip
            await self._sleep(wait)

    async def _patch(
        self, pod: PodRef, part: str, body: bytes, content_type: str, waits: Iterator[float]
    ) -> None:
        path = pod_path(pod) + part
        while True:
            status, reply = await self._try("PATCH", path, body, content_type)
            if 200 <= status < 300 or status == HTTPStatus.NOT_FOUND:
                return
            conflict = status == HTTPStatus.CONFLICT and "UID" in refusal_of(status, reply).message
            wait = None if conflict else next(waits, None)
            if wait is None or (status != HTTPStatus.CONFLICT and not is_again(status)):
                if not conflict:
                    _log.warning(
                        "a patch of %s/%s failed: %s",
                        pod.namespace,
                        pod.name,
                        _reason(status, reply),
                    )
                return
            await self._sleep(wait)


def _is_behind(write: PodWrite) -> bool:
    """Return whether the write is to a placeholder, so that others come first (Q16)."""
    if isinstance(write, Delete):
        return write.grace == 0
    return isinstance(write, Create) or (isinstance(write, Bind) and write.placeholder)


def _key_of(write: PodWrite) -> str:
    if isinstance(write, Create):
        metadata = write.manifest["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}"
    return write.pod.uid


def _reason(status: int, reply: bytes) -> str:
    if status == 0:
        return f"the API server did not answer: {reply.decode('utf-8', 'replace')}"
    return f"the API server answered {refusal_of(status, reply)}"


# -- paths and payloads of the requests ------------------------------------------------------------


_encode = msgspec.json.Encoder().encode

_BINDING = b'{"apiVersion":"v1","kind":"Binding","metadata":%b,"target":{"apiVersion":"v1","kind":"Node","name":%b}}'


#: matches every name that a checking API server accepts
_PLAIN = re.compile(r"[a-z0-9.-]*").fullmatch


def _quoted(name: str) -> str:
    return name if _PLAIN(name) else quote(name, safe="")


def pods_path(namespace: str) -> str:
    """Return the path of the pods of a namespace."""
    return f"/api/v1/namespaces/{_quoted(namespace)}/pods"


def pod_path(pod: PodRef) -> str:
    """Return the path of a pod."""
    return f"/api/v1/namespaces/{_quoted(pod.namespace)}/pods/{_quoted(pod.name)}"


def binding_payload(pod: PodRef, node: str, devices: str = "") -> bytes:
    """Return a Binding. It has the UID, so that another pod with that name is not bound (K104). The API server
    copies its annotations to the pod: with ``devices``, the units of shared devices that the pod has (Q14)."""
    metadata: dict[str, Any] = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    if devices:
        metadata["annotations"] = {DEVICES: devices}
    return _BINDING % (_encode(metadata), _encode(node))


def delete_payload(uid: str, grace: int | None) -> bytes:
    """Return delete options (K112). ``grace`` is in seconds; ``None`` for the pod's own."""
    options: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": uid},
    }
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    return _encode(options)


def annotations_payload(uid: str, annotations: Mapping[str, str]) -> bytes:
    """Return a merge patch of annotations. Its UID makes the server refuse another pod with that name."""
    return _encode({"metadata": {"uid": uid, "annotations": dict(annotations)}})


def failed_payload(uid: str, reason: str, message: str) -> bytes:
    """Return a patch of the status that fails the pod (K34)."""
    status = {"phase": "Failed", "reason": reason, "message": message}
    return _encode({"metadata": {"uid": uid}, "status": status})


def disruption_payload(uid: str, scheduler: str, now: str) -> bytes:
    """Return a strategic merge patch of the status with the condition DisruptionTarget (K113). ``now`` is RFC
    3339."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{scheduler}: preempting to accommodate a higher priority pod",
        "lastTransitionTime": now,
    }
    return _encode({"metadata": {"uid": uid}, "status": {"conditions": [condition]}})
