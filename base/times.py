"""Units of time, and times as text (RFC 3339).

All times and durations are integer nanoseconds; a point in time counts from 1970 if it comes from a wall clock.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
#: later than every instant
FOREVER: Final = 1 << 63

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def whole_time(wall_ns: int) -> str:
    """Return the time in RFC 3339 with whole seconds: ``2026-11-23T11:00:00Z``."""
    return f"{_moment(wall_ns):%Y-%m-%dT%H:%M:%SZ}"


def micro_time(wall_ns: int) -> str:
    """Return the time in RFC 3339 with microseconds: ``2026-11-23T11:00:00.000000Z``."""
    return f"{_moment(wall_ns):%Y-%m-%dT%H:%M:%S.%fZ}"


def _moment(wall_ns: int) -> datetime:
    return _EPOCH + timedelta(microseconds=wall_ns // 1000)


@lru_cache(maxsize=16_384)
def unix_seconds(text: str) -> int | None:
    """Return the whole seconds since 1970 of a time in RFC 3339; ``None`` for any other text."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return int(time.timestamp())


def spelled(ns: int) -> str:
    """The time as people write it: in seconds below an hour, else in hours."""
    return f"{ns / SECOND:g} s" if ns < HOUR else f"{ns / HOUR:.1f} h"
