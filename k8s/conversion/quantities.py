"""Quantities of Kubernetes: ``500m``, ``1.5Gi``, ``12E``, ``1e3`` (K86).

A quantity is a signed decimal number with a suffix: ``n u m k M G T P E`` (powers of 1000), ``Ki`` to ``Ei``
(powers of 1024), or an exponent of ten. The API server accepts nothing finer than ``1n`` and nothing larger
than int64: other values are rounded up or capped.

The arithmetic is exact and uses integers only. Rounding is away from zero.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from quadriga.k8s.conversion.problems import shown

#: the name in Kubernetes, and the name in the scheduler, which counts thousandths
CPU: Final = "cpu"
VCORE: Final = "vcore"
INT64_MAX: Final = 2**63 - 1

_QUANTITY: Final = re.compile(
    r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?[0-9]+))?",
    re.ASCII,
)
_NANO: Final = 10**9
#: value of each suffix in units of 1n
_SUFFIXES: Final = {
    **{letter: 1000**power for power, letter in enumerate("num")},
    **{letter: _NANO * 1000**power for power, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": _NANO * 1024**power for power, letter in enumerate("KMGTPE", start=1)},
}
#: a longer text is no quantity: this keeps int() away from huge numbers
_MAX_CHARACTERS: Final = 100
#: larger exponents all have the same result: 1n, the largest number, or zero
_MAX_EXPONENT: Final = 2 * _MAX_CHARACTERS


class QuantityError(ValueError):
    """The text is not a quantity."""


@lru_cache(maxsize=16_384)
def amount(resource: str, quantity: str | int | float) -> int:
    """Return the amount of a resource as an integer, rounded up: ``cpu`` in thousandths, all others in whole
    units (K82).

    It is at most int64. Raises `QuantityError`.
    """
    found = exact(resource, quantity)
    return max(-INT64_MAX, min(found, INT64_MAX))


def exact(resource: str, quantity: str | int | float) -> int:
    """Return the same without a limit: thousandths of a cpu can exceed int64 although the quantity does not."""
    nano = _parse(quantity)
    unit = _NANO // 1000 if resource == CPU else _NANO
    whole = -(-abs(nano) // unit)
    return -whole if nano < 0 else whole


def _parse(quantity: str | int | float) -> int:
    """Return the quantity in units of 1n."""
    text = quantity if isinstance(quantity, str) else repr(quantity)
    match = _QUANTITY.fullmatch(text) if len(text) <= _MAX_CHARACTERS else None
    if match is None:
        raise QuantityError(f"{shown(text)} is not a quantity, such as 2, 500m or 1.5Gi")
    sign, digits, fraction, only_fraction, binary, decimal, exponent = match.groups()
    fraction = fraction or only_fraction or ""
    power = max(-_MAX_EXPONENT, min(int(exponent or "0"), _MAX_EXPONENT)) - len(fraction)
    number = int((digits or "") + fraction)
    number *= _SUFFIXES[binary or decimal] if binary or decimal else _NANO
    if power < 0:
        divisor: int = 10**-power
        number = -(-number // divisor)
    else:
        number *= 10**power
    nano = min(number, INT64_MAX * _NANO)
    return -nano if sign == "-" else nano
