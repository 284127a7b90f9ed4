"""Leader election with a Lease object (K11).

Clocks of different machines are never compared. A candidate remembers when it saw the lease change, by its own
clock, and takes the lease when it has not changed for as long as its holder promised. The times in the lease
are informational.

The holder renews the lease every two seconds. If no renewal succeeds for ten seconds it has lost the lease: it
must end, because another process may take over five seconds later. A process that was frozen for that time may
retry a write before it notices that its lease is over: `Guarded` sends none.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from quadriga.base.times import SECOND, micro_time
from quadriga.k8s.transport.requester import JSON, Clock, NoAnswer, Requester
from quadriga.k8s.tuning import TUNING

_log = logging.getLogger("quadriga.kubernetes.lease")


def elapsed_ns() -> int:
    """Return the time (ns) since some moment, including the time that the machine sleeps where the system
    supports that: a lease must not seem fresh after a suspend."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock)


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Times in seconds. The defaults are those of kube-scheduler."""

    duration: int = 15
    renew_deadline: float = 10
    retry: float = 2

    def __post_init__(self) -> None:
        if not 0 < self.retry * (1 + TUNING.lease_jitter) < self.renew_deadline < self.duration:
            raise ValueError(
                f"a lease of {self.duration} s needs a renew deadline below that and a retry period"
                f" below the deadline, not {self.renew_deadline:g} s and {self.retry:g} s"
            )


@dataclass(frozen=True, slots=True)
class _Seen:
    """A lease as it was read: its specification and its version."""

    spec: dict[str, Any]
    version: str

    @property
    def holder(self) -> str:
        """The holder of the lease; "" for none."""
        return str(self.spec.get("holderIdentity") or "")


class Lease:
    """One candidate for the lease ``name`` in ``namespace``, on one event loop.

    ``clock`` returns ns and must advance while the process is frozen; ``wall`` returns ns since 1970; ``random``
    a number from 0 to below 1.
    """

    def __init__(
        self,
        requester: Requester,
        *,
        namespace: str,
        identity: str,
        random: Callable[[], float],
        wall: Callable[[], int],
        clock: Clock = elapsed_ns,
        name: str = "quadriga",
        times: LeaseTimes | None = None,
    ) -> None:
        self._requester = requester
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._random = random
        self._wall = wall
        self._clock = clock
        self._times = times or LeaseTimes()
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace)}/leases"
        self._path = f"{self._collection}/{quote(name)}"
        self._seen: _Seen | None = None
        #: when (own clock, ns) the lease was seen to change
        self._changed_at = 0
        #: when (own clock, ns) it was last read or written
        self._last_contact = 0
        #: when (own clock, ns) the last successful write began
        self._renewed_at: int | None = None
        self._problem = ""

    @property
    def holder(self) -> str:
        """The holder of the lease when it was last read or written; "" for none."""
        return self._seen.holder if self._seen is not None else ""

    @property
    def rival(self) -> str:
        """The other process that holds the lease; "" for none, and if it was not read for longer than a leader
        may take to renew it."""
        if self._clock() >= self._last_contact + int(self._times.renew_deadline * SECOND):
            return ""
        return "" if self.holder == self._identity else self.holder

    @property
    def held(self) -> bool:
        """Whether this process holds the lease, so that no other one can have taken it."""
        if self._renewed_at is None:
            return False
        return self._clock() < self._renewed_at + int(self._times.duration * SECOND)

    async def acquire(self) -> None:
        """Wait until this process holds the lease."""
        rival = problem = None
        while not await self._try(self._times.renew_deadline):
            if self._problem != problem:
                problem = self._problem
                if problem:
                    _log.warning("lease %s/%s: %s", self._namespace, self._name, problem)
            if self.holder != rival and self.holder != self._identity:
                rival = self.holder
                _log.info("lease %s/%s: %s leads", self._namespace, self._name, rival or "nobody")
            await asyncio.sleep(self._times.retry * (1 + TUNING.lease_jitter * self._random()))
        _log.info("lease %s/%s: %s leads now", self._namespace, self._name, self._identity)

    async def keep(self) -> str:
        """Renew the lease until it is lost; return the reason. Cancel it to stop, then call `release`."""
        while True:
            await asyncio.sleep(self._times.retry)
            if self._renewed_at is None:
                return "the lease is not held"
            deadline = self._renewed_at + int(self._times.renew_deadline * SECOND)
            left = deadline - self._clock()
            if left > 0 and await self._try(left / SECOND):
                continue
            if self.holder not in (self._identity, ""):
                self._renewed_at = None
                return f"{self.holder} has taken the lease {self._namespace}/{self._name}"
            if self._clock() >= deadline:
                self._renewed_at = None
                why = f": {self._problem}" if self._problem else ""
                lasted = f"{self._times.renew_deadline:g} s"
                return f"lease {self._namespace}/{self._name} not renewed for {lasted}{why}"

    async def release(self) -> None:
        """Release the lease, so that the next candidate need not wait. Do nothing if it is not held."""
        if not self.held or self._seen is None:
            return
        self._renewed_at = None
        now = micro_time(self._wall())
        # the server requires a positive duration
        spec = {**self._seen.spec, "holderIdentity": "", "leaseDurationSeconds": 1}
        spec |= {"renewTime": now, "acquireTime": now}
        try:
            async with asyncio.timeout(self._times.retry):
                await self._write("PUT", self._path, spec, self._seen.version)
        except (NoAnswer, TimeoutError):
            _log.info("lease %s/%s could not be given back", self._namespace, self._name)

    # -- one try ---------------------------------------------------------------------------------

    async def _try(self, limit_s: float) -> bool:
        """Try to acquire or renew the lease within `limit_s` seconds; return whether this process holds it."""
        self._problem = ""
        try:
            async with asyncio.timeout(limit_s):
                return await self._take()
        except TimeoutError:
            self._problem = "the API server does not answer in time"
        except NoAnswer as error:
            self._problem = f"the API server cannot be reached: {error}"
        except _Refused as error:
            self._problem = str(error)
        return False

    async def _take(self) -> bool:
        seen = await self._read()
        began = self._clock()
        now = micro_time(self._wall())
        if seen is None:
            spec = {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": self._times.duration,
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            }
            return await self._written(began, "POST", self._collection, spec, "")
        if seen.holder not in ("", self._identity) and began < self._free_at(seen):
            return False
        spec = {**seen.spec, "holderIdentity": self._identity, "renewTime": now}
        spec["leaseDurationSeconds"] = self._times.duration
        if seen.holder != self._identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int(seen.spec.get("leaseTransitions") or 0) + 1
        return await self._written(began, "PUT", self._path, spec, seen.version)

    def _free_at(self, seen: _Seen) -> int:
        """Return when the lease of another holder expires if it does not change."""
        promised = seen.spec.get("leaseDurationSeconds") or self._times.duration
        return self._changed_at + int(promised) * SECOND

    async def _read(self) -> _Seen | None:
        status, body = await self._requester.request("GET", self._path)
        if status == 404:
            self._seen = None
            return None
        if status != 200:
            raise _Refused("reading", status, body)
        return self._note(body)

    async def _written(
        self, began: int, method: str, path: str, spec: dict[str, Any], version: str
    ) -> bool:
        """Write the lease; return false after a conflict, which means that another process was faster."""
        status, body = await self._write(method, path, spec, version)
        if status in (200, 201):
            self._note(body)
            self._renewed_at = began
            return True
        if status == 409:
            self._problem = "another process has written it in between"
            return False
        raise _Refused("writing", status, body)

    async def _write(
        self, method: str, path: str, spec: dict[str, Any], version: str
    ) -> tuple[int, bytes]:
        metadata = {"name": self._name, "namespace": self._namespace}
        if version:
            metadata["resourceVersion"] = version
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": spec,
        }
        return await self._requester.request(method, path, json.dumps(lease).encode(), JSON)

    def _note(self, body: bytes) -> _Seen:
        """Remember the lease, and when it changed."""
        try:
            lease = json.loads(body)
            seen = _Seen(dict(lease.get("spec") or {}), str(lease["metadata"]["resourceVersion"]))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise _Refused("reading", 200, body) from None
        if self._seen is None or seen.spec != self._seen.spec:
            self._changed_at = self._clock()
        self._seen = seen
        self._last_contact = self._clock()
        return seen


class Guarded:
    """A client that sends requests while ``held()`` is true. After that they have no response, as if the server
    were unreachable."""

    def __init__(self, requester: Requester, held: Callable[[], bool]) -> None:
        self._requester = requester
        self._held = held

    def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON
    ) -> Coroutine[Any, Any, tuple[int, bytes]]:
        """Send one request as `Requester.request` does."""
        if not self._held():
            raise NoAnswer("the lease is over")
        return self._requester.request(method, path, body, content_type)


class _Refused(Exception):
    """A response that is neither success nor a conflict."""

    def __init__(self, doing: str, status: int, body: bytes) -> None:
        try:
            message = str(json.loads(body)["message"])
        except (ValueError, TypeError, KeyError):
            message = body[:200].decode("utf-8", "replace")
        super().__init__(f"{doing} it, the API server answers {status}: {message}")
