"""What happened, in order: every change of state is one record.

A record is made on the hot path, so it keeps the entity itself, and spells its key and finds its
partition only when read. The journal is a ring in a service and complete where a recording or a
simulation asks for it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from quadriga.fsm.table import Edge, Entity

__all__ = ["Entry", "Journal", "Record"]

#: a record as it is kept: seq, time, entity, edge, cause
Entry = tuple[int, int, Entity, Edge, str]


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
    """``size`` records are kept; ``None`` keeps all, 0 none."""

    __slots__ = ("records", "count")

    def __init__(self, size: int | None) -> None:
        self.records: deque[Entry] = deque(maxlen=size)
        self.count = 0

    def add(self, time: int, entity: Entity, edge: Edge, cause: str) -> None:
        """Append a record."""
        self.records.append((self.count, time, entity, edge, cause))
        self.count += 1

    @property
    def size(self) -> int | None:
        """How many records it keeps; ``None``: all."""
        return self.records.maxlen

    def __iter__(self) -> Iterator[Record]:
        yield from map(_record, self.records)

    def __len__(self) -> int:
        return len(self.records)

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
            for entry in self.records
            if entry[3].lifecycle == lifecycle
            and entry[2].key == identity
            and (partition is rm_id is None or _lives_in(entry[2], partition, rm_id))
        )

    def copy(self) -> Journal:
        """What is remembered now, to be read elsewhere while the scheduler goes on."""
        other = Journal(None)
        other.records = self.records.copy()
        other.count = self.count
        return other

    def following(self, seq: int) -> Journal:
        """A copy of what came from number ``seq`` on, as far as it is still remembered."""
        other = Journal(None)
        wanted = min(len(self.records), max(0, self.count - seq))
        newest_first = islice(reversed(self.records), wanted)
        other.records.extendleft(newest_first)
        other.count = self.count
        return other

    def entries(self, seq: int) -> list[Entry]:
        """What came from number ``seq`` on, oldest first, as it is kept. For who follows everything,
        and has to be quick."""
        wanted = min(len(self.records), max(0, self.count - seq))
        found = list(islice(reversed(self.records), wanted))
        found.reverse()
        return found

    def stories(self, entities: Callable[[str, Entity], bool]) -> Iterator[Record]:
        """The records of all entities that are chosen, by lifecycle and entity, newest first."""
        for entry in reversed(self.records):
            if entities(entry[3].lifecycle, entry[2]):
                yield _record(entry)

    def edges(self) -> Counter[Edge]:
        """How often each edge is among what is remembered."""
        return Counter(entry[3] for entry in self.records)

    @property
    def since(self) -> int | None:
        """The time (ns) of the oldest record that is remembered."""
        return self.records[0][1] if self.records else None

    def story_of(self, lifecycle: str, entity: Entity) -> tuple[Record, ...]:
        """The story of this very object, whoever else has its id."""
        return tuple(
            _record(entry)
            for entry in self.records
            if entry[2] is entity and entry[3].lifecycle == lifecycle
        )


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
