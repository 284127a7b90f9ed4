"""The engine: a table becomes one shared ``transitions.Machine`` that fires in half a microsecond.

The library is extended at the two places it offers (``machine``), so that for each trigger and state
there is either the one step that it leads to (a row with neither guard nor emitters, the common case)
or the rows to try in order (``firing``). Entities are never registered as models; they are plain
objects with a ``state`` string, so a million of them cost a million strings' pointers. ``stock=True``
builds the same rows from the library's own classes; the tests drive both with the same random triggers
and compare every step.

A state changes only after every guard and every emitter has succeeded, so whatever raises leaves
the entity as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from transitions import EventData, Machine

from quadriga.fsm.errors import DefinitionError, InvalidTransition
from quadriga.fsm.firing import Cell, Step, emit
from quadriga.fsm.machine import (
    Asking,
    Deliver,
    Emitting,
    Handing,
    LeanEvent,
    LeanMachine,
    Taken,
    deliver_to_model,
)
from quadriga.fsm.table import (
    Edge,
    Effect,
    Entity,
    Info,
    Limit,
    Row,
    State,
    Trigger,
    Within,
)
from quadriga.fsm.validation import validate

__all__ = ["Deliver", "Lifecycle", "Step", "Taken"]


Value = TypeVar("Value")


class Lifecycle(Generic[State, Trigger]):
    """A named table of rows with its states, their time limits and its shared machine.

    ``rows`` are what ``row`` and ``ignored`` return. ``lasts`` names every state that is not final
    and says how long it may last. Raises ``DefinitionError`` naming the row at fault.

    Declared as ``Lifecycle[State, Trigger]`` with a ``Literal`` of all names for each of the two, a
    misspelled name and one of another lifecycle are type errors, in the table and where it is used.
    """

    def __init__(
        self,
        name: str,
        *,
        initial: State,
        final: Iterable[State],
        lasts: Mapping[State, Limit],
        rows: Iterable[tuple[Row[State, Trigger], ...]],
        stock: bool = False,
    ) -> None:
        self.name = name
        self.initial = initial
        self.final = tuple(final)
        self.lasts = dict(lasts)
        self.rows = tuple(replace(r, line=n) for n, written in enumerate(rows) for r in written)
        validate(name, initial, self.final, self.lasts, self.rows)
        self._legal = frozenset((r.source, r.trigger) for r in self.rows)
        #: validate() has seen to it that an unguarded row is the only one, or the last
        self._idle = frozenset(
            (r.source, r.trigger)
            for r in self.rows
            if r.target is None and not r.emit and self.rows_from(r.source, r.trigger) == (r,)
        )
        self.states = (*self.lasts, *(s for s in self.final if s not in self.lasts))
        self.stock = stock
        #: the states with a time limit; what the timers and the watchdog look at
        self.timed = {s: limit for s, limit in self.lasts.items() if isinstance(limit, Within)}
        self.machine = self._build(Machine if stock else LeanMachine)
        self._observers: dict[object, Taken] = {}
        self._cells: dict[str, dict[str, Cell]] = {
            t: e.cells for t, e in self.machine.events.items() if isinstance(e, LeanEvent)
        }
        if isinstance(self.machine, LeanMachine):
            self.machine.frozen = True

    # -- firing ------------------------------------------------------------------------------

    def fire(self, entity: Entity[State], trigger: Trigger, /, **info: Any) -> tuple[Effect, ...]:
        """Apply a trigger: change ``entity.state`` and return the effects in the table's order.

        Raises ``InvalidTransition`` where the state does not know the trigger, and whatever a guard
        or an emitter raises; in both cases nothing has changed.
        """
        return self.take(entity, trigger, info).effects

    def take(self, entity: Entity[State], trigger: Trigger, info: Info) -> Step:
        """Low-overhead ``fire`` for hot paths: takes the information as one mapping, and returns
        all that is known of the transition."""
        try:
            cell = self._cells[trigger][entity.state]
        except KeyError:
            cell = ()
        if cell.__class__ is Step:
            step = cell
        else:
            if not cell:
                if self.stock:  # it has no cells
                    return self._take_stock(entity, trigger, info)
                raise InvalidTransition(self.name, entity.key, entity.state, trigger)
            for guard, step, emitting in cell:  # type: ignore[union-attr]
                if guard is None or guard(entity, info):
                    if emitting is not None:
                        effects = emit(entity, emitting, info)
                        step = Step(step.edge, step.target, step.moves, False, effects)
                    break
            else:  # validate() lets no table through whose alternatives can all fail
                raise AssertionError(f"{cell} are guarded, all of them")
        if step.moves:
            entity.state = step.target  # type: ignore[assignment]  # one of the table's
        return step

    def choose(
        self, entity: Entity[State], trigger: Trigger, info: Mapping[str, Any]
    ) -> Row[State, Trigger]:
        """The row that ``fire`` would take now. Raises ``InvalidTransition``."""
        for candidate in self.rows:
            if candidate.trigger == trigger and candidate.source == entity.state:
                if candidate.guard is None or candidate.guard(entity, info):
                    return candidate
        raise InvalidTransition(self.name, entity.key, entity.state, trigger)

    def observe(self, taken: Taken) -> Callable[[], None]:
        """Call ``taken`` with every row that is taken from now on; returns what ends it.

        Covers ``fire`` and the shared machine, not those of ``make_machine``. While somebody observes
        every row is tried in order like a guarded one; ``fire`` itself knows nothing of it.
        """
        if self.stock:
            raise ValueError(f"{self.name}: the stock machine cannot be observed")
        token = object()  # the same function may observe twice
        self._observers[token] = taken
        self._fill()

        def stop() -> None:
            if self._observers.pop(token, None):
                self._fill()

        return stop

    def _fill(self) -> None:
        for event in self.machine.events.values():
            if isinstance(event, LeanEvent):
                for source in event.transitions:
                    event.fill(source, tuple(self._observers.values()))

    def _take_stock(self, entity: Entity[State], trigger: Trigger, info: Info) -> Step:
        event = self.machine.events.get(trigger)
        # asked first, because a guard or an emitter may raise a MachineError of its own
        source = entity.state
        if event is None or source not in event.transitions:
            raise InvalidTransition(self.name, entity.key, source, trigger)
        data = EventData(None, event, self.machine, entity, args=(), kwargs=dict(info))
        event._trigger(data)
        edge = Edge(self.name, source, trigger, entity.state)
        effects = getattr(data, "effects", ())
        return Step(edge, edge.target, source != edge.target, False, effects)

    # -- reading the table -------------------------------------------------------------------

    def triggers(self, state: State | None = None) -> tuple[Trigger, ...]:
        """Every trigger, or those that are legal in a state, in the order of the table."""
        named = (r.trigger for r in self.rows if state is None or r.source == state)
        return tuple(dict.fromkeys(named))

    def allows(self, state: State, trigger: Trigger) -> bool:
        """Whether the trigger is legal in the state."""
        return (state, trigger) in self._legal

    def idles(self, state: State, trigger: Trigger) -> bool:
        """Whether nothing at all follows from the trigger in this state (an ``ignored`` row), so that
        there is no need to fire it."""
        return (state, trigger) in self._idle

    def rows_from(
        self, state: State, trigger: Trigger | None = None
    ) -> tuple[Row[State, Trigger], ...]:
        """The rows that leave a state (or stay in it), for one trigger or all."""
        return tuple(
            r for r in self.rows if r.source == state and (trigger is None or r.trigger == trigger)
        )

    def total(self, what: str, by_state: Mapping[State, Value]) -> dict[State, Value]:
        """A copy of a table keyed by states, which has every state of the lifecycle and no other.

        Raises ``DefinitionError`` naming the table (``what``) and the states at fault.
        """
        missing = [state for state in self.states if state not in by_state]
        unknown = [state for state in by_state if state not in self.states]
        for problem, states in (("lacks", missing), ("has unknown", unknown)):
            if states:
                raise DefinitionError(f"{self.name}: {what} {problem} {', '.join(states)}")
        return dict(by_state)

    def __repr__(self) -> str:
        return f"<Lifecycle {self.name}: {len(self.states)} states, {len(self.rows)} rows>"

    # -- machines of the library -------------------------------------------------------------

    def make_machine(
        self,
        model: object | None = None,
        machine_cls: type[Machine] = Machine,
        *,
        deliver: Deliver | None = None,
        **options: Any,
    ) -> Machine:
        """A machine of your own with this table: plain, Async, Locked, Graph or hierarchical.

        ``model`` is registered with it (its state becomes the initial one). After each transition
        ``deliver(model, effects)`` gets the effects; without it they go to the model's own
        ``on_effects(effects)`` where it has one. ``options`` are the library's.
        """
        return self._build(machine_cls, model, deliver or deliver_to_model, options)

    def _build(
        self,
        machine_cls: type[Machine],
        model: object | None = None,
        deliver: Deliver | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Machine:
        machine = machine_cls(
            model=None,
            states=list(self.states),
            initial=self.initial,
            name=self.name,
            # the library then gives conditions and callbacks one object with the model in it
            send_event=True,
            auto_transitions=False,
            **(options or {}),
        )
        if isinstance(machine, LeanMachine):
            machine.lifecycle = self
        for state in self.final:  # not in its constructor: transitions 0.9.0 does not know it there
            machine.get_state(state).final = True
        after: list[Any] = [Handing(deliver)] if deliver else []
        for each in self.rows:
            lean: dict[str, Any] = {"row": each} if isinstance(machine, LeanMachine) else {}
            machine.add_transition(
                each.trigger,
                each.source,
                each.target,
                conditions=[Asking(each.guard)] if each.guard else [],
                before=[Emitting(each)] if each.emit else [],
                after=after if each.emit else [],
                **lean,
            )
        if model is not None:
            machine.add_model(model)
        return machine
