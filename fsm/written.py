"""From the lines of a table, as they are written, to its rows: one for each source state.

The lines are kept too (``Lifecycle.written``), because a ``"*"`` in them stands for other states when a
table with more states is derived. See D210.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from quadriga.fsm.errors import DefinitionError, Name
from quadriga.fsm.table import EVERY, Emitter, Row

#: The lines of a table, each with the rows of its sources.
Lines = tuple[tuple[Row[Any, Any, Any], ...], ...]
#: The emitters of each state that has some, for entering or for leaving it.
Actions = Mapping[Any, tuple[Emitter, ...]]


def check_lines(name: str, rows: Iterable[object]) -> Lines:
    """The lines of a table. Raises ``DefinitionError`` for anything else than results of ``row``."""
    lines = tuple(rows)
    for number, line in enumerate(lines):
        if isinstance(line, Row):
            raise DefinitionError(
                f"{name}: rows[{number}] is not a line; a table of one line ends with a comma: "
                "rows=(row(...),)"
            )
        if not isinstance(line, tuple) or not all(isinstance(each, Row) for each in line):
            raise DefinitionError(
                f"{name}: rows[{number}] is {line!r}, not the result of row() or ignored()"
            )
    return lines  # type: ignore[return-value]  # as checked


def states_of(name: str, what: str, states: Iterable[Any]) -> tuple[Any, ...]:
    """The states of ``final``. A string is one, and its letters are none."""
    if isinstance(states, Name) or not isinstance(states, Iterable):
        raise DefinitionError(
            f"{name}: {what} is {states!r}; write a tuple of states: ({states!r},)"
        )
    return tuple(states)


def actions_by_state(given: Mapping[Any, Emitter | tuple[Emitter, ...]]) -> Actions:
    """The emitters of ``on_enter`` or ``on_exit``, always as tuples."""
    return {
        state: emitters if isinstance(emitters, tuple) else (emitters,)
        for state, emitters in given.items()
    }


def expand(name: str, lines: Lines, lasting: Sequence[Name]) -> tuple[Row[Any, Any, Any], ...]:
    """The rows of the lines, with their line numbers.

    ``lasting`` are the states that are not final. Raises ``DefinitionError`` for a ``"*"`` that stands for
    no state.
    """
    rows: list[Row[Any, Any, Any]] = []
    for number, line in enumerate(lines):
        for written in line:
            row = replace(written, line=number, emit=written.own_emit, own=None)
            if row.source != EVERY:
                rows.append(row)
                continue
            every = [replace(row, source=state) for state in lasting if state != row.target]
            meant = [each for each in every if not any(takes_always(r, each) for r in rows)]
            if not meant:
                raise DefinitionError(f"{name}: {row}: '*' stands for no state")
            rows += meant
    return tuple(rows)


def takes_always(earlier: Row, row: Row) -> bool:
    """Whether the earlier row always takes the trigger, so that the other one is never tried."""
    return (earlier.trigger, earlier.source) == (row.trigger, row.source) and (
        earlier.guard is None or earlier.guard == row.guard
    )


def with_actions(
    rows: Iterable[Row[Any, Any, Any]], on_enter: Actions, on_exit: Actions
) -> tuple[Row[Any, Any, Any], ...]:
    """The rows with the emitters for leaving their source and for entering their target. A row that stays
    leaves and enters nothing."""
    return tuple(
        row
        if row.target is None
        else add_actions(row, on_exit.get(row.source, ()), on_enter.get(row.target, ()))
        for row in rows
    )


def add_actions(
    row: Row[Any, Any, Any], leaving: tuple[Emitter, ...], entering: tuple[Emitter, ...]
) -> Row[Any, Any, Any]:
    if not leaving and not entering:
        return row
    return replace(row, emit=(*leaving, *row.emit, *entering), own=row.emit)
