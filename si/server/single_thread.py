"""The single thread that drives a scheduler with a client's clock.

All calls of the server run in this thread, so a step may wait for predicates while the server's
loop reads the answers.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from quadriga.si.api import Outcome, ResourceManagerCallback
from quadriga.si.explained import Explained
from quadriga.si.server.driver import Driver, Predicate, Preemption
from quadriga.si.wire import Request

T = TypeVar("T")


class SingleThreadDriver:
    """Calls the driver in one thread, in the order of the calls."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="quadriga-steps")

    def call(self, what: Callable[[Driver], T]) -> Future[T]:
        """Run a function with the driver."""
        return self._pool.submit(what, self._driver)

    def submit(self, request: Any, callback: ResourceManagerCallback | None = None) -> Future[None]:
        return self.call(lambda driver: driver.submit(request, callback).result())

    def prepare(self, request: Any) -> None:
        self._driver.prepare(request)

    def post(self, request: Request, outcome: Outcome) -> None:
        self.call(lambda driver: driver.post(request, outcome))

    def connection(self, rm_id: str, trigger: str) -> Future[None]:
        return self.call(lambda driver: driver.connection(rm_id, trigger).result())

    def registered(self) -> Future[frozenset[str]]:
        return self.call(lambda driver: driver.registered().result())

    def set_predicates(
        self, rm_id: str, predicate: Predicate | None, preemption: Preemption | None
    ) -> Future[None]:
        return self.call(
            lambda driver: driver.set_predicates(rm_id, predicate, preemption).result()
        )

    def set_events(self, rm_id: str, wanted: bool) -> Future[None]:
        return self.call(lambda driver: driver.set_events(rm_id, wanted).result())

    def explain(
        self,
        rm_id: str,
        partition: str,
        application_id: str,
        allocation_key: str,
        *,
        predicates: bool,
    ) -> Future[Explained]:
        return self.call(
            lambda driver: driver.explain(
                rm_id, partition, application_id, allocation_key, predicates=predicates
            ).result()
        )

    def begin(self, work: Callable[[], list[Any]]) -> Future[None]:
        return self.call(lambda driver: driver.begin(work).result())

    def stop(self) -> None:
        """Stop after the call that is running."""
        self._pool.shutdown(wait=False, cancel_futures=True)
