"""``quadriga-fsm``: the command of the engine, for the lifecycles and machines of any module that can be imported.

``COMMANDS`` has its subcommands: each function adds one, with a function ``run`` that takes the arguments and
returns the exit code. ``quadriga draw`` draws with the functions of this module too. See D302.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from quadriga.diagrams.errors import DiagramError
from quadriga.diagrams.importing import import_lifecycle, import_table
from quadriga.diagrams.state import FORMATS, render

Parsers = argparse._SubParsersAction

#: exit codes besides 0: wrong usage or input; the reader of the output has closed it
WRONG, CLOSED = 2, 141

_OTHER_SUFFIXES: Final = {"mmd": "mermaid", "puml": "plantuml", "gv": "dot", "txt": "text"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Raises ``SystemExit`` as argparse does."""
    import quadriga

    parser = argparse.ArgumentParser(
        "quadriga-fsm", description="Draw, check and type the lifecycles of a program."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {quadriga.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for configure in COMMANDS:
        configure(commands)
    given = parser.parse_args(arguments)
    try:
        code: int = given.run(given)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # the interpreter flushes standard output once more when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}"
    except (DiagramError, ValueError) as error:
        problem = str(error)
    print(f"quadriga-fsm: {problem}", file=sys.stderr)
    return WRONG


def _add_named(parser: argparse.ArgumentParser, what: str, name: str) -> None:
    help = "the current directory is searched too"
    parser.add_argument(what, metavar=f"MODULE:{name}", help=help)


def _add_output(parser: argparse.ArgumentParser) -> None:
    help = "output file (default: standard output)"
    parser.add_argument("-o", "--output", metavar="FILE", help=help)


# -- draw ------------------------------------------------------------------------------------------


def _add_draw(commands: Parsers[Any]) -> None:
    parser = commands.add_parser(
        "draw",
        help="draw a lifecycle",
        description="Draw the state diagram of a lifecycle. Text formats have no requirements; svg, png"
        " and pdf need graphviz.",
        epilog="example: quadriga-fsm draw shop.orders:ORDER -o order.svg",
    )
    _add_named(parser, "lifecycle", "TABLE")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="output format (default: by the suffix of --output, else dot)",
    )
    _add_output(parser)
    parser.add_argument(
        "--coverage",
        metavar="FILE",
        help="show how often each row was taken in a test run: the file of pytest --fsm-coverage-report",
    )
    parser.add_argument(
        "--left-to-right", action="store_true", help="draw from left to right (default: downwards)"
    )
    parser.add_argument("--dark", action="store_true", help="for pages with a dark background")
    parser.set_defaults(run=_draw)


def _draw(given: argparse.Namespace) -> int:
    format = given.format or format_of(given.output, "dot", FORMATS)
    lifecycle = import_lifecycle(given.lifecycle)
    coverage = None if given.coverage is None else read_coverage(given.coverage)
    style = {"left_to_right": given.left_to_right, "dark": given.dark}
    write(render(lifecycle, format, coverage=coverage, **style), given.output, format)
    return 0


# -- check -----------------------------------------------------------------------------------------


def _add_check(commands: Parsers[Any]) -> None:
    parser = commands.add_parser(
        "check",
        help="search every state of a lifecycle or a composition",
        description="Search every state that a lifecycle, or a System of several, can get into. The exit code"
        " is 0 if no rule is broken, 1 if one is or there are more states than --states.",
        epilog="example: quadriga-fsm check shop.orders:SYSTEM --states 100000",
    )
    _add_named(parser, "table", "TABLE")
    parser.add_argument(
        "--states", metavar="N", type=int, help="stop after N states (default: 100,000)"
    )
    parser.set_defaults(run=_check)


def _check(given: argparse.Namespace) -> int:
    from quadriga.fsm import Lifecycle
    from quadriga.fsm.checking import System, search

    subject = import_table(given.table, Lifecycle, System)
    report = search(subject, **({} if given.states is None else {"max_states": given.states}))
    print(report)
    return 0 if report.complete and report.violation is None else 1


# -- stubs -----------------------------------------------------------------------------------------


def _add_stubs(commands: Parsers[Any]) -> None:
    parser = commands.add_parser(
        "stubs",
        help="write the types of a machine's models",
        description="Write a module with the types of the models of a machine of the library transitions, so that"
        " type checkers know its states, its triggers and their arguments.",
        epilog="example: quadriga-fsm stubs shop.orders:machine -o shop/order_types.py",
    )
    _add_named(parser, "machine", "MACHINE")
    _add_output(parser)
    parser.set_defaults(run=_stubs)


def _stubs(given: argparse.Namespace) -> int:
    from transitions import Machine

    from quadriga.diagrams.stubs import stubs

    write(stubs(import_table(given.machine, Machine), given.machine), given.output, "stubs")
    return 0


#: The subcommands.
COMMANDS: Final[tuple[Callable[[Parsers[Any]], None], ...]] = (_add_draw, _add_check, _add_stubs)


# -- also for `quadriga draw` ------------------------------------------------------------------------


def format_of(output: str | None, otherwise: str, formats: Iterable[str]) -> str:
    """The format that the name of a file stands for."""
    suffix = Path(output).suffix.removeprefix(".") if output else ""
    format = _OTHER_SUFFIXES.get(suffix, suffix)
    return format if format in formats else otherwise


def read_coverage(file: str) -> Any:
    """The report of the pytest plugin. Raises ``DiagramError`` for another file."""
    try:
        return json.loads(Path(file).read_text(encoding="utf-8"))
    except ValueError:
        raise DiagramError(
            f"{file} is not a coverage file (the JSON of pytest --fsm-coverage-report)"
        ) from None


def write(drawn: str | bytes, output: str | None, format: str) -> None:
    """Write a diagram to a file or to standard output. Raises ``DiagramError`` for an image on a terminal."""
    if output is not None:
        Path(output).write_bytes(drawn.encode() if isinstance(drawn, str) else drawn)
    elif isinstance(drawn, str):
        sys.stdout.write(drawn)
    elif sys.stdout.isatty():
        raise DiagramError(f"{format} cannot be printed on a terminal; give a file with --output")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(drawn)
