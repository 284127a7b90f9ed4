"""The journal: one record of every change of state, in order.

Records are made on the hot path: a record refers to the entity, and its key and partition are looked up
only when the record is read. In a service the journal keeps the newest records; a recording or a
simulation may keep all. See D126.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from quadriga.base.times import SECOND
from quadriga.fsm.table import Edge, Entity

#: an unformatted record: seq, time, entity, edge, cause
Entry = tuple[int, int, Entity, Edge, str]
#: what a trigger changed: an entity and the edge that it took, or nothing
Change = tuple[Entity, Edge] | tuple[()]


class Record(NamedTuple):
    """One change of state, or a trigger that had effects without one.

    ``seq`` counts from 0 since the scheduler started, ``time`` is in ns, ``key`` is ``lifecycle/id``,
    and ``cause`` names the message, timer or decision that the change followed from.
    """

    seq: int
    time: int
    key: str
    trigger: str
    source: str
    target: str
    cause: str

    def __str__(self) -> str:
        return (
            f"{self.seq:>6} {self.time / SECOND:>14.3f}s  {self.source} --{self.trigger}--> "
            f"{self.target}  because of {self.cause}"
        )


class Journal:
    """``size`` records are kept; ``None`` keeps all, 0 none.

    Most records have the time and cause of the record before, so these are stored separately, once for
    each run of records: a record itself is two references.
    """

    __slots__ = ("_cause", "_records", "_marks", "_time", "count")

    def __init__(self, size: int | None) -> None:
        #: the entity and the edge of each record, alternating
        self._records: deque[Any] = deque(maxlen=None if size is None else 2 * size)
        #: the number of the first record of a run, and the time and cause of the run
        self._marks: deque[tuple[int, int, str]] = deque()
        self._time = -1
        self._cause = ""
        self.count = 0

    def add(self, time: int, entity: Entity, edge: Edge, cause: str) -> None:
        """Append a record."""
        if cause is not self._cause or time != self._time:
            self._mark(time, cause)
        self._records.extend((entity, edge))
        self.count += 1

    def add_all(self, time: int, taken: Iterable[Change], cause: str) -> None:
        """Append many records."""
        if cause is not self._cause or time != self._time:
            self._mark(time, cause)
        flat = list(chain.from_iterable(taken))
        self._records.extend(flat)
        self.count += len(flat) // 2

    def _mark(self, time: int, cause: str) -> None:
        self._time, self._cause = time, cause
        records, marks = self._records, self._marks
        marks.append((self.count, time, cause))
        if len(records) == records.maxlen:  # the run of the oldest record is still needed
            oldest = self._oldest
            while len(marks) > 1 and marks[1][0] <= oldest:
                marks.popleft()

    @property
    def size(self) -> int | None:
        """The largest number of records; ``None``: no limit."""
        most = self._records.maxlen
        return None if most is None else most // 2

    def __iter__(self) -> Iterator[Record]:
        return map(_record, self._walk(self._records, self._oldest))

    def __len__(self) -> int:
        return len(self._records) // 2

    def story(
        self, key: str, partition: str | None = None, rm_id: str | None = None
    ) -> tuple[Record, ...]:
        """The records of one entity, oldest first.

        Ids are unique within a partition. If several partitions or resource managers use the same id,
        ``partition`` (its name) and ``rm_id`` select one; without them all records match.
        """
        lifecycle, _, identity = key.partition("/")
        return tuple(
            _record(entry)
            for entry in self._walk(self._records, self._oldest)
            if entry[3].lifecycle == lifecycle
            and entry[2].key == identity
            and (partition is rm_id is None or _lives_in(entry[2], partition, rm_id))
        )

    def copy(self) -> Journal:
        """A copy, to be read by another thread while the scheduler continues."""
        other = Journal(None)
        other._records = self._records.copy()
        other._marks = self._marks.copy()
        other.count = self.count
        return other

    def following(self, seq: int) -> Journal:
        """A copy of the records from number ``seq`` on that are still kept."""
        other = Journal(None)
        other._records.extend(self._records_from(seq))
        other.count = self.count
        other._marks.extend(self._marks_from(other._oldest))
        return other

    def entries(self, seq: int) -> list[Entry]:
        """The records from number ``seq`` on, oldest first, unformatted: for readers that follow the
        whole journal."""
        records = self._records_from(seq)
        return list(self._walk(records, self.count - len(records) // 2))

    def stories(self, entities: Callable[[str, Entity], bool]) -> Iterator[Record]:
        """The records of the entities for which ``entities(lifecycle, entity)`` holds, newest first."""
        return map(_record, self.entries_of(entities))

    def entries_of(self, entities: Callable[[str, Entity], bool]) -> Iterator[Entry]:
        """As ``stories``, unformatted: for readers that need the entities themselves."""
        records, end, oldest = reversed(self._records), self.count, self._oldest
        for start, time, cause in reversed(self._marks):
            for seq in range(end - 1, max(start, oldest) - 1, -1):
                edge, entity = next(records), next(records)
                if entities(edge.lifecycle, entity):
                    yield seq, time, entity, edge, cause
            end = start

    def edges(self) -> Counter[Edge]:
        """The number of records of each edge."""
        return Counter(islice(self._records, 1, None, 2))

    @property
    def since(self) -> int | None:
        """The time (ns) of the oldest record; ``None`` without any."""
        return self._marks_from(self._oldest)[0][1] if self._records else None

    def story_of(self, lifecycle: str, entity: Entity) -> tuple[Record, ...]:
        """The records of this object, and of no other one with the same id."""
        return tuple(
            _record(entry)
            for entry in self._walk(self._records, self._oldest)
            if entry[2] is entity and entry[3].lifecycle == lifecycle
        )

    # -- storage ---------------------------------------------------------------------------------

    @property
    def _oldest(self) -> int:
        """The number of the oldest record."""
        return self.count - len(self._records) // 2

    def _records_from(self, seq: int) -> list[Any]:
        """The entities and edges of the records from this number on."""
        wanted = max(0, 2 * (self.count - seq))
        found = list(islice(reversed(self._records), wanted))
        found.reverse()
        return found

    def _marks_from(self, first: int) -> list[tuple[int, int, str]]:
        """The marks of the runs from this record on."""
        found = []
        for mark in reversed(self._marks):
            found.append(mark)
            if mark[0] <= first:
                break
        found.reverse()
        return found

    def _walk(self, records: Iterable[Any], first: int) -> Iterator[Entry]:
        """Entries made of ``records``, the first of which has the number ``first``."""
        each = iter(records)
        marks = self._marks_from(first)
        if not marks:  # there is no record
            return
        ends = [start for start, _, _ in marks[1:]] + [self.count]
        for (start, time, cause), end in zip(marks, ends, strict=True):
            for seq in range(max(start, first), end):
                yield seq, time, next(each), next(each), cause


def _record(entry: Entry) -> Record:
    seq, time, entity, (lifecycle, source, trigger, target), cause = entry
    return Record(seq, time, f"{lifecycle}/{entity.key}", trigger, source, target, cause)


def _lives_in(entity: Any, partition: str | None, rm_id: str | None) -> bool:
    """Whether the entity belongs to the partition and to the resource manager that are given."""
    if (ask := getattr(entity, "ask", None)) is not None:  # an allocation
        entity = ask
    if (app := getattr(entity, "app", None)) is not None:  # an ask
        entity = app
    home = getattr(entity, "partition", entity)  # a partition, or a resource manager, is its own
    rm = getattr(home, "rm", home)
    return (partition is None or getattr(home, "name", None) == partition) and (
        rm_id is None or getattr(rm, "rm_id", None) == rm_id
    )
