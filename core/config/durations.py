"""Durations in the notation of Go: ``30s``, ``1m30s``, ``1.5h``, ``0`` (2.2.2).

The arithmetic is exact: it uses integers only and truncates fractions of a
nanosecond.
"""

from __future__ import annotations

import re
from typing import Final

from quadriga.base.times import HOUR, MILLISECOND, MINUTE, SECOND

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # micro sign
    "\u03bcs": 1_000,  # Greek mu
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_INT64_MAX: Final = 2**63 - 1
_MAX_CHARACTERS: Final = 100
"""A duration has at most this many characters, which keeps int() away from huge numbers."""


class DurationError(ValueError):
    """The text is not a duration."""


def parse_duration(text: str) -> int:
    """Return the duration in nanoseconds, negative if `text` begins with ``-``.

    Raises `DurationError` for anything that Go's ``time.ParseDuration``
    refuses, and for more than int64 nanoseconds (about 292 years).
    """
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0
    if not body or len(body) > _MAX_CHARACTERS:
        raise DurationError(_refusal(text))
    total, position = 0, 0
    while position < len(body):
        part = _PART.match(body, position)
        if part is None or not (part[1] or part[2]):
            raise DurationError(_refusal(text))
        unit = _UNITS[part[3]]
        fraction = part[2] or ""
        total += int(part[1] or "0") * unit + int(fraction or "0") * unit // 10 ** len(fraction)
        position = part.end()
    if total > _INT64_MAX:
        raise DurationError(f"{text!r} is longer than a 64 bit number of nanoseconds")
    return -total if text[0] == "-" else total


def render_duration(ns: int) -> str:
    """Return the duration as Go prints it, such as ``1h0m0s`` or ``1.5s``; `parse_duration` reads it."""
    if ns == 0:
        return "0s"
    sign, rest = ("-", -ns) if ns < 0 else ("", ns)
    if rest < _UNITS["s"]:
        unit = next(name for name in ("ms", "\u00b5s", "ns") if rest >= _UNITS[name])
        return f"{sign}{_decimal(rest, _UNITS[unit])}{unit}"
    minutes, rest = divmod(rest, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, _UNITS['s'])}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else sign + text


def _decimal(amount: int, unit: int) -> str:
    whole, fraction = divmod(amount, unit)
    digits = str(fraction).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def _refusal(text: str) -> str:
    shown = text if len(text) <= 40 else text[:37] + "..."
    return f"{shown!r} is not a duration, such as 30s, 1m30s or 1h"
