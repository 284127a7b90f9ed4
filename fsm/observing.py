"""Observation of the machines that ``make_machine`` has built from a lifecycle.

While a lifecycle is observed, each of their transitions that stands for a row is executed through an
object of this module, which tells the observers. When the last observer leaves, it is removed, so a
machine that is not observed costs nothing more. Nothing of this is seen in the callbacks of a machine,
its markup or its pictures.
"""

# Not compiled: its classes derive from a library's, or others derive from them.

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any
from weakref import WeakSet

from transitions import EventData

from quadriga.fsm.errors import library_name, text_of
from quadriga.fsm.firing import Observer, Step
from quadriga.fsm.machine import Emitting
from quadriga.fsm.table import Edge, Effect, Row


def attach(machine: Any, emitting: Emitting) -> None:
    """Let the transition that was added last for a row know it."""
    row = emitting.row
    known = machine.events[text_of(row.trigger)].transitions[library_name(row.source)]
    known[-1].__dict__["emitting"] = emitting


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
            self._open(machine)

    def update(self) -> None:
        """Observers have come or gone."""
        for machine in list(self._machines):
            if self.observers:
                self._open(machine)
            else:
                self._close(machine)

    def _open(self, machine: Any) -> None:
        for transition in _transitions(machine):
            if "execute" not in transition.__dict__:
                transition.execute = _Executing(transition, self)

    def _close(self, machine: Any) -> None:
        for transition in _transitions(machine):
            if isinstance(transition.__dict__.get("execute"), _Executing):
                del transition.execute


def _transitions(machine: Any) -> Iterator[Any]:
    for event in machine.events.values():
        for transitions in event.transitions.values():
            yield from (each for each in transitions if "emitting" in each.__dict__)


class _Executing:
    """The method ``execute`` of an observed transition."""

    def __init__(self, transition: Any, machines: Machines) -> None:
        self.transition = transition
        self.machines: Machines | None = machines

    def __call__(self, data: EventData) -> Any:
        transition = self.transition
        if self.machines is not None:
            # asked now, because inside of a composite the row depends on the state
            row = transition.emitting.row_for(data)
            data.taking = _Taking(self.machines, row, data)  # type: ignore[attr-defined]
        done = type(transition).execute(transition, data)
        if inspect.isawaitable(done):
            return self._finish(done, data)
        return self._tell(done, data)

    async def _finish(self, execution: Awaitable[bool], data: EventData) -> bool:
        return self._tell(await execution, data)

    def _tell(self, done: bool, data: EventData) -> bool:
        if done and self.machines is not None:
            data.taking.tell()  # type: ignore[attr-defined]
        return done

    def __getstate__(self) -> dict[str, Any]:
        # A copy of the machine, and one that is read from a pickle, is not observed.
        return {"transition": self.transition, "machines": None}


class _Taking:
    """One execution of a transition, of which the observers are told once."""

    def __init__(self, machines: Machines, row: Row, data: EventData) -> None:
        self.machines = machines
        self.row = row
        self.data = data
        self.told = False

    def tell(self) -> tuple[Effect, ...]:
        """Tell the observers that the row is taken, and return the effects."""
        data: Any = self.data
        effects: tuple[Effect, ...] = getattr(data, "effects", ())
        if not self.told:
            self.told = True
            row = self.row
            target = row.target or row.source
            edge = Edge(self.machines.lifecycle, row.source, row.trigger, target)
            step = Step(edge, target, row.target is not None, False, effects, row)
            for observer in tuple(self.machines.observers.values()):
                observer(step, data.model, data.kwargs)
            data.effects = effects = step.effects
        return effects
