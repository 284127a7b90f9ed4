"""Names of states and triggers, and the errors of lifecycles: a wrong definition, or a trigger at the wrong
time.

A name is a string or a member of an ``Enum``. A lifecycle keeps it as it is written, so ``entity.state`` is a
member of the enumeration where the table has one. Texts, files and diagrams show the text of a member.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import Enum
from typing import Any

from transitions import MachineError

Name = str | Enum


def text_of(name: object) -> str:
    """The text of a state or a trigger: ``Open`` for ``"Open"``, ``Status.Open`` and a ``StrEnum``'s "Open"."""
    if isinstance(name, str):
        # Of a member of a StrEnum, or of an Enum that is a str too, its value.
        return str.__str__(name)
    return name.name if isinstance(name, Enum) else str(name)


def library_name(state: Name) -> str:
    """The name of a state in a machine of the library, which names every member of an Enum by its name."""
    return state.name if isinstance(state, Enum) else state


class DefinitionError(ValueError):
    """A table that is not a lifecycle. The message names the lifecycle and the row."""


class InvalidTransition(MachineError):
    """A trigger that is not legal in the current state of the entity. Nothing has changed.

    Fields: ``lifecycle`` (its name), ``key`` (the entity's), ``state``, ``trigger``, and ``possible``: the
    triggers that are legal in the state. The message lists them, and a name that a misspelled trigger
    resembles. ``unknown`` says that the lifecycle has no such trigger or state at all; "" if it has both. It is a ``transitions.MachineError``, so code written for the library catches it too. It can
    be pickled, because a driver may raise it in another process.
    """

    def __init__(
        self,
        lifecycle: str,
        key: str,
        state: Name,
        trigger: Name,
        possible: Iterable[Name] = (),
        unknown: str = "",
    ) -> None:
        self.lifecycle = lifecycle
        self.key = key
        self.state = state
        self.trigger = trigger
        self.possible = tuple(possible)
        self.unknown = unknown
        notes = []
        if self.possible:
            close = "" if unknown else did_you_mean(trigger, self.possible)
            notes.append(f"possible: {', '.join(map(text_of, self.possible))}{close}")
        if unknown:
            notes.append(unknown)
        said = f"{lifecycle} {key!r} cannot {text_of(trigger)!r} in state {text_of(state)}"
        super().__init__(f"{said} ({'; '.join(notes)})" if notes else said)

    def __reduce__(self) -> tuple[type[InvalidTransition], tuple[Any, ...]]:
        told = (self.lifecycle, self.key, self.state, self.trigger, self.possible, self.unknown)
        return type(self), told

    def __str__(self) -> str:
        return str(self.value)


def explain(error: Exception, lifecycle: str, entity: Any, row: object) -> None:
    """Add a note to an error of a guard or an emitter: which lifecycle, entity and row it belongs to.

    Our own errors say it already.
    """
    if not isinstance(error, (InvalidTransition, DefinitionError)):
        key = getattr(entity, "key", type(entity).__name__)
        note = f"{lifecycle} {key!r} in state {text_of(entity.state)}: raised in {row}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)


def impure(lifecycle: str, entity: Any, trigger: object, source: Name, now: Any) -> RuntimeError:
    """The error if the state has changed while guards and emitters were called: another change would undo
    that one, and nobody would notice."""
    key = getattr(entity, "key", type(entity).__name__)
    return RuntimeError(
        f"{lifecycle} {key!r}: a guard or an emitter of {text_of(trigger)!r} changed the state from "
        f"{text_of(source)} to {text_of(now)}; they only read the entity: fire when this trigger is done"
    )


def unknown_state(state: object, known: Iterable[object]) -> str:
    """``unknown state 'Opne' (states: Open, Shut; did you mean 'Open'?)``"""
    known = tuple(known)
    return f"unknown state {state!r} (states: {', '.join(map(text_of, known))}{did_you_mean(state, known)})"


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """``; did you mean 'run'?`` for a name that resembles a known one, else nothing.

    A member of an Enum differs from a string with the same text.
    """
    members = {text_of(each): each for each in known}
    names = list(members)
    if text_of(name) in members:
        meant = members[text_of(name)]
        return "" if meant == name else f"; did you mean {meant}, not {name!r}?"
    close = get_close_matches(text_of(name), names, 1)
    return f"; did you mean {close[0]!r}?" if close else ""
