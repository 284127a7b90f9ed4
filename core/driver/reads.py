"""Questions to a scheduler that a thread owns: answered between two of its steps, from any thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from quadriga.core.driver.metering import Meter
from quadriga.core.driver.owner import Owner
from quadriga.core.driver.slices import Slices, read_in_slices
from quadriga.core.driver.work_queue import WorkItem
from quadriga.core.runtime.dialect import Dialect
from quadriga.core.runtime.outbox import Output
from quadriga.core.runtime.stepwise import Steps
from quadriga.core.scheduler import Scheduler
from quadriga.core.views import Views, as_text, diagnostics_of, formatted, holdings_of
from quadriga.fsm import RESOURCE_MANAGER
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm
from quadriga.si.explained import Explained, FailedCheck

T = TypeVar("T")


class ReadableOwner(Owner):
    """Answers questions about the scheduler, and reports durations."""

    def read(self, reader: Callable[[Scheduler], T]) -> T:
        """Return what ``reader`` returns for the scheduler, called between two steps and before any request."""
        found: list[T] = []
        self._do(partial(self._read_into, reader, found))
        return found[0]

    def read_later(
        self, reader: Callable[[Scheduler], T], rm_id: str = "", *, in_turn: bool = False
    ) -> Future[T]:
        """As ``read``, without waiting: the future gets what ``reader`` returns or raises. It is called after
        earlier requests of this resource manager, or ``in_turn`` with those of all."""
        answer: Future[T] = Future()
        found: list[T] = []

        def finish(done: Future[None]) -> None:
            error = done.exception()
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(found[0])

        answer.set_running_or_notify_cancel()  # the caller cannot cancel it
        done: Future[None] = Future()
        done.add_done_callback(finish)
        work = partial(self._read_into, reader, found)
        self._hand_over(WorkItem(work, done, rm_id, in_turn=in_turn), at_once=not in_turn)
        return answer

    def _read_into(self, reader: Callable[[Scheduler], T], found: list[T]) -> list[Output]:
        found.append(reader(self.scheduler))
        return []

    def explain(
        self,
        rm_id: str,
        partition: str,
        application_id: str,
        allocation_key: str = "",
        *,
        predicates: bool = True,
    ) -> Future[Explained]:
        """Where an application is and what it holds; with ``allocation_key`` also why that ask waits.

        Read after the requests that the resource manager has sent before. The future gets ``KeyError``
        for an unknown application or ask. Without ``predicates`` the resource manager is not asked about each
        node.
        """

        def reader(scheduler: Scheduler) -> Steps[Explained]:
            app = scheduler.application(application_id, partition, rm_id)
            reasons: tuple[str, ...] = ()
            checks: tuple[FailedCheck, ...] = ()
            verdict = ""
            if allocation_key:
                explained = yield from scheduler.explain_in_steps(
                    application_id, allocation_key, partition, rm_id, predicates=predicates
                )
                reasons, verdict, checks = explained.reasons, explained.verdict, explained.failing
            state = Dialect(app.partition.rm.dialect).state(app.state)
            return Explained(app.queue_path, state, reasons, verdict, *holdings_of(app), checks)

        return read_in_slices(self, Slices(reader), rm_id)

    def registered(self) -> Future[frozenset[str]]:
        """The resource managers that are running or paused: they need not register again."""
        return self.read_later(
            lambda scheduler: frozenset(
                rm.rm_id
                for rm in scheduler.resource_managers()
                if RESOURCE_MANAGER.allows(rm.state, resource_manager_fsm.SHUTDOWN)
            )
        )

    def diagnostics(self) -> dict[str, Any]:
        """The state dumps of the resource managers themselves (I4); these may take a while."""
        return diagnostics_of(dict(self._callbacks.of))

    def state_dump(self, views: Views, log_level: str = "INFO") -> str:
        """The whole state as JSON, read in slices, with the resource managers' own dumps (2.13, I4)."""
        more: dict[str, Any] = {"diagnostics": self.diagnostics(), "log_level": log_level}
        slices = Slices[dict[str, Any]](lambda _: views.state_in_steps(**more))
        return as_text(formatted(read_in_slices(self, slices).result()))

    def attach(self, meter: Meter | None) -> None:
        """Report durations to this meter from now on, or to none."""

        def reader(scheduler: Scheduler) -> None:
            self._watch.meter = meter
            scheduler.set_measure(meter.measure if meter is not None else None)

        self.read(reader)

    @property
    def meter(self) -> Meter | None:
        """The meter that durations are reported to."""
        return self._watch.meter
