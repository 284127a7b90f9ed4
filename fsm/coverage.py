"""What a run of tests, or of any program, takes of its lifecycles.

``Coverage`` counts the rows. What the guards answered follows from that: the guard of a row that was
taken has agreed, and those of the rows before it, for the same trigger and state, have not. If asked, it
also notices whether anything reads the effects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from quadriga.fsm.errors import text_of
from quadriga.fsm.firing import Step
from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.table import Effect, Info, Row, name_of


class ReadEffects(tuple[Effect, ...]):
    """The effects of a step. ``read`` is called the first time that one of them is taken out of the tuple, or
    that the tuple is compared.

    Its length, its truth and its text do not count: they tell of no effect what it is.
    """

    _reads: tuple[Callable[[], object], ...]

    def __new__(cls, effects: tuple[Effect, ...], read: Callable[[], object]) -> ReadEffects:
        made = super().__new__(cls, unread(effects))
        made._reads = (*getattr(effects, "_reads", ()), read)
        return made

    def _notice(self) -> None:
        reads, self._reads = self._reads, ()
        for read in reads:
            read()

    def __radd__(self, other: Any) -> Any:
        return other + tuple(self)

    def __reduce__(self) -> Any:
        # A copy is an ordinary tuple.
        return tuple, (list(self),)


def _noticing(name: str) -> Callable[..., Any]:
    def method(effects: ReadEffects, *arguments: Any) -> Any:
        effects._notice()
        return getattr(tuple, name)(effects, *arguments)

    return method


for _name in "__iter__ __getitem__ __contains__ __eq__ __ne__ __add__ __mul__ count index".split():
    setattr(ReadEffects, _name, _noticing(_name))


def unread(effects: tuple[Effect, ...]) -> Iterator[Effect]:
    """The effects, without that this counts as reading them."""
    return tuple.__iter__(effects)


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
    #: by the name of an effect: how often the row returned it, and how often it was read
    effects: dict[str, list[int]] = field(default_factory=dict)

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


@dataclass(frozen=True, slots=True)
class Reading:
    """How often a row returned a kind of effect, and how often something read it."""

    row: str
    effect: str
    line: int
    source: str
    returned: int
    read: int


class Coverage:
    """The number of times that each row of some lifecycles was taken between ``add`` and ``stop``.

    Every way to take a row counts: ``fire``, ``take``, the shared machine, and the machines of
    ``make_machine``. With ``only``, other lifecycles than these are not counted. With ``effects``, the
    effects that a row returns are a tuple that notices whether it is read: one of them is taken out, or
    the tuple is compared. It cannot notice what becomes of an effect then.
    """

    def __init__(self, only: Iterable[str] = (), *, effects: bool = False) -> None:
        self.only = frozenset(only)
        self.effects = effects
        self._records: dict[str, list[_Record]] = {}
        self._stops: list[Callable[[], None]] = []

    def add(self, lifecycle: Lifecycle) -> None:
        """Start counting, unless the run is limited to other lifecycles."""
        name = lifecycle.name
        if name in self._records or (self.only and name not in self.only):
            return
        rows = {row: _Record.of(row) for row in lifecycle.rows}
        records = self._records[name] = list(rows.values())

        def taken(step: Step, entity: Any, info: Info) -> None:
            row = step.row
            if row is None:
                return
            record = rows.get(row)
            if record is None:  # it has been added since
                record = rows[row] = _Record.of(row)
                records.append(record)
            record.count += 1
            if self.effects and step.effects:
                _follow(step, record)

        self._stops.append(lifecycle.observe_steps(taken))

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

    def effects_read(self, name: str) -> tuple[Reading, ...]:
        """The kinds of effects that the rows returned, in the order of the table."""
        return tuple(
            Reading(each.text, effect, each.line, each.source, returned, read)
            for each in self._records[name]
            for effect, (returned, read) in each.effects.items()
        )

    @property
    def percent(self) -> float:
        """The share of rows taken, over all lifecycles; 100 if there are no rows."""
        return _percent(bool(each.count) for records in self._records.values() for each in records)

    @property
    def guards_percent(self) -> float:
        """The share of guarded rows whose guard both agreed and did not; 100 if there are none."""
        return _percent(not each.missing for name in self._records for each in self.guards(name))

    @property
    def effects_percent(self) -> float:
        """The share of kinds of effects, of all that the rows returned, that were read at least once; 100
        if there are none."""
        names = self._records
        return _percent(bool(each.read) for name in names for each in self.effects_read(name))

    def report(self) -> dict[str, Any]:
        """The rows and the guards of each lifecycle by its name, in the order of the table.

        ``{name: {"rows": [{line, trigger, source, target, guard, count}], "guards": [{line, source, guard,
        true, false}], "effects": [{line, source, effect, returned, read}]}}``. A row that stays has no target.
        """

        def shown(each: object, fields: str) -> dict[str, Any]:
            return {field: getattr(each, field) for field in fields.split()}

        return {
            name: {
                "rows": [shown(each, "line trigger source target guard count") for each in records],
                "guards": [
                    shown(each, "line source guard true false") for each in self.guards(name)
                ],
                "effects": [
                    shown(each, "line source effect returned read")
                    for each in self.effects_read(name)
                ],
            }
            for name, records in self._records.items()
        }

    def counts(self) -> Counts:
        """All counts, for ``merge`` in another process."""
        return {name: list(map(asdict, records)) for name, records in self._records.items()}

    def merge(self, counts: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Add the counts of another process, also of lifecycles that are not known here."""
        for name, theirs in counts.items():
            mine = {each.text: each for each in self._records.setdefault(name, [])}
            for each in theirs:
                record = mine.get(each["text"])
                if record is None:
                    self._records[name].append(_Record(**each))
                    continue
                record.count += each["count"]
                for effect, (returned, read) in each["effects"].items():
                    tally = record.effects.setdefault(effect, [0, 0])
                    tally[0] += returned
                    tally[1] += read


def _follow(step: Step, record: _Record) -> None:
    """Let the effects of the step notice that they are read."""
    names = dict.fromkeys(type(effect).__name__ for effect in unread(step.effects))
    tallies = [record.effects.setdefault(name, [0, 0]) for name in names]
    for tally in tallies:
        tally[0] += 1

    def read() -> None:
        for tally in tallies:
            tally[1] += 1

    step.effects = ReadEffects(step.effects, read)


def _percent(reached: Iterable[bool]) -> float:
    all_of_them = list(reached)
    return 100 * sum(all_of_them) / len(all_of_them) if all_of_them else 100.0
