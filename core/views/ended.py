"""Ended applications as data, from their records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quadriga.core.runtime.dialect import Dialect
from quadriga.core.views.quantities import sorted_amounts
from quadriga.fsm import APPLICATION

if TYPE_CHECKING:
    from quadriga.core.model.ended import EndedApplication
    from quadriga.core.views.objects import ApplicationObject

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
