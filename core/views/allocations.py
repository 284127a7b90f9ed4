"""Allocations as data.

A snapshot has to be taken between two steps of the scheduler; it can be formatted later. It is a tuple
of what may change, and fast to make.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from quadriga.core.runtime.stepwise import STEP, Steps, chunks
from quadriga.core.views.quantities import amounts
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.si.constants import TAG_DEVICES

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.views.objects import AllocationObject

#: the allocation; the reason of its release; its ask's tags and priority; when the placeholder that it
#: replaced was allocated
AllocationSnapshot = tuple["Allocation", str | None, dict[str, str], int, int | None]


def snapshot_allocations(allocations: Iterable[Allocation]) -> tuple[AllocationSnapshot, ...]:
    """Snapshots of these allocations."""
    return tuple([_snapshot(each) for each in allocations])


def allocations_in_steps(
    allocations: Collection[Allocation],
) -> Steps[tuple[AllocationSnapshot, ...]]:
    """The same, in steps if they are many."""
    if len(allocations) <= STEP:
        return snapshot_allocations(allocations)
    found: list[AllocationSnapshot] = []
    for few in chunks(allocations):
        found += snapshot_allocations(few)
        yield
    return tuple(found)


def _snapshot(allocation: Allocation) -> AllocationSnapshot:
    ask = allocation.ask
    replaced_at = None
    if ask.task_group:
        group = ask.app.gang.task_groups.get(ask.task_group)
        replaced_at = (
            group.placeholder_created_at.get(allocation.uuid) if group is not None else None
        )
    tags = ask.terms.tags
    if allocation.units:
        units = ask.app.partition.registry.units_text(allocation.units)
        tags = {**tags, TAG_DEVICES: units}
    return allocation, allocation.reason, tags, ask.priority, replaced_at


def in_order(snapshots: Iterable[AllocationSnapshot]) -> list[AllocationSnapshot]:
    """In order of application, key and number of the key's allocations."""

    def order(one: AllocationSnapshot) -> tuple[str, str, int, str]:
        allocation = one[0]
        return allocation.ask.app.app_id, allocation.ask.ask_key, allocation.created, allocation.key

    return sorted(snapshots, key=order)


def allocation_objects(snapshots: Iterable[AllocationSnapshot]) -> list[AllocationObject]:
    """The snapshots as objects, in order."""
    return [allocation_object(each) for each in in_order(snapshots)]


def allocation_object(snapshot: AllocationSnapshot) -> AllocationObject:
    allocation, reason, tags, priority, replaced_at = snapshot
    ask = allocation.ask
    app = ask.app
    requested = replaced_at if replaced_at is not None else ask.created
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
        "placeholderUsed": replaced_at is not None,
        "taskGroupName": ask.task_group,
        "preempted": reason == allocation_fsm.PREEMPTION,
        "originator": ask.terms.originator,
    }
