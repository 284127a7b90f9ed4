"""Audits once a minute: what the watch has and what the core counts goes through the shim's queue (K176).

The parts are small, so that neither the loop nor the core's thread is held up. What the core has said before a
part was read is in the queue before it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Protocol, TypeVar

from quadriga.base.times import SECOND
from quadriga.k8s.conversion.settings_table import DEFAULTS
from quadriga.k8s.driver.core_state import CoreState
from quadriga.k8s.objects import Pod
from quadriga.k8s.shim.inputs import AuditBegins, AuditEnds, CoreShows, Input, WatchShows
from quadriga.k8s.tuning import TUNING

_log = logging.getLogger("quadriga.kubernetes")


T = TypeVar("T")


class _Cache(Protocol):
    def node_names(self) -> tuple[str, ...]: ...
    def pod_uids(self) -> tuple[str, ...]: ...


class Auditor:
    """Runs audits. ``pods()`` returns the pods of the watch by UID; ``serves()`` whether the shim can be
    compared at all. ``core_state`` is ``None`` for a core in another process, which does not show its state:
    then only the watch is compared with the caches."""

    def __init__(
        self,
        core_state: CoreState | None,
        cache: _Cache,
        *,
        pods: Callable[[], Mapping[str, Pod]],
        applications: Callable[[], Sequence[str]],
        serves: Callable[[], bool],
        put: Callable[[Input], None],
        sleep: Callable[[float], Awaitable[None]],
        every: float = DEFAULTS["audit_interval"] / SECOND,
    ) -> None:
        self._core_state = core_state
        self._cache = cache
        self._pods = pods
        self._applications = applications
        self._serves = serves
        self._put = put
        self._sleep = sleep
        self._every = every

    async def run(self) -> None:
        """Audit until cancelled."""
        while True:
            await self._sleep(self._every)
            if self._serves():
                await self.audit()

    async def audit(self) -> None:
        """Run one audit. It never completes if the core has ended."""
        self._put(AuditBegins(with_core=self._core_state is not None))
        await self._show_watch()
        if self._core_state is not None:
            try:
                await self._show_core(self._core_state)
            except RuntimeError as error:
                _log.debug("the audit was given up: %s", error)
                return
        self._put(AuditEnds())

    async def _show_watch(self) -> None:
        pods = self._pods()
        for uids in _parts(tuple(pods), TUNING.audit_pods):
            self._put(WatchShows([pod for uid in uids if (pod := pods.get(uid)) is not None]))
            await asyncio.sleep(0)
        gone = [uid for uid in self._cache.pod_uids() if uid not in pods]
        if gone:
            self._put(WatchShows(gone=gone))

    async def _show_core(self, core_state: CoreState) -> None:
        names = await core_state.names()
        for part in _parts(_union(self._cache.node_names(), names.nodes), TUNING.audit_nodes):
            nodes = await core_state.nodes(part)
            self._put(CoreShows(nodes_asked=part, nodes=nodes))
        for part in _parts(
            _union(self._applications(), names.applications), TUNING.audit_applications
        ):
            applications = await core_state.applications(part)
            self._put(CoreShows(applications_asked=part, applications=applications))


def _union(some: Iterable[str], more: Iterable[str]) -> list[str]:
    return sorted({*some, *more})


def _parts(things: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(things)
    while part := list(islice(rest, size)):
        yield part
