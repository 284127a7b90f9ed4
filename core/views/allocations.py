"""Allocations as data.

Looking at one and telling what was seen are two things: only the first has to be done between two
steps of the scheduler. What is seen is what may change later; a tuple, and quick to make.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quadriga.core.views.quantities import amounts
from quadriga.fsm import allocation as life

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.views.objects import AllocationObject

__all__ = ["AllocationSeen", "allocation_objects", "in_order", "see_allocations", "show_allocation"]

#: the allocation; why it is asked back; its ask's tags and priority; when the placeholder was
#: allocated that it took over
AllocationSeen = tuple["Allocation", str | None, dict[str, str], int, int | None]


def see_allocations(allocations: Iterable[Allocation]) -> tuple[AllocationSeen, ...]:
    """These allocations as they are now."""
    return tuple([_see(each) for each in allocations])


def _see(allocation: Allocation) -> AllocationSeen:
    ask = allocation.ask
    stood_in = None
    if ask.task_group:
        group = ask.app.task_groups.get(ask.task_group)
        stood_in = group.stood_in.get(allocation.uuid) if group is not None else None
    return allocation, allocation.reason, ask.terms.tags, ask.priority, stood_in


def in_order(seen: Iterable[AllocationSeen]) -> list[AllocationSeen]:
    """In order of application, key and number of the key's allocations."""

    def place(one: AllocationSeen) -> tuple[str, str, int, str]:
        allocation = one[0]
        return allocation.ask.app.app_id, allocation.ask.ask_key, allocation.created, allocation.key

    return sorted(seen, key=place)


def allocation_objects(seen: Iterable[AllocationSeen]) -> list[AllocationObject]:
    """What was seen, in order."""
    return [show_allocation(each) for each in in_order(seen)]


def show_allocation(seen: AllocationSeen) -> AllocationObject:
    allocation, reason, tags, priority, stood_in = seen
    ask = allocation.ask
    app = ask.app
    requested = stood_in if stood_in is not None else ask.created
    return {
        "allocationKey": ask.ask_key,
        "allocationTags": dict(sorted(tags.items())),
        "requestTime": requested,
        "allocationTime": allocation.created,
        "allocationDelay": allocation.created - requested,
        "uuid": allocation.uuid,
        "allocationID": allocation.uuid,
        "resource": amounts(app.partition, allocation.on_node),
        "priority": str(priority),
        "nodeId": allocation.node.node_id,
        "applicationId": app.app_id,
        "partition": app.partition.name,
        "placeholder": ask.placeholder,
        "placeholderUsed": stood_in is not None,
        "taskGroupName": ask.task_group,
        "preempted": reason == life.PREEMPTION,
        "originator": ask.terms.originator,
    }
