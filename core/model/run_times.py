"""How long allocations ran, which predicts how long others run (Q11): what is remembered, as data. See D327."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

#: the last run times that are remembered of each record
_REMEMBERED: Final = 20
#: at most this many records are kept; the one that was looked up longest ago is forgotten first
_MAX_RECORDS: Final = 30_000

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


#: a record as data: queue, user, task group, run times (ns)
Row = list[Any]


class Expected(NamedTuple):
    """An expected run time, or the instant of an expected end (ns), and where it comes from."""

    time: int
    source: str


class RunTimes:
    """The run times of ended allocations of one partition. The same ends in the same order predict the same
    (``model.predictions``)."""

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
            self.record(key).extend(times)

    def record(self, key: _Key) -> deque[int]:
        """The last run times (ns) of what the key names."""
        records = self._records
        record = records.pop(key, None)
        if record is None:
            record = deque(maxlen=_REMEMBERED)
            if len(records) >= _MAX_RECORDS:
                del records[next(iter(records))]
        records[key] = record
        return record

    def median(self, path: str) -> int | None:
        """The median (ns) of the last run times of the queue, of two the lower one; ``None`` without any."""
        record = self._records.get((path, "", ""))
        return sorted(record)[(len(record) - 1) // 2] if record else None
