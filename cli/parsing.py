"""The parser of all commands, and options that several commands share."""

from __future__ import annotations

import argparse
import re
from argparse import _ActionsContainer
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

from quadriga.cli.errors import CommandError

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"

_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")


class _Layout(argparse.HelpFormatter):
    """Leaves texts of several lines as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """Says which option or command an unknown one resembles, and rejects options where they are unknown."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": _Layout, **options})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, but leave nothing to the parser above, which does not know these options."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            near = _resembling(rest[0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(rest)}{near}")
        return found, rest

    def error(self, message: str) -> NoReturn:
        """Print the message, with the choice that a wrong one resembles."""
        if choice := _CHOICE.search(message):
            message += _resembling(choice[1], choice[2].replace("'", "").split(", "))
        super().error(message)


def _resembling(word: str, known: Iterable[str]) -> str:
    from quadriga.fsm.errors import did_you_mean

    return did_you_mean(word, known)


def add_file(parser: _ActionsContainer, option: str, what: str) -> None:
    """Add an option that names a file; its value is None if it is not given."""
    parser.add_argument(option, type=Path, metavar="FILE", help=what)


# -- the options that bound something (Q16); docs/operations.md lists further limits ---------------


class Limit(NamedTuple):
    """An option with the range of its value."""

    option: str
    default: int
    unit: str
    what: str
    low: int
    high: int

    @property
    def name(self) -> str:
        """Of its value among the settings."""
        return self.option[2:].replace("-", "_")


# fmt: off
#: of gRPC
GRPC_LIMITS = tuple(Limit(*row) for row in (
    ("--max-resource-managers", 256, "N", "resource managers registered at a time", 1, 100_000),
    ("--max-streams", 1024, "N", "open gRPC streams, at most 16 per resource manager", 1, 100_000),
    ("--max-message-size", 4, "MIB", "size of one gRPC message", 1, 64),
    ("--max-items", 10_000, "N", "items in one gRPC message: asks, nodes, applications, releases", 1, 100_000),
    ("--max-rate", 20_000, "N", "average requests per second of one resource manager", 1, 10_000_000),
    ("--max-item-rate", 100_000, "N", "average items per second of one resource manager", 1, 100_000_000),
    ("--max-backlog", 64, "MIB", "messages waiting for one slow resource manager", 1, 4096),
    ("--max-grpc-connections", 1000, "N", "open gRPC connections, if half of ulimit -n allows them", 1, 100_000),
    ("--max-grpc-connections-per-client", 500, "N", "gRPC connections of one address", 1, 100_000),
))
#: of each port for HTTP
HTTP_LIMITS = tuple(Limit(*row) for row in (
    ("--max-connections", 1000, "N", "open HTTP connections, if half of ulimit -n allows them", 1, 100_000),
    ("--max-connections-per-client", 500, "N", "HTTP connections of one address", 1, 100_000),
))
#: of the scheduler
CORE_LIMITS = tuple(Limit(*row) for row in (
    ("--max-ended", 20_000, "N", "ended applications kept per resource manager", 0, 10_000_000),
    ("--max-ended-size", 32, "MIB", "total size of these", 1, 65_536),
    ("--max-rejected", 5_000, "N", "rejected applications kept per resource manager", 0, 10_000_000),
    ("--max-rejected-size", 8, "MIB", "total size of these", 1, 65_536),
    ("--max-former-users", 1_000, "N", "users without an application listed per partition", 0, 1_000_000),
    ("--max-gang-members", 10_000, "N", "waiting members of a gang by repeats of an ask", 1, 1_000_000),
    ("--max-text", 2_048, "N", "characters of one text in an application, ask or node", 64, 1 << 20),
    ("--max-tags", 1_024, "N", "tags of one of these", 1, 1 << 20),
    ("--max-tag-characters", 1 << 20, "N", "characters of all tags of one of these", 64, 1 << 26),
    ("--max-groups", 4_096, "N", "groups of one user", 0, 1 << 20),
    ("--max-types", 256, "N", "resource types of one of these", 1, 65_536),
    ("--max-known-types", 1_024, "N", "resource types of a partition; asks may name half of them", 2, 65_536),
    ("--max-devices", 64, "N", "devices of one shared type on a node", 1, 1_024),
    ("--max-group-answers", 32_768, "N", "users whose groups are kept in memory", 1, 10_000_000),
    ("--group-deadline", 5, "S", "time to look up the groups of a user", 1, 3600),
))
# fmt: on
#: in the order of the help
LIMITS = GRPC_LIMITS + HTTP_LIMITS + CORE_LIMITS


def check_within(option: str, low: float, high: float, value: float) -> None:
    """Raises `CommandError`, also for NaN."""
    if not low <= value <= high:
        raise CommandError(f"serve: {option} is {value:g}, not within {low:g} and {high:g}")
