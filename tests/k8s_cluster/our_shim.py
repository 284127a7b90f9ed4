"""Our scheduler, at a real API server: with the core in this process, or behind gRPC."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from plain_client import PlainClient

from quadriga.core import Options as CoreOptions
from quadriga.core.driver.service import SchedulerService
from quadriga.core.scheduler import Scheduler
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.k8s.driver.core_sender import CoreWatcher
from quadriga.k8s.driver.kubernetes import KubernetesShim, Options
from quadriga.k8s.transport.login import log_in
from quadriga.si import SchedulerAPI
from quadriga.si.client import Client
from tests.si.remote_side import SOON, Serving

#: an application that has nothing left is completed after a second, not after half a minute
SOON_COMPLETED = CoreOptions(lasts={("application", application_fsm.WAITING): 1_000_000_000})


class Running:
    """A shim that runs, and its core."""

    shim: KubernetesShim

    def __init__(self, service: SchedulerService) -> None:
        self.service = service
        #: of a core behind gRPC
        self.serving: Serving | None = None

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

    def is_idle(self) -> bool:
        """Whether all queues are empty: what applications have, and what the queues count."""

        def reader(scheduler: Scheduler) -> bool:
            return not any(
                application.allocations or application.placeholders
                for partition in scheduler.partitions()
                for application in partition.applications.values()
            ) and not any(any(each.root.allocated) for each in scheduler.partitions())

        return self.service.read(reader)

    def ended(self) -> dict[str, str]:
        """Of each application that has ended in the core: its state."""

        def reader(scheduler: Scheduler) -> dict[str, str]:
            return {app.app_id: app.state for each in scheduler.partitions() for app in each.ended}

        return self.service.read(reader)

    def wait_forgotten(self) -> None:
        """Until the shim has no application any more."""
        self.until(
            lambda: json.loads(self.shim.state_dump())["shim"]["applications"] == [],
            "the shim has forgotten all applications",
        )

    def wait_as_listed(self, admin: PlainClient, seconds: float = 30.0) -> None:
        """Until the shim's cache has what a fresh list has: nodes, and live pods with their nodes."""

        def listed() -> tuple[list[str], dict[str, str]]:
            live = [
                each
                for each in admin.list("Pod")
                if each["status"].get("phase") not in ("Succeeded", "Failed")
            ]
            return sorted(each["metadata"]["name"] for each in admin.list("Node")), {
                each["metadata"]["uid"]: each["spec"].get("nodeName", "") for each in live
            }

        def cached() -> tuple[list[str], dict[str, str]]:
            cache = json.loads(self.shim.state_dump())["cache"]
            return sorted(cache["nodes"]), {uid: e["node"] for uid, e in cache["pods"].items()}

        self.until(lambda: cached() == listed(), "the cache is as a fresh list", seconds)

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
    core: CoreOptions | None = None,
    observe: Callable[[str, str, int], None] | None = None,
) -> Iterator[Running]:
    """Our scheduler, from when it is ready until the end of the block."""
    login = log_in(str(kubeconfig), clock=time.monotonic_ns, wall=time.time_ns)
    options = Options(namespace=namespace, leader_election=leader_election, tune_gc=False)
    with ExitStack() as stack:
        service = stack.enter_context(SchedulerService(core))
        found = Running(service)
        scheduler: SchedulerAPI = service
        watcher = CoreWatcher()
        if over_grpc:
            found.serving = Serving(service=service)
            stack.callback(found.serving.stop)
            client = Client(found.serving.address, insecure=True, watcher=watcher, backoff=SOON)
            scheduler = stack.enter_context(client)
        found.shim = watcher.shim = KubernetesShim(scheduler, login, options, observe=observe)
        found.shim.start()
        stack.callback(found.shim.stop)
        found.wait_ready()
        yield found
