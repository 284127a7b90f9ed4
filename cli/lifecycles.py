"""``quadriga lifecycles``: transition tables on the terminal."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from quadriga.cli.errors import USAGE, CommandError

if TYPE_CHECKING:
    from quadriga.cli.parsing import Commands
    from quadriga.fsm import Lifecycle, Row


def configure(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "lifecycles",
        help="show the transition tables of the lifecycles",
        description="List all lifecycles, or show the transition table of one. With --stubs print a"
        " Python module with its states and triggers as types.",
        epilog="examples:\n  quadriga lifecycles\n  quadriga lifecycles application\n",
    )
    parser.add_argument(
        "name",
        nargs="?",
        help="the lifecycle to show: its name, package.module:TABLE for one of your own, or all",
    )
    parser.add_argument(
        "--stubs",
        action="store_true",
        help="print a module with the types State and Trigger, for Lifecycle[State, Trigger]",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="with --stubs: output file (default: standard output)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the list as JSON (a table: draw --format json)"
    )
    parser.set_defaults(run=run)


def run(arguments: Namespace) -> int:
    """Print the list of lifecycles, or their tables."""
    from quadriga.cli.catalogue import all_lifecycles, find_lifecycle

    if arguments.stubs:
        return _write_stubs(arguments)
    if arguments.output is not None:
        raise CommandError("lifecycles: --output is only for --stubs", USAGE)
    if arguments.name is None:
        found = [_summary(each) for each in all_lifecycles().values()]
        if arguments.json:
            print(json.dumps([each._asdict() for each in found], indent=2))
        else:
            rows = [tuple(_cell(value) for value in each) for each in found]
            print("\n".join(_aligned([_Summary._fields, *rows])))
    elif arguments.json:
        raise CommandError("lifecycles: --json is for the list; a table: draw --format json", USAGE)
    elif arguments.name == "all":
        print("\n\n".join(_table(each) for each in all_lifecycles().values()))
    else:
        print(_table(find_lifecycle(arguments.name)))
    return 0


def _write_stubs(arguments: Namespace) -> int:
    from quadriga.cli.catalogue import find_lifecycle

    if arguments.name in (None, "all"):
        raise CommandError("lifecycles: --stubs needs the name of one lifecycle", USAGE)
    text = stubs(find_lifecycle(arguments.name), arguments.name)
    if arguments.output is None:
        sys.stdout.write(text)
        return 0
    try:
        Path(arguments.output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"lifecycles: {error.filename}: {error.strerror}") from error
    return 0


class _Summary(NamedTuple):
    lifecycle: str
    states: int
    rows: int
    begins: str
    ends: tuple[str, ...]


def _summary(lifecycle: Lifecycle) -> _Summary:
    rows = len({row.line for row in lifecycle.rows})
    return _Summary(
        lifecycle.name, len(lifecycle.states), rows, lifecycle.initial, tuple(lifecycle.final)
    )


def _cell(value: str | int | tuple[str, ...]) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _table(lifecycle: Lifecycle) -> str:
    from quadriga.diagrams.wording import actions, limit

    lifecycle = lifecycle.as_text()
    states = [("state", "", "lasts", "effects")]
    for state in lifecycle.states:
        kind = "begins" if state == lifecycle.initial else ""
        kind = "ends" if state in lifecycle.final else kind
        done = "; ".join(actions(lifecycle, state))
        states.append((state, kind, limit(lifecycle, state), done))
    written: dict[int, list[Row]] = {}
    for row in lifecycle.rows:
        written.setdefault(row.line, []).append(row)
    rows = [("trigger", "from", "to", "if", "effects", "why")]
    rows += [_row(of_line) for of_line in written.values()]
    return "\n".join((lifecycle.name, "", *_aligned(states), "", *_aligned(rows)))


def _row(rows: list[Row]) -> tuple[str, str, str, str, str, str]:
    from quadriga.diagrams.wording import effects
    from quadriga.fsm.table import name_of

    first = rows[0]
    return (
        first.trigger,
        ", ".join(row.source for row in rows),
        "stays" if first.target is None else first.target,
        name_of(first.guard) if first.guard else "",
        effects(first),
        first.why,
    )


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Aligned columns under their headers; empty columns are left out."""
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    for number, row in enumerate(zip(*columns, strict=True)):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield ("  " + "  ".join(cells)).rstrip()
        if not number:
            yield "  " + "  ".join("-" * width for width in widths)


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
