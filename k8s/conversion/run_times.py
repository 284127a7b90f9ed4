"""Expected run times of pods, as tags of asks and applications (Q11)."""

from __future__ import annotations

from quadriga.base.times import SECOND
from quadriga.core.config.durations import DurationError, parse_duration
from quadriga.k8s.conversion import keys
from quadriga.k8s.objects import Pod


def run_time_tags(pod: Pod) -> dict[str, str]:
    """Return what the tags of the pod's ask say of its expected run time (Q11): what its annotation declares, and what
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
