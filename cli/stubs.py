"""The names of a lifecycle as types: a module with a ``Literal`` of all states and one of all triggers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from quadriga.cli.errors import CommandError

if TYPE_CHECKING:
    from quadriga.fsm import Lifecycle


def stubs(lifecycle: Lifecycle, name: str) -> str:
    """The source of the module, which imports nothing of ours; ``name`` is that of the table in the command.

    Raises ``CommandError`` for a table with members of an Enum, because the Enum is a type already.
    """
    states = (*lifecycle.states, *lifecycle.composites)
    return "\n".join(
        (
            f'"""The names of the lifecycle {lifecycle.name}, as types.',
            "",
            f"Made by `quadriga lifecycles --stubs {name}`.",
            '"""',
            "",
            "from typing import Literal",
            "",
            '__all__ = ["State", "Trigger"]',
            "",
            *_literal("State", states, name),
            "",
            *_literal("Trigger", lifecycle.triggers(), name),
            "",
        )
    )


def _literal(type_name: str, names: Iterable[object], table: str) -> Iterator[str]:
    yield f"{type_name} = Literal["
    for each in names:
        if type(each) is not str:
            made = type(each).__name__
            raise CommandError(
                f"{table} has members of {made}, which is a type already: write {made} for {type_name} "
                "in Lifecycle[State, Trigger]"
            )
        yield f"    {json.dumps(each, ensure_ascii=False)},"
    yield "]"
