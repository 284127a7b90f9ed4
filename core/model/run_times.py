"""How long allocations are expected to run (Q11). See D327."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quadriga.base.times import SECOND
from quadriga.fsm.lifecycles import allocation as allocation_fsm

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, Terms

#: the last run times that are remembered of each record
_REMEMBERED: Final = 20
#: fewer predict nothing
_FEWEST: Final = 3
#: at most this many records are kept; the one that was looked up longest ago is forgotten first
_MAX_RECORDS: Final = 30_000
#: the expected run time (ns) in a queue of which nothing is known
_UNKNOWN: Final = 3600 * SECOND
#: an allocation that overran, or of which nothing is known, is expected to last this long (ns) at least
_SHORTEST_REST: Final = 60 * SECOND

#: where an expected run time comes from: a tag, a time limit, the runs of the user in this queue and task group, of
#: the user, of the queue
TOLD: Final = "told"
LIMIT: Final = "limit"
BY_GROUP: Final = "predicted by user, queue and task group"
BY_USER: Final = "predicted by user"
BY_QUEUE: Final = "predicted by queue"
#: those that the user has given
GIVEN: Final = frozenset({TOLD, LIMIT})
#: what an order takes where no run time is expected
MEDIAN: Final = "median of its queue"
NOTHING: Final = "unknown"

#: how an expected run time compares with the true one: within a tenth or a minute of it, or less, or more
RIGHT: Final = "right"
SHORT: Final = "short"
LONG: Final = "long"
VERDICTS: Final = (RIGHT, SHORT, LONG)


#: queue, user and task group; an empty text stands for all
_Key = tuple[str, str, str]
#: the records of an application and a task group, the closest first
_Records = tuple[deque[int], ...]
_SOURCES: Final = (BY_GROUP, BY_USER, BY_QUEUE)


#: a record as data: queue, user, task group, run times (ns)
Row = list[Any]


class Expected(NamedTuple):
    """An expected run time, or the instant of an expected end (ns), and where it comes from."""

    time: int
    source: str


class RunTimes:
    """The run times of ended allocations of one partition, and what they predict. The same ends in the same
    order give the same predictions."""

    __slots__ = ("_records", "judges", "verdicts")

    def __init__(self) -> None:
        #: the last run times (ns); what was looked up longest ago is first
        self._records: dict[_Key, deque[int]] = {}
        #: whether ended allocations are compared with what was expected of them, which costs as much as all else
        self.judges = False
        #: ended allocations by the source of their expected run time and by what that was
        self.verdicts: Counter[tuple[str, str]] = Counter()

    def data(self) -> list[Row]:
        """All that is remembered, as JSON can have it; `restore` reads it."""
        return [[*key, list(record)] for key, record in self._records.items() if record]

    def restore(self, rows: Iterable[Row]) -> None:
        """Remember these as well. Raises ``ValueError`` for anything else than `data` gives, and changes nothing."""
        found: dict[_Key, list[int]] = {}
        for path, user, group, times in rows:
            texts = all(isinstance(each, str) for each in (path, user, group))
            if not (
                texts and times and all(type(each) is int and 0 <= each < 1 << 63 for each in times)
            ):
                raise ValueError(f"{[path, user, group, times]!r:.200} is no record of run times")
            found[path, user, group] = times
        for key, times in found.items():
            self._record(key).extend(times)

    def ended(self, allocation: Allocation, now: int) -> None:
        """A member or a single pod has ended. What was preempted or replaced tells nothing."""
        if allocation.state not in allocation_fsm.RAN_TO_ITS_END:
            return
        ran, ask = now - allocation.created, allocation.ask
        group = ask.kind.task_group
        if self.judges and (expected := self.of(ask)) is not None:
            self.verdicts[expected.source, _verdict(expected.time, ran)] += 1
        for record in ask.app.run_records.get(group) or self._of(ask.app, group):
            record.append(ran)

    def of(self, ask: Ask) -> Expected | None:
        """How long an allocation of the ask is expected to run; ``None`` if nothing is known.

        It is what the ask tells, else what its application does, and never more than its time limit. Else it is the
        smallest run time that nine in ten of the last runs did not exceed: those of the same user in the same queue
        and task group, or else of the user, or of the queue, if there are three at least.
        """
        return self.of_terms(ask.app, ask.terms, ask.kind.task_group)

    def of_terms(self, app: Application, terms: Terms, task_group: str) -> Expected | None:
        """As ``of``, for an ask of the application with these terms."""
        limit = min(terms.run_limit, terms.runtime_bound) or terms.run_limit or terms.runtime_bound
        time, source = terms.expected_runtime or app.expected_runtime, TOLD
        if not time and app.queue.properties.runtime_prediction:
            records = app.run_records.get(task_group) or self._of(app, task_group)
            for record, by in zip(records, _SOURCES, strict=True):
                if len(record) >= _FEWEST:
                    time, source = sorted(record)[(9 * len(record) - 1) // 10], by
                    break
        if limit and not 0 < time < limit:
            return Expected(limit, LIMIT)
        return Expected(time, source) if time else None

    def _of(self, app: Application, group: str) -> _Records:
        """The records of the application and the task group, which the application remembers."""
        path, user = app.queue.path, app.user or "-"
        records = (
            self._record((path, user, group)),
            self._record(("", user, "")),
            self._record((path, "", "")),
        )
        app.run_records[group] = records
        return records

    def _record(self, key: _Key) -> deque[int]:
        records = self._records
        record = records.pop(key, None)
        if record is None:
            record = deque(maxlen=_REMEMBERED)
            if len(records) >= _MAX_RECORDS:
                del records[next(iter(records))]
        records[key] = record
        return record

    def end_of(self, allocation: Allocation, now: int) -> Expected | None:
        """When the allocation is expected to end; ``None`` if nothing is known.

        One that has run for longer is expected to last as long again as it has overrun, at least a minute. What is
        expected of a placeholder is what its application tells of what replaces it.
        """
        expected = self.of(allocation.ask)
        if expected is None:
            return None
        end = allocation.created + expected.time
        if end <= now:
            end = now + max(now - end, _SHORTEST_REST)
        return Expected(end, expected.source)

    def typical(self, app: Application) -> Expected:
        """What an order takes for an application of which nothing is known: the median of the last run times of
        its queue, of two the lower one."""
        record = self._records.get((app.queue.path, "", ""))
        if not record:
            return Expected(_UNKNOWN, NOTHING)
        return Expected(sorted(record)[(len(record) - 1) // 2], MEDIAN)


def end_of(allocation: Allocation, now: int) -> Expected | None:
    """When the allocation is expected to end for a plan; ``None``: never. One of which nothing is known is expected to
    last as long again as it has run, at least a minute."""
    partition = allocation.ask.app.partition
    if partition.gather_budget.is_endless(allocation, now):
        return None
    expected = partition.run_times.end_of(allocation, now)
    if expected is None:
        return Expected(now + max(now - allocation.created, _SHORTEST_REST), NOTHING)
    return expected


def _verdict(expected: int, ran: int) -> str:
    within = max(ran // 10, 60 * SECOND)
    return SHORT if expected < ran - within else LONG if expected > ran + within else RIGHT
