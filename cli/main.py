"""The ``quadriga`` command: its subcommands and exit codes.

Exit codes: 0 success, 1 the run found a problem, 2 wrong usage or input, 130 interrupted, 141 the
reader of the output has closed it. An error is one line on standard error. Modules of quadriga are
imported only when a command needs them, so ``--help`` is fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from quadriga.cli import config, draw, kubernetes, lifecycles, serve, simulate, story
from quadriga.cli.errors import INTERRUPTED, CommandError
from quadriga.cli.parsing import Parser

_PIPE = 141

_EPILOG = """\
examples:
  quadriga serve --demo                     a scheduler at work, in the browser
  quadriga kubernetes --check               what an account lacks to schedule a cluster
  quadriga simulate                         90 days of a cluster of 44 nodes
  quadriga simulate --trace FOLDER --check  a real trace, every invariant after every step
  quadriga config check queues.yaml         what is wrong with a queue configuration
  quadriga draw application -o app.svg      a lifecycle as a picture
  quadriga story application/17 --journal run.jsonl

exit codes: 0 ok, 1 the run found a problem, 2 wrong usage or input
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Raises `SystemExit` like argparse."""
    parser = _parser()
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser)
    arguments = parser.parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except CommandError as error:
        print(f"quadriga: {error}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        print("quadriga: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Buffered output has no reader any more; without this the interpreter would report that at
        # exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE


def _parser() -> Parser:
    parser = Parser(
        prog="quadriga",
        description="A cluster scheduler core whose every lifecycle is a finite state machine.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action=_Version, help="show the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (serve, kubernetes, simulate, config, draw, lifecycles, story):
        command.configure(commands)
    return parser


class _Version(argparse.Action):
    """Looks up the version only when it is requested."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help, default=argparse.SUPPRESS)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"quadriga {version('quadriga')}")
        parser.exit()
