"""The parser of all commands, and options that several commands share."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from argparse import _ActionsContainer, _SubParsersAction

    Commands = _SubParsersAction["Parser"]

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
