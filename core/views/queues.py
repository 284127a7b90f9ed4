"""Queues as data: one queue, or a tree of queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.config import render_duration
from quadriga.core.runtime.stepwise import Steps, finish
from quadriga.core.views.applications import NO_PRIORITY
from quadriga.core.views.quantities import amounts, percentages, provided, sorted_amounts

if TYPE_CHECKING:
    from quadriga.core.model.queue import Queue
    from quadriga.core.views.objects import QueueObject, Resources, TemplateObject


def queue_object(queue: Queue) -> QueueObject:
    """The queue alone."""
    return finish(queue_in_steps(queue, tree=False))


def queue_in_steps(queue: Queue, *, tree: bool) -> Steps[QueueObject]:
    """The queue, with everything below it if ``tree``; children in order of their names.

    Root's maximum is the capacity of its nodes (5.1). Types without any limit are absent from
    ``headroom``. ``allocatedResource`` includes placeholders and allocations that are being released.
    """
    partition = queue.partition
    capacity = provided(partition)
    most = sorted_amounts(queue.max) if queue.parent is not None else capacity
    allocated = amounts(partition, queue.allocated, capacity | most)
    below = [queue.children[name] for name in sorted(queue.children)]
    names = [child.path for child in below]
    properties = queue.properties
    reported = queue.reported
    found: QueueObject = {
        "queuename": queue.path,
        "status": queue.state,
        "partition": partition.name if queue.parent is None else "",
        "pendingResource": amounts(partition, queue.pending, capacity),
        "maxResource": most,
        "guaranteedResource": sorted_amounts(queue.guaranteed),
        "allocatedResource": allocated,
        "preemptingResource": amounts(partition, queue.preempting),
        "headroom": _headroom(queue, capacity),
        "isLeaf": queue.leaf,
        "isManaged": queue.managed,
        "properties": dict(sorted(queue.raw_properties.items())),
        "parent": queue.parent.path if queue.parent is not None else "",
        "children": [],
        "childrenNames": names,
        "childNames": list(names),
        "absUsedCapacity": percentages(allocated, most),
        "maxRunningApps": queue.max_applications,
        "runningApps": queue.running,
        "currentPriority": reported if reported is not None else NO_PRIORITY,
        "allocatingAcceptedApps": sorted(app.app_id for app in queue.admitted),
        "sortingPolicy": properties.sort_policy if queue.leaf else "fair",
        "prioritySorting": properties.sort_priority,
        "preemptionEnabled": properties.preemption_policy != "disabled",
        "isPreemptionFence": properties.preemption_policy == "fence",
        "preemptionDelay": render_duration(properties.preemption_delay),
        "isPriorityFence": properties.priority_policy == "fence",
        "priorityOffset": properties.priority_offset,
        "quotaPreemptionDelay": render_duration(properties.quota_preemption_delay),
    }
    template = _template(queue)
    if template is not None:
        found["template"] = template
    yield
    if tree:
        for child in below:
            found["children"].append((yield from queue_in_steps(child, tree=True)))
    return found


def _headroom(queue: Queue, capacity: Resources) -> Resources:
    """What the quotas on the path leave, by type (5.3)."""
    partition = queue.partition
    names = partition.registry.names
    room: dict[str, int] = {}
    for each in queue.lineage:
        for index, limit in each.limits:
            name = names[index]
            if each.parent is None and name not in capacity:
                continue
            left = limit - each.allocated[index]
            room[name] = min(left, room.get(name, left))
    return sorted_amounts(room)


def _template(queue: Queue) -> TemplateObject | None:
    template = queue.template
    if template is None:
        return None
    return {
        "maxApplications": template.max_applications,
        "maxResource": sorted_amounts(template.max),
        "guaranteedResource": sorted_amounts(template.guaranteed),
        "properties": dict(sorted(template.properties.items())),
    }
