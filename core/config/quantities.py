"""Resource quantities of queue configurations (2.2.1).

A quantity is a whole number with an optional suffix: ``k M G T P E`` (powers
of 1000), ``Ki Mi Gi Ti Pi Ei`` (powers of 1024) and, for ``vcore`` only, ``m``
(a thousandth). There are no decimals and no signs.
"""

from __future__ import annotations

import re
from typing import Final

INT64_MAX: Final = 2**63 - 1
VCORE: Final = "vcore"

_QUANTITY: Final = re.compile(r"([0-9]+)\s*([mkKMGTPE]i?)?", re.ASCII)
_SUFFIXES: Final = {
    "": 1,
    **{letter: 1000**power for power, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)},
}
_MAX_DIGITS: Final = len(str(INT64_MAX))


class QuantityError(ValueError):
    """The text is not a quantity of its resource."""


def parse_quantity(resource: str, text: str) -> int:
    """Return the amount of `resource` that `text` stands for.

    ``vcore`` is returned in milli (``"2"`` is 2000, ``"500m"`` is 500), memory
    in bytes, every other resource in its own unit. Raises `QuantityError` for
    anything but a quantity and for an amount beyond int64 (2.2.1).
    """
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise QuantityError(f"{_shown(text)} is not a quantity, such as 10, 500M or 2Gi")
    digits, suffix = match[1].lstrip("0"), match[2] or ""
    if suffix == "m" and resource == VCORE:
        factor = 1
    elif suffix in _SUFFIXES:
        factor = _SUFFIXES[suffix] * (1000 if resource == VCORE else 1)
    elif suffix == "m":
        raise QuantityError(f"{_shown(text)}: only {VCORE} is counted in thousandths (m)")
    else:
        raise QuantityError(f"{_shown(text)}: there is no suffix {suffix!r}")
    # The length is checked first, because int() refuses very long numbers.
    amount = int(digits or "0") * factor if len(digits) <= _MAX_DIGITS else INT64_MAX + 1
    if amount > INT64_MAX:
        raise QuantityError(f"{_shown(text)} is larger than a 64 bit number holds")
    return amount


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
