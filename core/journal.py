"""What happened, in order: every change of state is one record.

A record is made on the hot path, so it keeps the entity itself and spells its key only when read.
The journal is a ring in a service and complete where a recording or a simulation asks for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

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

    def story(self, key: str) -> tuple[Record, ...]:
        """Everything still remembered about one entity, oldest first."""
        return tuple(record for record in self if record.key == key)
