"""Texts of the core as users of Kubernetes read them."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["without_codes"]

#: rule codes that the core's texts cite
_CODES: Final = re.compile(r" ?\((?:[A-Z]\d{1,3}|\d\.\d+)(?:(?:, | to | and )[A-Z]?[\d.]+)*\)")


def without_codes(text: str) -> str:
    """Return the text without the rule codes that it cites."""
    return _CODES.sub("", text) if "(" in text else text
