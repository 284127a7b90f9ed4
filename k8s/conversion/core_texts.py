"""What the core says, as users of Kubernetes read it."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["without_codes"]

#: rules that the core's texts cite
_CODES: Final = re.compile(r" ?\((?:[A-Z]\d{1,3}|\d\.\d+)(?:(?:, | to | and )[A-Z]?[\d.]+)*\)")


def without_codes(text: str) -> str:
    """The text without the rules that it cites."""
    return _CODES.sub("", text) if "(" in text else text
