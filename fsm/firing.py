"""The step that a trigger leads to in a state, the effects of a row, and what a trigger did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import GeneratorType
from typing import Any, Generic

from quadriga.fsm.errors import explain
from quadriga.fsm.table import Edge, Effect, Fired, Guard, Info, Row, State, Trigger, name_of


@dataclass(slots=True)
class Step:
    """The result of a trigger: the edge, the state, whether the state was entered, and the effects.

    All transitions of a row without emitters share one object.
    """

    edge: Edge
    target: Any
    #: a row that leads to its own source enters it again; a row that stays does not
    entered: bool
    #: The step has no effects, and the state has no time limit that starts: nothing else has to be done.
    quiet: bool = False
    effects: tuple[Effect, ...] = ()
    #: ``None`` if conditions or callbacks of the library have prevented every row
    row: Row | None = None


@dataclass(frozen=True, slots=True)
class Outcome(Generic[State, Trigger]):
    """What a trigger did to an entity.

    ``row`` is the row that was taken, ``None`` if conditions or callbacks added to the machine have
    prevented every row. ``entered`` is false if the entity stayed; a row that leads to its own source
    enters it anew. ``time`` is what the clock of the observer said, if it has one.
    """

    lifecycle: str
    entity: Any
    trigger: Trigger
    source: State
    target: State
    entered: bool
    effects: tuple[Effect, ...]
    row: Row[State, Trigger, Any] | None
    info: Info
    time: Any = None


#: Receives each step with the entity and the information from the caller.
Observer = Callable[[Step, Any, Info], object]

#: The rows of a state and a trigger, to try in order: guard, step, and the row if it has emitters.
Choices = tuple[tuple[Guard | None, Step, Row | None], ...]
#: A step alone if there is only one row, with neither guard nor emitters. Empty if the machine of the library
#: has to do more than to ask guards and emitters.
Cell = Step | Choices


def emit(entity: Any, row: Row, info: Info) -> tuple[Effect, ...]:
    """The effects of a row."""
    fired = Fired(row.trigger, row.source, row.target or row.source, info)
    if len(row.emit) == 1:
        made = row.emit[0](entity, fired)
        return made if made.__class__ is tuple else tuple(effects_of(row.emit[0], made))
    effects: list[Effect] = []
    for emitter in row.emit:
        effects += effects_of(emitter, emitter(entity, fired))
    return tuple(effects)


def effects_of(emitter: object, made: Any) -> Iterable[Effect]:
    """What an emitter has returned. Raises ``TypeError`` for anything that is no collection of effects, also
    if it could be iterated: a text, or the fields of one effect."""
    if made.__class__ is tuple or made.__class__ is GeneratorType:
        return made
    if (
        isinstance(made, (str, bytes, Mapping, Effect))
        or hasattr(made, "_fields")
        or not isinstance(made, Iterable)
    ):
        what = "one effect" if isinstance(made, Effect) else repr(made)
        raise TypeError(
            f"{name_of(emitter)} returned {what}; an emitter yields effects or returns a tuple of them, "
            "() for none"
        )
    return made


def chosen(cell: Cell, entity: Any, info: Info) -> Step | None:
    """The step of the first row whose guard agrees. ``Lifecycle.take`` contains the same, without a call."""
    if isinstance(cell, Step):
        return cell
    for guard, step, emitting in cell:
        try:
            if guard is None or guard(entity, info):
                if emitting is None:
                    return step
                effects = emit(entity, emitting, info)
                return Step(step.edge, step.target, step.entered, False, effects, step.row)
        except Exception as error:
            explain(error, step.edge.lifecycle, entity, step.row)
            raise
    return None


def nothing(lifecycle: str, state: Any, trigger: Any) -> Step:
    """No row was taken."""
    return Step(Edge(lifecycle, state, trigger, state), state, False, True)


def outcome_of(step: Step, entity: Any, info: Info, time: Any = None) -> Outcome:
    lifecycle, source, trigger, target = step.edge
    return Outcome(
        *(lifecycle, entity, trigger, source, target, step.entered, step.effects, step.row, info),
        time,
    )
