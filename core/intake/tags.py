"""The tags of applications, asks and allocations that the scheduler reads (I34, 2.10, 2.11)."""

from __future__ import annotations

from collections.abc import Mapping

from quadriga.fsm.table import SECOND
from quadriga.si.constants import CREATION_TIME, TAG_CREATION_TIME

__all__ = ["created", "tag"]


def tag(tags: Mapping[str, str], *names: str) -> str:
    """Return the value of the first of these tags that is present, or an empty text."""
    return next((tags[name] for name in names if name in tags), "")


def created(tags: Mapping[str, str], now: int) -> int:
    """Return the creation time (ns since the epoch) from the tag ``creationTime`` (s).

    It is ``now`` if the tag is missing, unreadable or in the future.
    """
    text = tag(tags, TAG_CREATION_TIME, CREATION_TIME) if tags else ""
    if not text.isdecimal() or len(text) > 18:
        return now
    return min(now, int(text) * SECOND)
