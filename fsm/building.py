"""The rows of a lifecycle as a machine of the library."""

# Not compiled: its classes derive from a library's, or others derive from them.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from transitions import EventData, Machine

from quadriga.fsm.errors import Name, text_of
from quadriga.fsm.history import History
from quadriga.fsm.loading import keeping
from quadriga.fsm.machine import Asking, Deliver, Emitting, Handing, is_async
from quadriga.fsm.nesting import SEPARATOR, Nesting
from quadriga.fsm.observing import attach
from quadriga.fsm.table import Row


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


class Table(Protocol):
    """The part of a lifecycle that a machine is built from."""

    @property
    def name(self) -> str: ...
    @property
    def initial(self) -> Name: ...
    @property
    def final(self) -> Iterable[Name]: ...
    @property
    def states(self) -> Iterable[Name]: ...
    @property
    def renamed(self) -> Mapping[Any, Any]: ...
    @property
    def rows(self) -> Iterable[Row]: ...
    @property
    def nesting(self) -> Nesting | None: ...


def build_machine(
    table: Table,
    machine_cls: type[Machine],
    model: object | None = None,
    deliver: Deliver | None = None,
    options: Mapping[str, Any] | None = None,
) -> Machine:
    """A machine of this class with the states and rows of the table.

    ``deliver`` receives a model and its effects after each transition that has some; ``options`` are those
    of the library. ``model`` is registered with the machine. A model that has a state keeps it.
    """
    nested = table.nesting if table.nesting and is_hierarchical(machine_cls) else None
    machine = keeping(machine_cls)(
        model=None,
        states=nested_states(nested) if nested else list(table.states),
        initial=table.initial,
        name=table.name,
        # with send_event the library passes conditions and callbacks one object with the model in it
        send_event=True,
        auto_transitions=False,
        **(options or {}),
    )
    machine.__dict__["renamed"] = table.renamed
    for state in table.final:  # transitions 0.9.0 has no such argument in the constructor
        machine.get_state(state).final = True
    # One callback, not a list of it: lists of their own let a FastMachine notice what is added to them.
    after = Handing(deliver) if deliver else None
    rows = library_rows(nested) if nested else ((row, Emitting(row)) for row in table.rows)
    for each, emitting in rows:
        machine.add_transition(
            text_of(each.trigger),
            each.source,
            each.target,
            conditions=Asking(each.guard) if each.guard else None,
            before=emitting if each.emit else None,
            after=after if each.emit else None,
        )
        attach(machine, emitting)
    if model is not None:
        machine.add_model(model)
    return machine
