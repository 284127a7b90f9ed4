"""Queue properties, typed (2.2.2, and X9, X16 and 2.10 for ``gang.*``).

A queue has properties of any name, whose values are texts. Known properties are
parsed; if a value is invalid, the default applies and the reason is returned.
Unknown properties stay in the queue's raw properties, and are named in a warning. See D142.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from quadriga.base.times import SECOND
from quadriga.core.config.durations import parse_duration

#: a longer name is like no known one
_LONGEST_NAME: Final = 64
#: shares are whole numbers of millionths
WHOLE: Final = 1_000_000
#: millionths of the capacity that may be kept idle for gangs at most (D321)
_LARGEST_BUDGET: Final = 100_000


#: orders of a leaf's applications: by submission, by share, one at a time, by expected run times
SORT_POLICIES: Final = ("fifo", "fair", "stateaware", "expected")
#: from when the placeholder timeout of a gang counts: its first placeholder, or first failed attempt (D328)
TIMEOUT_FROM: Final = ("placeholder", "attempt")


@dataclass(frozen=True, slots=True)
class Properties:
    """The typed properties of one queue. Durations are nanoseconds."""

    sort_policy: str = "fifo"
    """Order of a leaf's applications, one of `SORT_POLICIES`."""
    runtime_prediction: bool = True
    """Whether the run times of ended allocations predict those of others (``runtime.prediction``)."""
    sort_priority: bool = True
    """Whether priorities take part in the order (``application.sort.priority``)."""
    priority_policy: str = "default"
    """``default`` or ``fence``."""
    priority_offset: int = 0
    """Added to the priority of everything below the queue, an int32."""
    preemption_policy: str = "default"
    """``default``, ``fence`` or ``disabled``."""
    preemption_optout: str = "default"
    """``default``: allocations that opted out are preempted last; ``strict``: they never are (X40)."""
    preemption_delay: int = 30 * SECOND
    """An ask waits this many ns before it may preempt."""
    quota_preemption_delay: int = 0
    """ns between lowering a quota and the preemption that enforces it; 0 means never."""
    backoff: int = 0
    """An application with this many unschedulable asks is skipped for a time; 0 means never."""
    backoff_delay: int = 30 * SECOND
    """Such an application is skipped for this many ns."""
    gang_hold: bool = True
    """If True, real asks wait until all placeholders of their gang are allocated (X9)."""
    gang_admission: str = ""
    """``atomic``: all members of a gang are placed in one step, and one gang at a time keeps nodes (Q1).
    ``whole``: a gang starts when all of it fits the quotas; ``incremental``: at once (X16). Empty: the
    scheduler's default."""
    gang_gather_after: int = 2 * 86_400 * SECOND
    """A gang that has waited this many ns for nodes may keep nodes (Q3)."""
    gang_gather_patience: int = 3600 * SECOND
    """A gang that keeps nodes and gains nothing for this many ns gives them back; 0 means never (Q3)."""
    gang_gather_budget: int = 20_000
    """On root: a gang begins to gather only while at most this many millionths of the capacity were kept
    idle for gangs in the last seven days (Q10). It has no effect on other queues."""
    gang_gather_preempt: bool = False
    """Whether a gang preempts what overran on the nodes of its planned start (``gang.gather.preempt``)."""
    gang_wait_limit: int | None = None
    """A gang may wait this many ns for its first placeholder; None means no limit (2.10)."""
    gang_timeout_from: str = "placeholder"
    """From when the placeholder timeout of a gang counts, one of `TIMEOUT_FROM`."""
    reservation_max_share: int | None = 20_000
    """On root: at most this many millionths of the nodes are reserved, but at least one node; None
    means no bound (Q7). It has no effect on other queues."""


def inherit(parent: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return a queue's raw properties: those inherited from its parent, overridden by its own.

    Priority policy and offset are never inherited, a preemption policy only if it
    is ``disabled`` (2.2.2).
    """
    inherited = {name: value for name, value in parent.items() if _is_inherited(name, value)}
    return {**inherited, **own}


def _is_inherited(name: str, value: str) -> bool:
    if name == "preemption.policy":
        return value.lower() == "disabled"
    return name not in ("priority.policy", "priority.offset")


def parse_properties(raw: Mapping[str, str]) -> tuple[Properties, dict[str, str]]:
    """Return the typed properties, and the reason for each value that is invalid.

    Never raises: the default replaces an invalid value (2.2.2).
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


def unknown_properties(names: Iterable[str]) -> dict[str, str]:
    """The reason for each name that no property has, with the nearest known one. It has no effect: not
    here, and hardly in a program that reads the queue's properties."""
    return {
        name: f"unknown property, without effect{_nearest(name)}"
        for name in names
        if name not in _KNOWN
    }


def _nearest(name: str) -> str:
    # the comparison takes time with the square of the length, and no known name is this long
    close = get_close_matches(name.lower(), _KNOWN, 1) if len(name) <= _LONGEST_NAME else []
    return f"; did you mean {close[0]}?" if close else ""


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
        # Ten digits are enough for an int32 and keep int() away from long texts.
        if re.fullmatch(r"[+-]?[0-9]{1,10}", text) is None or not low <= int(text) <= high:
            raise ValueError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return parse


def _share(text: str) -> int | None:
    """A share of all nodes in millionths; None if it is unlimited."""
    if text.lower() == "unlimited":
        return None
    # four places after the point are the smallest share that is kept
    found = re.fullmatch(r"([0-9]{1,3})(?:\.([0-9]{1,4}))?[ ]?%", text)
    share = int(found[1]) * 10_000 + int((found[2] or "0").ljust(4, "0")) if found else 0
    if not 0 < share <= WHOLE:
        raise ValueError(f"{text!r} is neither above 0% and up to 100% nor unlimited")
    return share


def _budget(text: str) -> int:
    """A share of the capacity in millionths."""
    try:
        budget = 0 if re.fullmatch(r"0(\.0{1,4})?[ ]?%", text) else _share(text)
    except ValueError:
        budget = None
    if budget is None or budget > _LARGEST_BUDGET:
        raise ValueError(f"{text!r} is not from 0% to {_LARGEST_BUDGET // 10_000}%")
    return budget


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
    "application.sort.policy":              ("sort_policy", _one_of(*SORT_POLICIES)),
    "application.sort.priority":            ("sort_priority", _switch("enabled", "disabled")),
    "runtime.prediction":                   ("runtime_prediction", _switch("enabled", "disabled")),
    "priority.policy":                      ("priority_policy", _one_of("default", "fence")),
    "priority.offset":                      ("priority_offset", _whole_number(-2**31, 2**31 - 1)),
    "preemption.policy":                    ("preemption_policy", _PREEMPTION),
    "preemption.optout":                    ("preemption_optout", _one_of("default", "strict")),
    "preemption.delay":                     ("preemption_delay", _duration(zero=False)),
    # Both spellings are in use. The second one takes precedence, because it is read last.
    "preemption.quota.delay":               _QUOTA_DELAY,
    "quota.preemption.delay":               _QUOTA_DELAY,
    "application.unschedasks.backoff":      ("backoff", _whole_number(0, 2**31 - 1)),
    "application.unschedasks.backoff.delay": ("backoff_delay", _duration(zero=True)),
    "gang.hold":                            ("gang_hold", _switch("true", "false")),
    "gang.admission":                       ("gang_admission", _one_of("atomic", "whole", "incremental")),
    "gang.gather.after":                    ("gang_gather_after", _duration(zero=True)),
    "gang.gather.patience":                 ("gang_gather_patience", _duration(zero=True)),
    "gang.gather.budget":                   ("gang_gather_budget", _budget),
    "gang.gather.preempt":                  ("gang_gather_preempt", _switch("overrun", "never")),
    "gang.wait.limit":                      ("gang_wait_limit", _duration(zero=False)),
    "gang.timeout.from":                    ("gang_timeout_from", _one_of(*TIMEOUT_FROM)),
    "reservation.max.share":                ("reservation_max_share", _share),
}
# fmt: on
