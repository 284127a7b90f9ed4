"""Regular expressions of configurations: RE2's, as YuniKorn's are, in time proportional to the text.

Python's own engine tries one way after the other: an expression such as ``(a+)+$`` takes hours for a
text of forty letters, during which nobody's requests would be served.
"""

from __future__ import annotations

from typing import Final

import re2

__all__ = ["Expression"]

#: bytes that one compiled expression may take
_LARGEST: Final = 1 << 20


class Expression:
    """Raises ``ValueError`` for a text that is no expression of RE2's, or one that is too large."""

    __slots__ = ("_pattern",)

    def __init__(self, text: str) -> None:
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _LARGEST
        try:
            self._pattern = re2.compile(text, options)
        except re2.error as error:
            raise ValueError(error.args[0].decode(errors="replace")) from None

    def search(self, text: str) -> bool:
        """Whether it matches somewhere in the text."""
        return self._pattern.search(text) is not None
