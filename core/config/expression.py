"""Regular expressions in configurations: RE2's syntax, as in YuniKorn.

RE2 matches in time proportional to the text. Python's own engine backtracks: with an expression such
as ``(a+)+$`` and a text of forty letters it would block all requests for hours. See D31.
"""

from __future__ import annotations

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
