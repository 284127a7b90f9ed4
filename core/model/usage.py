"""The usage of applications over time, in resource quantities times whole seconds (2.18).

Usage is counted when an allocation ends, by its kind and by the instance type of its node; ``live`` adds
running allocations. A summary keeps the usage of an application that has ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quadriga.base.times import SECOND
from quadriga.core.model.application import Application
from quadriga.core.resources.vectors import Totals
from quadriga.fsm.lifecycles.allocation import PREEMPTION
from quadriga.si.constants import INSTANCE_TYPE

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.ended import EndedApplication

#: the instance type of a node without the attribute ``si/instance-type``
UNKNOWN_INSTANCE: Final = "UNKNOWN"

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

    def count(self, allocation: Allocation, now: int, reason: str | None) -> None:
        """Count an allocation from its creation to ``now`` (ns); ``reason`` is that of its release. Parts
        of a second are dropped, as in YuniKorn."""
        if reason == PREEMPTION:
            tracked = self.preempted
        else:
            tracked = self.placeholder if allocation.ask.kind.placeholder else self.used
        seconds = (now - allocation.created) // SECOND
        machine = allocation.node.attributes.get(INSTANCE_TYPE, "") or UNKNOWN_INSTANCE
        totals = tracked.setdefault(machine, [])
        vector = allocation.vector
        if len(totals) < len(vector):
            totals.extend([0] * (len(vector) - len(totals)))
        if seconds:
            for index, value in enumerate(vector):
                totals[index] += value * seconds


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


def ended(allocation: Allocation, now: int) -> None:
    """Count an allocation that its application no longer holds."""
    app = allocation.ask.app
    if allocation in app.partition.gather_budget.lent:
        app.partition.gather_budget.returned(allocation, now)
    if not allocation.ask.kind.placeholder:
        app.partition.gather_budget.ended(allocation, now)
        app.partition.run_times.ended(allocation, now)
    if app.spent is None:
        app.spent = Usage()
    app.spent.count(allocation, now, allocation.reason)


def live(app: Application | EndedApplication, now: int) -> ResourceHistory:
    """The usage at ``now`` (ns), as if running allocations ended then; after the end of the
    application the usage in its summary."""
    if not isinstance(app, Application):
        return app.account
    if app.summary is not None:
        return app.summary.usage
    held = (*app.allocations.values(), *app.placeholders.values())
    return account(app, app.spent, [(each, each.reason) for each in held], now)


def account(
    app: Application,
    spent: Usage | None,
    held: Iterable[tuple[Allocation, str | None]],
    now: int,
) -> ResourceHistory:
    """The usage at ``now`` (ns): ``spent`` and the held allocations, each with the reason of its
    release."""
    total = spent.copy() if spent is not None else Usage()
    for allocation, reason in held:
        total.count(allocation, now, reason)
    return _named(app, total)


def summarise(app: Application) -> ApplicationSummary:
    """Replace the usage of an ended application by a summary, and return it."""
    summary = ApplicationSummary(
        application_id=app.app_id,
        submitted=app.submitted,
        started=app.start_time,
        finished=app.finished,
        user=app.user,
        queue=app.queue.path,
        state=app.state,
        rm_id=app.partition.rm.rm_id,
        partition=app.partition.name,
        usage=_named(app, app.spent or Usage()),
    )
    app.summary = summary
    app.spent = None
    return summary


def _named(app: Application, account: Usage) -> ResourceHistory:
    mapping = app.partition.registry.mapping

    def history(tracked: Tracked) -> History:
        return {machine: mapping(tracked[machine]) for machine in sorted(tracked)}

    return ResourceHistory(
        history(account.used), history(account.preempted), history(account.placeholder)
    )
