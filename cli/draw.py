"""``quadriga draw``: lifecycles as diagrams."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quadriga.cli.errors import USAGE, CommandError, about

if TYPE_CHECKING:
    from quadriga.cli.parsing import Commands
    from quadriga.fsm import Lifecycle
    from quadriga.si.recorder import Exchange
    from quadriga.sim.scripted.recording import Line


def configure(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "draw",
        help="draw a lifecycle",
        description="Draw the state diagram of a lifecycle. Text formats have no requirements; svg, png"
        " and pdf need graphviz.",
        epilog="examples:\n  quadriga draw application -o application.svg\n"
        "  quadriga draw task --path run.jsonl#application/17\n",
    )
    parser.add_argument(
        "lifecycle",
        nargs="?",
        help="name of the lifecycle, as listed by 'quadriga lifecycles', or package.module:TABLE for"
        " one of your own (the current directory is searched too); 'dispatcher' for the table of"
        " messages, as Markdown",
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
        help="write the gallery of the lifecycles of the scheduler and the Kubernetes shim there, as"
        " tables (md) and pictures (svg), or in the format of --format",
    )
    parser.add_argument(
        "--flow",
        metavar="NAME",
        help="draw the messages of a gang's flow, recorded from a run, as a sequence diagram:"
        " gang-start, hard-timeout, soft-timeout, clean-up (mermaid, plantuml, svg or text)",
    )
    parser.add_argument(
        "--messages",
        metavar="FILE[#NAME]",
        help="draw recorded messages as a sequence diagram: the file of 'simulate --messages' or of a"
        " Recorder; with a name only those about that application, node, ask or allocation",
    )
    marks = parser.add_mutually_exclusive_group()
    marks.add_argument(
        "--coverage",
        metavar="FILE",
        help="show how often each row was taken in a test run: the file of pytest"
        " --fsm-coverage-report",
    )
    marks.add_argument(
        "--path",
        metavar="FILE#KEY",
        help="show the path of one entity: the journal of a simulation or a service, and the key as"
        " for 'quadriga story' (run.jsonl#application/8687); with a key of the scheduler the name of"
        " the lifecycle can be left out",
    )
    parser.add_argument(
        "--left-to-right", action="store_true", help="draw from left to right (default: downwards)"
    )
    parser.add_argument("--dark", action="store_true", help="for pages with a dark background")
    parser.set_defaults(run=run)


def run(arguments: Namespace) -> int:
    """Draw one lifecycle, all lifecycles, or a flow."""
    flow = arguments.flow if arguments.flow is not None else arguments.messages
    what = (arguments.lifecycle or arguments.path, arguments.all, arguments.flow)
    if sum(each is not None for each in (*what, arguments.messages)) != 1:
        raise CommandError(
            "draw: give the name of a lifecycle, --all DIR, --flow NAME or --messages FILE", USAGE
        )
    if arguments.all is not None and arguments.output is not None:
        raise CommandError("draw: --all DIR and --output do not go together", USAGE)
    _refuse_options(arguments)
    from quadriga.diagrams import DiagramError

    try:
        if flow is not None:
            return _draw_flow(arguments)
        if arguments.lifecycle == "dispatcher":
            return _draw_messages(arguments)
        return _draw_all(arguments) if arguments.all is not None else _draw_one(arguments)
    except DiagramError as error:
        raise CommandError(f"draw: {error}") from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"draw: {error.filename}: {error.strerror}") from error


def _refuse_options(arguments: Namespace) -> None:
    """Options of one lifecycle do not go with the gallery or a flow."""
    others = {
        "--flow NAME": arguments.flow,
        "--messages FILE": arguments.messages,
        "--all DIR": arguments.all,
    }
    other = next((name for name, given in others.items() if given is not None), None)
    if other is None:
        return
    options = {
        "--coverage": arguments.coverage,
        "--left-to-right": arguments.left_to_right,
        "--dark": arguments.dark and arguments.all is not None,
    }
    for option, given in options.items():
        if given:
            raise CommandError(f"draw: {option} and {other} do not go together", USAGE)


def _draw_one(arguments: Namespace) -> int:
    from quadriga.diagrams.command import format_of, write

    format = arguments.format or format_of(arguments.output, "dot", _FORMATS)
    if format == "text":
        raise CommandError("draw: the format text is only for flows; use md for a lifecycle", USAGE)
    write(_drawn(arguments, format), arguments.output, format)
    return 0


def _draw_messages(arguments: Namespace) -> int:
    given = {"--coverage": arguments.coverage, "--path": arguments.path}
    given |= {"--left-to-right": arguments.left_to_right, "--dark": arguments.dark}
    if wrong := [option for option, value in given.items() if value]:
        raise CommandError(f"draw: {wrong[0]} and dispatcher do not go together", USAGE)
    if arguments.format not in (None, "md"):
        raise CommandError("draw: the table of messages is drawn as md", USAGE)
    from quadriga.diagrams.command import write

    write(messages_page(), arguments.output, "md")
    return 0


def _drawn(arguments: Namespace, format: str) -> str | bytes:
    from quadriga.cli.catalogue import find_lifecycle
    from quadriga.cli.story import read_story
    from quadriga.diagrams import render, render_path
    from quadriga.diagrams.command import read_coverage

    style = {"left_to_right": arguments.left_to_right, "dark": arguments.dark}
    if arguments.path is not None:
        journal, key = _of_path(arguments.path)
        story, now, _ = read_story("draw", journal, key)
        lifecycle = find_lifecycle(arguments.lifecycle or key.partition("/")[0])
        story = _last_life(lifecycle, story)
        steps = [(line.time, line.trigger, line.source, line.target) for line in story]
        return render_path(lifecycle, steps, now, format, **style)
    lifecycle = find_lifecycle(arguments.lifecycle)
    coverage = None if arguments.coverage is None else read_coverage(arguments.coverage)
    return render(lifecycle, format, coverage=coverage, **style)


def _of_path(text: str) -> tuple[str, str]:
    """File and key. Both may contain ``#``, so the shortest file that exists is taken."""
    file, key = _cut(text)
    if not key:
        raise CommandError(f"draw: --path {text} has no key; give FILE#KEY", USAGE)
    return file, key


def _cut(text: str) -> tuple[str, str]:
    """The text before and after a ``#``: the first after which there is a file, else the first."""
    cuts = [at for at, character in enumerate(text) if character == "#"] or [len(text)]
    at = next((at for at in cuts if Path(text[:at]).is_file()), cuts[0])
    return text[:at], text[at + 1 :]


def _last_life(lifecycle: Lifecycle, story: list[Line]) -> list[Line]:
    """The steps since the entity was last in its initial state for the first time.

    A key may be used again after the entity has ended; each life starts in the initial state.
    """
    starts = [
        number
        for number in range(1, len(story))
        if story[number].source == lifecycle.initial != story[number - 1].target
    ]
    if not starts:
        return story
    times = "once" if len(starts) == 1 else f"{len(starts)} times"
    print(
        f"draw: {story[0].key} begins again {times} in this journal; this is its last path",
        file=sys.stderr,
    )
    return story[starts[-1] :]


def _draw_flow(arguments: Namespace) -> int:
    from quadriga.diagrams import sequence
    from quadriga.diagrams.command import format_of, write

    format = arguments.format or format_of(arguments.output, "mermaid", _FLOW_FORMATS)
    if format not in _FLOW_FORMATS:
        raise CommandError(f"draw: a flow is drawn as {', '.join(_FLOW_FORMATS)}", USAGE)
    if arguments.messages is None:
        exchanges = _of_flow(arguments.flow)
    else:
        exchanges = _of_recording(arguments.messages)
    write(sequence(exchanges, format, dark=arguments.dark), arguments.output, format)
    return 0


def _of_flow(name: str) -> Sequence[Exchange]:
    from quadriga.sim.scripted.flows import FLOWS, record

    if name not in FLOWS:
        names = ", ".join(FLOWS)
        raise CommandError(f"draw: no flow is called {name!r}: there are {names}", USAGE)
    return record(name)


def _of_recording(text: str) -> Sequence[Exchange]:
    from quadriga.si.recorder import RecordingError, about_name, read_exchanges

    file, name = (text, "") if Path(text).is_file() else _cut(text)
    try:
        with about(f"draw: {file}"):
            exchanges = tuple(read_exchanges(file))
    except RecordingError as error:
        raise CommandError(f"draw: {error}") from error
    if not name:
        return exchanges
    found = tuple(filter(about_name(name), exchanges))
    if not found:
        raise CommandError(f"draw: no message of {file} is about {name!r}")
    return found


def _draw_all(arguments: Namespace) -> int:
    from quadriga.cli.catalogue import gallery_lifecycles
    from quadriga.diagrams import GALLERY_FORMATS, write_gallery

    format = arguments.format
    formats = (format,) if format else GALLERY_FORMATS
    written = write_gallery(arguments.all, formats, gallery_lifecycles())
    print(f"{len(written)} files in {arguments.all}")
    return 0


_HEAD = """\
# Messages

What each part of a message fires, and how it is answered. This page is written from the table in
`core/intake/dispatcher.py`; do not edit it. `quadriga draw dispatcher -o docs/messages.md` writes it again.

A handler fires only the triggers of its row, at entities of these lifecycles, and answers only with the fields of
its row. What follows from a trigger is in the tables of the lifecycles ([gallery](gallery/README.md)): a state
change of an application, for example, is sent as `updated`. The parts of one message are handled from top to bottom.
"""


def messages_page() -> str:
    """The page."""
    parts = _table(("message", "part", "lifecycle", "triggers", "answers"), _parts())
    actions = _table(("action", "trigger", "answers"), _actions())
    return f"{_HEAD}\n{parts}\n## Actions on nodes\n\n{actions}"


def _parts() -> Iterator[tuple[str, ...]]:
    from quadriga.core.intake.dispatcher import ROUTES

    for route in ROUTES:
        part = f"`{route.field}`" if route.field else "the whole"
        if route.of is not None:
            part += f" ({route.of.__name__.replace('_', ' ')})"
        first = (f"`{route.message.__name__}`", part)
        answers = _code(route.response) or "none"
        for lifecycle, triggers in route.concerns.items():
            yield (*first, lifecycle.replace("_", " "), _code(triggers), answers)
            first, answers = ("", ""), ""


def _actions() -> Iterator[tuple[str, ...]]:
    from quadriga.core.intake.dispatcher import NODE_ROUTES
    from quadriga.si import NodeInfo

    for route in NODE_ROUTES:
        name = NodeInfo.ActionFromRM.Name(route.action)
        yield f"`{name}`", f"`{route.trigger}`", _code(route.answers.fields)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


_FORMATS = ("dot", "mermaid", "plantuml", "scxml", "md", "json", "svg", "png", "pdf")
_FLOW_FORMATS = ("mermaid", "plantuml", "svg", "text")
