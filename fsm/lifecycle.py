"""The engine: a table becomes one shared ``transitions.Machine`` that fires in half a microsecond.

The classes of the library are extended at two points (``machine``). For each trigger and state they
keep either the one step to take, for a row with neither guard nor emitters, which is the common case,
or the rows to try in order (``firing``). Entities are never registered as models. They are plain
objects with a ``state`` string, so a million of them cost a million pointers to strings.
``stock=True`` builds the same rows from the library's own classes; the tests fire the same random
triggers on both and compare every step.

A state changes only after every guard and every emitter has succeeded. If one of them raises, the
entity stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from transitions import EventData, Machine

from quadriga.fsm.building import build_machine
from quadriga.fsm.derive import Parts, as_text, extended, is_text, reduced, replaced
from quadriga.fsm.errors import DefinitionError, InvalidTransition, did_you_mean
from quadriga.fsm.firing import Cell, Step, emit
from quadriga.fsm.loading import all_renamed, check_renamed, check_state, present_state
from quadriga.fsm.machine import Deliver, LeanEvent, LeanMachine, Taken, deliver_to_model
from quadriga.fsm.names import Name, text_of
from quadriga.fsm.nesting import Composite, Nesting, flatten
from quadriga.fsm.table import (
    Edge,
    Effect,
    Emitter,
    Entity,
    Info,
    Limit,
    Row,
    State,
    Trigger,
    Within,
)
from quadriga.fsm.validation import check_actions, validate
from quadriga.fsm.written import (
    actions_by_state,
    check_lines,
    expand,
    states_of,
    with_actions,
)

__all__ = ["Deliver", "Lifecycle", "Step", "Taken"]


Value = TypeVar("Value")
#: The names in an extended lifecycle: those of the first one, and more.
NewState = TypeVar("NewState", bound=Name)
NewTrigger = TypeVar("NewTrigger", bound=Name)

_NOTHING: Final[Info] = {}


class Lifecycle(Generic[State, Trigger]):
    """A named table of rows with its states, their time limits and its shared machine.

    ``rows`` are the results of ``row`` and ``ignored``. ``lasts`` has every state that is not final with
    the time that it may last. ``renamed`` has the former names of states, each with the present one, for
    entities that were stored (``migrate``). Raises ``DefinitionError`` naming the row at fault.

    If it is declared as ``Lifecycle[State, Trigger]``, each a ``Literal`` of all names, then a misspelled
    name and a name of another lifecycle are type errors, in the table and wherever it is used.

    ``inside`` has the lifecycles of the states that are lifecycles themselves (``nesting``).
    """

    def __init__(
        self,
        name: str,
        *,
        initial: State,
        final: Iterable[State],
        lasts: Mapping[State, Limit],
        rows: Iterable[tuple[Row[State, Trigger], ...]],
        on_enter: Mapping[State, Emitter | tuple[Emitter, ...]] = MappingProxyType({}),
        on_exit: Mapping[State, Emitter | tuple[Emitter, ...]] = MappingProxyType({}),
        inside: Mapping[State, Lifecycle[Any, Any]] = MappingProxyType({}),
        renamed: Mapping[str, State] = MappingProxyType({}),
        stock: bool = False,
    ) -> None:
        self.name = name
        #: What is written for this lifecycle alone; it differs from ``initial``, ``final``, ``lasts`` and
        #: ``rows`` only if there are lifecycles inside.
        self.entry = initial
        self.own_final = states_of(name, "final", final)
        self.own_lasts = dict(lasts)
        #: The lines of the table; a ``"*"`` in them is still one.
        self.written = check_lines(name, rows)
        lasting = tuple(state for state in self.own_lasts if state not in self.own_final)
        self.own_rows: tuple[Row[State, Trigger], ...] = expand(name, self.written, lasting)
        #: The emitters for entering and for leaving a state, by state.
        self.on_enter = actions_by_state(on_enter)
        self.on_exit = actions_by_state(on_exit)
        self.inside: dict[Any, Lifecycle[Any, Any]] = dict(inside)
        nesting: Any = flatten(self)
        self.nesting: Nesting | None = nesting
        self.initial: State = nesting.initial if nesting else initial
        self.final = self.own_final
        self.lasts: dict[State, Limit] = nesting.lasts if nesting else self.own_lasts
        self.rows: tuple[Row[State, Trigger], ...] = (
            nesting.rows if nesting else with_actions(self.own_rows, self.on_enter, self.on_exit)
        )
        validate(name, self.initial, self.final, self.lasts, self.rows)
        self._legal = frozenset((r.source, r.trigger) for r in self.rows)
        #: Pairs of state and trigger that change nothing. validate() has checked that an unguarded row is the
        #: only one or the last one.
        self._idle = frozenset(
            (r.source, r.trigger)
            for r in self.rows
            if r.target is None and not r.emit and self.rows_from(r.source, r.trigger) == (r,)
        )
        self.states = (*self.lasts, *(s for s in self.final if s not in self.lasts))
        check_actions(self, nesting)
        #: former names of states, which entities that were stored may still have
        self.own_renamed = dict(renamed)
        self.renamed = all_renamed(self.own_renamed, self.inside, nesting)
        check_renamed(name, self.states, self.renamed)
        self.stock = stock
        #: The states and composites with a time limit, for the timers and the watchdog.
        limits = {**self.lasts, **{name: c.lasts for name, c in self.composites.items()}}
        self.timed = {s: limit for s, limit in limits.items() if isinstance(limit, Within)}
        self.machine = build_machine(self, Machine if stock else LeanMachine)
        self._observers: dict[object, Taken] = {}
        self._cells: dict[Any, dict[Any, Cell]] = {
            event.trigger_of_rows: event.cells
            for event in self.machine.events.values()
            if isinstance(event, LeanEvent)
        }
        if isinstance(self.machine, LeanMachine):
            self.machine.frozen = True

    # -- firing ------------------------------------------------------------------------------

    def fire(self, entity: Entity[State], trigger: Trigger, /, **info: Any) -> tuple[Effect, ...]:
        """Apply a trigger: change ``entity.state`` and return the effects in the order of the table.

        Raises ``InvalidTransition`` if the trigger is not legal in the state, and whatever a guard or an
        emitter raises. In both cases nothing has changed.
        """
        return self.take(entity, trigger, info).effects

    def take(self, entity: Entity[State], trigger: Trigger, info: Info = _NOTHING) -> Step:
        """Low-overhead ``fire`` for hot paths: takes the information as one mapping and returns the whole
        step."""
        try:
            cell = self._cells[trigger][entity.state]
        except KeyError:
            cell = ()
        if cell.__class__ is Step:
            step = cell
        else:
            if not cell:
                if self.stock:  # the stock machine has no cells
                    return self._take_stock(entity, trigger, info)
                raise self._refusal(entity, trigger)
            for guard, step, emitting in cell:  # type: ignore[union-attr]
                if guard is None or guard(entity, info):
                    if emitting is not None:
                        effects = emit(entity, emitting, info)
                        step = Step(step.edge, step.target, step.moves, False, effects)
                    break
            else:  # validate() refuses a table whose alternatives may all fail
                raise AssertionError(f"{cell} are guarded, all of them")
        if step.moves:
            entity.state = step.target
        return step

    def choose(
        self, entity: Entity[State], trigger: Trigger, info: Mapping[str, Any]
    ) -> Row[State, Trigger]:
        """The row that ``fire`` would take now. Raises ``InvalidTransition``."""
        for candidate in self.rows:
            if candidate.trigger == trigger and candidate.source == entity.state:
                if candidate.guard is None or candidate.guard(entity, info):
                    return candidate
        raise self._refusal(entity, trigger)

    def observe(self, taken: Taken) -> Callable[[], None]:
        """Call ``taken`` with every row that is taken from now on; returns a function that ends this.

        This covers ``fire`` and the shared machine, not the machines of ``make_machine``. During an
        observation every row is tried in order like a guarded one, so ``fire`` needs no code for it.
        """
        if self.stock:
            raise ValueError(f"{self.name}: the stock machine cannot be observed")
        token = object()  # the same function may be registered twice
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

    def _refusal(self, entity: Entity[State], trigger: Trigger) -> InvalidTransition:
        possible = self.triggers(entity.state)
        return InvalidTransition(self.name, entity.key, entity.state, trigger, possible)

    def _take_stock(self, entity: Entity[State], trigger: Trigger, info: Info) -> Step:
        # checked first, because a guard or an emitter may raise a MachineError of its own
        source = entity.state
        if (source, trigger) not in self._legal:
            raise self._refusal(entity, trigger)
        event = self.machine.events[text_of(trigger)]
        data = EventData(None, event, self.machine, entity, args=(), kwargs=dict(info))
        event._trigger(data)
        edge = Edge(self.name, source, trigger, entity.state)  # type: ignore[arg-type]  # see Edge
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
        """Whether the trigger does nothing in this state (an ``ignored`` row), so that it need not be
        fired."""
        return (state, trigger) in self._idle

    def rows_from(
        self, state: State, trigger: Trigger | None = None
    ) -> tuple[Row[State, Trigger], ...]:
        """The rows with this source state, for one trigger or for all."""
        return tuple(
            r for r in self.rows if r.source == state and (trigger is None or r.trigger == trigger)
        )

    def check(self, entity: Entity[State]) -> None:
        """Raise ``UnknownState`` if the entity, which was stored perhaps, is in none of the states."""
        check_state(self.name, entity.key, entity.state, self.states, self.renamed)

    def migrate(self, entity: Entity[State]) -> bool:
        """Give a stored entity the state that its own stands for now, and check it as ``check`` does.

        A former name becomes the present one, and the name or the value of a member of an Enum becomes the
        member. The states in its ``history`` get their present names too. Returns whether anything has
        changed. This is no transition: nothing is fired.
        """
        state = present_state(self.name, entity.key, entity.state, self.states, self.renamed)
        former = entity.state
        entity.state = state  # a member of a StrEnum equals its text
        renamed = self.nesting is not None and self.nesting.rename_history(entity, self.renamed)
        return renamed or bool(state != former)

    def total(self, what: str, by_state: Mapping[State, Value]) -> dict[State, Value]:
        """A copy of a table with a key for every state of the lifecycle and for no other.

        Raises ``DefinitionError`` naming the table (``what``) and the states at fault.
        """
        missing = [state for state in self.states if state not in by_state]
        unknown = [state for state in by_state if state not in self.states]
        for problem, states in (("lacks", missing), ("has unknown", unknown)):
            if states:
                raise DefinitionError(
                    f"{self.name}: {what} {problem} {', '.join(map(text_of, states))}"
                )
        return dict(by_state)

    # -- states that are lifecycles ------------------------------------------------------------

    @property
    def composites(self) -> dict[str, Composite]:
        """The states that are lifecycles themselves, by name; those inside before those around them."""
        return self.nesting.composites if self.nesting else {}

    @property
    def children(self) -> tuple[str, ...]:
        """The states of this lifecycle itself, without those inside of its composites."""
        return self.nesting.children if self.nesting else self.states

    @property
    def nested_rows(self) -> tuple[Row[State, Trigger], ...]:
        """The rows as they are written: a row from a composite is one row, not one for each state inside."""
        return self.nesting.nested_rows if self.nesting else self.rows

    def around(self, state: State) -> tuple[str, ...]:
        """The composites around a state, the outermost first."""
        return self.nesting.around(state) if self.nesting else ()

    def crossed(self, edge: Edge) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The composites that a transition leaves and those that it enters, both in this order.

        A composite that is left and entered again is in both.
        """
        return self.nesting.crossings.get(edge[1:], ((), ())) if self.nesting else ((), ())

    def is_in(self, entity: Entity[State], state: State) -> bool:
        """Whether the entity is in this state, or in a state inside of it.

        Raises ``ValueError`` for a state that the lifecycle does not have.
        """
        if composite := self.composites.get(text_of(state)):
            return entity.state in composite.leaves
        if state not in self.states:
            known = (*self.states, *self.composites)
            raise ValueError(f"{self.name} has no state {state!r}{did_you_mean(state, known)}")
        return entity.state == state

    def __repr__(self) -> str:
        return f"<Lifecycle {self.name}: {len(self.states)} states, {len(self.rows)} rows>"

    # -- lifecycles derived from this one --------------------------------------------------------

    def extend(
        self,
        *,
        rows: Iterable[tuple[Row[NewState, NewTrigger], ...]] = (),
        lasts: Mapping[NewState, Limit] = MappingProxyType({}),
        final: Iterable[NewState] = (),
        on_enter: Mapping[NewState, Emitter | tuple[Emitter, ...]] = MappingProxyType({}),
        on_exit: Mapping[NewState, Emitter | tuple[Emitter, ...]] = MappingProxyType({}),
        inside: Mapping[NewState, Lifecycle[Any, Any]] = MappingProxyType({}),
        renamed: Mapping[str, NewState] = MappingProxyType({}),
        name: str | None = None,
    ) -> Lifecycle[NewState, NewTrigger]:
        """Another lifecycle with more rows, which come after those of this one, and with more states.

        A state that is given in ``lasts`` is no longer final, and one that is given in ``final`` has no
        time limit any more. A row with ``"*"`` includes the new states.
        """
        parts = self._parts(name)
        return Lifecycle(**extended(parts, rows, lasts, final, on_enter, on_exit, inside, renamed))

    def without(
        self,
        *,
        triggers: Iterable[Trigger] = (),
        states: Iterable[State] = (),
        rows: Iterable[Row[State, Trigger]] = (),
        lasts: Mapping[State, Limit] = MappingProxyType({}),
        name: str | None = None,
    ) -> Lifecycle[State, Trigger]:
        """Another lifecycle without all rows of some triggers, without some states and the rows from and to
        them, and without some ``rows`` of this one.

        ``lasts`` has new time limits for states whose limit names a trigger that is gone.
        """
        return Lifecycle(**reduced(self._parts(name), self.own_rows, triggers, states, rows, lasts))

    def replace(
        self,
        *rows: tuple[Row[State, Trigger], ...],
        lasts: Mapping[State, Limit] = MappingProxyType({}),
        name: str | None = None,
    ) -> Lifecycle[State, Trigger]:
        """Another lifecycle with ``rows`` (results of ``row``) in place of all rows of this one that have
        their triggers and source states."""
        return Lifecycle(**replaced(self._parts(name), self.own_rows, rows, lasts))

    def as_text(self) -> Lifecycle[str, str]:
        """This lifecycle, or if it has members of an Enum, another one with their texts, for files and
        diagrams."""
        parts = self._parts()
        plain: Any = self if is_text(parts) else Lifecycle(**as_text(parts))
        return plain  # type: ignore[no-any-return]

    def _parts(self, name: str | None = None) -> Parts:
        return {
            "name": self.name if name is None else name,
            "initial": self.entry,
            "final": self.own_final,
            "lasts": self.own_lasts,
            "rows": self.written,
            "on_enter": self.on_enter,
            "on_exit": self.on_exit,
            "inside": self.inside,
            "renamed": self.own_renamed,
            "stock": self.stock,
        }

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

        ``model`` is registered with the machine. If it has a state it keeps it, under its present name;
        otherwise its state becomes the initial one. The same holds for ``add_model`` of the machine,
        without ``initial``. Both raise ``UnknownState``. After each transition ``deliver(model, effects)``
        receives the effects. Without ``deliver`` the model's own ``on_effects(effects)`` receives them, if
        it has one. ``options`` are those of the library.
        """
        return build_machine(self, machine_cls, model, deliver or deliver_to_model, options)
