"""Times and texts in the form that the API server requires."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def whole_time(wall_ns: int) -> str:
    """Return the time in RFC 3339 with whole seconds: ``2026-11-23T11:00:00Z``."""
    return f"{_moment(wall_ns):%Y-%m-%dT%H:%M:%SZ}"


def micro_time(wall_ns: int) -> str:
    """Return the time in RFC 3339 with microseconds: ``2026-11-23T11:00:00.000000Z``."""
    return f"{_moment(wall_ns):%Y-%m-%dT%H:%M:%S.%fZ}"


def _moment(wall_ns: int) -> datetime:
    return _EPOCH + timedelta(microseconds=wall_ns // 1000)


def shortened(text: str, size: int) -> str:
    """Return the text, shortened with three dots to at most ``size`` bytes of UTF-8."""
    data = text.encode("utf-8", "replace")
    if len(data) <= size:
        return data.decode()
    return data[: size - 3].decode("utf-8", "ignore") + "..."
