"""Times of the API (RFC 3339)."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=16_384)
def unix_seconds(text: str) -> int | None:
    """Return whole seconds since the Unix epoch, ``None`` for a text that is not a time."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return int(time.timestamp())
