"""Marks on a lifecycle's diagram: the coverage of a test run, or the path of one entity.

A ``Paint`` has the marks of rows and states. A format that can show them draws rows and states
without a mark as usual.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from quadriga.diagrams.errors import DiagramError
from quadriga.diagrams.wording import elapsed
from quadriga.fsm import Lifecycle, Row

#: One transition of an entity: time in ns, trigger, source and target. Source and target are equal if
#: the row does not change the state.
Step = tuple[int, str, str, str]


class Tone(Enum):
    """How a row or a state is drawn."""

    PLAIN = "plain"
    COVERED = "covered"  # a row that some test took
    MISSED = "missed"  # a row that no test took
    WALKED = "walked"  # a row that the entity took, or a state that it was in
    CURRENT = "current"  # the state the entity is in
    FAINT = "faint"  # not on the entity's path


@dataclass(frozen=True, slots=True)
class Mark:
    """A tone and a short note: ``12×``, ``1, 3``, ``30 s``. ``count`` is that of a coverage."""

    tone: Tone = Tone.PLAIN
    note: str = ""
    count: int = 0


@dataclass(frozen=True, slots=True)
class Paint:
    """Marks by row (its line and source) and by state; without any the diagram is plain."""

    rows: Mapping[tuple[int, str], Mark] = field(default_factory=dict)
    states: Mapping[str, Mark] = field(default_factory=dict)

    def row(self, row: Row) -> Mark:
        return self.rows.get((row.line, row.source), Mark())

    def state(self, state: str) -> Mark:
        return self.states.get(state, Mark())


def coverage_paint(lifecycle: Lifecycle, coverage: Mapping[str, Any]) -> Paint:
    """The marks for a coverage file of the pytest plugin: ``{name: {"rows": [{..., "count": n}]}}``.

    A row that the file does not mention counts as never taken. Raises ``DiagramError`` for a file
    without the lifecycle, and for one with rows that the table does not have: an old file would mark
    the wrong rows.
    """
    if not isinstance(coverage, Mapping):
        raise DiagramError("not a coverage: it is no object with a key for each lifecycle")
    try:
        records = list(coverage[lifecycle.name]["rows"])
    except (KeyError, TypeError):
        known = ", ".join(map(str, coverage)) or "nothing"
        raise DiagramError(f"the coverage has no rows of {lifecycle.name}, only {known}") from None
    keys = {(row.line, row.trigger, row.source) for row in lifecycle.rows}
    counts: dict[tuple[int, str], int] = {}
    taken: set[tuple[int, str, str | None]] = set()
    for record in records:
        try:
            line, trigger, source = record["line"], record["trigger"], record["source"]
            count = int(record["count"])
        except (KeyError, TypeError, ValueError):
            raise DiagramError(f"not a coverage record of {lifecycle.name}: {record!r}") from None
        if (line, trigger, source) not in keys:
            raise DiagramError(
                f"the coverage is of another {lifecycle.name}: it has a row {line}, "
                f"{trigger} from {source}"
            )
        counts[line, source] = counts.get((line, source), 0) + count
        if count:
            taken.add((line, source, record.get("target")))
    marks = {}
    for drawn, rows in _drawn(lifecycle).items():
        count = sum(counts.get(key, 0) for key in {(row.line, row.source) for row in rows})
        note = f"{count}×"
        covered = count > 0
        if len(rows) > 1:  # of a composite, or back to history: each of its rows counts
            seen = sum((row.line, row.source, row.target) in taken for row in rows)
            covered = seen == len(rows)
            note += f", {seen} of {len(rows)}"
        marks[drawn] = Mark(Tone.COVERED if covered else Tone.MISSED, note, count)
    return Paint(marks)


def path_paint(
    lifecycle: Lifecycle, steps: Sequence[Step], now: int, born: int | None = None
) -> Paint:
    """The marks for an entity's transitions up to ``now`` (ns).

    ``born`` (ns) is the time when the entity entered its first state; without it the time in that
    state is unknown. If two guarded alternatives lead to the same state, the steps do not tell which
    one was taken, and both have the number. Raises ``DiagramError`` for a step that the table does
    not allow, that does not start where the last one ended, or that goes back in time.
    """
    here = steps[0][2] if steps else lifecycle.initial
    if here not in lifecycle.states:
        raise DiagramError(f"{lifecycle.name} has no state {here}")
    since = born
    numbers: dict[tuple[int, str], list[int]] = {}
    spent: dict[str, int] = {}
    visits = {here: 1}
    for number, (time, trigger, source, target) in enumerate(steps, 1):
        step = f"step {number} of {lifecycle.name}: {source} --{trigger}--> {target}"
        taken = [r for r in lifecycle.rows_from(source, trigger) if (r.target or source) == target]
        if not taken:
            raise DiagramError(f"{step} is not in the table")
        if source != here:
            raise DiagramError(f"{step} starts elsewhere than {here}, where the last one ended")
        for row in taken:
            numbers.setdefault((row.line, row.source), []).append(number)
        _add_time(spent, here, since, time, step)
        since, here = time, target
        if target != source:
            visits[target] = visits.get(target, 0) + 1
    _add_time(spent, here, since, now, "now")

    def note(state: str) -> str:
        time = elapsed(spent[state]) if state in spent else ""
        times = f"{visits[state]} times" if visits[state] > 1 else ""
        return ", ".join(filter(None, (time, times)))

    faint = Mark(Tone.FAINT)
    rows: dict[tuple[int, str], Mark] = {}
    for drawn, meant in _drawn(lifecycle).items():
        keys = {(row.line, row.source) for row in meant}
        walked = sorted({number for key in keys for number in numbers.get(key, ())})
        rows[drawn] = Mark(Tone.WALKED, ", ".join(map(str, walked))) if walked else faint
    states = {
        state: Mark(Tone.CURRENT if state == here else Tone.WALKED, note(state))
        if state in visits
        else faint
        for state in lifecycle.states
    }
    for name, composite in lifecycle.composites.items():
        been = any(leaf in visits for leaf in composite.leaves)
        tone = Tone.CURRENT if here in composite.leaves else Tone.WALKED if been else Tone.FAINT
        states[name] = Mark(tone)
    return Paint(rows, states)


def _drawn(lifecycle: Lifecycle) -> dict[tuple[int, str], list[Row]]:
    """The line and the source of each row that is drawn, with the rows that it stands for."""
    drawn: dict[tuple[int, str], list[Row]] = {}
    if lifecycle.nesting is None:
        for row in lifecycle.rows:
            drawn.setdefault((row.line, row.source), []).append(row)
    else:
        for written, by_leaf in lifecycle.nesting.expanded:
            flat = [row for rows in by_leaf.values() for row in rows]
            drawn[written.line, written.source] = flat
    return drawn


def _add_time(spent: dict[str, int], state: str, since: int | None, until: int, what: str) -> None:
    if since is None:
        return
    if until < since:
        raise DiagramError(f"{what} is earlier than what came before it")
    spent[state] = spent.get(state, 0) + until - since
