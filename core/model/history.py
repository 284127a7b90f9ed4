"""The usage of applications over time, in resource quantities times whole seconds (2.18), as data.

Usage is counted when an allocation ends, by its kind and by the instance type of its node (``model.usage``). A
summary keeps the usage of an application that has ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from quadriga.core.resources.vectors import Totals

#: by instance type: totals of quantity x seconds
Tracked = dict[str, Totals]

#: by instance type: resource type to quantity x seconds (vcore in milli, memory in bytes)
History = dict[str, dict[str, int]]


class Usage:
    """The usage of one application: by real allocations, preempted allocations, placeholders."""

    __slots__ = ("placeholder", "preempted", "used")

    def __init__(self) -> None:
        self.used: Tracked = {}
        self.preempted: Tracked = {}
        self.placeholder: Tracked = {}

    def copy(self) -> Usage:
        """An independent copy."""
        twin = Usage()
        twin.used = _copied(self.used)
        twin.preempted = _copied(self.preempted)
        twin.placeholder = _copied(self.placeholder)
        return twin


def _copied(tracked: Tracked) -> Tracked:
    return {machine: list(totals) for machine, totals in tracked.items()}


@dataclass(frozen=True, slots=True)
class ResourceHistory:
    """Usage with names: instance type to resource type to quantity x seconds."""

    used: History
    preempted: History
    placeholder: History


@dataclass(frozen=True, slots=True)
class ApplicationSummary:
    """The summary of an application that has ended (YK_APP_SUMMARY, 2.1). Times are ns; ``started`` is
    0 if it never ran. ``state`` is the canonical name (X1)."""

    application_id: str
    submitted: int
    started: int
    finished: int
    user: str
    queue: str
    state: str
    rm_id: str
    partition: str
    usage: ResourceHistory

    def fields(self) -> dict[str, object]:
        """The fields under YuniKorn's names, times in ms."""
        return {
            "ApplicationID": self.application_id,
            "SubmissionTime": self.submitted // 1_000_000,
            "StartTime": self.started // 1_000_000,
            "FinishTime": self.finished // 1_000_000,
            "User": self.user,
            "Queue": self.queue,
            "State": self.state,
            "RmID": self.rm_id,
            "ResourceUsage": self.usage.used,
            "PreemptedResource": self.usage.preempted,
            "PlaceholderResource": self.usage.placeholder,
        }
