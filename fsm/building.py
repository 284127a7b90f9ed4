"""The rows of a lifecycle as a machine of the library, and the observation of such machines.

While a lifecycle is observed, each transition of the machines of ``make_machine`` that stands for a row is executed
through an object of this module, which tells the observers. When the last observer leaves, it is removed, so a
machine that is not observed costs nothing more. Nothing of this is seen in the callbacks of a machine,
its markup or its pictures.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any
from weakref import WeakSet

from transitions import EventData, Machine

from quadriga.fsm.errors import library_name, text_of
from quadriga.fsm.firing import Observer, Step
from quadriga.fsm.history import History
from quadriga.fsm.loading import keeping
from quadriga.fsm.machine import Asking, Deliver, Emitting, Handing, is_async
from quadriga.fsm.nesting import SEPARATOR, Nesting
from quadriga.fsm.reading import ReadableTable
from quadriga.fsm.table import Edge, Effect, Row


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


def build_machine(
    table: ReadableTable[Any, Any, Any],
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
        # the transition that was added last
        known = machine.events[text_of(each.trigger)].transitions[library_name(each.source)]
        known[-1].__dict__["emitting"] = emitting
    if model is not None:
        machine.add_model(model)
    return machine


# -- observation --------------------------------------------------------------------------------


class Machines:
    """The machines of one lifecycle, for those who observe it."""

    def __init__(self, lifecycle: str, observers: Mapping[object, Observer]) -> None:
        self.lifecycle = lifecycle
        self.observers = observers
        self._machines: WeakSet[Any] = WeakSet()

    def add(self, machine: Any) -> None:
        """A machine has been built."""
        self._machines.add(machine)
        if self.observers:
            self._update(machine)

    def update(self) -> None:
        """Observers have come or gone."""
        for machine in list(self._machines):
            self._update(machine)

    def _update(self, machine: Any) -> None:
        for event in machine.events.values():
            for transition in chain.from_iterable(event.transitions.values()):
                own = transition.__dict__
                if self.observers and "emitting" in own and "execute" not in own:
                    transition.execute = _Executing(transition, self)
                elif not self.observers and isinstance(own.get("execute"), _Executing):
                    del transition.execute


class _Executing:
    """The method ``execute`` of an observed transition."""

    def __init__(self, transition: Any, machines: Machines) -> None:
        self.transition = transition
        self.machines: Machines | None = machines

    def __call__(self, data: EventData) -> Any:
        transition = self.transition
        if self.machines is not None:
            data.tell = self._telling(self.machines, data)  # type: ignore[attr-defined]
        done = type(transition).execute(transition, data)
        if inspect.isawaitable(done):
            return self._finish(done, data)
        return self._tell(done, data)

    async def _finish(self, execution: Awaitable[bool], data: EventData) -> bool:
        return self._tell(await execution, data)

    def _tell(self, done: bool, data: EventData) -> bool:
        if done and self.machines is not None:
            data.tell()  # type: ignore[attr-defined]
        return done

    def _telling(self, machines: Machines, data: Any) -> Callable[[], tuple[Effect, ...]]:
        """Return what tells the observers once that the row is taken, and returns the effects."""
        # asked now, because inside of a composite the row depends on the state
        row, told = self.transition.emitting.row_for(data), False

        def tell() -> tuple[Effect, ...]:
            nonlocal told
            effects: tuple[Effect, ...] = getattr(data, "effects", ())
            if not told:
                told = True
                target = row.target or row.source
                edge = Edge(machines.lifecycle, row.source, row.trigger, target)
                step = Step(edge, target, row.target is not None, False, effects, row)
                for observer in tuple(machines.observers.values()):
                    observer(step, data.model, data.kwargs)
                data.effects = effects = step.effects
            return effects

        return tell

    def __getstate__(self) -> dict[str, Any]:
        # A copy of the machine, and one that is read from a pickle, is not observed.
        return {"transition": self.transition, "machines": None}
