"""Measures one scheduler: latencies with a clock of its own, durations of states from the journal.

All of it runs in the owner thread. The journal is processed in small portions while the scheduler
is idle. Under load it is processed only before records would be overwritten, so the scheduler is
disturbed as little as possible. A scrape processes the rest.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from quadriga.base.times import SECOND
from quadriga.core.runtime.journal import Journal
from quadriga.core.scheduler import Scheduler
from quadriga.web.metrics.families import Histogram
from quadriga.web.metrics.journal_metrics import JournalMetrics

_log = logging.getLogger("quadriga.metrics")

#: ns; powers of ten from 0.0001 s, the eight buckets of YuniKorn 1.7 (2.15)
SCHEDULING_BOUNDS: Final = tuple(SECOND // 10_000 * 10**power for power in range(8))
WORK_BOUNDS: Final = tuple(
    round(s * SECOND) for s in (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5)
)

#: records processed at a time while the scheduler is idle: a few ms
_PORTION: Final = 4096

#: records that may wait under load, at most half of the journal
_BACKLOG: Final = 32_768


class Measurer:
    """Implements ``quadriga.core.driver.metering.Meter``. ``clock`` gives ns."""

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self.clock = clock
        self.journal_metrics = JournalMetrics()
        #: time for each round, for calls of ``schedule`` that decided something
        self.scheduling = Histogram(SCHEDULING_BOUNDS)
        #: time for each call of ``schedule``
        self.cycle = Histogram(SCHEDULING_BOUNDS)
        #: time of predicates: for one ask and node, and for all nodes in one call of ``schedule``
        self.node = Histogram(SCHEDULING_BOUNDS)
        self.nodes = Histogram(SCHEDULING_BOUNDS)
        #: time to search for victims of preemption
        self.preemption = Histogram(SCHEDULING_BOUNDS)
        #: time for one work item from outside
        self.work = Histogram(WORK_BOUNDS)
        #: number of messages that ``schedule`` returned
        self.messages = 0
        self._asked = 0

    # -- Meter -----------------------------------------------------------------------------------

    def scheduled(self, scheduler: Scheduler, took: int, rounds: int, messages: int) -> None:
        self.cycle.observe(took)
        if self._asked:
            self.nodes.observe(self._asked)
            self._asked = 0
        journal = scheduler.journal
        if messages:
            self.messages += messages
            if rounds:
                self.scheduling.observe(took // rounds, rounds)
            self._keep_up(journal)
        elif journal.count > self.journal_metrics.cursor:
            self.follow(journal, _PORTION)

    def worked(self, scheduler: Scheduler, took: int) -> None:
        self.work.observe(took)
        self._keep_up(scheduler.journal)

    def asked(self, took: int) -> None:
        self.node.observe(took)
        self._asked += took

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        begun = self.clock()
        try:
            yield
        finally:
            if name == "preemption":
                self.preemption.observe(self.clock() - begun)

    # -- the journal -----------------------------------------------------------------------------

    def _keep_up(self, journal: Journal) -> None:
        room = _BACKLOG if journal.size is None else min(_BACKLOG, journal.size // 2)
        if journal.count - self.journal_metrics.cursor > room:
            self.follow(journal)

    def follow(self, journal: Journal, most: int | None = None) -> None:
        """Process new records. An error here must not stop the scheduler."""
        try:
            self.journal_metrics.follow(journal, most)
        except Exception:
            _log.exception("the journal could not be followed")
            self.journal_metrics.skip(journal)
