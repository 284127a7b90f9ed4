"""The queue tree as rows from the root down, and one queue with all its settings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from quadriga.core import Scheduler
from quadriga.core.model.account import Limit
from quadriga.core.model.queue import LeafQueue, Queue
from quadriga.core.runtime.stepwise import Steps, chunks
from quadriga.core.views.quantities import amounts, provided, sorted_amounts
from quadriga.core.views.queues import queue_object
from quadriga.web.pages.data.applications import is_pending
from quadriga.web.pages.data.lookup import queue_of

#: The most rows of the tree in one answer; a larger tree is read from one of its queues down.
_MOST: Final = 2000
#: Counted beside the states: applications that want resources.
PENDING: Final = "pending"
#: The most names of one limit in one answer.
_NAMES: Final = 50


def queue_rows(scheduler: Scheduler, partition: str, below: str) -> Steps[dict[str, Any]]:
    """The queues from ``below`` (a path, by default the root) down: parents first, children by name.

    ``max`` of the root is the capacity of the nodes. ``applications`` counts living ones by state,
    including those of queues below. ``total`` is the number of rows without the bound.
    """
    top = queue_of(scheduler, partition, below)
    states = yield from _applications(top)
    depth, rows = len(top.lineage), []
    for each in list(islice(top.walk(), _MOST)):
        rows.append(_row(each, len(each.lineage) - depth, states[each]))
        yield
    return {
        "partition": top.partition.key,
        "types": list(provided(top.partition)),
        "total": len(states),
        "rows": rows,
    }


def _applications(top: Queue) -> Steps[dict[Queue, Counter[str]]]:
    """The living applications by state of each queue and all queues below it, and how many are pending."""
    found: defaultdict[Queue, Counter[str]] = defaultdict(Counter)
    for each in list(top.each())[::-1]:
        yield
        for apps in chunks(each.apps.values() if isinstance(each, LeafQueue) else ()):
            found[each].update([app.state for app in apps])
            found[each][PENDING] += sum(map(is_pending, apps))
            yield
        if each is not top and each.parent is not None:
            found[each.parent].update(found[each])
    return found


def _row(each: Queue, depth: int, states: Counter[str]) -> dict[str, Any]:
    partition = each.partition
    root = each.parent is None
    return {
        "path": each.path,
        "name": each.name,
        "depth": depth,
        "state": each.state,
        "leaf": each.leaf,
        "managed": each.managed,
        "children": len(each.children),
        "allocated": amounts(partition, each.allocated),
        "pending": amounts(partition, each.pending),
        "guaranteed": sorted_amounts(each.guaranteed),
        "max": provided(partition) if root else sorted_amounts(each.max),
        "running": each.running,
        "maxRunning": each.max_applications,
        "applications": {name: states[name] for name in sorted(states) if name != PENDING},
        "pendingApplications": states[PENDING],
        "limits": len(each.user_limits) + len(each.group_limits),
    }


def queue(scheduler: Scheduler, partition: str, path: str) -> Steps[dict[str, Any]]:
    """One queue: its row, the queues above it, its settings, its limits."""
    one = queue_of(scheduler, partition, path)
    states = yield from _applications(one)
    shown = queue_object(one)
    return {
        "partition": one.partition.key,
        "types": list(provided(one.partition)),
        "row": _row(one, 0, states[one]),
        "above": [_row(each, 0, Counter()) for each in reversed(one.lineage[1:])],
        "children": [each.path for _, each in islice(sorted(one.children.items()), _MOST)],
        "headroom": shown["headroom"],
        "preempting": shown["preemptingResource"],
        "settings": {
            "sorting": shown["sortingPolicy"],
            "priority sorting": shown["prioritySorting"],
            "priority offset": shown["priorityOffset"],
            "priority fence": shown["isPriorityFence"],
            "preemption": shown["preemptionEnabled"],
            "preemption fence": shown["isPreemptionFence"],
            "preemption delay": shown["preemptionDelay"],
            "quota preemption delay": shown["quotaPreemptionDelay"],
        },
        "properties": shown["properties"],
        "template": shown.get("template"),
        "limits": [
            *_limits("user", one.user_limits),
            *_limits("group", one.group_limits),
        ],
    }


def _limits(kind: str, limits: Mapping[str, Limit]) -> list[dict[str, Any]]:
    return [
        {
            "kind": kind,
            "name": name,
            "max": sorted_amounts(limit.max),
            "applications": limit.applications,
        }
        for name, limit in islice(limits.items(), _NAMES)
    ]
