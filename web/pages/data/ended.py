"""Applications that have ended, from their summaries, in the form of living ones."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from quadriga.core.model.application import EndedApplication
from quadriga.core.model.gang import NO_PLACEHOLDERS
from quadriga.core.views.quantities import sorted_amounts

#: Reasons of the scheduler in words.
_WORDS: Final = {
    "ResourceReservationTimeout": "its placeholders timed out",
    "ApplicationExecutionTimeout": "it ran for as long as it may",
    "application removed": "removed by the resource manager",
}

#: The most task groups in one answer.
_GROUPS: Final = 50


def in_words(reason: str) -> str:
    """A reason of the scheduler in words for a person."""
    return _WORDS.get(reason, reason)


def ended_queue(app: EndedApplication) -> str:
    """The queue of the application, or the queue that it asked for if it never had one."""
    if app.rejected_message:
        return app.queue_asked.lower()
    return app.queue_path


def ended_row(app: EndedApplication) -> dict[str, Any]:
    """One application in a list. Only gangs have ``gang``."""
    kept = app.remains
    found: dict[str, Any] = {
        "id": app.app_id,
        "queue": ended_queue(app),
        "user": app.user,
        "state": app.state,
        "since": app.finished,
        "reason": app.rejected_message or in_words(app.reason),
        "preempting": 0,
        "preempted": app.preempted,
        "submitted": app.submitted,
        "started": kept.get("started", 0),
        "finished": app.finished,
        "priority": None,
        "asks": 0,
        "allocations": 0,
        "placeholders": 0,
        "reservations": 0,
        "allocated": {},
        "pending": {},
        "message": app.rejected_message,
    }
    if gang := kept.get("gang"):
        groups = kept.get("taskGroups", ())
        real = kept.get("released", 0) if gang["style"] == NO_PLACEHOLDERS else 0
        found["gang"] = {
            "groups": len(groups),
            "count": sum(count for _, count, *_ in groups) + real,
            "pending": 0,
            "placed": 0,
            "replaced": sum(replaced for _, _, replaced, *_ in groups) + real,
            "givenUp": sum(timed_out for _, _, _, timed_out, _ in groups),
            "whole": gang["whole"],
        }
    return found


def ended_application(app: EndedApplication) -> dict[str, Any]:
    """Everything about the application except its story."""
    kept = app.remains
    gang = kept.get("gang", {})
    return {
        "partition": app.partition.key,
        "row": ended_row(app),
        "born": app.submitted,
        "history": kept.get("history", []),
        "groups": kept.get("groups", []),
        "queueAsked": kept.get("queueAsked", ""),
        "placedBy": kept.get("placedBy", ""),
        "tags": dict(sorted(kept.get("tags", {}).items())),
        "released": kept.get("released", 0),
        "backoffUntil": 0,
        "style": gang.get("style", ""),
        "placeholderTimeout": gang.get("timeout", 0),
        "waiting": None,
        "placeholderAsk": sorted_amounts(gang.get("ask")),
        "taskGroups": [
            {
                "name": name,
                "count": count,
                "pending": 0,
                "placed": 0,
                "replaced": replaced,
                "givenUp": timed_out,
                "resource": sorted_amounts(resource),
            }
            for name, count, replaced, timed_out, resource in islice(
                kept.get("taskGroups", ()), _GROUPS
            )
        ],
        "asks": [],
        "kindsOfAsks": 0,
        "held": [],
        "limits": [],
    }
