"""A lifecycle as its machine is now: the rows, and for each trigger and state the cell that ``fire`` uses.

Where the machine of the library would call guards and emitters and nothing else, the cell has the rows
with their steps. Where more is to be called, or may be without a report (a list that belongs to the
caller), the cell is empty, and the machine does all steps itself (``Live.perform``). See D190.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, Final

from transitions import EventData, MachineError

from quadriga.fsm.errors import explain, library_name, text_of
from quadriga.fsm.fast.plans import choice_of
from quadriga.fsm.fast.steps import HAS_FINAL, is_plain
from quadriga.fsm.fast.tracking import LISTS, Callbacks, States, Transitions, is_silent
from quadriga.fsm.firing import Cell, Step, nothing
from quadriga.fsm.machine import Asking, Emitting, is_async
from quadriga.fsm.table import Edge, Info, Row, name_of

#: the reason of a row that has been added to the machine of a lifecycle
ADDED: Final = "added to the machine"
#: the line of such a row, until it is known how many there are
_NO_LINE: Final = -1


class Live:
    """The machine of a lifecycle, read with the names that the table has for states and triggers."""

    def __init__(
        self, machine: Any, name: str, timed: Container[Any], table: Sequence[Row[Any, Any, Any]]
    ) -> None:
        self.machine = machine
        self.name = name
        self.timed = timed
        self.table = table
        self.position = {id(row): n for n, row in enumerate(table)}
        #: the triggers as they are written, by the library's names
        self.written: dict[str, Any] = {text_of(row.trigger): row.trigger for row in table}
        #: the rows as they were when they were last read, by the identity of their transitions
        self.known: dict[int, Row[Any, Any, Any]] = {}
        #: their steps without effects, by the identity of the rows
        self.steps: dict[int, Step] = {}

    def attach(self) -> None:
        """Let each transition of a new machine know its row."""
        taken: dict[tuple[str, str], int] = {}
        for row in self.table:
            trigger, source = text_of(row.trigger), library_name(row.source)
            at = taken.get((trigger, source), 0)
            taken[trigger, source] = at + 1
            self.machine.events[trigger].transitions[source][at].__dict__["row"] = row

    # -- rows --------------------------------------------------------------------------------

    def rows(self) -> tuple[Row[Any, Any, Any], ...]:
        """The rows of the table that the machine still has, as they are now, then those that were added."""
        known: list[tuple[int, Row]] = []
        added: list[tuple[Any, Row]] = []
        self.known.clear()
        self.steps.clear()
        for trigger, event in self.machine.events.items():
            for transitions in event.transitions.values():
                for each in transitions:
                    at = self.position.get(id(getattr(each, "row", None)))
                    row = self.row_of(trigger, each)
                    if at is None:
                        added.append((each, row))
                    else:
                        known.append((at, row))
                        self.known[id(each)] = row
        known.sort(key=lambda found: found[0])
        line = max((row.line for row in self.table), default=_NO_LINE)
        numbered = []
        for transition, row in added:
            line += 1
            if row.line != line:
                row = replace(row, line=line)
            transition.__dict__["row"] = self.known[id(transition)] = row
            numbered.append(row)
        return (*(row for _, row in known), *numbered)

    def rows_from(self, state: Any, trigger: Any) -> tuple[Row[Any, Any, Any], ...]:
        """The rows of one state and trigger, in the order in which they are tried."""
        name, source = text_of(trigger), self._state(state)
        event = self.machine.events.get(name)
        if event is None or source is None or self.written.get(name, name) != trigger:
            return ()
        return tuple(self.row_of(name, each) for each in event.transitions.get(source.name, ()))

    def row_of(self, trigger: str, transition: Any) -> Row[Any, Any, Any]:
        """The row of a transition as it is now."""
        row: Row | None = getattr(transition, "row", None)
        target, guard = self._value(transition.dest), self._guard_of(transition)
        emit: tuple[Any, ...] = ()
        for each in transition.before:
            if isinstance(each, Emitting):
                emit = (*emit, *each.row.emit) if emit else each.row.emit
        if row is None:
            source = self._value(transition.source)
            written = self.written.get(trigger, trigger)
            return Row(written, source, target, guard, emit, ADDED, _NO_LINE)
        if row.target == target and row.guard == guard and row.emit == emit:
            return row
        own = row.own if row.emit == emit else None
        return replace(row, target=target, guard=guard, emit=emit, own=own)

    def _value(self, name: str | None) -> Any:
        """A state as it is written."""
        state = self.machine.states.get(name)
        return (name or None) if state is None else state.value

    def _state(self, value: Any) -> Any:
        """The library's state that an entity is in."""
        states = self.machine.states
        found = states.get(value.name if isinstance(value, Enum) else value)
        if found is not None and found.value == value:
            return found
        return next((state for state in states.values() if state.value == value), None)

    def _guard_of(self, transition: Any) -> Any:
        conditions = transition.conditions
        if not conditions:
            return None
        if len(conditions) == 1 and isinstance(conditions[0].func, Asking) and conditions[0].target:
            return conditions[0].func.guard
        return _Conditions(self.machine, transition)

    # -- cells -------------------------------------------------------------------------------

    def cells(self) -> dict[Any, dict[Any, Cell]]:
        """What each trigger does in each state."""
        machine = self.machine
        silent = is_plain(machine) and machine.states.__class__ is States
        silent = silent and all(
            is_silent(getattr(machine, name)) for name in LISTS if name != "on_final"
        )
        cells: dict[Any, dict[Any, Cell]] = {}
        for trigger, event in machine.events.items():
            tracked = silent and event.transitions.__class__ is Transitions and event._is_plain()
            cells[self.written.get(trigger, trigger)] = {
                self._value(source): self._cell(trigger, found) if tracked else ()
                for source, found in event.transitions.items()
            }
        return cells

    def _cell(self, trigger: str, found: Any) -> Cell:
        if found.__class__ is not Callbacks or not all(map(self._is_plain, found)):
            return ()
        choices = []
        for each in found:
            row = self.row_of(trigger, each)
            if any(map(is_async, (row.guard, *row.emit))):
                return ()  # the machine says that it cannot await them
            choices.append((row.guard, self._step(row), row if row.emit else None))
        if len(choices) == 1 and choices[0][0] is None and choices[0][2] is None:
            return choices[0][1]
        return tuple(choices)

    def _is_plain(self, transition: Any) -> bool:
        """Whether nothing is called but one guard and the emitters of one row, and all else would report."""
        choice = choice_of(self.machine, transition)
        if choice is None:
            return False
        _, conditions, origin, dest, fixed = choice
        if len(conditions) > 1 or not all(
            isinstance(each.func, Asking) and each.target is True for each in conditions
        ):
            return False
        before = transition.before
        if before.__class__ is not Callbacks or len(before) > 1:
            return False
        if not all(isinstance(each, Emitting) for each in before):
            return False
        silent = [transition.prepare, transition.after]
        if dest is not None:
            silent += [origin.on_exit, dest.on_enter]
            if HAS_FINAL and dest.final:
                silent.append(self.machine.on_final)
        return fixed and all(map(is_silent, silent))

    def _step(self, row: Row, effects: Any = ()) -> Step:
        entered = row.target is not None
        target: Any = row.target if entered else row.source
        quiet = not row.emit and not effects and not (entered and target in self.timed)
        return Step(
            Edge(self.name, row.source, row.trigger, target), target, entered, quiet, effects, row
        )

    # -- the machine itself ------------------------------------------------------------------

    def perform(self, entity: Any, trigger: Any, info: Info, *, is_read: bool) -> Step | None:
        """Let the machine do all steps of a trigger. ``None`` if the trigger is not legal in the state.

        ``is_read``: the machine has not changed since its rows were read.
        """
        machine, name, state = self.machine, text_of(trigger), self._state(entity.state)
        event = machine.events.get(name)
        if event is None or state is None or self.written.get(name, name) != trigger:
            return None
        legal = state.name in event.transitions
        if not legal and not self._cares_for_refusals(state):
            return None
        if isinstance(state.value, Enum) and not isinstance(entity.state, Enum):
            entity.state = state.value  # the text of a member, which the library does not know
        data: Any = EventData(None, event, machine, entity, args=(), kwargs=dict(info))
        try:
            event._trigger(data)
        except MachineError as error:
            if legal or data.error is not error:
                raise
            return None
        except Exception as error:
            if data.transition is not None:
                explain(error, self.name, entity, self.row_of(name, data.transition))
            raise
        transition: Any = data.transition
        if not data.result or transition is None:
            return nothing(self.name, state.value, trigger)
        row = self.known.get(id(transition)) if is_read else None
        if row is None:
            if getattr(transition, "row", None) is None:
                self.rows()  # gives it a number
            row = self.row_of(name, transition)
        effects = getattr(data, "effects", ())
        if effects or row.emit or not (is_read or id(row) in self.position):
            return self._step(row, effects)
        step = self.steps.get(id(row))
        if step is None or step.row is not row:
            step = self.steps[id(row)] = self._step(row)
        return step

    def _cares_for_refusals(self, state: Any) -> bool:
        """Whether the library does something about an illegal trigger, or lets it pass."""
        machine, ignores = self.machine, state.ignore_invalid_triggers
        if ignores is None:
            ignores = machine.ignore_invalid_triggers
        return bool(ignores or machine.on_exception or machine.finalize_event)


class _Conditions:
    """The conditions of a transition as a guard."""

    def __init__(self, machine: Any, transition: Any) -> None:
        self.machine = machine
        self.transition = transition
        self.parts = tuple((each.func, each.target) for each in transition.conditions)
        self.__name__ = " and ".join(
            name_of(func) if target else f"not {name_of(func)}" for func, target in self.parts
        )

    def __call__(self, entity: Any, info: Info) -> bool:
        nowhere: Any = None
        data = EventData(nowhere, nowhere, self.machine, entity, args=(), kwargs=dict(info))
        data.transition = self.transition
        return all(each.check(data) for each in self.transition.conditions)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Conditions):
            return NotImplemented
        return self.transition is other.transition and self.parts == other.parts

    def __hash__(self) -> int:
        return id(self.transition)


def copy_machine(machine: Any, cls: type[Any], name: str) -> Any:
    """A machine with copies of all parts, which share guards, emitters and callbacks."""
    copied = cls(
        model=None,
        states=[state.value for state in machine.states.values()],
        initial=machine.initial,
        name=name,
        send_event=True,
        auto_transitions=False,
        ignore_invalid_triggers=machine.ignore_invalid_triggers,
    )
    copied.__dict__["renamed"] = machine.renamed
    for state in machine.states.values():
        mine = copied.states[state.name]
        mine.final = getattr(state, "final", False)
        mine.ignore_invalid_triggers = state.ignore_invalid_triggers
        mine.on_enter.extend(state.on_enter)
        mine.on_exit.extend(state.on_exit)
    for trigger, event in machine.events.items():
        for source, transitions in event.transitions.items():
            for each in transitions:
                copied.add_transition(
                    trigger,
                    source,
                    each.dest or None,
                    conditions=[c.func for c in each.conditions if c.target],
                    unless=[c.func for c in each.conditions if not c.target],
                )
                transition = copied.events[trigger].transitions[source][-1]
                transition.__dict__["row"] = getattr(each, "row", None)
                for callbacks in ("prepare", "before", "after"):
                    getattr(transition, callbacks).extend(getattr(each, callbacks))
    for callbacks in LISTS:
        getattr(copied, callbacks).extend(getattr(machine, callbacks))
    return copied
