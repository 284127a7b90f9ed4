"""The language of lifecycles: rows, time limits of states, effects.

A row reads from left to right: this trigger, in one of these states, leads to that state, if the guard
agrees, and causes these effects. Guards and emitters are pure: they read the entity and the
information from the caller, and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from inspect import iscoroutinefunction
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, Never, Protocol

from quadriga.fsm.errors import DefinitionError, Name, text_of

if TYPE_CHECKING:
    # This one may have a default, as typing.TypeVar from Python 3.13 on.
    from typing_extensions import TypeVar
else:
    from typing import TypeVar


class Every(str):
    """The type of ``EVERY``, so that a typed table accepts it where only its states are accepted."""

    __slots__ = ()


#: As the source of a row: every state that is not final, not the row's own target, and in which no
#: earlier row always takes the trigger. ``"*"`` means the same, but is no state to a type checker.
EVERY: Final = Every("*")

# The states and the triggers of a lifecycle, each a ``Literal`` of all names or an ``Enum``, and what the
# guard and the emitters of a row read of an entity. A plain ``Lifecycle`` without type arguments has any
# states and triggers.
if TYPE_CHECKING:
    State = TypeVar("State", bound=Name, default=Any)
    Trigger = TypeVar("Trigger", bound=Name, default=Any)
    Needs = TypeVar("Needs", contravariant=True, default=Any)
else:
    State = TypeVar("State", bound=Name)
    Trigger = TypeVar("Trigger", bound=Name)
    Needs = TypeVar("Needs", contravariant=True)


#: How a state is shown: the entity works, waits, has ended well, or has failed.
Tone = Literal["good", "wait", "done", "bad"]


class Entity(Protocol[State]):
    """An object that can have a lifecycle: a ``state``, a string or a member of an Enum, and a ``key`` that
    errors name."""

    state: State

    @property
    def key(self) -> str: ...


class Effect:
    """Something to do because of a transition. It is data only: the caller of ``fire`` executes it."""

    __slots__ = ()


# The type of the entities of a lifecycle: what its guards and emitters read. It is covariant, so that a
# lifecycle of entities with certain facts is one of entities; nothing but the table fires by itself.
if TYPE_CHECKING:
    Facts = TypeVar("Facts", bound=Entity[Any], covariant=True, default=Entity[State])
else:
    Facts = TypeVar("Facts", bound=Entity, covariant=True)

Info = Mapping[str, Any]
#: The truth of its result decides.
Guard = Callable[[Any, Info], object]


class Fired(NamedTuple, Generic[State, Trigger]):
    """The argument of an emitter: the trigger, both states, and the information from the caller."""

    trigger: Trigger
    source: State
    target: State
    info: Info


class Edge(NamedTuple):
    """A transition from state to state by a trigger; all entities that take it share one object.

    If the table has members of an Enum, so has the edge.
    """

    lifecycle: str
    source: str
    trigger: str
    target: str


Emitter = Callable[[Any, Fired], Iterable[Effect]]

#: One emitter or several.
Calls = (
    Callable[[Needs, Fired], Iterable[Effect]]
    | tuple[Callable[[Needs, Fired], Iterable[Effect]], ...]
)

#: The target of a row that is legal and does not change the state, its timer or its entry count.
STAYS: Final = None

#: States that are the sources of a row together; a group may contain others.
Group = (
    frozenset[State]
    | tuple[
        State | frozenset[State] | tuple[State | frozenset[State] | tuple[State, ...], ...], ...
    ]
)


class Target:
    """A target that is not a state but stands for one inside of it (``history``)."""

    __slots__ = ()
    state: Any


@dataclass(frozen=True, slots=True)
class Row(Generic[State, Trigger, Needs]):
    """One line of a table, for one source state (``row`` makes several at once).

    ``target`` is ``None`` for a row that stays. ``line`` is the number of the written row, from 0; errors,
    diagrams and coverage reports refer to it. ``emit`` has all emitters that are called, in order: those for
    leaving the source, those of the row itself (``own_emit``), and those for entering the target.
    """

    trigger: Trigger
    source: State
    target: State | None
    guard: Callable[[Needs, Info], object] | None = None
    emit: tuple[Callable[[Needs, Fired], Iterable[Effect]], ...] = ()
    why: str = ""
    line: int = 0
    #: the emitters of the row itself, if there are others too
    own: tuple[Callable[[Needs, Fired], Iterable[Effect]], ...] | None = None

    if not TYPE_CHECKING:
        __class_getitem__ = classmethod(GenericAlias)  # two types suffice, as for the type checker

    @property
    def own_emit(self) -> tuple[Callable[[Needs, Fired], Iterable[Effect]], ...]:
        """The emitters that are written in the row."""
        return self.emit if self.own is None else self.own

    @property
    def label(self) -> str:
        """The trigger, with its guard in brackets: ``run [in_stateaware_queue]``."""
        trigger = text_of(self.trigger)
        return f"{trigger} [{name_of(self.guard)}]" if self.guard else trigger

    def __str__(self) -> str:
        target = "stays" if self.target is None else text_of(self.target)
        return f"row {self.line}: {text_of(self.source)} --{self.label}--> {target}"


def row(
    trigger: Trigger,
    source: State | Every | Group[State],
    target: State | None,
    *misplaced: Never,
    when: Callable[[Needs, Info], object] | None = None,
    emit: Calls[Needs] = (),
    why: str = "",
) -> tuple[Row[State, Trigger, Needs], ...]:
    """One written line of a table: a row for each source state.

    ``source`` is a state, a group of states (a tuple, which may contain other groups, or a ``frozenset``),
    or ``"*"`` (see ``EVERY``). Raises ``DefinitionError`` for arguments of the wrong kind.
    """
    named = f"row {text_of(trigger)!r}"
    if misplaced:
        raise DefinitionError(
            f"{named}: {name_of(misplaced[0])} has no place after the target; "
            "write when= before a guard and emit= before emitters"
        )
    if not isinstance(trigger, Name):
        raise DefinitionError(
            f"{named}: a trigger is a string or a member of an Enum; write a row for each trigger"
        )
    if target is not None and not isinstance(target, (Name, Target)):
        raise DefinitionError(
            f"{named}: the target {target!r} is not a state; a row leads to one state, or STAYS"
        )
    if isinstance(emit, list):
        raise DefinitionError(f"{named}: emit is a list; write a tuple")
    sources = (source,) if isinstance(source, Name) else tuple(_states_of(source, named))
    if not sources:
        raise DefinitionError(f"{named} to {text_of(target)!r} has no source state")
    emitters = emit if isinstance(emit, tuple) else (emit,)
    return tuple(Row(trigger, each, target, when, emitters, why) for each in dict.fromkeys(sources))


def _states_of(group: object, named: str) -> Iterable[Any]:
    """The states of a group, which may contain other groups; those of a set in the order of their texts."""
    if isinstance(group, Name):
        if group == EVERY:
            raise DefinitionError(f"{named}: '*' is a source by itself, not one of several")
        return (group,)
    if isinstance(group, frozenset):
        group = tuple(sorted(group, key=text_of))
    if not isinstance(group, tuple):
        raise DefinitionError(
            f"{named}: the source {group!r} is not a state; a group of states is a tuple or a frozenset"
        )
    return (state for each in group for state in _states_of(each, named))


@dataclass(frozen=True, slots=True)
class Composed:
    """A guard that is made of others (``all_of``, ``any_of``, ``not_``). Two of the same parts are equal."""

    word: str  # "not", or what stands between the parts
    parts: tuple[Guard, ...]

    @property
    def __name__(self) -> str:
        names = [
            f"({name_of(part)})" if getattr(part, "word", "not") != "not" else name_of(part)
            for part in self.parts
        ]
        return f"not {names[0]}" if self.word == "not" else f" {self.word} ".join(names)

    def __post_init__(self) -> None:
        for part in self.parts:
            if not callable(part) or iscoroutinefunction(part):
                raise DefinitionError(
                    f"{name_of(part)} is async or cannot be called: it is no part of another guard"
                )

    def __call__(self, entity: Any, info: Info) -> bool:
        answers = (part(entity, info) for part in self.parts)
        if self.word == "not":
            return not next(answers)
        return all(answers) if self.word == "and" else any(answers)


def all_of(*guards: Callable[[Needs, Info], object]) -> Callable[[Needs, Info], object]:
    """A guard that agrees if all of these do. They are asked in this order until one does not."""
    return Composed("and", guards)


def any_of(*guards: Callable[[Needs, Info], object]) -> Callable[[Needs, Info], object]:
    """A guard that agrees if one of these does. They are asked in this order until one does."""
    return Composed("or", guards)


def not_(guard: Callable[[Needs, Info], object]) -> Callable[[Needs, Info], object]:
    """A guard that agrees if this one does not. Diagrams show it as ``not`` and its name."""
    return Composed("not", (guard,))


def atoms(guard: Any) -> Iterator[Any]:
    """The functions that a guard is made of, from left to right; of another guard itself."""
    for part in guard.parts if isinstance(guard, Composed) else ():
        yield from atoms(part)
    if not isinstance(guard, Composed):
        yield guard


def ignored(
    trigger: Trigger, source: State | Every | Group[State], why: str
) -> tuple[Row[State, Trigger], ...]:
    """A trigger that is legal here and does nothing, with the reason for that."""
    return row(trigger, source, STAYS, why=why)


@dataclass(frozen=True, slots=True)
class Within:
    """A state lasts at most ``ns``. Then ``then`` is fired, or, without it, the watchdog reports.

    If ``then`` does not change the state, it is fired again after twice the time, up to ``backoff_to``.
    Without ``backoff_to`` it is fired once.
    """

    ns: int
    then: Any = None  # a trigger
    backoff_to: int | None = None


@dataclass(frozen=True, slots=True)
class Unbounded:
    """A state may last for ever; the trigger ``ends`` from outside ends it."""

    ends: Any  # a trigger


Limit = Within | Unbounded


def within(
    limit: int | timedelta, *, then: Name | None = None, backoff_to: int | timedelta | None = None
) -> Within:
    """At most ``limit`` in this state: nanoseconds, or a ``timedelta``.

    A lifecycle refuses any other type: a float could be seconds or nanoseconds.
    """
    return Within(_in_ns(limit), then, None if backoff_to is None else _in_ns(backoff_to))


def unbounded(ends: Name) -> Unbounded:
    """No limit; ``ends`` is the trigger that leads out of the state."""
    return Unbounded(ends)


def _in_ns(limit: int | timedelta) -> int:
    # exactly: total_seconds() is a float
    return limit // timedelta(microseconds=1) * 1000 if isinstance(limit, timedelta) else limit


def name_of(function: object) -> str:
    """The name under which a guard or an emitter appears in texts and diagrams.

    A partial has the name of its function, and any other object that of its class: the ``repr`` of an object
    contains an address, and a diagram must be the same every time.
    """
    while isinstance(function, partial):
        function = function.func
    return (
        function
        if isinstance(function, str)
        else getattr(function, "__name__", type(function).__name__)
    )
