"""The names of states and triggers: strings, or members of an ``Enum``.

A lifecycle keeps them as they are written, so ``entity.state`` is a member of the enumeration where the
table has one. Texts, files and diagrams show the text of a member: the value of a ``StrEnum``, and the
name of any other one.
"""

from __future__ import annotations

from enum import Enum

__all__ = ["Name", "library_name", "text_of"]

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
