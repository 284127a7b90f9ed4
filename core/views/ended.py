"""Applications that have ended as data: from what is kept of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quadriga.core.runtime.dialect import Dialect
from quadriga.core.views.quantities import sorted_amounts
from quadriga.fsm import APPLICATION

if TYPE_CHECKING:
    from quadriga.core.model.ended import EndedApplication
    from quadriga.core.views.objects import ApplicationObject

__all__ = ["NO_PRIORITY", "EndedSeen", "see_ended", "show_ended"]

#: the priority of what asks for nothing (5.4)
NO_PRIORITY: Final = -(2**31)


class EndedSeen(NamedTuple):
    """An ended application as it was when it was looked at; it may expire before it is told."""

    app: EndedApplication
    state: str
    rejected_message: str
    packed: bytes
    dialect: Dialect
    #: it holds none
    allocations: tuple[()] = ()


def see_ended(app: EndedApplication, dialect: Dialect) -> EndedSeen:
    """The application as it is now, its states in the dialect's names (X1)."""
    return EndedSeen(app, app.state, app.rejected_message, app.packed, dialect)


def show_ended(seen: EndedSeen) -> ApplicationObject:
    """What was seen, under the same names as of a living application."""
    app, kept = seen.app, _unpacked(seen.packed)
    used, preempted, placeholder = kept.get("usage", ({}, {}, {}))
    found: ApplicationObject = {
        "applicationID": app.app_id,
        "usedResource": {},
        "maxUsedResource": sorted_amounts(kept.get("most")),
        "pendingResource": {},
        "partition": app.partition.name,
        "queueName": kept.get("queueAsked", "") if seen.rejected_message else app.queue_path,
        "submissionTime": app.submitted,
        "requests": [],
        "allocations": [],
        "applicationState": seen.dialect.state(seen.state),
        "user": app.user,
        "groups": kept.get("groups", []),
        "rejectedMessage": seen.rejected_message,
        "stateLog": [
            {"time": when, "applicationState": seen.dialect.state(state)}
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
