"""How long allocations are expected to run (Q11)."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final, NamedTuple

from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.table import SECOND

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.queue import Queue

#: the last run times that are remembered of a queue
_REMEMBERED: Final = 20
#: at most this many queues are remembered; the one that heard of no end for longest is forgotten first
_MAX_RECORDS: Final = 10_000
#: the expected run time (ns) in a queue of which nothing is known
_UNKNOWN: Final = 3600 * SECOND

#: where an expected run time comes from: a tag, the time limit of the ask, the median of its queue
TOLD: Final = "told"
LIMIT: Final = "limit"
MEDIAN: Final = "median of its queue"
NOTHING: Final = "unknown"


#: how an expected run time compares with the true one: within a tenth or a minute of it, or less, or more
RIGHT: Final = "right"
SHORT: Final = "short"
LONG: Final = "long"
VERDICTS: Final = (RIGHT, SHORT, LONG)


class Expected(NamedTuple):
    """An expected run time (ns), and where it comes from."""

    time: int
    source: str


class RunTimes:
    """The run times of ended allocations of one partition. The same ends in the same order give the same
    expectations."""

    __slots__ = ("_records", "verdicts")

    def __init__(self) -> None:
        #: the last run times (ns) by queue; the queue that heard of no end for longest is first
        self._records: dict[str, deque[int]] = {}
        #: ended allocations by the source of their expected run time and by what that was
        self.verdicts: Counter[tuple[str, str]] = Counter()

    def ended(self, allocation: Allocation, now: int) -> None:
        """A member or a single pod has ended. What was preempted or replaced tells nothing."""
        if allocation.state != allocation_fsm.COMPLETED:
            return
        ran = now - allocation.created
        if (expected := told(allocation.ask)) is not None:
            self.verdicts[expected.source, _verdict(expected.time, ran)] += 1
        records, key = self._records, allocation.ask.app.queue.path
        record = records.pop(key, None)
        if record is None:
            record = deque(maxlen=_REMEMBERED)
            if len(records) >= _MAX_RECORDS:
                del records[next(iter(records))]
        record.append(ran)
        records[key] = record

    def typical(self, queue: Queue) -> Expected:
        """The median of the last run times of the queue, of two the lower one."""
        record = self._records.get(queue.path)
        if not record:
            return Expected(_UNKNOWN, NOTHING)
        return Expected(sorted(record)[(len(record) - 1) // 2], MEDIAN)


def _verdict(expected: int, ran: int) -> str:
    within = max(ran // 10, 60 * SECOND)
    return SHORT if expected < ran - within else LONG if expected > ran + within else RIGHT


def told(ask: Ask) -> Expected | None:
    """What the ask or its application tells, at most its time limit; else this limit."""
    terms = ask.terms
    time, limit = terms.expected_runtime or ask.app.expected_runtime, terms.run_limit
    if time and not 0 < limit < time:
        return Expected(time, TOLD)
    return Expected(limit, LIMIT) if limit else None
