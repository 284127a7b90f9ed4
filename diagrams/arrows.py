"""A table as the arrows of a picture.

Labels are what makes a state diagram unreadable, so rows share arrows. All rows between the same
two states become one arrow with a line for each. A row written once for many sources is drawn as it
is written: its sources meet in a junction, and what it causes is said once, behind it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from quadriga.diagrams.paint import Mark, Paint
from quadriga.fsm import Lifecycle, Row

__all__ = ["Arrow", "Junction", "arrows", "junctions", "staying"]

#: from so many sources on a row gets a junction
JOINED = 4


@dataclass(frozen=True, slots=True)
class Arrow:
    """Rows from one state to another, drawn as one."""

    source: str
    target: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Junction:
    """One written line of the table with many sources; its rows differ in their source alone."""

    line: int
    target: str
    rows: tuple[Row, ...]


def junctions(lifecycle: Lifecycle) -> tuple[Junction, ...]:
    lines: dict[int, list[Row]] = {}
    for row in lifecycle.rows:
        lines.setdefault(row.line, []).append(row)
    return tuple(
        Junction(line, rows[0].target, tuple(rows))
        for line, rows in lines.items()
        if rows[0].target is not None and len(rows) >= JOINED
    )


def arrows(
    lifecycle: Lifecycle, joined: Iterable[Junction] = (), paint: Paint | None = None
) -> tuple[Arrow, ...]:
    """The arrows for all rows that go somewhere, save those in a junction, in the table's order.

    Rows of different tones do not share an arrow.
    """
    elsewhere = {junction.line for junction in joined}
    shared: dict[tuple[str, str, Hashable], list[Row]] = {}
    for row in lifecycle.rows:
        if row.target is not None and row.line not in elsewhere:
            mark = paint.row(row) if paint else Mark()
            shared.setdefault((row.source, row.target, mark.tone), []).append(row)
    return tuple(Arrow(s, t, tuple(rows)) for (s, t, _), rows in shared.items())


def staying(lifecycle: Lifecycle, state: str) -> tuple[Row, ...]:
    """The rows that are legal in a state and leave it; they are listed inside it."""
    return tuple(row for row in lifecycle.rows_from(state) if row.target is None)
