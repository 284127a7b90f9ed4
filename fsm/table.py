"""The language of lifecycles: rows, time limits of states, effects.

A row reads from left to right: this trigger, in one of these states, leads to that state, if the guard
agrees, and causes these effects. Guards and emitters are pure: they read the entity and the
information from the caller, and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, Protocol

from quadriga.fsm.errors import DefinitionError

if TYPE_CHECKING:
    from typing_extensions import (
        TypeVar,
    )  # this one may have a default, as typing.TypeVar from Python 3.13 on
else:
    from typing import TypeVar


__all__ = [
    "HOUR",
    "MINUTE",
    "SECOND",
    "STAYS",
    "Edge",
    "Effect",
    "Emitter",
    "Entity",
    "Fired",
    "Guard",
    "Info",
    "Limit",
    "Row",
    "State",
    "Tone",
    "Trigger",
    "Unbounded",
    "Within",
    "ignored",
    "row",
    "unbounded",
    "within",
]

SECOND: Final = 1_000_000_000  # all times are integer nanoseconds
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE

# The states and the triggers of a lifecycle, each a ``Literal`` of all names. A plain ``Lifecycle``
# without type arguments has any states and triggers.
if TYPE_CHECKING:
    State = TypeVar("State", bound=str, default=Any)
    Trigger = TypeVar("Trigger", bound=str, default=Any)
else:
    State = TypeVar("State", bound=str)
    Trigger = TypeVar("Trigger", bound=str)


#: How a state is shown: the entity works, waits, has ended well, or has failed.
Tone = Literal["good", "wait", "done", "bad"]


class Entity(Protocol[State]):
    """An object that can have a lifecycle: a plain ``state`` string, and a ``key`` that errors name."""

    state: State

    @property
    def key(self) -> str: ...


class Effect:
    """Something to do because of a transition. It is data only: the caller of ``fire`` executes it."""

    __slots__ = ()


Info = Mapping[str, Any]
#: The truth of its result decides.
Guard = Callable[[Any, Info], object]


class Fired(NamedTuple):
    """The argument of an emitter: the trigger, both states, and the information from the caller."""

    trigger: str
    source: str
    target: str
    info: Info


class Edge(NamedTuple):
    """A transition from state to state by a trigger; all entities that take it share one object."""

    lifecycle: str
    source: str
    trigger: str
    target: str


Emitter = Callable[[Any, Fired], Iterable[Effect]]

#: The target of a row that is legal and does not change the state, its timer or its entry count.
STAYS: Final = None


@dataclass(frozen=True, slots=True)
class Row(Generic[State, Trigger]):
    """One line of a table, for one source state (``row`` makes several at once).

    ``target`` is ``None`` for a row that stays. ``line`` is the number of the written row, from 0; errors,
    diagrams and coverage reports refer to it.
    """

    trigger: Trigger
    source: State
    target: State | None
    guard: Guard | None = None
    emit: tuple[Emitter, ...] = ()
    why: str = ""
    line: int = 0

    @property
    def label(self) -> str:
        """The trigger, with its guard in brackets: ``run [in_stateaware_queue]``."""
        return f"{self.trigger} [{name_of(self.guard)}]" if self.guard else self.trigger

    def __str__(self) -> str:
        target = "stays" if self.target is None else self.target
        return f"row {self.line}: {self.source} --{self.label}--> {target}"


def row(
    trigger: Trigger,
    source: State | tuple[State, ...],
    target: State | None,
    *,
    when: Guard | None = None,
    emit: Emitter | tuple[Emitter, ...] = (),
    why: str = "",
) -> tuple[Row[State, Trigger], ...]:
    """One written line of a table: a row for each source state."""
    sources: tuple[State, ...] = (source,) if isinstance(source, str) else source
    if not sources:
        raise DefinitionError(f"row {trigger!r} to {target!r} has no source state")
    emitters = emit if isinstance(emit, tuple) else (emit,)
    return tuple(Row(trigger, each, target, when, emitters, why) for each in sources)


def ignored(
    trigger: Trigger, source: State | tuple[State, ...], why: str
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
    then: str | None = None
    backoff_to: int | None = None


@dataclass(frozen=True, slots=True)
class Unbounded:
    """A state may last for ever; the trigger ``ends`` from outside ends it."""

    ends: str


Limit = Within | Unbounded


def within(ns: int, *, then: str | None = None, backoff_to: int | None = None) -> Within:
    """At most ``ns`` nanoseconds in this state."""
    return Within(ns, then, backoff_to)


def unbounded(ends: str) -> Unbounded:
    """No limit; ``ends`` is the trigger that leads out of the state."""
    return Unbounded(ends)


def name_of(function: object) -> str:
    """The name under which a guard or an emitter appears in texts and diagrams."""
    return str(getattr(function, "__name__", function))
