"""A lifecycle with composites on the library's hierarchical machines, with real nested states.

The library gets the rows as they are written and finds by itself what a composite means; only a row that
returns to history becomes several, because the library has no history. So the library's callbacks of
composites (``on_enter_On``) run when a composite as a whole is entered and left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from transitions import EventData, Machine

from quadriga.fsm.history import History
from quadriga.fsm.machine import Emitting, is_async
from quadriga.fsm.nesting import SEPARATOR, Nesting
from quadriga.fsm.table import Row

__all__ = ["is_hierarchical", "library_rows", "nested_states"]


def is_hierarchical(machine_cls: type[Machine]) -> bool:
    """Whether the machines of this class have nested states.

    Raises ``ValueError`` for a class that joins their names otherwise than lifecycles do.
    """
    separator = getattr(machine_cls.state_cls, "separator", None)
    if separator not in (None, SEPARATOR):
        raise ValueError(
            f"{machine_cls.__name__} joins the names of nested states with {separator!r}, "
            f"lifecycles with {SEPARATOR!r}"
        )
    return separator is not None


def nested_states(nesting: Nesting) -> list[Any]:
    """The states as the library's constructor takes them."""
    return [_state(nesting, child) for child in nesting.children]


def library_rows(nesting: Nesting) -> Iterator[tuple[Row, Emitting]]:
    """The rows for the library, each with the callback that calls its emitters."""
    for written, by_leaf in nesting.expanded:
        ways = len(next(iter(by_leaf.values())))
        for n in range(ways):
            flat = {leaf: rows[n] for leaf, rows in by_leaf.items()}
            row = one = next(iter(flat.values()))
            target = one.target if isinstance(written.target, History) else written.target
            # any emitters at all: whether something is to be remembered may differ between leaves
            emitting = next((r for r in flat.values() if r.emit), one)
            row = replace(one, source=written.source, target=target, emit=emitting.emit)
            yield row, _EmittingFrom(row, flat)


def _state(nesting: Nesting, state: str) -> Any:
    name = state.rpartition(SEPARATOR)[2]
    composite = nesting.composites.get(state)
    if composite is None:
        return name
    children = [_state(nesting, child) for child in composite.children]
    return {
        "name": name,
        "children": children,
        "initial": composite.initial.rpartition(SEPARATOR)[2],
    }


class _EmittingFrom(Emitting):
    """The emitters of a row from a composite: they are told the state that the entity is really in."""

    def __init__(self, row: Row, by_leaf: Mapping[str, Row]) -> None:
        super().__init__(row)
        self.by_leaf = by_leaf
        self.waits = any(is_async(each) for flat in by_leaf.values() for each in flat.emit)

    def row_for(self, data: EventData) -> Row:
        # The library also asks the guard of a row that is never taken in this state, because one before
        # it has the same guard.
        return self.by_leaf.get(getattr(data.model, data.machine.model_attribute), self.row)
