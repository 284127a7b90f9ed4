"""What happened, in order: every change of state is one record.

A record is made on the hot path, so it keeps the entity itself, and spells its key and finds its
partition only when read. The journal is a ring in a service and complete where a recording or a
simulation asks for it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from quadriga.fsm.table import Edge, Entity

__all__ = ["Entry", "Journal", "Record", "Taken"]

#: a record as it is read: seq, time, entity, edge, cause
Entry = tuple[int, int, Entity, Edge, str]
#: what is there to record of a trigger: who went which way, or that nothing has changed
Taken = tuple[Entity, Edge] | tuple[()]


class Record(NamedTuple):
    """One change of state, or a row that stayed and had effects.

    ``seq`` counts from 0 over the life of the scheduler, ``time`` is in ns, ``key`` is
    ``lifecycle/id``, and ``cause`` names the message, timer or decision it followed from.
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
            f"{self.seq:>6} {self.time / 1e9:>14.3f}s  {self.source} --{self.trigger}--> "
            f"{self.target}  because of {self.cause}"
        )


class Journal:
    """``size`` records are kept; ``None`` keeps all, 0 none.

    Most records have time and cause in common with the one before, so these are kept apart: a record
    is nothing but two references.
    """

    __slots__ = ("_cause", "_kept", "_marks", "_time", "count")

    def __init__(self, size: int | None) -> None:
        #: entity and edge of each record, one after the other
        self._kept: deque[Any] = deque(maxlen=None if size is None else 2 * size)
        #: from which record on time and cause are these
        self._marks: deque[tuple[int, int, str]] = deque()
        self._time = -1
        self._cause = ""
        self.count = 0

    def add(self, time: int, entity: Entity, edge: Edge, cause: str) -> None:
        """Append a record."""
        if cause is not self._cause or time != self._time:
            self._mark(time, cause)
        self._kept.extend((entity, edge))
        self.count += 1

    def add_all(self, time: int, taken: Iterable[Taken], cause: str) -> None:
        """Append many records."""
        if cause is not self._cause or time != self._time:
            self._mark(time, cause)
        flat = list(chain.from_iterable(taken))
        self._kept.extend(flat)
        self.count += len(flat) // 2

    def _mark(self, time: int, cause: str) -> None:
        self._time, self._cause = time, cause
        kept, marks = self._kept, self._marks
        marks.append((self.count, time, cause))
        if len(kept) == kept.maxlen:  # what follows the last record that is gone is needed
            oldest = self._oldest
            while len(marks) > 1 and marks[1][0] <= oldest:
                marks.popleft()

    @property
    def size(self) -> int | None:
        """How many records it keeps; ``None``: all."""
        most = self._kept.maxlen
        return None if most is None else most // 2

    def __iter__(self) -> Iterator[Record]:
        return map(_record, self._walk(self._kept, self._oldest))

    def __len__(self) -> int:
        return len(self._kept) // 2

    def story(
        self, key: str, partition: str | None = None, rm_id: str | None = None
    ) -> tuple[Record, ...]:
        """Everything still remembered about one entity, oldest first.

        Ids are unique within a partition. Where several partitions, or resource managers, use the
        same one, ``partition`` (its name) and ``rm_id`` say whose story it is; without them it is
        everyone's.
        """
        lifecycle, _, identity = key.partition("/")
        return tuple(
            _record(entry)
            for entry in self._walk(self._kept, self._oldest)
            if entry[3].lifecycle == lifecycle
            and entry[2].key == identity
            and (partition is rm_id is None or _lives_in(entry[2], partition, rm_id))
        )

    def copy(self) -> Journal:
        """What is remembered now, to be read elsewhere while the scheduler goes on."""
        other = Journal(None)
        other._kept = self._kept.copy()
        other._marks = self._marks.copy()
        other.count = self.count
        return other

    def following(self, seq: int) -> Journal:
        """A copy of what came from number ``seq`` on, as far as it is still remembered."""
        other = Journal(None)
        other._kept.extend(self._latest(seq))
        other.count = self.count
        other._marks.extend(self._marks_from(other._oldest))
        return other

    def entries(self, seq: int) -> list[Entry]:
        """What came from number ``seq`` on, oldest first, not spelled. For who follows everything,
        and has to be quick."""
        kept = self._latest(seq)
        return list(self._walk(kept, self.count - len(kept) // 2))

    def stories(self, entities: Callable[[str, Entity], bool]) -> Iterator[Record]:
        """The records of all entities that are chosen, by lifecycle and entity, newest first."""
        return map(_record, self.entries_of(entities))

    def entries_of(self, entities: Callable[[str, Entity], bool]) -> Iterator[Entry]:
        """As ``stories``, not spelled: for a reader that wants to know more of the entities."""
        kept, end, oldest = reversed(self._kept), self.count, self._oldest
        for start, time, cause in reversed(self._marks):
            for seq in range(end - 1, max(start, oldest) - 1, -1):
                edge, entity = next(kept), next(kept)
                if entities(edge.lifecycle, entity):
                    yield seq, time, entity, edge, cause
            end = start

    def edges(self) -> Counter[Edge]:
        """How often each edge is among what is remembered."""
        return Counter(islice(self._kept, 1, None, 2))

    @property
    def since(self) -> int | None:
        """The time (ns) of the oldest record that is remembered."""
        return self._marks_from(self._oldest)[0][1] if self._kept else None

    def story_of(self, lifecycle: str, entity: Entity) -> tuple[Record, ...]:
        """The story of this very object, whoever else has its id."""
        return tuple(
            _record(entry)
            for entry in self._walk(self._kept, self._oldest)
            if entry[2] is entity and entry[3].lifecycle == lifecycle
        )

    # -- how it is kept --------------------------------------------------------------------------

    @property
    def _oldest(self) -> int:
        """The number of the oldest record that is remembered."""
        return self.count - len(self._kept) // 2

    def _latest(self, seq: int) -> list[Any]:
        """What is kept of the records from this number on."""
        wanted = max(0, 2 * (self.count - seq))
        found = list(islice(reversed(self._kept), wanted))
        found.reverse()
        return found

    def _marks_from(self, first: int) -> list[tuple[int, int, str]]:
        """Times and causes of the records from this number on."""
        found = []
        for mark in reversed(self._marks):
            found.append(mark)
            if mark[0] <= first:
                break
        found.reverse()
        return found

    def _walk(self, kept: Iterable[Any], first: int) -> Iterator[Entry]:
        """What is kept of the records from number ``first`` on, with time and cause."""
        each = iter(kept)
        marks = self._marks_from(first)
        if not marks:  # nothing has happened yet
            return
        ends = [start for start, _, _ in marks[1:]] + [self.count]
        for (start, time, cause), end in zip(marks, ends, strict=True):
            for seq in range(max(start, first), end):
                yield seq, time, next(each), next(each), cause


def _record(entry: Entry) -> Record:
    seq, time, entity, (lifecycle, source, trigger, target), cause = entry
    return Record(seq, time, f"{lifecycle}/{entity.key}", trigger, source, target, cause)


def _lives_in(entity: Any, partition: str | None, rm_id: str | None) -> bool:
    """Whether the entity is of this partition and this resource manager, where they are given."""
    if (ask := getattr(entity, "ask", None)) is not None:  # an allocation
        entity = ask
    if (app := getattr(entity, "app", None)) is not None:  # an ask
        entity = app
    home = getattr(entity, "partition", entity)  # a partition, or a resource manager, is its own
    rm = getattr(home, "rm", home)
    return (partition is None or getattr(home, "name", None) == partition) and (
        rm_id is None or getattr(rm, "rm_id", None) == rm_id
    )
