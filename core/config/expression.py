"""Users and groups in limits and placement filters, as in YuniKorn: names, or expressions in RE2's syntax.

RE2 matches in time proportional to the text. Python's own engine backtracks: with an expression such
as ``(a+)+$`` and a text of forty letters it would block all requests for hours. See D31.
"""

from __future__ import annotations

import re
from typing import Final

import re2

_MAX_COMPILED: Final = 1 << 20
"""A compiled expression takes at most this many bytes."""


class Expression:
    """A compiled expression. Raises ``ValueError`` if the text is not an expression of RE2, or is too
    large."""

    __slots__ = ("_pattern",)

    def __init__(self, text: str) -> None:
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MAX_COMPILED
        try:
            self._pattern = re2.compile(text, options)
        except re2.error as error:
            raise ValueError(error.args[0].decode(errors="replace")) from None

    def search(self, text: str) -> bool:
        """Return True if the expression matches anywhere in the text."""
        return self._pattern.search(text) is not None


_USER: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9:#/_.@-]*\$?")
_GROUP: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9:_.-]*")

USER_RULE: Final = (
    "a letter or _ first, then letters, digits and characters of : # / _ . @ -, "
    "and $ at the end only"
)
GROUP_RULE: Final = "a letter or _ first, then letters, digits and characters of : _ . -"


def is_user_name(name: str) -> bool:
    """Return True for a valid user name in a limit or a filter; ``host$`` is a machine account."""
    return _USER.fullmatch(name) is not None


def is_group_name(name: str) -> bool:
    """Return True for a valid group name in a limit or a filter."""
    return _GROUP.fullmatch(name) is not None
