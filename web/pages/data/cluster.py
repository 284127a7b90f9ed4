"""The overview of the cluster."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from quadriga.core import Scheduler
from quadriga.core.runtime.stepwise import STEP, Steps, chunks
from quadriga.core.views import NotFound, Views
from quadriga.core.views.quantities import amounts, provided
from quadriga.web.pages.data.applications import is_pending
from quadriga.web.pages.data.lookup import partition_of
from quadriga.web.pages.data.nodes import is_unhealthy

#: The latest reports of the watchdog in one answer.
_REPORTS: Final = 20


def overview(
    scheduler: Scheduler, views: Views, partition: str, failures: int
) -> Steps[dict[str, Any]]:
    """Capacity and usage by type, nodes and applications by state, health, the watchdog's reports.

    ``failures`` is the number of messages refused because of a bug. Without any partition the answer has
    only ``partitions``, which is empty. Raises ``NotFound`` for an unknown partition.
    """
    known = [
        {"key": each.key, "name": each.name, "rm": each.rm.rm_id, "state": each.state}
        for each in scheduler.partitions()
    ]
    if not known and not partition:
        return {"partitions": []}
    found = partition_of(scheduler, partition)
    capacity, root = provided(found), found.root
    nodes, states, numbers = Counter[str](), Counter[str](), Counter[str]()
    for some in chunks(found.nodes.values()):
        nodes.update([node.state for node in some])
        numbers["reserved"] += sum([node.reservation is not None for node in some])
        numbers["unhealthy"] += sum(map(is_unhealthy, some))
        yield
    for living in chunks(found.applications.values()):
        states.update([app.state for app in living])
        numbers["pending"] += sum(map(is_pending, living))
        numbers["asks"] += sum([len(app.asks) for app in living])
        numbers["placeholders"] += sum([len(app.placeholders) for app in living])
        numbers["allocations"] += sum([len(app.allocations) for app in living])
        yield
    for at, _ in enumerate(root.each(), 1):
        numbers["queues"] = at
        if not at % STEP:
            yield
    for ended in chunks(found.ended):
        states.update([app.state for app in ended])
        yield
    return {
        "partitions": known,
        "partition": found.key,
        "resourceManager": {
            "id": found.rm.rm_id,
            "state": found.rm.state,
            "version": found.rm.version,
        },
        "capacity": capacity,
        "allocated": amounts(found, root.allocated, capacity),
        "pending": amounts(found, root.pending),
        "preempting": amounts(found, root.preempting),
        "nodes": {
            "states": dict(sorted(nodes.items())),
            "reserved": numbers["reserved"],
            "unhealthy": numbers["unhealthy"],
            "failed": len(found.failed_nodes),
        },
        "applications": dict(sorted(states.items())),
        "pendingApplications": numbers["pending"],
        "asks": numbers["asks"],
        "allocations": numbers["allocations"] + numbers["placeholders"],
        "placeholders": numbers["placeholders"],
        "reservations": len(found.reservations),
        "queues": numbers["queues"],
        "policies": {
            "nodes": found.config.node_sort_policy,
            "preemption": found.config.preemption_enabled,
        },
        "health": _health(views),
        "failures": failures,
        "overdue": [
            {"time": time, "key": key, "state": state}
            for time, key, state in scheduler.overdue[-_REPORTS:]
        ],
    }


def _health(views: Views) -> dict[str, Any] | None:
    """The result of the last check, ``None`` before the first."""
    try:
        health = views.health()
    except NotFound:
        return None
    return {
        "healthy": health["Healthy"],
        "checks": [
            {
                "name": each["Description"],
                "passed": each["Succeeded"],
                "diagnosis": each["DiagnosisMessage"],
            }
            for each in health["HealthChecks"]
        ],
    }
