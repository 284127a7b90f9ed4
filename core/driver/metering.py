"""Measurements of a driver.

The core has no clock, and no decision depends on a measurement. The meter brings a monotonic clock;
without a meter nothing is timed. See D94.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from quadriga.core.driver.watchdog import Watchdog
    from quadriga.core.runtime.outbox import Output
    from quadriga.core.scheduler import Predicate, Scheduler
    from quadriga.si.predicates import KnownRefusals

T = TypeVar("T")


class Meter(Protocol):
    """Its methods are called on the thread that owns the scheduler; times are ns of ``clock``.

    The journal drops old records: a meter that follows it reads it in ``scheduled`` and ``worked``.
    """

    def clock(self) -> int:
        """A monotonic clock with any origin."""

    def scheduled(self, scheduler: Scheduler, took: int, rounds: int, messages: int) -> None:
        """A call of ``schedule`` has made this number of rounds (5.2) and of messages."""

    def worked(self, scheduler: Scheduler, took: int) -> None:
        """One work item is done: a request, a chunk of a large one, or a read."""

    def asked(self, took: int) -> None:
        """The resource manager's predicates have answered about one ask and a node (I36), or told all
        nodes that refuse it."""

    def measure(self, name: str) -> AbstractContextManager[object]:
        """A context manager that times a part of one decision (``Scheduler.set_measure``)."""


class Stopwatch:
    """Reports durations to ``meter``, if there is one. The ``watchdog`` is told what predicates are asked
    about."""

    def __init__(self, watchdog: Watchdog) -> None:
        self.meter: Meter | None = None
        self.watchdog = watchdog

    def schedule(self, scheduler: Scheduler, decide: Callable[[], list[Output]]) -> list[Output]:
        """Call ``decide``, which makes scheduling decisions."""
        meter = self.meter
        if meter is None:
            return decide()
        began, rounds = meter.clock(), scheduler.tally.rounds
        outputs = decide()
        took = meter.clock() - began
        meter.scheduled(scheduler, took, scheduler.tally.rounds - rounds, len(outputs))
        return outputs

    def work(self, scheduler: Scheduler, work: Callable[[], T]) -> T:
        """Do one work item. Raises what it raises."""
        meter = self.meter
        if meter is None:
            return work()
        began = meter.clock()
        try:
            return work()
        finally:
            meter.worked(scheduler, meter.clock() - began)

    def timed(self, predicate: Predicate | None) -> Predicate | None:
        """The same predicate, timed."""
        if predicate is None:
            return None

        return (
            _TimedKnowing(self, predicate)
            if hasattr(predicate, "refused_nodes")
            else (_Timed(self, predicate))
        )


class _Timed:
    """A predicate whose time is reported to the meter of the stopwatch."""

    __slots__ = ("_predicate", "_watch")

    def __init__(self, watch: Stopwatch, predicate: Predicate) -> None:
        self._watch = watch
        self._predicate = predicate

    def __call__(self, key: str, node_id: str, allocate: bool) -> str | None:
        self._watch.watchdog.detail = key
        meter = self._watch.meter
        if meter is None:
            return self._predicate(key, node_id, allocate)
        began = meter.clock()
        try:
            return self._predicate(key, node_id, allocate)
        finally:
            meter.asked(meter.clock() - began)


class _TimedKnowing(_Timed):
    """One that knows the refused nodes of an ask (``KnowsRefusals``)."""

    __slots__ = ("_find",)

    def __init__(self, watch: Stopwatch, predicate: Any) -> None:
        super().__init__(watch, predicate)
        self._find: Callable[[str, tuple[str, ...]], KnownRefusals | None] = predicate.refused_nodes

    def refused_nodes(self, key: str, node_ids: tuple[str, ...]) -> KnownRefusals | None:
        self._watch.watchdog.detail = key
        meter = self._watch.meter
        if meter is None:
            return self._find(key, node_ids)
        began = meter.clock()
        try:
            return self._find(key, node_ids)
        finally:
            meter.asked(meter.clock() - began)
