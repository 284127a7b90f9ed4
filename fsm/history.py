"""History: rows that return to where an entity was when it last left a composite (``nesting``).

The entity keeps in its attribute ``history`` which leaf it was in when it last left each composite. A guard
reads it, and the last emitter of the rows that leave the composite writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from quadriga.fsm.table import Effect, Fired, Guard, Info, State, Target, name_of


@dataclass(frozen=True, slots=True)
class History(Target):
    """The target of a row that returns to where the entity was when it last left a composite."""

    state: Any
    deep: bool = False

    def __str__(self) -> str:
        return f"history({self.state}{', deep' if self.deep else ''})"


def history(state: State, *, deep: bool = False) -> State:
    """A target: the state inside of the composite ``state`` that the entity left last.

    Without ``deep`` it is the state directly inside, and if that is a composite too, its initial state;
    with ``deep`` it is the very leaf. An entity that was never there enters the initial state. What was
    left is kept in the attribute ``history`` of the entity, a dictionary.
    """
    return cast(State, History(state, deep))


@dataclass(frozen=True)
class Was:
    """The guard of a row that returns to a leaf: the composite was last left from there."""

    composite: str
    back: str
    last: frozenset[str]
    guard: Guard | None

    @property
    def __name__(self) -> str:
        name = f"was_in_{self.back}"
        return name if self.guard is None else f"{name_of(self.guard)}_and_{name}"

    def __call__(self, entity: Any, info: Info) -> Any:
        return self.was_there(entity) and (self.guard is None or self.guard(entity, info))

    def was_there(self, entity: Any) -> bool:
        return (getattr(entity, "history", None) or {}).get(self.composite) in self.last


class AsyncWas(Was):
    """The same with an asynchronous guard."""

    async def __call__(self, entity: Any, info: Info) -> Any:
        return self.was_there(entity) and await cast(Any, self.guard)(entity, info)


@dataclass(frozen=True)
class Remember:
    """The last emitter of a row that leaves composites with history: when it runs, the guard and all other
    emitters have succeeded."""

    composites: tuple[str, ...]
    leaf: str

    def __call__(self, entity: Any, fired: Fired) -> tuple[Effect, ...]:
        left = getattr(entity, "history", None)
        if left is None:
            left = entity.history = {}
        left.update(dict.fromkeys(self.composites, self.leaf))
        return ()
