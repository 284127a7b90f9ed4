"""Allocations as data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quadriga.core.views.quantities import amounts
from quadriga.fsm import allocation as life

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.views.objects import AllocationObject

__all__ = ["allocation_object", "allocation_objects"]


def allocation_objects(allocations: Iterable[Allocation]) -> list[AllocationObject]:
    """In order of application, key and number of the key's allocations."""
    ordered = sorted(allocations, key=lambda a: (a.ask.app.app_id, a.ask.ask_key, a.created, a.key))
    return [allocation_object(each) for each in ordered]


def allocation_object(allocation: Allocation) -> AllocationObject:
    ask = allocation.ask
    app = ask.app
    group = app.task_groups.get(ask.task_group)
    stood_in = group.stood_in.get(allocation.uuid) if group is not None else None
    requested = stood_in if stood_in is not None else ask.created
    return {
        "allocationKey": ask.ask_key,
        "allocationTags": dict(sorted(ask.tags.items())),
        "requestTime": requested,
        "allocationTime": allocation.created,
        "allocationDelay": allocation.created - requested,
        "uuid": allocation.uuid,
        "allocationID": allocation.uuid,
        "resource": amounts(app.partition, allocation.vector),
        "priority": str(ask.priority),
        "nodeId": allocation.node.node_id,
        "applicationId": app.app_id,
        "partition": app.partition.name,
        "placeholder": ask.placeholder,
        "placeholderUsed": stood_in is not None,
        "taskGroupName": ask.task_group,
        "preempted": allocation.reason == life.PREEMPTION,
        "originator": ask.originator,
    }
