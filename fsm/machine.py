"""The library's classes for lifecycles: the lean machine, and the callbacks of all other machines.

``LeanEvent`` and ``LeanTransition`` replace ``Event`` and ``Transition``. For each state they keep
either the one step to take (a row with neither guard nor emitters, the common case) or the rows to
try in order.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from typing import Any, Protocol

from transitions import EventData, Machine
from transitions.core import Event, Transition

from quadriga.fsm.errors import DefinitionError
from quadriga.fsm.firing import Cell, Step, emit
from quadriga.fsm.names import Name
from quadriga.fsm.table import Edge, Effect, Emitter, Fired, Guard, Info, Row, name_of

__all__ = [
    "Asking",
    "Deliver",
    "Emitting",
    "Handing",
    "LeanEvent",
    "LeanMachine",
    "Owner",
    "Taken",
    "deliver_to_model",
]

#: Receives the effects after a transition of an embedder's machine. Its result goes to the library: an
#: asynchronous machine awaits it.
Deliver = Callable[[Any, tuple[Effect, ...]], Any]
#: The callback of ``Lifecycle.observe``.
Taken = Callable[[Row], object]


class Owner(Protocol):
    """The part of a lifecycle that its lean machine needs."""

    @property
    def name(self) -> str: ...
    @property
    def timed(self) -> Container[Any]: ...

    def take(self, entity: Any, trigger: Any, info: Info, /) -> Step: ...


class LeanTransition(Transition):
    """A transition of the library that knows its row."""

    def __init__(self, *library: Any, row: Row, **options: Any) -> None:
        super().__init__(*library, **options)
        self.row = row


class LeanEvent(Event):
    """All rows of a trigger, by state: the one step to take, or the rows to try in order."""

    def __init__(self, name: str, machine: Machine) -> None:
        super().__init__(name, machine)
        self.cells: dict[Name, Cell] = {}

    def add_transition(self, transition: Transition) -> None:
        super().add_transition(transition)
        self.fill(transition.source)

    def fill(self, source: str, observers: tuple[Taken, ...] = ()) -> None:
        """Write the cell of a state; observers become one more emitter of each of its rows."""
        known = self.transitions[source]
        rows = tuple(t.row for t in known if isinstance(t, LeanTransition))
        self.trigger_of_rows = rows[0].trigger  # the library has its name only, if it is of an Enum
        if observers:
            rows = tuple(replace(r, emit=(*r.emit, _Telling(r, observers))) for r in rows)
        choices = tuple((r.guard, self._step(r), r if r.emit else None) for r in rows)
        guard, step, emitting = choices[0]
        self.cells[rows[0].source] = step if guard is None and emitting is None else choices

    def _step(self, row: Row) -> Step:
        lifecycle, target = self.machine.lifecycle, row.target or row.source
        moves = target != row.source
        quiet = not row.emit and not (moves and target in lifecycle.timed)
        return Step(Edge(lifecycle.name, row.source, row.trigger, target), target, moves, quiet)

    def trigger(self, model: Any, *args: Any, **info: Any) -> bool:
        """The library's own way to fire (``model.run()`` after ``machine.add_model(model)``).

        The effects go to the model's ``on_effects``, if it has one.
        """
        if effects := self.machine.lifecycle.take(model, self.trigger_of_rows, info).effects:
            deliver_to_model(model, effects)
        return True


class LeanMachine(Machine):
    event_cls = LeanEvent
    transition_cls = LeanTransition
    frozen = False
    lifecycle: Owner

    def add_states(self, *library: Any, **options: Any) -> None:
        self._refuse_when_frozen()
        super().add_states(*library, **options)

    def add_transition(self, *library: Any, **options: Any) -> None:
        self._refuse_when_frozen()
        super().add_transition(*library, **options)

    def remove_transition(self, *library: Any, **options: Any) -> None:
        self._refuse_when_frozen()
        super().remove_transition(*library, **options)

    def _refuse_when_frozen(self) -> None:
        if self.frozen:
            raise DefinitionError(
                f"{self.name}the shared machine is complete; "
                "use make_machine() for one that you can extend"
            )


# -- guards and emitters as the library calls them ---------------------------------------------


class _Named:
    """A callback with the name of the function in it, which graphs and markup of the library print."""

    def __init__(self, function: Guard | Emitter | Row | Deliver) -> None:
        self.__name__ = name_of(function)


class Asking(_Named):
    def __init__(self, guard: Guard) -> None:
        super().__init__(guard)
        self.guard = guard

    def __call__(self, data: EventData) -> bool:
        # the library compares the result with True, but a guard may return any truthy value
        return bool(self.guard(data.model, data.kwargs))


class Emitting(_Named):
    """Runs before the state changes, so an emitter that raises leaves it unchanged."""

    def __init__(self, row: Row) -> None:
        super().__init__(row)
        self.__name__ = "+".join(name_of(emitter) for emitter in row.emit)
        self.row = row

    def __call__(self, data: EventData) -> None:
        data.effects = emit(data.model, self.row, data.kwargs)  # type: ignore[attr-defined]


class Handing(_Named):
    """Runs after the state has changed, because the effects must not be visible before."""

    def __init__(self, deliver: Deliver) -> None:
        super().__init__(deliver)
        self.deliver = deliver

    def __call__(self, data: EventData) -> Any:
        effects = getattr(data, "effects", ())
        return self.deliver(data.model, effects) if effects else None


class _Telling(_Named):
    """The last emitter of an observed row: when it runs, all others have succeeded."""

    def __init__(self, row: Row, observers: tuple[Taken, ...]) -> None:
        super().__init__(row)
        self.row = row
        self.observers = observers

    def __call__(self, entity: Any, fired: Fired) -> tuple[Effect, ...]:
        for taken in self.observers:
            taken(self.row)
        return ()


def deliver_to_model(model: Any, effects: tuple[Effect, ...]) -> Any:
    receive = getattr(model, "on_effects", None)
    return receive(effects) if receive else None
