"""Nodes arrive, change, drain and go (I29 to I33, X20)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core import books, gang, recovery, registration, reservation
from quadriga.core.ending import Removed, end_allocation
from quadriga.core.kernel import Kernel
from quadriga.core.model.node import Node
from quadriga.core.refusal import Refused
from quadriga.core.releases import tell_released
from quadriga.fsm import NODE
from quadriga.fsm import allocation as allocation_life
from quadriga.fsm import node as life
from quadriga.si import AcceptedNode, NodeInfo, NodeResponse, Resource
from quadriga.si.constants import NODE_PARTITION

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.resource_manager import ResourceManager

__all__ = ["create", "empty_node", "trigger", "update"]


# -- actions ---------------------------------------------------------------------------------------


def create(
    kernel: Kernel, rm: ResourceManager, info: NodeInfo, response: NodeResponse, *, draining: bool
) -> None:
    """CREATE, CREATE_DRAIN: a new node, with what runs on it already (I30, I33, 2.11)."""
    if not info.nodeID:
        raise Refused("a node needs a nodeID (I33)")
    name = info.attributes.get(NODE_PARTITION, "") or "default"
    partition = rm.partitions.get(name)
    if partition is None:
        raise Refused(f"partition {name!r} of node {info.nodeID} does not exist")
    if any(info.nodeID in p.nodes for p in rm.partitions.values()):
        raise Refused(f"node {info.nodeID} exists already in partition {name} (I30)")
    total = list(_quantities(partition, info, info.schedulableResource, "schedulableResource"))
    occupied = _quantities(partition, info, info.occupiedResource, "occupiedResource")
    problem = recovery.problem_of(partition, list(info.existingAllocations))
    node = Node(info.nodeID, partition, dict(info.attributes), total)
    if problem:
        kernel.fire(NODE, node, life.REJECT)
        raise Refused(f"existing allocations of node {info.nodeID}: {problem}")
    partition.registry.lengthen(node.books)
    _occupy(node, occupied)
    partition.nodes[info.nodeID] = node
    partition.board.add(node)
    partition.capacity_changed((), tuple(node.total))
    kernel.fire(NODE, node, life.ACCEPT, draining=draining)
    for message in info.existingAllocations:
        recovery.give_back_leftover(kernel, recovery.recover(kernel, partition, node, message))
    response.accepted.append(AcceptedNode(nodeID=info.nodeID))


def update(kernel: Kernel, node: Node, info: NodeInfo) -> None:
    """UPDATE: capacity, what others occupy, attributes; nothing is evicted."""
    partition = node.partition
    total = _quantities(partition, info, info.schedulableResource, "schedulableResource")
    occupied = _quantities(partition, info, info.occupiedResource, "occupiedResource")
    kernel.fire(NODE, node, life.UPDATE)
    if info.attributes:
        node.attributes = dict(info.attributes)
    before = tuple(node.total)
    if info.HasField("schedulableResource"):
        width = len(partition.registry)
        node.total = list(total) + [0] * (width - len(total))
        node.available = [
            whole - used - others
            for whole, used, others in zip(node.total, node.allocated, node.occupied, strict=True)
        ]
    if info.HasField("occupiedResource"):
        _occupy(node, occupied)
    if tuple(node.total) != before:
        partition.capacity_changed(before, tuple(node.total))
    books.node_gained(node)


def trigger(kernel: Kernel, node: Node, name: str) -> None:
    """DRAIN_NODE, DRAIN_TO_SCHEDULABLE, DECOMISSION. Raises ``Refused`` where illegal (X20)."""
    if not NODE.allows(node.state, name):
        raise Refused(f"node {node.node_id} is {node.state}: {name} is not possible (I31)")
    kernel.fire(NODE, node, name)


def _quantities(
    partition: Partition, info: NodeInfo, resource: Resource, field: str
) -> tuple[int, ...]:
    for name, quantity in sorted(resource.resources.items()):
        if quantity.value < 0:
            raise Refused(f"node {info.nodeID}: {field}[{name}] is negative ({quantity.value})")
    return partition.registry.read(resource)


def _occupy(node: Node, occupied: tuple[int, ...]) -> None:
    """Others use this much of the node now (X19)."""
    for place, before in enumerate(node.occupied):
        node.available[place] += before
        node.occupied[place] = 0
    for place, value in enumerate(occupied):
        node.occupied[place] = value
        node.available[place] -= value


# -- removal ---------------------------------------------------------------------------------------


def empty_node(kernel: Kernel, node: Node) -> None:
    """The node is gone with all that ran on it (M7, 2.11).

    A replacement that only loses the placeholder's node is complete; one that loses the node chosen
    for the real allocation is planned anew.
    """
    partition = node.partition
    rm = partition.rm
    released: list[Allocation] = []
    confirmed: list[Allocation] = []
    removed = Removed()
    if node.reservation is not None:
        reservation.cancel(partition, node.reservation)
    for allocation in list(node.allocations):
        if allocation not in node.allocations:
            continue
        if allocation.state == allocation_life.PLANNED:
            gang.unplan(kernel, allocation, again=True)
            continue
        released.append(allocation)
        if allocation.partner is not None and allocation.partner.node is not node:
            confirmed.append(allocation)
            continue
        end_allocation(kernel, allocation, allocation_life.COMPLETE)
        removed.allocation(allocation)
    tell_released(kernel, rm, released, f"Node {node.node_id} Removed", removed)
    for placeholder in confirmed:
        gang.confirm_replacement(kernel, placeholder)
        removed.allocation(placeholder)
    del partition.nodes[node.node_id]
    partition.board.remove(node)
    partition.capacity_changed(tuple(node.total), ())
    removed.settle(kernel)
    registration.remove_partition_if_drained(kernel, partition)
