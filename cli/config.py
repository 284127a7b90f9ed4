"""``quadriga config``: queue configurations checked before a scheduler sees them."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from quadriga.cli.errors import FOUND, USAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from quadriga.cli.parsing import Commands
    from quadriga.core.config import Configuration, Problem

__all__ = ["configure", "line", "listed"]

_STDIN = "-"


def configure(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "config",
        help="check queue configurations",
        description="Work with queue configurations (YAML) as YuniKorn reads them.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check",
        help="say everything that is wrong with them",
        description="Check queue configurations. Every problem is a line with the file, the line,"
        " the path and the reason; what is accepted but has no effect is a warning. Exit code 0:"
        " all are valid; 1: some are not; 2: a file cannot be read.",
    )
    check.add_argument("files", nargs="+", metavar="FILE", help="- is the standard input")
    check.add_argument("--json", action="store_true", help="one JSON object, for programs")
    check.add_argument("--strict", action="store_true", help="a warning makes a file invalid, too")
    check.add_argument("--quiet", action="store_true", help="problems only")
    check.set_defaults(run=run_check)
    show = actions.add_parser(
        "show",
        help="write a configuration out in full",
        description="Show what a queue configuration means: with the root that is implied, with"
        " properties and templates where they are inherited, limits, defaults, and amounts in base"
        " units. It is a configuration again, and means the same.",
    )
    show.add_argument("file", metavar="FILE", help="- is the standard input")
    show.add_argument("--json", action="store_true", help="JSON instead of YAML")
    show.set_defaults(run=run_show)


def run_check(arguments: Namespace) -> int:
    """Check every file and say what was found."""
    results = [_check(name, strict=arguments.strict)[0] for name in arguments.files]
    if arguments.json:
        whole = {"valid": all(result["valid"] for result in results), "files": results}
        print(json.dumps(whole, indent=2, ensure_ascii=False))
    else:
        for result in results:
            _tell(result, quiet=arguments.quiet)
    if any("error" in result for result in results):
        return USAGE
    return 0 if all(result["valid"] for result in results) else FOUND


def run_show(arguments: Namespace) -> int:
    """Write the configuration out; if it is not valid, say why as ``check`` does."""
    result, configuration = _check(arguments.file, strict=False)
    if configuration is None:
        _tell(result, quiet=False, to=sys.stderr)
        return USAGE if "error" in result else FOUND
    from quadriga.core.config import as_document
    from quadriga.core.config.writer import write

    document = as_document(configuration)
    if arguments.json:
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        sys.stdout.write(write(document))
    return 0


def _check(name: str, *, strict: bool) -> tuple[dict[str, Any], Configuration | None]:
    """What there is to say about one file, and its configuration if it is one: the same keys always
    (``more``: problems that are not listed), ``checksum`` besides, or ``error`` if it cannot be read."""
    from quadriga.core.config import ConfigError, load

    result: dict[str, Any] = {
        "file": name,
        "valid": False,
        "problems": [],
        "more": 0,
        "warnings": [],
    }
    try:
        configuration = load(_text(name))
    except OSError as error:
        return {**result, "error": error.strerror or str(error)}, None
    except UnicodeDecodeError:
        return {**result, "error": "not UTF-8 text"}, None
    except ConfigError as error:
        found = {"problems": listed(error.problems), "warnings": listed(error.warnings)}
        return {**result, **found, "more": error.more}, None
    return {
        **result,
        "valid": not (strict and configuration.warnings),
        "warnings": listed(configuration.warnings),
        "checksum": configuration.checksum,
    }, configuration


def line(name: str, found: Mapping[str, Any], kind: str = "") -> str:
    """One problem, or with ``kind`` a warning, of the file of this name."""
    where = f"{name}:{found['line']}" if found["line"] else name
    path = f"{found['path']}: " if found["path"] else ""
    return f"{where}: {kind}{path}{found['reason']}"


def _text(name: str) -> str:
    data = sys.stdin.buffer.read() if name == _STDIN else Path(name).read_bytes()
    return data.decode("utf-8-sig")


def listed(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Problems as data: path, line (0 if none can be named), reason."""
    return [{"path": p.path, "line": p.line, "reason": p.reason} for p in problems]


def _tell(result: dict[str, Any], *, quiet: bool, to: TextIO | None = None) -> None:
    """One file for people."""
    name = "standard input" if result["file"] == _STDIN else result["file"]
    if "error" in result:
        print(f"quadriga: {name}: {result['error']}", file=sys.stderr)
        return
    problems, warnings = result["problems"], result["warnings"]
    for kind, found in (("", problems), ("warning: ", [] if quiet else warnings)):
        for each in found:
            print(line(name, each, kind), file=to)
    if result["more"]:
        print(f"{name}: and {result['more']} more", file=to)
    if not quiet:
        counts = ((len(problems) + result["more"], "problem"), (len(warnings), "warning"))
        said = ", ".join(f"{n} {what}{'' if n == 1 else 's'}" for n, what in counts if n)
        verdict = "valid" if result["valid"] else "invalid"
        print(f"{name}: {verdict}{f' ({said})' if said else ''}", file=to)
