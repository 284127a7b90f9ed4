"""Times of the API (RFC 3339), and expected run times."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from quadriga.core.config.durations import DurationError, parse_duration
from quadriga.fsm.table import SECOND
from quadriga.k8s.conversion import keys
from quadriga.k8s.objects import Pod


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


def run_time_tags(pod: Pod) -> dict[str, str]:
    """Return what the tags of the pod's ask say of its expected run time (Q11): what its annotation tells, and what
    its ``activeDeadlineSeconds`` bounds. A text that is no time is passed on, and the core notes that it is ignored.
    """
    tags = {}
    if told := pod.metadata.annotations.get(keys.EXPECTED_RUNTIME, ""):
        tags[keys.EXPECTED_RUNTIME_TAG] = _seconds(told)
    if (bound := pod.spec.active_deadline_seconds) is not None and bound > 0:
        tags[keys.RUNTIME_BOUND_TAG] = str(bound)
    return tags


def _seconds(text: str) -> str:
    if text.isascii() and text.isdecimal():
        return text
    try:
        return str(-(-parse_duration(text) // SECOND))
    except DurationError:
        return text
