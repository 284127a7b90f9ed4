"""Removal of a node with its allocations (M7, 2.11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.gangs import replacement
from quadriga.core.scheduling.ending import Removals, end_allocation, report_released
from quadriga.core.steps import queue_tree, reservation
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.si import TerminationType

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.node import Node
    from quadriga.core.runtime.kernel import Kernel


def empty_node(kernel: Kernel, node: Node) -> None:
    """End all allocations of the node, and remove the node.

    If only the placeholder of a replacement was on the node, the replacement is complete. If the real
    allocation was planned there, its ask waits again.
    """
    partition = node.partition
    rm = partition.rm
    released: list[Allocation] = []
    confirmed: list[Allocation] = []
    removed = Removals()
    unknown = TerminationType.UNKNOWN_TERMINATION_TYPE
    while node.reservation is not None:
        reservation.cancel(partition, node.reservation)
    for allocation in sorted(node.allocations, key=lambda each: (each.uuid, each.ask.app.app_id)):
        if allocation not in node.allocations:
            continue
        if allocation.state in allocation_fsm.AHEAD:
            replacement.discard(kernel, allocation, again=True)
            continue
        released.append(allocation)
        if allocation.partner is not None and allocation.partner.node is not node:
            confirmed.append(allocation)
            continue
        end_allocation(kernel, allocation, allocation_fsm.COMPLETE, unknown)
        removed.add_allocation(allocation)
    report_released(kernel, rm, released, f"Node {node.node_id} Removed", removed)
    for placeholder in confirmed:
        partition.serials.unanswered(placeholder.ask.app.app_id, placeholder.uuid)
        replacement.confirm_replacement(kernel, placeholder)
        removed.add_allocation(placeholder)
    kernel.tally.nodes_removed += 1
    for key in node.foreign:
        del partition.foreign[key]
    del partition.nodes[node.node_id]
    partition.node_index.remove(node)
    partition.reservation_bounds.barred.pop(node, None)
    reservation.nodes_changed(partition)
    partition.capacity_changed(tuple(node.total), ())
    rm.observer.node_removed(node)
    removed.update_applications(kernel)
    queue_tree.remove_partition_if_drained(kernel, partition)
