"""The facts that guards and emitters read: which values they may have, and who decides.

A fact that is declared with several values is *free*: whenever it is read it may be any of them. Values
are chosen only when they are read, so a step branches on what its guards look at and on nothing else. See D305.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from inspect import signature
from typing import Any, Literal, get_args, get_origin, get_type_hints

from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.table import atoms

#: Decides on the value of a free fact: its name, and the values that it may have.
Answer = Callable[[str, tuple[Any, ...]], Any]


def declared_facts(lifecycle: Lifecycle) -> dict[str, tuple[Any, ...]]:
    """The facts whose type says which values they have: ``bool``, a ``Literal``, an ``Enum``.

    They are read from the types of the first parameters of guards and emitters, protocols for example.
    """
    found: dict[str, tuple[Any, ...]] = {}
    functions = (each for row in lifecycle.rows for each in (*atoms(row.guard), *row.emit))
    for function in functions:
        for name, hint in _facts_of(function).items():
            if name not in ("key", "state") and (values := _values_of(hint)):
                found.setdefault(name, values)
    return found


def _facts_of(function: Any) -> dict[str, Any]:
    try:
        first = next(iter(signature(function).parameters))
        kind = get_type_hints(function)[first]
        facts = dict(get_type_hints(kind))
        for each in reversed(kind.__mro__):
            for name, found in vars(each).items():
                if isinstance(found, property):
                    facts[name] = get_type_hints(found.fget).get("return")
    except (AttributeError, KeyError, NameError, StopIteration, TypeError, ValueError):
        return {}  # it says nothing of its argument, or something that exists for type checkers only
    return facts


def _values_of(hint: Any) -> tuple[Any, ...]:
    if hint is bool:
        return (False, True)
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(hint) if isinstance(hint, type) and issubclass(hint, Enum) else ()


class Answers:
    """Every combination of the values of those free facts that a step reads, one after the other."""

    def __init__(self, chosen: tuple[int, ...] = ()) -> None:
        self._chosen = chosen
        self._asked: list[tuple[int, int]] = []  # the value chosen, and of how many

    def __call__(self, name: str, values: tuple[Any, ...]) -> Any:
        at = len(self._asked)
        index = self._chosen[at] if at < len(self._chosen) else 0
        self._asked.append((index, len(values)))
        return values[index]

    def following(self) -> Answers | None:
        """The next combination, or ``None`` after the last one."""
        asked = self._asked
        while asked and asked[-1][0] + 1 == asked[-1][1]:
            asked.pop()
        if not asked:
            return None
        *before, (last, _) = asked
        return Answers((*(index for index, _ in before), last + 1))


class Info(dict[str, Any]):
    """The information of a trigger: what the sender says, and declared values for the rest."""

    def __init__(
        self, said: Mapping[str, Any], free: Mapping[str, tuple[Any, ...]], answer: Answer
    ) -> None:
        super().__init__(said)
        self._free, self._answer = free, answer

    def __missing__(self, name: str) -> Any:
        if name not in self._free:
            raise KeyError(f"{name}: the sender does not say it, and info= has no values for it")
        return self._answer(f"info.{name}", self._free[name])

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self or name in self._free else default
