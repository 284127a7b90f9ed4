"""The rows of a table as the arrows of a diagram.

Too many labels make a state diagram unreadable, so rows share arrows. All rows between the same two
states become one arrow, whose label has a line for each row; rows with the same effects share a line.
A row that the table writes once for many sources is drawn that way: the arrows of its sources meet in
a junction, and one arrow with the effects leads on from there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from quadriga.diagrams.nesting import drawn_rows, inward
from quadriga.diagrams.paint import Mark, Paint, Tone
from quadriga.fsm import Lifecycle, Row
from quadriga.fsm.history import History

#: A row with at least this many sources is drawn with a junction.
LEAST_JOINED = 4


@dataclass(frozen=True, slots=True)
class Arrow:
    """Rows from one state to another, drawn as one."""

    source: str
    target: str | History
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Junction:
    """One line of the table with many sources; its rows differ only in the source."""

    line: int
    target: str | History
    rows: tuple[Row, ...]


def junctions(lifecycle: Lifecycle) -> tuple[Junction, ...]:
    """The lines of the table that are drawn with a junction."""
    lines: dict[int, list[Row]] = {}
    for row in drawn_rows(lifecycle):
        if not inward(lifecycle, row):
            lines.setdefault(row.line, []).append(row)
    return tuple(
        Junction(line, rows[0].target, tuple(rows))
        for line, rows in lines.items()
        if rows[0].target is not None and len(rows) >= LEAST_JOINED
    )


def arrows(
    lifecycle: Lifecycle, joined: Iterable[Junction] = (), paint: Paint | None = None
) -> tuple[Arrow, ...]:
    """The arrows of all rows with a target, in the table's order, without those of ``joined``.

    Rows of different tones do not share an arrow.
    """
    drawn_apart = {junction.line for junction in joined}
    shared: dict[tuple[str, str | History, Hashable], list[Row]] = {}
    for row in drawn_rows(lifecycle):
        if inward(lifecycle, row):
            continue
        if row.target is not None and row.line not in drawn_apart:
            mark = paint.row(row) if paint else Mark()
            shared.setdefault((row.source, row.target, mark.tone), []).append(row)
    return tuple(Arrow(source, target, tuple(rows)) for (source, target, _), rows in shared.items())


def sharing_effects(rows: Iterable[Row], paint: Paint) -> list[list[Row]]:
    """The rows of an arrow in groups that share a line of its label.

    These are unguarded rows with the same effects and without notes; any other row is a group alone.
    """
    groups: dict[object, list[Row]] = {}
    for row in rows:
        shares = bool(row.guard is None and row.own_emit and not paint.row(row).note)
        # compared by identity: an emitter may be a callable object that is not hashable
        key = tuple(map(id, row.own_emit)) if shares else (row.line, row.source)
        groups.setdefault((shares, key), []).append(row)
    return list(groups.values())


def staying(lifecycle: Lifecycle, state: str) -> tuple[Row, ...]:
    """The rows that are listed in the box of a state: they are legal in it and do not change it. The box of
    a composite also lists those that lead from it to a state inside."""
    return tuple(
        row
        for row in drawn_rows(lifecycle)
        if row.source == state and (row.target is None or inward(lifecycle, row))
    )


def stem_tone(junction: Junction, paint: Paint) -> Tone:
    """The tone of the arrow that leads on from a junction: taken, if any of its branches was taken."""
    tones = [paint.row(row).tone for row in junction.rows]
    return next((tone for tone in tones if tone in (Tone.COVERED, Tone.WALKED)), tones[0])
