"""Applications as data, living ones and, from their records, ended ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quadriga.core.model import predictions, usage
from quadriga.core.model.application import EndedApplication
from quadriga.core.model.gang import NODES
from quadriga.core.model.run_times import LIMIT, NOTHING, TOLD
from quadriga.core.runtime.dialect import Dialect
from quadriga.core.runtime.stepwise import Steps
from quadriga.core.views.allocations import (
    AllocationSnapshot,
    allocation_objects,
    allocations_in_steps,
)
from quadriga.core.views.asks import AskSnapshot, ask_objects, asks_in_steps
from quadriga.core.views.quantities import amounts, sorted_amounts
from quadriga.fsm import APPLICATION
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import gang as gang_fsm

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.gang import PlannedStart
    from quadriga.core.model.history import Usage
    from quadriga.core.views.objects import (
        ApplicationObject,
        PlaceholderObject,
        PlannedStartObject,
        ResourceHistory,
        StateEntry,
        WaitingGangObject,
    )


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
    spent: Usage | None


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


class Holdings(NamedTuple):
    """``gathers``: the application is a gang that holds placeholders and lacks others.
    ``reservations`` has the node and the ask's key of each reservation, by node id."""

    gathers: bool = False
    reservations: tuple[tuple[str, str], ...] = ()


def holdings_of(app: Application | EndedApplication) -> Holdings:
    """The holdings of a living application; an ended one has none."""
    if isinstance(app, EndedApplication):
        return Holdings()
    reserved = sorted((each.node.node_id, each.ask.ask_key) for each in app.reservations)
    return Holdings(app.gathers and app.has_placeholders, tuple(reserved))


#: at most this many nodes, and applications, of a planned start are listed
_LISTED: Final = 100


def waiting_gang(app: Application, now: int) -> WaitingGangObject | None:
    """The gang of the application at ``now`` (ns); ``None`` unless its members wait for places."""
    own, partition = app.gang, app.partition
    if (
        not app.is_gang
        or own.state not in gang_fsm.WAITS
        or app.state not in application_fsm.SERVED
    ):
        return None
    plan = partition.node_index.planned
    protected = plan is not None and plan.app is app
    left, waits = partition.gather_budget.left(predictions.is_told(own)), own.waiting_since >= 0
    due = waits and own.lacks in (NODES, "") and own.may_gather_from <= now
    found: WaitingGangObject = {
        "style": own.style,
        "lacks": own.lacks,
        "members": own.outstanding,
        "missing": own.missing,
        "mayGather": protected or (due and left > 0),
        "budgetLeft": left,
    }
    if waits:
        found["waitingSince"], found["mayGatherFrom"] = own.waiting_since, own.may_gather_from
    if own.timed_since >= 0:
        found["timesOut"] = own.timed_since + own.timeout
    if plan is not None and protected:
        found["plannedStart"] = _planned_start(plan, now)
    return found


def _planned_start(plan: PlannedStart, now: int) -> PlannedStartObject:
    users, estimates = plan.users, dict.fromkeys((TOLD, LIMIT, "predicted", NOTHING), 0)
    for source, number in plan.sources.items():
        estimates[source if source in estimates else "predicted"] += number
    return {
        "start": plan.start,
        "promised": plan.promised,
        "nodes": plan.nodes[:_LISTED],
        "nodeCount": len(plan.needs),
        "users": users[:_LISTED],
        "userCount": len(users),
        "estimates": estimates,
        "overran": len(plan.app.partition.lent.overran(now)),
    }


#: the priority of an application without asks (5.4)
NO_PRIORITY: Final = -(2**31)


class EndedSnapshot(NamedTuple):
    """An ended application; it may expire before the snapshot is formatted."""

    app: EndedApplication
    state: str
    rejected_message: str
    packed: bytes
    dialect: Dialect
    #: it has none
    allocations: tuple[()] = ()


def snapshot_ended(app: EndedApplication, dialect: Dialect) -> EndedSnapshot:
    """The application now, its states in the dialect's names (X1)."""
    return EndedSnapshot(app, app.state, app.rejected_message, app.packed, dialect)


def ended_object(snapshot: EndedSnapshot) -> ApplicationObject:
    """The snapshot as an object with the fields of a living application."""
    app, kept = snapshot.app, _unpacked(snapshot.packed)
    used, preempted, placeholder = kept.get("usage", ({}, {}, {}))
    found: ApplicationObject = {
        "applicationID": app.app_id,
        "usedResource": {},
        "maxUsedResource": sorted_amounts(kept.get("most")),
        "pendingResource": {},
        "partition": app.partition.name,
        "queueName": kept.get("queueAsked", "") if snapshot.rejected_message else app.queue_path,
        "submissionTime": app.submitted,
        "requests": [],
        "allocations": [],
        "applicationState": snapshot.dialect.state(snapshot.state),
        "user": app.user,
        "groups": kept.get("groups", []),
        "rejectedMessage": snapshot.rejected_message,
        "stateLog": [
            {"time": when, "applicationState": snapshot.dialect.state(state)}
            for when, state in kept.get("history", ())
            if state != APPLICATION.initial
        ],
        "placeholderData": [
            {
                "taskGroupName": name,
                "count": count,
                "minResource": sorted_amounts(resource),
                "replaced": replaced,
                "timedout": timed_out,
            }
            for name, count, replaced, timed_out, resource in kept.get("taskGroups", ())
        ],
        "hasReserved": False,
        "reservations": [],
        "maxRequestPriority": NO_PRIORITY,
        "resourceHistory": {
            "resourceUsage": {on: sorted_amounts(each) for on, each in used.items()},
            "preemptedResource": {on: sorted_amounts(each) for on, each in preempted.items()},
            "placeholderResource": {on: sorted_amounts(each) for on, each in placeholder.items()},
        },
    }
    if started := kept.get("started", 0):
        found["startTime"] = started
    found["finishedTime"] = app.finished
    return found


def _unpacked(packed: bytes) -> dict[str, Any]:
    return json.loads(packed) if packed else {}
