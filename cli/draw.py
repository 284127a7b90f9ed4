"""``quadriga draw``: lifecycles as diagrams."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from quadriga.cli.errors import USAGE, CommandError

if TYPE_CHECKING:
    from quadriga.cli.parsing import Commands

__all__ = ["configure"]

_FORMATS = ("dot", "mermaid", "plantuml", "scxml", "md", "json", "svg", "png", "pdf")
_FLOW_FORMATS = ("mermaid", "plantuml", "text")
#: formats whose name in `quadriga.diagrams` differs from the option
_LONG = {"md": "markdown"}
_SUFFIXES = {"mmd": "mermaid", "puml": "plantuml", "gv": "dot"}


def configure(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "draw",
        help="draw a lifecycle",
        description="Draw the state diagram of a lifecycle. Text formats have no requirements; svg, png"
        " and pdf need graphviz.",
    )
    parser.add_argument(
        "lifecycle", nargs="?", help="name of the lifecycle, as listed by 'quadriga lifecycles'"
    )
    parser.add_argument(
        "--format",
        choices=(*_FORMATS, "text"),
        help="output format (default: by the suffix of --output, else dot)",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="output file (default: standard output)"
    )
    parser.add_argument(
        "--all",
        metavar="DIR",
        help="write the gallery of the scheduler's lifecycles there, in all text formats and svg"
        " (with --format in that one)",
    )
    parser.add_argument(
        "--flow",
        metavar="NAME",
        help="draw the messages of a gang's flow, recorded from a run, as a sequence diagram:"
        " gang-start, hard-timeout, soft-timeout, clean-up (mermaid, plantuml or text)",
    )
    parser.set_defaults(run=run)


def run(arguments: Namespace) -> int:
    """Draw one lifecycle, all lifecycles, or a flow."""
    what = (arguments.lifecycle, arguments.all, arguments.flow)
    if sum(each is not None for each in what) != 1:
        raise CommandError("draw: give the name of a lifecycle, --all DIR or --flow NAME", USAGE)
    if arguments.all is not None and arguments.output is not None:
        raise CommandError("draw: --all DIR and --output do not go together", USAGE)
    from quadriga.diagrams import DiagramError

    try:
        if arguments.flow is not None:
            return _draw_flow(arguments)
        return _draw_all(arguments) if arguments.all is not None else _draw_one(arguments)
    except DiagramError as error:
        raise CommandError(f"draw: {error}") from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"draw: {error.filename}: {error.strerror}") from error


def _draw_one(arguments: Namespace) -> int:
    from quadriga.cli.catalogue import find_lifecycle
    from quadriga.diagrams import render

    lifecycle = find_lifecycle(arguments.lifecycle)
    format = arguments.format or _by_name(arguments.output)
    if format == "text":
        raise CommandError("draw: the format text is only for flows; use md for a lifecycle", USAGE)
    drawn = render(lifecycle, _LONG.get(format, format))
    content = drawn.encode() if isinstance(drawn, str) else drawn
    if arguments.output is not None:
        Path(arguments.output).write_bytes(content)
    elif isinstance(drawn, str):
        sys.stdout.write(drawn)
    elif sys.stdout.isatty():
        raise CommandError(
            f"draw: {format} cannot be printed on a terminal; give a file with --output"
        )
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    return 0


def _draw_flow(arguments: Namespace) -> int:
    from quadriga.diagrams import Message, sequence
    from quadriga.sim.flows import FLOWS, record

    if arguments.flow not in FLOWS:
        names = ", ".join(FLOWS)
        raise CommandError(f"draw: no flow is called {arguments.flow!r}: there are {names}", USAGE)
    format = arguments.format or "mermaid"
    if format not in _FLOW_FORMATS:
        raise CommandError(f"draw: a flow is drawn as {', '.join(_FLOW_FORMATS)}", USAGE)
    drawn = sequence([Message(*exchange) for exchange in record(arguments.flow)], format)
    if arguments.output is not None:
        Path(arguments.output).write_text(drawn, encoding="utf-8")
    else:
        sys.stdout.write(drawn)
    return 0


def _draw_all(arguments: Namespace) -> int:
    from quadriga.diagrams import GALLERY_FORMATS, write_gallery

    format = arguments.format
    formats = (_LONG.get(format, format),) if format else GALLERY_FORMATS
    written = write_gallery(arguments.all, formats)
    print(f"{len(written)} files in {arguments.all}")
    return 0


def _by_name(output: str | None) -> str:
    suffix = Path(output).suffix.removeprefix(".") if output else ""
    if suffix in _FORMATS:
        return suffix
    return _SUFFIXES.get(suffix, "dot")
