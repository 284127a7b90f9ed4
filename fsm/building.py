"""The rows of a lifecycle as a machine of the library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from transitions import Machine

from quadriga.fsm.loading import keeping
from quadriga.fsm.machine import Asking, Deliver, Emitting, Handing
from quadriga.fsm.names import Name, text_of
from quadriga.fsm.nested_machine import is_hierarchical, library_rows, nested_states
from quadriga.fsm.nesting import Nesting
from quadriga.fsm.observing import attach
from quadriga.fsm.table import Row

__all__ = ["Table", "build_machine"]


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
