"""Applications as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from quadriga.core.model import usage
from quadriga.core.model.ended import EndedApplication
from quadriga.core.runtime.dialect import Dialect
from quadriga.core.runtime.stepwise import Steps
from quadriga.core.views.allocations import (
    AllocationSnapshot,
    allocation_objects,
    allocations_in_steps,
)
from quadriga.core.views.asks import AskSnapshot, ask_objects, asks_in_steps
from quadriga.core.views.ended import NO_PRIORITY, EndedSnapshot, ended_object, snapshot_ended
from quadriga.core.views.gangs import waiting_gang
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

__all__ = [
    "NO_PRIORITY",
    "ApplicationSnapshot",
    "EndedSnapshot",
    "application_object",
    "application_in_steps",
]


class ApplicationSnapshot(NamedTuple):
    """A living application as it was at ``now`` (ns).

    ``fields`` are all but its asks, its allocations and its resource history, which are formatted later;
    ``spent`` is what it had used when that was last counted.
    """

    app: Application
    now: int
    fields: ApplicationObject
    asks: tuple[AskSnapshot, ...]
    allocations: tuple[AllocationSnapshot, ...]
    spent: usage.Usage | None


def application_in_steps(
    app: Application | EndedApplication, now: int, dialect: Dialect
) -> Steps[ApplicationSnapshot | EndedSnapshot]:
    """The application at ``now`` (ns), its states in the dialect's names (X1). One with many asks or
    allocations is itself read in steps."""
    if isinstance(app, EndedApplication):
        return snapshot_ended(app, dialect)
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
    if (gang := waiting_gang(app, now)) is not None:
        found["waitingGang"] = gang
    asks = (yield from asks_in_steps(app, now)) if app.asks else ()
    held = yield from allocations_in_steps([*app.allocations.values(), *app.placeholders.values()])
    spent = app.spent.copy() if app.spent is not None else None
    return ApplicationSnapshot(app, now, found, asks, held, spent)


def application_object(
    snapshot: ApplicationSnapshot | EndedSnapshot, *, allocations: bool = True
) -> ApplicationObject:
    """The snapshot as an object; without ``allocations`` their list is empty."""
    if isinstance(snapshot, EndedSnapshot):
        return ended_object(snapshot)
    return {
        **snapshot.fields,
        "requests": ask_objects(snapshot.asks, snapshot.now),
        "allocations": allocation_objects(snapshot.allocations) if allocations else [],
        "resourceHistory": _resource_history(snapshot),
    }


def _state_log(app: Application, dialect: Dialect) -> list[StateEntry]:
    """Every state that it entered; it began in New and never entered that."""
    return [
        {"time": when, "applicationState": dialect.state(state)}
        for when, state in app.history
        if state != APPLICATION.initial
    ]


def _resource_history(snapshot: ApplicationSnapshot) -> ResourceHistory:
    """What it had used by the time of the snapshot, running allocations included (2.18)."""
    held = [(allocation, reason) for allocation, reason, *_ in snapshot.allocations]
    spent = usage.account(snapshot.app, snapshot.spent, held, snapshot.now)
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
        for _, group in sorted(app.gang.task_groups.items())
    ]
