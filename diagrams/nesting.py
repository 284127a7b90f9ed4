"""Composites, states that are lifecycles themselves, as they are drawn.

A row that is written for a composite is drawn once, from the border of the composite, and not from every
state inside. A row that leads from a composite into itself is listed in its box, because few tools draw
an arrow from a border inwards. A lifecycle without composites is drawn from its rows as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from quadriga.diagrams.wording import readable
from quadriga.fsm import Lifecycle, Row
from quadriga.fsm.history import History
from quadriga.fsm.nesting import SEPARATOR


def drawn_rows(lifecycle: Lifecycle) -> tuple[Row, ...]:
    """The rows of a diagram, in the order of the table.

    The target of one that returns to history is a ``History``. One that leads from a state to the
    composite around it leads to the state in which that begins.
    """
    nesting = lifecycle.nesting
    if nesting is None:
        return lifecycle.rows
    rows = []
    for row in sorted(lifecycle.nested_rows, key=lambda row: row.line):
        if isinstance(row.target, str) and _contains(row.target, row.source):
            row = replace(row, target=nesting.enter(row.target))
        rows.append(row)
    return tuple(rows)


def inward(lifecycle: Lifecycle, row: Row) -> bool:
    """Whether the row leads from a composite into itself, so that it is listed in the composite's box."""
    return row.source in lifecycle.composites and (
        row.target == row.source
        or (isinstance(row.target, str) and _contains(row.source, row.target))
    )


def into_itself(lifecycle: Lifecycle, row: Row) -> bool:
    """Whether the row leads from a composite to a state inside of it, so that it does not leave it."""
    return inward(lifecycle, row) and row.target != row.source


def histories(lifecycle: Lifecycle, composite: str) -> tuple[History, ...]:
    """How rows return to a composite: shallow, deep, both or not at all."""
    found = {row.target for row in lifecycle.nested_rows if isinstance(row.target, History)}
    kinds = (History(composite), History(composite, deep=True))
    return tuple(kind for kind in kinds if kind in found)


def tree(lifecycle: Lifecycle, inside: str | None = None) -> Iterator[str]:
    """All states and composites, each composite before what is inside of it."""
    composites = lifecycle.composites
    for state in lifecycle.children if inside is None else composites[inside].children:
        yield state
        if state in composites:
            yield from tree(lifecycle, state)


def short_name(lifecycle: Lifecycle, state: str) -> str:
    """The name of a state within the composite around it."""
    return state.rpartition(SEPARATOR)[2] if lifecycle.around(state) else state


def listed(lifecycle: Lifecycle, row: Row) -> str:
    """What follows the label of a row that is listed in a box: ``(stays)`` or the state that it leads to."""
    return f"(to {readable(where_to(row))})" if inward(lifecycle, row) else "(stays)"


def where_to(row: Row) -> str:
    """The target of a row in words: ``On``, ``history of On``, ``deep history of On``."""
    if isinstance(row.target, History):
        return f"{'deep ' if row.target.deep else ''}history of {row.target.state}"
    return str(row.target)


def _contains(state: str, inner: str) -> bool:
    """Whether the second state is inside of the first one."""
    return inner.startswith(f"{state}{SEPARATOR}")
