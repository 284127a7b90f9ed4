"""Resource quantities of queue configurations (2.2.1).

A quantity is a whole number with an optional suffix: ``k M G T P E`` (powers
of 1000), ``Ki Mi Gi Ti Pi Ei`` (powers of 1024) and, for ``vcore`` only, ``m``
(a thousandth). There are no decimals and no signs. A max does not limit a resource that it does not name
(5, 5.1).
"""

from __future__ import annotations

import re
from typing import Final

from quadriga.core.config.location import Location

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


Amounts = dict[str, int]


def read_amounts(location: Location) -> Amounts | None:
    """Return the amounts at `location`, None if there is no value. Invalid amounts are left out."""
    if not location.is_set:
        return None
    amounts = {}
    for resource, entry in location.entries().items():
        text = entry.text()
        if entry.is_text_or_absent:
            try:
                amounts[resource] = parse_quantity(resource, text)
            except QuantityError as error:
                entry.problem(str(error))
    return amounts


def unless_zero(amounts: Amounts | None) -> Amounts | None:
    """Return `amounts` if any of them is above zero; otherwise None, which means not set (5.1)."""
    return amounts if amounts and any(amounts.values()) else None


def excess(amounts: Amounts | None, limit: Amounts | None) -> str:
    """Return the amounts that exceed `limit`, such as ``memory 5 > 3``; empty if none does."""
    if not amounts or not limit:
        return ""
    return ", ".join(
        f"{resource} {amount} > {limit[resource]}"
        for resource, amount in sorted(amounts.items())
        if resource in limit and amount > limit[resource]
    )


def tighter(one: Amounts | None, other: Amounts | None) -> Amounts | None:
    """Return the smaller amount of each resource; a resource that only one of them names keeps its
    amount (MinPermissive)."""
    if not one or not other:
        return one or other
    shared = {resource: min(one[resource], other[resource]) for resource in one.keys() & other}
    return {**one, **other, **shared}
