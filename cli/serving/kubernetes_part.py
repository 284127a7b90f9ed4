"""The shim as a part of a process: its start and its end, its health and its metrics."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from quadriga.base.times import SECOND
from quadriga.cli.errors import FOUND, CommandError
from quadriga.cli.serving.addresses import Address
from quadriga.cli.serving.health import HealthServer
from quadriga.core.driver.service import SchedulerService
from quadriga.k8s.driver.explaining import Core
from quadriga.k8s.driver.kubernetes import KubernetesShim, Options
from quadriga.si import SchedulerAPI

if TYPE_CHECKING:
    from quadriga.cli.serving.kubernetes_settings import KubernetesSettings
    from quadriga.web.site import Measured

_log = logging.getLogger("quadriga.serve")


class KubernetesPart:
    """``scheduler`` and ``core`` are one core, to send to and to explain by. ``metrics`` gives the text for
    Prometheus, with those of `measured` in it."""

    def __init__(
        self,
        settings: KubernetesSettings,
        scheduler: SchedulerAPI,
        core: Core,
        metrics: Callable[[], Awaitable[bytes]],
    ) -> None:
        self._settings = settings
        #: the core, if it is in this process
        self._service = scheduler if isinstance(scheduler, SchedulerService) else None
        #: requests to the API server: (method, kind of object, status) -> number
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self.shim = KubernetesShim(
            scheduler,
            settings.login,
            Options(
                namespace=settings.namespace,
                identity=settings.identity,
                leader_election=settings.lease,
                unified_asks=settings.unified_asks,
                health_delay=settings.health_delay,
            ),
            core=core,
            observe=self._observe,
        )
        self._health = HealthServer(
            alive=self._not_alive,
            ready=self._not_ready,
            metrics=metrics,
            standby=self._standby,
            connections=settings.connections,
        )
        self.address: Address | None = None

    async def start(self) -> None:
        """Answer probes, and begin to schedule. Raises `CommandError`."""
        wanted = self._settings.health
        if wanted is not None:
            try:
                port = await self._health.start(wanted.host, wanted.port)
            except OSError as error:
                reason = error.strerror or error
                raise CommandError(
                    f"kubernetes: cannot listen on {wanted}: {reason}", FOUND
                ) from None
            self.address = wanted.at(port)
        await asyncio.to_thread(self.shim.start)

    async def run(self) -> None:
        """Return when the shim has ended by itself, or the webhook has; both say why in the log."""
        shim = asyncio.create_task(asyncio.to_thread(self.shim.wait))
        tasks: list[asyncio.Task[object]] = [shim]
        if self._settings.admission is not None:
            from quadriga.cli.serving.admission import serve_alone
            from quadriga.k8s.admission.validators import ask_core

            plan, login = self._settings.admission, self._settings.login
            tasks.append(asyncio.create_task(serve_alone(login, plan, validate=ask_core)))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def stop(self) -> None:
        """Give the lease back and end."""
        await asyncio.to_thread(self.shim.stop)
        with suppress(Exception):
            await self._health.stop()

    def rows(self) -> Iterator[tuple[str, str]]:
        """What to tell at the start."""
        yield "cluster", f"{self._settings.login.server} (namespace {self._settings.namespace})"
        if self.address is not None:
            yield "health", f"http://{self.address}/readyz"

    # -- health and metrics ----------------------------------------------------------------------

    def _not_alive(self) -> str:
        health = self.shim.health()
        return "" if health.alive else "; ".join(health.reasons)

    def _not_ready(self) -> str:
        health = self.shim.health()
        slow = ""
        if self._service is not None:
            slow = self._service.slow(int(self._settings.health_delay * SECOND))
        reasons = (*health.reasons, *((f"the core is slow: {slow}",) if slow else ()))
        return "" if (health.ready or health.leader) and not slow else "; ".join(reasons)

    def _standby(self) -> str:
        leader = self.shim.health().leader
        return f"{leader} leads, this process stands by" if leader else ""

    def _observe(self, method: str, path: str, status: int) -> None:
        self._requests[method, _resource_of(path), status] += 1

    def measured(self) -> Iterator[Measured]:
        """Metrics of the shim."""
        health = self.shim.health()
        about = "Whether this process schedules: it leads, its caches are filled, recovery is over."
        yield "quadriga_kubernetes_ready", "gauge", about, [({}, int(health.ready))]
        about = "Requests to the API server, by status; 0 is no answer."
        requests = [
            ({"method": method, "resource": resource, "status": str(status)}, count)
            for (method, resource, status), count in sorted(self._requests.items())
        ]
        yield "quadriga_kubernetes_requests_total", "counter", about, requests
        yield from self.shim.measured()


def _resource_of(path: str) -> str:
    """The resource of a request's path, with its subresource: ``pods/binding``."""
    parts = path.partition("?")[0].strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]  # /api/v1/..., /apis/GROUP/VERSION/...
    if len(parts) > 2 and parts[0] == "namespaces":
        parts = parts[2:]
    return "/".join([*parts[:1], *parts[2:3]])
