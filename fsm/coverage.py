"""What a run of tests, or of any program, takes of its lifecycles.

``Coverage`` counts the rows. What the guards answered follows from that: the guard of a row that was
taken has agreed, and those of the rows before it, for the same trigger and state, have not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.names import text_of
from quadriga.fsm.table import Row, name_of

__all__ = ["Answers", "Counts", "Coverage"]

#: The records of each lifecycle by its name; data that can be sent to another process.
Counts = dict[str, list[dict[str, Any]]]


@dataclass(slots=True, eq=False)
class _Record:
    """One row and the number of times that it was taken."""

    text: str
    line: int
    trigger: str
    source: str
    target: str | None
    guard: str | None
    count: int = 0

    @classmethod
    def of(cls, row: Row) -> _Record:
        guard = name_of(row.guard) if row.guard else None
        target = None if row.target is None else text_of(row.target)
        return cls(str(row), row.line, text_of(row.trigger), text_of(row.source), target, guard)


@dataclass(frozen=True, slots=True)
class Answers:
    """How often the guard of a row agreed, and how often it did not."""

    row: str
    guard: str
    line: int
    source: str
    true: int
    false: int

    @property
    def missing(self) -> str:
        """``true``, ``false``, ``true or false``: what the guard never said; empty if it said both."""
        said = {"true": self.true, "false": self.false}
        return " or ".join(answer for answer, times in said.items() if not times)


class Coverage:
    """The number of times that each row of some lifecycles was taken between ``add`` and ``stop``.

    Every way to take a row counts: ``fire``, ``take``, the shared machine, and the machines of
    ``make_machine``. With ``only``, other lifecycles than these are not counted.
    """

    def __init__(self, only: Iterable[str] = ()) -> None:
        self.only = frozenset(only)
        self._records: dict[str, list[_Record]] = {}
        self._stops: list[Callable[[], None]] = []

    def add(self, lifecycle: Lifecycle) -> None:
        """Start counting, unless the run is limited to other lifecycles."""
        name = lifecycle.name
        if name in self._records or (self.only and name not in self.only):
            return
        rows = {row: _Record.of(row) for row in lifecycle.rows}
        self._records[name] = list(rows.values())

        def taken(row: Row) -> None:
            rows[row].count += 1

        self._stops.append(lifecycle.observe(taken))

    def stop(self) -> None:
        """Stop counting and keep the counts."""
        while self._stops:
            self._stops.pop()()

    @property
    def names(self) -> Sequence[str]:
        """The names of the lifecycles."""
        return tuple(self._records)

    def rows(self, name: str) -> int:
        """The number of rows of the lifecycle."""
        return len(self._records[name])

    def count(self, name: str, row: Row) -> int:
        """The number of times that this row of the lifecycle was taken."""
        return next(each.count for each in self._records[name] if each.text == str(row))

    def missing(self, name: str) -> tuple[str, ...]:
        """The rows that were never taken, in the order of the table, as texts."""
        return tuple(each.text for each in self._records[name] if not each.count)

    def guards(self, name: str) -> tuple[Answers, ...]:
        """What the guards of the rows answered, in the order of the table."""
        found = []
        records = self._records[name]
        for n, each in enumerate(records):
            if each.guard is not None:
                passed = sum(
                    later.count
                    for later in records[n + 1 :]
                    if (later.trigger, later.source) == (each.trigger, each.source)
                )
                found.append(
                    Answers(each.text, each.guard, each.line, each.source, each.count, passed)
                )
        return tuple(found)

    @property
    def percent(self) -> float:
        """The share of rows taken, over all lifecycles; 100 if there are no rows."""
        return _percent(bool(each.count) for records in self._records.values() for each in records)

    @property
    def guards_percent(self) -> float:
        """The share of guarded rows whose guard both agreed and did not; 100 if there are none."""
        return _percent(not each.missing for name in self._records for each in self.guards(name))

    def report(self) -> dict[str, Any]:
        """The rows and the guards of each lifecycle by its name, in the order of the table.

        ``{name: {"rows": [{line, trigger, source, target, guard, count}], "guards": [{line, source, guard,
        true, false}]}}``. A row that stays has no target.
        """
        return {
            name: {
                "rows": [
                    {
                        "line": each.line,
                        "trigger": each.trigger,
                        "source": each.source,
                        "target": each.target,
                        "guard": each.guard,
                        "count": each.count,
                    }
                    for each in records
                ],
                "guards": [
                    {
                        "line": each.line,
                        "source": each.source,
                        "guard": each.guard,
                        "true": each.true,
                        "false": each.false,
                    }
                    for each in self.guards(name)
                ],
            }
            for name, records in self._records.items()
        }

    def counts(self) -> Counts:
        """All counts, for ``merge`` in another process."""
        return {
            name: [{field: getattr(each, field) for field in _FIELDS} for each in records]
            for name, records in self._records.items()
        }

    def merge(self, counts: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Add the counts of another process, also of lifecycles that are not known here."""
        for name, theirs in counts.items():
            mine = {each.text: each for each in self._records.setdefault(name, [])}
            for each in theirs:
                record = mine.get(each["text"])
                if record is None:
                    self._records[name].append(_Record(**each))
                else:
                    record.count += each["count"]


_FIELDS = tuple(_Record.__slots__)


def _percent(reached: Iterable[bool]) -> float:
    all_of_them = list(reached)
    return 100 * sum(all_of_them) / len(all_of_them) if all_of_them else 100.0
