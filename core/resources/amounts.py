"""Amounts as people write them: ``500m CPU``, ``16 MiB memory``, ``3 nvidia.com/gpu``.

The amounts are exact, so that what a text asks for can be set exactly as it is written.
"""

from __future__ import annotations

import re
from typing import Final

#: types that are counted in bytes
_BYTES: Final = re.compile(r"memory|storage|hugepages", re.IGNORECASE)
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def type_name(name: str) -> str:
    """The type as people call it."""
    return "CPU" if name == "vcore" else name


def amount(name: str, value: int, *, milli: bool = False) -> str:
    """The amount with its unit and its type: vcore and types in ``milli`` are in milli, memory and storage
    are in bytes."""
    if milli or name == "vcore":
        of = type_name(name)
        return f"{value}m {of}" if value % 1000 else f"{value // 1000} {of}"
    if _BYTES.search(name):
        return f"{_bytes(value)} {name}"
    return f"{value} {name}"


def rounded_up(name: str, value: int) -> int:
    """The next amount that needs few digits: tenths of a CPU, whole MiB."""
    step = 100 if name == "vcore" else 1 << 20 if _BYTES.search(name) and value >= 1 << 20 else 1
    return -(-value // step) * step


def _bytes(value: int) -> str:
    """In the largest unit that needs no more than two decimals."""
    size, unit = abs(value), 0
    while unit + 1 < len(_UNITS) and size >= 1024 ** (unit + 1):
        unit += 1
    while unit and size * 100 % 1024**unit:
        unit -= 1
    whole, rest = divmod(size * 100 // 1024**unit, 100)
    sign = "-" if value < 0 else ""
    decimals = f".{rest:02}".rstrip("0") if rest else ""
    return f"{sign}{whole}{decimals} {_UNITS[unit]}"
