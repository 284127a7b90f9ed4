"""What a driver tells somebody who measures it.

The core has no clock, and decides nothing by what is measured here. Whoever measures brings a steady
clock of its own; without a meter nothing is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from quadriga.core.runtime.outbox import Output
    from quadriga.core.scheduler import Predicate, Scheduler

__all__ = ["Meter", "Stopwatch"]

T = TypeVar("T")


class Meter(Protocol):
    """All of it is called on the thread that owns the scheduler; times are ns of ``clock``.

    The journal is a ring: a meter that follows it looks at it in ``scheduled`` and ``worked``.
    """

    def clock(self) -> int:
        """A clock that only runs forward, of no particular beginning."""
        ...

    def scheduled(self, scheduler: Scheduler, took: int, rounds: int, messages: int) -> None:
        """A call of ``schedule`` has made so many rounds (5.2), and said so much."""
        ...

    def worked(self, scheduler: Scheduler, took: int) -> None:
        """One piece of work from outside is done: a request, a portion of a large one, or a look."""
        ...

    def asked(self, took: int) -> None:
        """The resource manager's predicates have answered for one ask and node (I36)."""
        ...

    def measure(self, name: str) -> AbstractContextManager[object]:
        """To be entered around something inside of one decision (``Scheduler.set_measure``)."""
        ...


class Stopwatch:
    """Tells ``meter`` how long things take, while there is one."""

    def __init__(self) -> None:
        self.meter: Meter | None = None

    def schedule(self, scheduler: Scheduler, decide: Callable[[], list[Output]]) -> list[Output]:
        """Let the scheduler decide."""
        meter = self.meter
        if meter is None:
            return decide()
        began, rounds = meter.clock(), scheduler.tally.rounds
        outputs = decide()
        took = meter.clock() - began
        meter.scheduled(scheduler, took, scheduler.tally.rounds - rounds, len(outputs))
        return outputs

    def work(self, scheduler: Scheduler, work: Callable[[], T]) -> T:
        """Do what somebody asked for. Raises what it raises."""
        meter = self.meter
        if meter is None:
            return work()
        began = meter.clock()
        try:
            return work()
        finally:
            meter.worked(scheduler, meter.clock() - began)

    def timed(self, predicate: Predicate | None) -> Predicate | None:
        """The same predicate, whose time is taken."""
        if predicate is None:
            return None

        def ask(key: str, node_id: str, allocate: bool) -> str | None:
            meter = self.meter
            if meter is None:
                return predicate(key, node_id, allocate)
            began = meter.clock()
            try:
                return predicate(key, node_id, allocate)
            finally:
                meter.asked(meter.clock() - began)

        return ask
