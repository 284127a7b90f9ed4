"""The tags of applications, asks and allocations that the scheduler reads (I34, 2.10, 2.11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quadriga.base.times import SECOND
from quadriga.core.model.gang import PLACEHOLDERS, WAIT_LIMIT, whole_seconds
from quadriga.si.constants import CREATION_TIME, TAG_CREATION_TIME

#: tag of an application or an ask: its allocations are expected to end after this many seconds (Q7)
EXPECTED_RUNTIME: Final = "expected.runtime"
#: tag of an ask: its allocations end after this many seconds at the latest, which others see to (Q11)
RUNTIME_BOUND: Final = "expected.runtime.bound"
#: tags of an application that are a whole number of seconds above 0, with their rules
SECONDS: Final = {EXPECTED_RUNTIME: "Q7", WAIT_LIMIT: "S3"}


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


def run_time(tags: Mapping[str, str], name: str = EXPECTED_RUNTIME) -> int:
    """Return the time (ns) that an allocation is expected to last (Q7), or lasts at most (Q11), from the tag of this
    name: a whole number of seconds above 0. It is 0 if the tag is missing or unreadable.
    """
    return whole_seconds(tags.get(name, ""))


def has_no_placeholders(tags: Mapping[str, str]) -> bool:
    """Return True if the gang of an application with these tags has no placeholders."""
    return tags.get(PLACEHOLDERS, "").lower() == "none"
