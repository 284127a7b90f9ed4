"""The words a lifecycle is written in: rows, time limits of states, effects.

A row reads from left to right: this trigger, in one of these states, leads there, if the guard
agrees, and causes these effects. Guards and emitters are pure: they look at the entity and at what
the caller said, and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, Protocol

from quadriga.fsm.errors import DefinitionError

if TYPE_CHECKING:
    # The TypeVar of the library has a default parameter from Python 3.13 on.
    from typing_extensions import TypeVar
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

# The states and the triggers of a lifecycle, each a ``Literal`` of all their names. A ``Lifecycle``
# of which no more is said is one of any states and triggers.
if TYPE_CHECKING:
    State = TypeVar("State", bound=str, default=Any)
    Trigger = TypeVar("Trigger", bound=str, default=Any)
else:
    State = TypeVar("State", bound=str)
    Trigger = TypeVar("Trigger", bound=str)


#: How a state is shown: the entity does well, waits, is through, or came to harm.
Tone = Literal["good", "wait", "done", "bad"]


class Entity(Protocol[State]):
    """What can live a lifecycle: a plain ``state`` string and a ``key`` to name it in errors."""

    state: State

    @property
    def key(self) -> str: ...


class Effect:
    """Something to be done because of a transition. Data only: whoever fires executes it."""

    __slots__ = ()


Info = Mapping[str, Any]
#: whatever it returns counts as yes or no
Guard = Callable[[Any, Info], object]


class Fired(NamedTuple):
    """What an emitter is told: the trigger, where it leads, and what the caller added."""

    trigger: str
    source: str
    target: str
    info: Info


class Edge(NamedTuple):
    """A way that an entity has gone; all that have gone it share one object."""

    lifecycle: str
    source: str
    trigger: str
    target: str


Emitter = Callable[[Any, Fired], Iterable[Effect]]

#: Destination of a row that is legal and leaves the state, its timer and its entry count alone.
STAYS: Final = None


@dataclass(frozen=True, slots=True)
class Row(Generic[State, Trigger]):
    """One line of a table, for one source state (``row`` writes several at once).

    ``target`` is ``None`` for a row that stays. ``line`` is the number of the written row, from 0,
    so that an error, a diagram and a coverage report can point at it.
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
    """One written line of a table: a row for each of its source states."""
    sources: tuple[State, ...] = (source,) if isinstance(source, str) else source
    if not sources:
        raise DefinitionError(f"row {trigger!r} to {target!r} has no source state")
    emitters = emit if isinstance(emit, tuple) else (emit,)
    return tuple(Row(trigger, each, target, when, emitters, why) for each in sources)


def ignored(
    trigger: Trigger, source: State | tuple[State, ...], why: str
) -> tuple[Row[State, Trigger], ...]:
    """A trigger that is legal here and does nothing, with the reason why that is right."""
    return row(trigger, source, STAYS, why=why)


@dataclass(frozen=True, slots=True)
class Within:
    """A state lasts at most ``ns``. Then ``then`` is fired, or, without it, the watchdog reports.

    Where ``then`` leaves the entity in the state, it is fired again after twice the time, up to
    ``backoff_to``; without ``backoff_to`` once is enough.
    """

    ns: int
    then: str | None = None
    backoff_to: int | None = None


@dataclass(frozen=True, slots=True)
class Unbounded:
    """A state may last for ever, and this trigger from outside is what ends it."""

    ends: str


Limit = Within | Unbounded


def within(ns: int, *, then: str | None = None, backoff_to: int | None = None) -> Within:
    """At most ``ns`` nanoseconds in this state."""
    return Within(ns, then, backoff_to)


def unbounded(ends: str) -> Unbounded:
    """No limit; ``ends`` names the trigger that leads out."""
    return Unbounded(ends)


def name_of(function: object) -> str:
    """The name under which a guard or an emitter appears in texts and diagrams."""
    return str(getattr(function, "__name__", function))
