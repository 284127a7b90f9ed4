"""What happened, in order: every change of state is one record.

A record is made on the hot path, so it keeps the entity itself, and spells its key and finds its
partition only when read. The journal is a ring in a service and complete where a recording or a
simulation asks for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from quadriga.fsm.table import Entity

__all__ = ["Journal", "Record"]


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

    __slots__ = ("_records", "count")

    def __init__(self, size: int | None) -> None:
        self._records: deque[tuple[int, int, str, Entity, str, str, str, str]] = deque(maxlen=size)
        self.count = 0

    def add(
        self,
        time: int,
        lifecycle: str,
        entity: Entity,
        trigger: str,
        source: str,
        target: str,
        cause: str,
    ) -> None:
        """Append a record."""
        self._records.append((self.count, time, lifecycle, entity, trigger, source, target, cause))
        self.count += 1

    def __iter__(self) -> Iterator[Record]:
        for seq, time, lifecycle, entity, trigger, source, target, cause in self._records:
            key = f"{lifecycle}/{entity.key}"
            yield Record(seq, time, key, trigger, source, target, cause)

    def __len__(self) -> int:
        return len(self._records)

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
            Record(seq, time, key, *rest)
            for seq, time, name, entity, *rest in self._records
            if name == lifecycle
            and entity.key == identity
            and (partition is rm_id is None or _lives_in(entity, partition, rm_id))
        )

    def story_of(self, lifecycle: str, entity: Entity) -> tuple[Record, ...]:
        """The story of this very object, whoever else has its id."""
        key = f"{lifecycle}/{entity.key}"
        return tuple(
            Record(seq, time, key, *rest)
            for seq, time, _, each, *rest in self._records
            if each is entity
        )


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
