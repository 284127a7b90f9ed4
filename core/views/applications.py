"""Applications as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from quadriga.core.model import usage
from quadriga.core.model.ended import EndedApplication
from quadriga.core.runtime.dialect import Dialect
from quadriga.core.views.allocations import AllocationSeen, allocation_objects, see_allocations
from quadriga.core.views.asks import AskSeen, ask_objects, see_asks
from quadriga.core.views.ended import NO_PRIORITY, EndedSeen, see_ended, show_ended
from quadriga.core.views.quantities import amounts, sorted_amounts
from quadriga.fsm import APPLICATION

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.views.objects import (
        ApplicationObject,
        PlaceholderObject,
        ResourceHistory,
        StateEntry,
    )

__all__ = ["NO_PRIORITY", "ApplicationSeen", "EndedSeen", "see_application", "show_application"]


class ApplicationSeen(NamedTuple):
    """A living application as it was at ``now`` (ns). ``told`` is everything but its asks, its allocations
    and what it has used, which are told later; ``spent`` is what it had used when it was last counted."""

    app: Application
    now: int
    told: ApplicationObject
    asks: tuple[AskSeen, ...]
    allocations: tuple[AllocationSeen, ...]
    spent: usage.Usage | None


def see_application(
    app: Application | EndedApplication, now: int, dialect: Dialect
) -> ApplicationSeen | EndedSeen:
    """The application as it is at ``now`` (ns), its states in the dialect's names (X1)."""
    if isinstance(app, EndedApplication):
        return see_ended(app, dialect)
    partition = app.partition
    found: ApplicationObject = {
        "applicationID": app.app_id,
        "usedResource": amounts(partition, app.allocated),
        "maxUsedResource": amounts(partition, app.max_allocated),
        "pendingResource": amounts(partition, app.pending),
        "partition": partition.name,
        "queueName": app.queue_path,
        "submissionTime": app.submitted,
        "requests": [],
        "allocations": [],
        "applicationState": dialect.state(app.state),
        "user": app.user,
        "groups": list(app.groups_of_user),
        "rejectedMessage": "",
        "stateLog": _state_log(app, dialect),
        "placeholderData": _placeholder_data(app),
        "hasReserved": bool(app.reservations),
        "reservations": sorted(f"{r.node.node_id}|{r.ask.ask_key}" for r in app.reservations),
        "maxRequestPriority": app.priority if app.priority is not None else NO_PRIORITY,
        "resourceHistory": {
            "resourceUsage": {},
            "preemptedResource": {},
            "placeholderResource": {},
        },
    }
    if started := app.start_time:
        found["startTime"] = started
    if app.backoff_until > now:
        found["backoffDeadline"] = app.backoff_until
    asks = see_asks(app, now) if app.asks else ()
    held = see_allocations([*app.allocations.values(), *app.placeholders.values()])
    spent = app.spent.copy() if app.spent is not None else None
    return ApplicationSeen(app, now, found, asks, held, spent)


def show_application(
    seen: ApplicationSeen | EndedSeen, *, allocations: bool = True
) -> ApplicationObject:
    """What was seen; the list of allocations is left empty without ``allocations``."""
    if isinstance(seen, EndedSeen):
        return show_ended(seen)
    return {
        **seen.told,
        "requests": ask_objects(seen.asks, seen.now),
        "allocations": allocation_objects(seen.allocations) if allocations else [],
        "resourceHistory": _resource_history(seen),
    }


def _state_log(app: Application, dialect: Dialect) -> list[StateEntry]:
    """Every state entered; it did not enter New, it began there."""
    return [
        {"time": when, "applicationState": dialect.state(state)}
        for when, state in app.history
        if state != APPLICATION.initial
    ]


def _resource_history(seen: ApplicationSeen) -> ResourceHistory:
    """What it had used by then, allocations that ran at the time included (2.18)."""
    held = [(allocation, reason) for allocation, reason, *_ in seen.allocations]
    spent = usage.account(seen.app, seen.spent, held, seen.now)
    return {
        "resourceUsage": {on: sorted_amounts(each) for on, each in spent.used.items()},
        "preemptedResource": {on: sorted_amounts(each) for on, each in spent.preempted.items()},
        "placeholderResource": {on: sorted_amounts(each) for on, each in spent.placeholder.items()},
    }


def _placeholder_data(app: Application) -> list[PlaceholderObject]:
    return [
        {
            "taskGroupName": group.name,
            "count": group.count,
            "minResource": amounts(app.partition, group.min_resource),
            "replaced": group.replaced,
            "timedout": group.timed_out,
        }
        for _, group in sorted(app.task_groups.items())
    ]
