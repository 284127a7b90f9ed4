"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser, _ActionsContainer, _SubParsersAction

    Commands = _SubParsersAction[ArgumentParser]

__all__ = ["Commands", "add_file"]


def add_file(parser: _ActionsContainer, option: str, what: str) -> None:
    """Add an option that names a file; its value is None if it is not given."""
    parser.add_argument(option, type=Path, metavar="FILE", help=what)
