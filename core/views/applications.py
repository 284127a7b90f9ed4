"""Applications as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core import usage
from quadriga.core.dialect import Dialect
from quadriga.core.views.allocations import allocation_objects
from quadriga.core.views.asks import ask_objects
from quadriga.core.views.quantities import amounts, sorted_amounts
from quadriga.fsm import application as life

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.views.objects import (
        ApplicationObject,
        PlaceholderObject,
        ResourceHistory,
        StateEntry,
    )

__all__ = ["NO_PRIORITY", "application_object"]

#: the priority of what asks for nothing (5.4)
NO_PRIORITY = -(2**31)


def application_object(app: Application, now: int, dialect: Dialect) -> ApplicationObject:
    """The application as it is at ``now`` (ns), its states in the dialect's names (X1)."""
    partition = app.partition
    found: ApplicationObject = {
        "applicationID": app.app_id,
        "usedResource": amounts(partition, app.allocated),
        "maxUsedResource": amounts(partition, app.max_allocated),
        "pendingResource": amounts(partition, app.pending),
        "partition": partition.name,
        "queueName": _queue_name(app),
        "submissionTime": app.submitted,
        "requests": ask_objects(app, now),
        "allocations": allocation_objects([*app.allocations.values(), *app.placeholders.values()]),
        "applicationState": dialect.state(app.state),
        "user": app.user,
        "groups": list(app.groups_of_user),
        "rejectedMessage": app.rejected_message,
        "stateLog": _state_log(app, dialect),
        "placeholderData": _placeholder_data(app),
        "hasReserved": bool(app.reservations),
        "reservations": sorted(f"{r.node.node_id}|{r.ask.ask_key}" for r in app.reservations),
        "maxRequestPriority": app.priority if app.priority is not None else NO_PRIORITY,
        "resourceHistory": _resource_history(app, now),
    }
    if started := app.start_time:
        found["startTime"] = started
    if app.state in life.ENDED:
        found["finishedTime"] = app.finished
    if app.backoff_until > now:
        found["backoffDeadline"] = app.backoff_until
    return found


def _queue_name(app: Application) -> str:
    """Where it is or was; what it asked for, if it never got a queue."""
    return app.queue_asked if app.rejected_message else app.queue.path


def _state_log(app: Application, dialect: Dialect) -> list[StateEntry]:
    """Every state entered; it did not enter New, it began there."""
    return [
        {"time": when, "applicationState": dialect.state(state)}
        for when, state in app.history
        if state != life.NEW
    ]


def _resource_history(app: Application, now: int) -> ResourceHistory:
    """What it has used until now, allocations that still run included (2.18)."""
    spent = usage.live(app, now)
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
