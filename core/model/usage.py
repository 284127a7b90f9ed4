"""The usage of applications over time, counted when allocations end, and what is kept of an application that has ended
(2.18, D85)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from quadriga.base.texts import shortened
from quadriga.base.times import SECOND
from quadriga.core.model import predictions
from quadriga.core.model.application import Application
from quadriga.core.model.history import ApplicationSummary, ResourceHistory, Usage
from quadriga.fsm.lifecycles.allocation import PREEMPTION
from quadriga.si.constants import INSTANCE_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import EndedApplication
    from quadriga.core.model.history import History, Tracked

#: the instance type of a node without the attribute ``si/instance-type``
UNKNOWN_INSTANCE: Final = "UNKNOWN"
#: at most this many states, tags, groups and task groups of an application are kept
_MOST: Final = 100


# -- usage -----------------------------------------------------------------------------------------


def ended(allocation: Allocation, now: int) -> None:
    """Count an allocation that its application no longer holds."""
    app = allocation.ask.app
    budget = app.partition.gather_budget
    if allocation in app.partition.lent.runtimes:
        app.partition.lent.returned(allocation, now)
    if not allocation.ask.kind.placeholder:
        budget.longest_run = max(budget.longest_run, now - allocation.created)
        predictions.ended(allocation, now)
    if app.spent is None:
        app.spent = Usage()
    _count(app.spent, allocation, now, allocation.reason)


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
        _count(total, allocation, now, reason)
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


def _count(usage: Usage, allocation: Allocation, now: int, reason: str | None) -> None:
    """Count an allocation from its creation to ``now`` (ns); ``reason`` is that of its release. Parts
    of a second are dropped, as in YuniKorn."""
    if reason == PREEMPTION:
        tracked = usage.preempted
    else:
        tracked = usage.placeholder if allocation.ask.kind.placeholder else usage.used
    seconds = (now - allocation.created) // SECOND
    machine = allocation.node.attributes.get(INSTANCE_TYPE, "") or UNKNOWN_INSTANCE
    totals = tracked.setdefault(machine, [])
    vector = allocation.vector
    if len(totals) < len(vector):
        totals.extend([0] * (len(vector) - len(totals)))
    if seconds:
        for index, value in enumerate(vector):
            totals[index] += value * seconds


def _named(app: Application, account: Usage) -> ResourceHistory:
    mapping = app.partition.registry.mapping

    def history(tracked: Tracked) -> History:
        return {machine: mapping(tracked[machine]) for machine in sorted(tracked)}

    return ResourceHistory(
        history(account.used), history(account.preempted), history(account.placeholder)
    )


# -- what is kept ----------------------------------------------------------------------------------


def remains_of(app: Application) -> dict[str, Any]:
    """The details to pack of an application that has ended and has no asks or allocations left."""
    summary = app.summary
    spent = summary.usage if summary is not None else None
    named = app.partition.registry.mapping
    remains: dict[str, Any] = {
        "history": _history(app.history),
        "started": app.start_time,
        "groups": _short(app.groups_of_user),
        "tags": _short_mapping(app.tags),
        "queueAsked": shortened(app.queue_asked),
        "placedBy": shortened(app.placed_by),
        "most": named(app.max_allocated),
        "released": app.released,
    }
    if spent is not None:
        remains["usage"] = [spent.used, spent.preempted, spent.placeholder]
    if app.gang.size is not None:
        remains["gang"] = {
            "whole": app.started or app.has_its_gang,
            "style": app.gang.style,
            "timeout": app.gang.timeout,
            "ask": named(app.gang.size),
        }
    if app.gang.task_groups:
        groups = sorted(app.gang.task_groups.items())
        remains["taskGroups"] = [
            [shortened(name), g.count, g.replaced, g.timed_out, named(g.min_resource)]
            for name, g in groups[:_MOST]
        ]
    return remains


def _history(history: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """The first state and the last ``_MOST`` states."""
    return [*history[:1], *history[1:][-_MOST:]]


def _short(texts: Iterable[str]) -> list[str]:
    return [shortened(text) for text in texts][:_MOST]


def _short_mapping(texts: dict[str, str]) -> dict[str, str]:
    return {shortened(k): shortened(v) for k, v in sorted(texts.items())[:_MOST]}
