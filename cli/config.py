"""``quadriga config``: checks queue configurations before a scheduler uses them."""

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

_STDIN = "-"


def configure(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "config",
        help="check queue configurations",
        description="Work with queue configurations (YAML) as YuniKorn reads them.",
        epilog="examples:\n  quadriga config check queues.yaml\n",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check",
        help="report all problems of configurations",
        description="Check queue configurations. Every problem is a line with the file, the line,"
        " the path and the reason; a setting without effect is a warning. Exit code 0: all files"
        " are valid; 1: some are not; 2: a file cannot be read.",
        epilog="examples:\n  quadriga config check --strict queues.yaml\n",
    )
    check.add_argument("files", nargs="+", metavar="FILE", help="a file, or - for standard input")
    check.add_argument("--json", action="store_true", help="print one JSON object")
    check.add_argument("--strict", action="store_true", help="treat warnings as problems")
    check.add_argument("--quiet", action="store_true", help="print problems only")
    check.set_defaults(run=run_check)
    show = actions.add_parser(
        "show",
        help="print a configuration in full",
        description="Print a queue configuration in full: with the implied root, inherited properties"
        " and templates, limits, defaults, and amounts in base units. The output is a valid"
        " configuration with the same meaning.",
        epilog="examples:\n  quadriga config show --json queues.yaml\n",
    )
    show.add_argument("file", metavar="FILE", help="a file, or - for standard input")
    show.add_argument("--json", action="store_true", help="print JSON instead of YAML")
    show.set_defaults(run=run_show)


def run_check(arguments: Namespace) -> int:
    """Check every file and report the problems."""
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
    """Print the configuration; report its problems as ``check`` does if it is invalid."""
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
    """The result for one file, and its configuration if that is valid. The result always has the
    same keys (``more``: number of problems that are not listed), and ``checksum``, or ``error`` if
    the file cannot be read."""
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
    """One problem of this file as text; with ``kind`` one warning."""
    where = f"{name}:{found['line']}" if found["line"] else name
    path = f"{found['path']}: " if found["path"] else ""
    return f"{where}: {kind}{path}{found['reason']}"


def _text(name: str) -> str:
    data = sys.stdin.buffer.read() if name == _STDIN else Path(name).read_bytes()
    return data.decode("utf-8-sig")


def listed(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Problems as data: path, line (0 if unknown), reason."""
    return [{"path": p.path, "line": p.line, "reason": p.reason} for p in problems]


def _tell(result: dict[str, Any], *, quiet: bool, to: TextIO | None = None) -> None:
    """Print the result for one file as text."""
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
