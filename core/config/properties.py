"""Queue properties, typed (2.2.2, and X9, X16 and 2.10 for ``gang.*``).

A queue carries free text properties. The ones known here get a type; a value
that cannot be read leaves the default and is reported to the caller, who may
log it. Unknown properties stay in the queue's raw properties.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from quadriga.core.config.durations import parse_duration

__all__ = ["Properties", "inherit", "parse_properties"]

_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Properties:
    """The typed properties of one queue. Durations are nanoseconds."""

    sort_policy: str = "fifo"
    """Order of a leaf's applications: ``fifo``, ``fair`` or ``stateaware``."""
    sort_priority: bool = True
    """Whether priorities take part in the order (``application.sort.priority``)."""
    priority_policy: str = "default"
    """``default`` or ``fence``."""
    priority_offset: int = 0
    """Added to the priorities below, an int32."""
    preemption_policy: str = "default"
    """``default``, ``fence`` or ``disabled``."""
    preemption_optout: str = "default"
    """``default``: allocations that opted out go last; ``strict``: never (X40)."""
    preemption_delay: int = 30 * _SECOND
    """ns an ask waits before it may preempt."""
    quota_preemption_delay: int = 0
    """ns from a lowered quota to the preemption that enforces it; 0 is never."""
    backoff: int = 0
    """Unschedulable asks after which an application is left alone; 0 is off."""
    backoff_delay: int = 30 * _SECOND
    """ns for which such an application is left alone."""
    gang_hold: bool = True
    """Whether real asks wait while their gang's placeholders are incomplete (X9)."""
    gang_admission: str = "whole"
    """``whole``: a gang starts when its total fits the quotas; ``incremental``: at once (X16)."""
    gang_wait_limit: int | None = None
    """ns a gang may wait with no placeholder placed; None is without end (2.10)."""


def inherit(parent: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """A queue's raw properties: its parent's that pass down, then its own over them.

    Priority policy and offset never pass down, a preemption policy only where
    it is ``disabled`` (2.2.2).
    """
    passed = {name: value for name, value in parent.items() if _passes_down(name, value)}
    return {**passed, **own}


def _passes_down(name: str, value: str) -> bool:
    if name == "preemption.policy":
        return value.lower() == "disabled"
    return name not in ("priority.policy", "priority.offset")


def parse_properties(raw: Mapping[str, str]) -> tuple[Properties, dict[str, str]]:
    """The typed properties, and for every value that could not be read the reason.

    Never raises: a bad value leaves the default (2.2.2).
    """
    values: dict[str, Any] = {}
    refused: dict[str, str] = {}
    for name, (field, parse) in _KNOWN.items():
        if name in raw:
            try:
                values[field] = parse(raw[name])
            except ValueError as error:
                refused[name] = f"{error}; the default is used"
    return Properties(**values), refused


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError(f"{text!r} is none of {', '.join(choices)}")
        return text.lower()

    return parse


def _switch(on: str, off: str) -> Callable[[str], bool]:
    choice = _one_of(on, off)
    return lambda text: choice(text) == on


def _whole_number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        # Ten digits reach past int32, and int() need not see longer texts.
        if re.fullmatch(r"[+-]?[0-9]{1,10}", text) is None or not low <= int(text) <= high:
            raise ValueError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return parse


def _duration(*, zero: bool) -> Callable[[str], int]:
    def parse(text: str) -> int:
        duration = parse_duration(text)
        if duration < 0 or (duration == 0 and not zero):
            raise ValueError(f"{text!r} is not {'zero or more' if zero else 'more than zero'}")
        return duration

    return parse


_PREEMPTION: Final = _one_of("default", "fence", "disabled")
_QUOTA_DELAY: Final = ("quota_preemption_delay", _duration(zero=True))

# fmt: off
_KNOWN: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "application.sort.policy":              ("sort_policy", _one_of("fifo", "fair", "stateaware")),
    "application.sort.priority":            ("sort_priority", _switch("enabled", "disabled")),
    "priority.policy":                      ("priority_policy", _one_of("default", "fence")),
    "priority.offset":                      ("priority_offset", _whole_number(-2**31, 2**31 - 1)),
    "preemption.policy":                    ("preemption_policy", _PREEMPTION),
    "preemption.optout":                    ("preemption_optout", _one_of("default", "strict")),
    "preemption.delay":                     ("preemption_delay", _duration(zero=False)),
    # Configurations in use write the second spelling; it is read last, and wins.
    "preemption.quota.delay":               _QUOTA_DELAY,
    "quota.preemption.delay":               _QUOTA_DELAY,
    "application.unschedasks.backoff":      ("backoff", _whole_number(0, 2**31 - 1)),
    "application.unschedasks.backoff.delay": ("backoff_delay", _duration(zero=True)),
    "gang.hold":                            ("gang_hold", _switch("true", "false")),
    "gang.admission":                       ("gang_admission", _one_of("whole", "incremental")),
    "gang.wait.limit":                      ("gang_wait_limit", _duration(zero=False)),
}
# fmt: on
