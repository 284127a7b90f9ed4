"""Our scheduler, at a real API server: with the core in this process, or behind gRPC."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from quadriga.core.driver.service import SchedulerService
from quadriga.core.scheduler import Scheduler
from quadriga.k8s.api.login import log_in
from quadriga.k8s.driver.kubernetes import KubernetesShim, Options
from quadriga.k8s.driver.remote import CoreWatcher
from quadriga.si import SchedulerAPI
from quadriga.si.client import Client
from tests.si.remote_side import SOON, Serving, Wire


class Running:
    """A shim that runs, and its core."""

    shim: KubernetesShim

    def __init__(self, service: SchedulerService) -> None:
        self.service = service
        #: of a core behind gRPC: its server, and the network between
        self.serving: Serving | None = None
        self.wire: Wire | None = None

    def restart_core(self) -> None:
        """As after kill -9: another core at the same address, which knows nothing."""
        assert self.serving is not None
        address = self.serving.address
        self.serving.stop()
        self.service = SchedulerService()
        self.serving = Serving(service=self.service, address=address)

    def stop_serving(self) -> None:
        if self.serving is not None:
            self.serving.stop()

    def wait_ready(self, seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while not self.shim.health().ready:
            assert time.monotonic() < end, (self.shim.health(), self.shim.reason)
            time.sleep(0.01)

    def applications(self) -> dict[str, tuple[str, int]]:
        """Of each application of the core that has not ended: its state, and how many allocations."""

        def reader(scheduler: Scheduler) -> dict[str, tuple[str, int]]:
            return {
                app_id: (app.state, len(app.allocations) + len(app.placeholders))
                for partition in scheduler.partitions()
                for app_id, app in partition.applications.items()
            }

        return self.service.read(reader)

    def until(self, holds: Callable[[], object], what: str, seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, f"still not so: {what}"
            time.sleep(0.02)


@contextmanager
def running(
    kubeconfig: Path | str,
    *,
    over_grpc: bool = False,
    namespace: str = "default",
    leader_election: bool = False,
    observe: Callable[[str, str, int], None] | None = None,
) -> Iterator[Running]:
    """Our scheduler until the end of the block."""
    login = log_in(str(kubeconfig), clock=time.monotonic_ns, wall=time.time_ns)
    options = Options(namespace=namespace, leader_election=leader_election, tune_gc=False)
    with ExitStack() as stack:
        service = stack.enter_context(SchedulerService())
        found = Running(service)
        scheduler: SchedulerAPI = service
        watcher = CoreWatcher()
        if over_grpc:
            found.serving = Serving(service=service)
            stack.callback(lambda: found.stop_serving())
            found.wire = Wire(found.serving.port)
            stack.callback(found.wire.stop)
            client = Client(found.wire.address, insecure=True, watcher=watcher, backoff=SOON)
            scheduler = stack.enter_context(client)
        found.shim = watcher.shim = KubernetesShim(scheduler, login, options, observe=observe)
        found.shim.start()
        stack.callback(found.shim.stop)
        yield found
