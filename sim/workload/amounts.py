"""Numbers, times and sizes as they are written in logs and options.

All functions read text and raise `ValueError` with the reason. Values are exact decimals, and their
size is bounded, since ``1e999999`` is a number too.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation

from quadriga.sim.workload.model import GIB, KIB, MIB

#: times and runtimes beyond 126 years are errors; as nanoseconds they would exceed 64 bits
MAX_S = 4_000_000_000
#: no larger amount is accepted of any resource of a pod or node, in the resource's unit
MAX_AMOUNT = 10**16
#: more pods of one job, or more nodes, are taken for an error
MAX_COUNT = 1_000_000

#: numbers have fewer digits before the point
_MAX_DIGITS = 20
_QUOTED = 40

#: suffixes of memory, in bytes: binary ones with i as in Kubernetes, else decimal ones
MEMORY_UNITS = {
    "B": 1,
    "Ki": KIB,
    "Mi": MIB,
    "Gi": GIB,
    "Ti": 1024 * GIB,
    "Pi": MIB * GIB,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
}

#: units of vcores, in milli
VCORE_UNITS = {"vcore": 1000, "m": 1}

#: units of time, in seconds
TIME_UNITS = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "min": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86_400),
}

#: [days-][hours:]minutes:seconds[.fraction]
_CLOCK = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d{1,6}(?:\.\d{1,9})?)")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def quoted(text: str) -> str:
    """The text for an error: in quotes, and cut if it is long."""
    return repr(text[:_QUOTED])


def shown(value: Decimal) -> str:
    """The value for an error: never long, whatever its exponent is."""
    return f"{value.normalize():f}" if -9 < value.adjusted() < 21 else f"{value:.3e}"


def number(text: str) -> Decimal:
    """A finite number, such as ``12``, ``-1``, ``0.25`` or ``2e6``."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{quoted(text)} is not a number") from None
    if not value.is_finite():
        raise ValueError(f"{quoted(text)} is not a number")
    if value.adjusted() >= _MAX_DIGITS:
        raise ValueError(f"{quoted(text)} is too large")
    return value


def amount(value: Decimal, most: int = MAX_AMOUNT) -> int:
    """An amount of a resource as an integer, rounded up: no request becomes nothing."""
    if value < 0:
        raise ValueError(f"{shown(value)} is less than 0")
    if value > most:
        raise ValueError(f"{shown(value)} is more than {most}")
    return int(value.to_integral_value(ROUND_CEILING))


def count(value: Decimal) -> int:
    """A number of things, which must be whole."""
    if value != value.to_integral_value():
        raise ValueError(f"{shown(value)} is not a whole number")
    if not 0 <= value <= MAX_COUNT:
        raise ValueError(f"{shown(value)} is not within 0 and {MAX_COUNT}")
    return int(value)


def whole_seconds(value: Decimal, *, up: bool = False) -> int:
    """Seconds as an integer: the second in which something happened, or with `up` the seconds that
    it took."""
    if abs(value) > MAX_S:
        raise ValueError(f"{shown(value)} s is more than {MAX_S} s")
    return int(value.to_integral_value(ROUND_CEILING if up else ROUND_FLOOR))


def clock(text: str) -> Decimal:
    """A duration in the form ``[days-][hours:]minutes:seconds``, in seconds."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise ValueError(f"{quoted(text)} is not [days-]hours:minutes:seconds")
    days, hours, minutes, seconds = (Decimal(part or 0) for part in match.groups())
    return days * 86_400 + hours * 3600 + minutes * 60 + seconds


def timestamp(text: str, pattern: str | None = None) -> Decimal:
    """A date with a time as Unix seconds: in ISO 8601, or in a pattern of `strptime`. Without a
    time zone it is in UTC."""
    try:
        read = datetime.strptime(text, pattern) if pattern else datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        form = f"a time in the form {pattern}" if pattern else "a time such as 2024-03-01T12:00:00"
        raise ValueError(f"{quoted(text)} is not {form}") from None
    if read.tzinfo is None:
        read = read.replace(tzinfo=UTC)
    past = read - _EPOCH
    return Decimal(past.days * 86_400 + past.seconds) + Decimal(past.microseconds) / 1_000_000
