"""The engine: a table becomes a machine of the library, and that machine is what runs.

``fire`` takes its step from cells that are compiled from the machine's own events, transitions, states
and callbacks (``compiling``): for each trigger and state either the one step to take, for a row with
neither guard nor emitters, which is the common case, or the rows to try in order. When a part of the
machine changes, the cells are compiled again. Callbacks of the library are called, too; the machine then
does all steps itself. Entities are never registered as models. They are plain objects with a ``state``
string, so a million of them cost a million pointers to strings.

``stock=True`` uses the library's own class, without cells; the tests fire the same random triggers on
both and compare every step.

A state changes only after every guard and every emitter has succeeded. If one of them raises, the
entity stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import GenericAlias, MappingProxyType
from typing import Any, Final, TypeVar

from transitions import Machine

from quadriga.fsm.building import Machines, build_machine
from quadriga.fsm.compiling import Live, copy_machine
from quadriga.fsm.derive import Parts, as_text, extended, is_text, reduced, replaced
from quadriga.fsm.errors import (
    InvalidTransition,
    Name,
    did_you_mean,
    explain,
    impure,
    text_of,
    unknown_state,
)
from quadriga.fsm.firing import Cell, Observer, Outcome, Step, chosen, emit, nothing, outcome_of
from quadriga.fsm.loading import all_renamed, check_renamed, keeping, present_state
from quadriga.fsm.machine import Deliver, LifecycleMachine, deliver_to_model
from quadriga.fsm.nesting import flatten, names_inside
from quadriga.fsm.reading import ReadableTable
from quadriga.fsm.table import (
    Calls,
    Effect,
    Entity,
    Facts,
    Info,
    Limit,
    Row,
    State,
    Trigger,
    Within,
)
from quadriga.fsm.validation import check_actions, validate
from quadriga.fsm.written import actions_by_state, check_lines, expand, states_of, with_actions

#: The names in an extended lifecycle: those of the first one, and more.
NewState = TypeVar("NewState", bound=Name)
NewTrigger = TypeVar("NewTrigger", bound=Name)
NewFacts = TypeVar("NewFacts", bound=Entity[Any])

#: The callback of ``Lifecycle.observe``.
Taken = Callable[[Row], object]

_NOTHING: Final[Info] = {}


class Lifecycle(ReadableTable[State, Trigger, Facts]):
    """A named table of rows with its states, their time limits and its shared machine.

    The machine is protected: an attempt to change it raises ``DefinitionError``. The machine of a
    ``copy`` can be changed, by all means of the library.

    ``rows`` are the results of ``row`` and ``ignored``. ``lasts`` has every state that is not final with
    the time that it may last. ``renamed`` has the former names of states, each with the present one, for
    entities that were stored (``migrate``). Raises ``DefinitionError`` naming the row at fault.

    If it is declared as ``Lifecycle[State, Trigger]``, each a ``Literal`` of all names, then a misspelled
    name and a name of another lifecycle are type errors, in the table and wherever it is used. A third
    type, ``Lifecycle[State, Trigger, Facts]``, is that of the entities which its guards and emitters read.

    ``inside`` has the lifecycles of the states that are lifecycles themselves (``nesting``).
    """

    def __init__(
        self,
        name: str,
        *,
        initial: State,
        final: Iterable[State],
        lasts: Mapping[State, Limit],
        rows: Iterable[tuple[Row[State, Trigger, Facts], ...]],
        on_enter: Mapping[State, Calls[Facts]] = MappingProxyType({}),
        on_exit: Mapping[State, Calls[Facts]] = MappingProxyType({}),
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
        self.inside: dict[Any, Lifecycle[Any, Any]] = dict(inside)
        lasting = tuple(
            state
            for state in self.own_lasts
            if state not in self.own_final and not names_inside(state, self.inside)
        )
        self.own_rows: tuple[Row[State, Trigger, Facts], ...] = expand(name, self.written, lasting)
        #: The emitters for entering and for leaving a state, by state.
        self.on_enter = actions_by_state(on_enter)
        self.on_exit = actions_by_state(on_exit)
        nesting: Any = flatten(self)
        self.nesting = nesting
        self.initial: State = nesting.initial if nesting else initial
        self.lasts: dict[State, Limit] = nesting.lasts if nesting else self.own_lasts
        table: tuple[Row[State, Trigger, Facts], ...] = (
            nesting.rows if nesting else with_actions(self.own_rows, self.on_enter, self.on_exit)
        )
        validate(name, self.initial, self.own_final, self.lasts, table)
        self._rows = table
        self._final = self.own_final
        self._states = (*self.lasts, *(s for s in self.own_final if s not in self.lasts))
        self._legal = frozenset()
        self._idle = frozenset()
        self._stale = False
        #: what ``take`` does; empty on the stock machine, and during an observation
        self._cells: dict[Any, dict[Any, Cell]] = {}
        self._compiled: dict[Any, dict[Any, Cell]] = {}
        self._observers: dict[object, Observer] = {}
        self._made = Machines(name, self._observers)
        self._on_stock: Lifecycle[State, Trigger] | None = None
        check_actions(self)
        self.own_renamed = dict(renamed)
        self.renamed = all_renamed(self.own_renamed, self.inside, nesting)
        check_renamed(name, self._states, self.renamed)
        self.stock = stock
        #: The states and composites with a time limit, for the timers and the watchdog.
        limits = {**self.lasts, **{name: c.lasts for name, c in self.composites.items()}}
        self.timed = {s: limit for s, limit in limits.items() if isinstance(limit, Within)}
        machine = build_machine(self, Machine if stock else LifecycleMachine)
        self.machine = machine
        self._live = Live(machine, name, self.timed, table)
        self._live.attach()
        #: the machine refuses to be changed; a stock one cannot
        self.protected = True
        self._adopt()

    def _adopt(self) -> None:
        self._stale = True
        machine = self.machine
        if isinstance(machine, LifecycleMachine):
            machine.__dict__.update(lifecycle=self, written=self._live.written)
            self._read()
            machine.__dict__["protected"] = self.protected

    # -- the machine -------------------------------------------------------------------------

    def copy(
        self, name: str | None = None, *, stock: bool | None = None
    ) -> Lifecycle[State, Trigger, Facts]:
        """The same lifecycle with a machine of its own, which may be changed.

        States, transitions, conditions and callbacks that are added to it or removed, by any means of the
        library, take effect in ``fire`` at once. ``lasts`` and ``timed`` stay as declared; add the limits
        of new states to both before you add the states. ``stock`` builds the copy on the library's own
        class.
        """
        on_stock = self.stock if stock is None else stock
        parts = self._parts(name)
        parts["stock"] = on_stock
        other: Lifecycle[State, Trigger, Facts] = Lifecycle(**parts)
        other.lasts, other.timed = dict(self.lasts), dict(self.timed)
        cls = keeping(Machine if on_stock else LifecycleMachine)
        other.machine = copy_machine(self.machine, cls, other.name)
        other._live = Live(other.machine, other.name, other.timed, self._live.table)
        other.protected = False
        other._adopt()
        return other

    def on_stock(self) -> Lifecycle[State, Trigger]:
        """This lifecycle on the library's own class: one copy, which is made when it is first needed and has
        the same observers."""
        if self._on_stock is None:
            self._on_stock = self.copy(stock=True)
            self._on_stock._observers = self._observers
        return self._on_stock

    def forget(self) -> None:
        """Called by the machine when it has changed."""
        self._stale = True
        self._cells = {}

    def _read(self) -> None:
        """Read the machine as it is now. The stock machine does not report changes, so it is read each
        time."""
        self._stale = self.stock
        live, machine = self._live, self.machine
        if isinstance(machine, LifecycleMachine):
            machine.follow()
        rows: tuple[Row[State, Trigger, Facts], ...] = live.rows()
        states: Any = machine.states.values()
        self._rows = rows
        self._states = tuple(state.value for state in states)
        self._final = tuple(state.value for state in states if getattr(state, "final", False))
        if self.stock:
            return
        self._legal = frozenset((r.source, r.trigger) for r in rows)
        self._compiled = live.cells()
        self._idle = frozenset(
            (source, trigger)
            for trigger, cells in self._compiled.items()
            for source, cell in cells.items()
            if isinstance(cell, Step) and not cell.entered
        )
        if not self._observers:
            self._cells = self._compiled
        if self._stale:  # another thread has changed the machine meanwhile
            self._cells = {}

    # -- firing ------------------------------------------------------------------------------

    def fire(
        self,
        entity: Facts,  # type: ignore[misc]  # see table.Facts
        trigger: Trigger,
        /,
        **info: Any,
    ) -> tuple[Effect, ...]:
        """Apply a trigger: change ``entity.state`` and return the effects in the order of the table.

        Raises ``InvalidTransition`` if the trigger is not legal in the state, and whatever a guard or an
        emitter raises. In both cases nothing has changed.
        """
        return self.take(entity, trigger, info).effects

    def take(
        self,
        entity: Facts,  # type: ignore[misc]  # see table.Facts
        trigger: Trigger,
        info: Info = _NOTHING,
    ) -> Step:
        """Low-overhead ``fire`` for hot paths: takes the information as one mapping and returns the whole
        step."""
        try:
            cell = self._cells[trigger][entity.state]
        except KeyError:
            cell = ()
        if cell.__class__ is Step:
            step = cell
        else:
            try:
                for guard, step, emitting in cell:  # type: ignore[union-attr]
                    if guard is None or guard(entity, info):
                        if emitting is not None:
                            effects = emit(entity, emitting, info)
                            step = Step(
                                step.edge, step.target, step.entered, False, effects, step.row
                            )
                        break
                else:
                    return self._take_unplanned(entity, trigger, info)
            except Exception as error:
                if cell:
                    explain(error, self.name, entity, step.row)
                raise
            if entity.state != step.edge.source:
                raise impure(self.name, entity, trigger, step.edge.source, entity.state)
        if step.entered:
            entity.state = step.target
        return step

    def step(
        self,
        entity: Facts,  # type: ignore[misc]  # see table.Facts
        trigger: Trigger,
        /,
        **info: Any,
    ) -> Outcome[State, Trigger]:
        """As ``fire``; returns what the trigger did: row, states, effects, whether a state was entered."""
        return outcome_of(self.take(entity, trigger, info), entity, info)

    def take_unobserved(
        self,
        entity: Facts,  # type: ignore[misc]  # see table.Facts
        trigger: Trigger,
        info: Info = _NOTHING,
    ) -> Step:
        """``take`` without telling the observers."""
        if self._stale and not self.stock:
            self._read()
        source = entity.state
        cell = self._compiled.get(trigger, {}).get(source, ())
        step: Step | None
        if cell:
            step = chosen(cell, entity, info)
            if entity.state != source:
                raise impure(self.name, entity, trigger, source, entity.state)
            if step is None:
                step = nothing(self.name, source, trigger)
            elif step.entered:
                entity.state = step.target
        else:
            step = self._live.perform(entity, trigger, info, is_read=not self._stale)
            if step is None:
                raise self._refusal(entity, trigger)
        return step

    def _take_unplanned(self, entity: Any, trigger: Trigger, info: Info) -> Step:
        """``take`` where the machine has changed, is observed, or has more to do than a cell contains."""
        step = self.take_unobserved(entity, trigger, info)
        if self._observers and step.row is not None:
            failure = None
            for observer in tuple(self._observers.values()):
                try:
                    observer(step, entity, info)
                except Exception as error:
                    failure = failure or error
            if failure is not None:
                raise failure
        return step

    def choose(
        self,
        entity: Facts,  # type: ignore[misc]  # see table.Facts
        trigger: Trigger,
        info: Mapping[str, Any],
    ) -> Row[State, Trigger, Facts]:
        """The row that ``fire`` would take now. Raises ``InvalidTransition``."""
        for candidate in self.rows:
            if candidate.trigger == trigger and candidate.source == entity.state:
                if candidate.guard is None or candidate.guard(entity, info):
                    return candidate
        raise self._refusal(entity, trigger)

    def observe(self, taken: Taken) -> Callable[[], None]:
        """Call ``taken`` with every row that is taken from now on; returns a function that ends this.

        This covers ``fire``, the shared machine, and the machines of ``make_machine``. It is called when
        the state has changed. If it raises, the other observers are told, and then the caller of ``fire``.
        """
        return self.observe_steps(lambda step, entity, info: taken(step.row) if step.row else None)

    def watch(
        self,
        seen: Callable[[Outcome[State, Trigger]], object],
        *,
        clock: Callable[[], Any] | None = None,
    ) -> Callable[[], None]:
        """As ``observe``, with the whole outcome: ``seen`` receives what ``step`` returns.

        ``clock`` is called for the ``time`` of each outcome.
        """

        def observer(step: Step, entity: Any, info: Info) -> None:
            seen(outcome_of(step, entity, info, None if clock is None else clock()))

        return self.observe_steps(observer)

    def observe_steps(self, observer: Observer) -> Callable[[], None]:
        """As ``observe``, with the step, the entity and the information from the caller. If the observer
        replaces the effects of the step, the caller gets those."""
        token = object()  # the same function may be registered twice
        self._observers[token] = observer
        self._cells = {}
        self._made.update()

        def stop() -> None:
            if self._observers.pop(token, None) and not self._observers and not self._stale:
                self._cells = self._compiled
            self._made.update()

        return stop

    def _refusal(self, entity: Entity[State], trigger: Trigger) -> InvalidTransition:
        state, possible, unknown = entity.state, self.triggers(entity.state), ""
        triggers = self.triggers()
        if state not in self.states:
            unknown = unknown_state(state, self.states)
        elif trigger not in triggers:
            unknown = f"unknown trigger {text_of(trigger)!r}{did_you_mean(trigger, triggers)}"
        return InvalidTransition(self.name, entity.key, state, trigger, possible, unknown)

    # -- stored entities ---------------------------------------------------------------------

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

    # -- copies and pickles --------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Whether both are made of the same parts; one whose machine may be changed equals only itself."""
        if self is other:
            return True
        if not isinstance(other, Lifecycle):
            return NotImplemented
        return self.protected and other.protected and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((self.name, self.entry))

    def __deepcopy__(self, memo: object) -> Lifecycle[State, Trigger, Facts]:
        other = self.copy()
        other.protected = self.protected
        other._adopt()
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.protected:
            raise TypeError(f"{self.name}: a copy whose machine may be changed cannot be pickled")
        return _again, (self._parts(),)

    @classmethod
    def __class_getitem__(cls, types: Any) -> Any:
        """Two types suffice at run time, as for a type checker: a ``TypeVar`` before Python 3.13 has no
        default."""
        return GenericAlias(cls, types)

    def __repr__(self) -> str:
        return f"<Lifecycle {self.name}: {len(self.states)} states, {len(self.rows)} rows>"

    # -- lifecycles derived from this one --------------------------------------------------------

    def extend(
        self,
        *,
        rows: Iterable[tuple[Row[NewState, NewTrigger, NewFacts], ...]] = (),
        lasts: Mapping[NewState, Limit] = MappingProxyType({}),
        final: Iterable[NewState] = (),
        on_enter: Mapping[NewState, Calls[NewFacts]] = MappingProxyType({}),
        on_exit: Mapping[NewState, Calls[NewFacts]] = MappingProxyType({}),
        inside: Mapping[NewState, Lifecycle[Any, Any]] = MappingProxyType({}),
        renamed: Mapping[str, NewState] = MappingProxyType({}),
        name: str | None = None,
    ) -> Lifecycle[NewState, NewTrigger, NewFacts]:
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
        rows: Iterable[Row[State, Trigger, Facts]] = (),
        lasts: Mapping[State, Limit] = MappingProxyType({}),
        name: str | None = None,
    ) -> Lifecycle[State, Trigger, Facts]:
        """Another lifecycle without all rows of some triggers, without some states and the rows from and to
        them, and without some ``rows`` of this one.

        ``lasts`` has new time limits for states whose limit names a trigger that is gone.
        """
        return Lifecycle(**reduced(self._parts(name), self.own_rows, triggers, states, rows, lasts))

    def replace(
        self,
        *rows: tuple[Row[State, Trigger, Facts], ...],
        lasts: Mapping[State, Limit] = MappingProxyType({}),
        name: str | None = None,
    ) -> Lifecycle[State, Trigger, Facts]:
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
        machine = build_machine(self, machine_cls, model, deliver or deliver_to_model, options)
        self._made.add(machine)
        return machine


def _again(parts: Parts) -> Lifecycle[Any, Any]:
    """A lifecycle from its pickle."""
    return Lifecycle(**parts)
