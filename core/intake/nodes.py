"""New, changed, draining and removed nodes (I29 to I33, X20)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.gangs import admission as gang_admission
from quadriga.core.intake import foreign, recovery
from quadriga.core.intake.fires import NodeFires
from quadriga.core.model import accounting
from quadriga.core.model.node import Node
from quadriga.core.resources.units import NodeUnits
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.runtime.refusal import Refused
from quadriga.core.steps import reservation
from quadriga.fsm.lifecycles import queue as queue_fsm
from quadriga.si import NodeInfo, Resource
from quadriga.si.constants import NODE_PARTITION, NODE_READY_ATTRIBUTE

if TYPE_CHECKING:
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.resource_manager import ResourceManager

# -- actions ---------------------------------------------------------------------------------------


def create(kernel: Kernel, rm: ResourceManager, info: NodeInfo, fires: NodeFires) -> None:
    """CREATE: add a node with its existing allocations (I30, I33, 2.11)."""
    _create(kernel, rm, info, fires, draining=False)


def create_draining(kernel: Kernel, rm: ResourceManager, info: NodeInfo, fires: NodeFires) -> None:
    """CREATE_DRAIN: add a node that gets no new allocations."""
    _create(kernel, rm, info, fires, draining=True)


def _create(
    kernel: Kernel, rm: ResourceManager, info: NodeInfo, fires: NodeFires, *, draining: bool
) -> None:
    if not info.nodeID:
        raise Refused("a node needs a nodeID")
    _check(kernel, info)
    name = info.attributes.get(NODE_PARTITION, "") or "default"
    partition = rm.partitions.get(name)
    if partition is None:
        raise Refused(f"partition {name!r} of node {info.nodeID} does not exist", "partition")
    if partition.state not in queue_fsm.ADMITS:
        text = f"partition {name} is {partition.state} and takes no node {info.nodeID}"
        raise Refused(text, "state")
    for each in rm.partitions.values():
        if info.nodeID in each.nodes:
            text = f"node {info.nodeID} exists already in partition {each.name}"
            raise Refused(text, "duplicate")
    total = list(_quantities(partition, info, info.schedulableResource, "schedulableResource"))
    occupied = _quantities(partition, info, info.occupiedResource, "occupiedResource")
    problem = recovery.problem_of(partition, info.existingAllocations, fires.recovery)
    node = Node(info.nodeID, partition, dict(info.attributes), total)
    if problem:
        kernel.fire(fires.node, node, fires.reject)
        partition.failed_nodes[info.nodeID] = None
        raise Refused(f"existing allocations of node {info.nodeID}: {problem}", "recovery")
    _know_units(node)
    partition.nodes[info.nodeID] = node
    partition.failed_nodes.pop(info.nodeID, None)
    partition.node_index.add(node)
    reservation.nodes_changed(partition)
    foreign.occupy(node, occupied)
    partition.capacity_changed((), tuple(node.total))
    kernel.fire(fires.node, node, fires.actions[info.action], draining=draining)
    rm.observer.node_added(node)
    recovery.recover_on(kernel, node, info.existingAllocations, fires.recovery)


def update(kernel: Kernel, rm: ResourceManager, info: NodeInfo, fires: NodeFires) -> None:
    """UPDATE: change capacity, occupied resources and attributes; nothing is evicted."""
    _check(kernel, info)
    node = _known(rm, info, fires)
    partition = node.partition
    total = _quantities(partition, info, info.schedulableResource, "schedulableResource")
    occupied = _quantities(partition, info, info.occupiedResource, "occupiedResource")
    kernel.fire(fires.node, node, fires.actions[info.action])
    was_ready = _ready(node)
    if info.attributes:
        if partition.levels.differ(node.attributes, info.attributes):
            partition.levels.forget()
            gang_admission.retry_local(partition)
        node.attributes = dict(info.attributes)
    before = tuple(node.total)
    if info.HasField("schedulableResource"):
        node.total = list(total)
        _know_units(node)
    if info.HasField("occupiedResource"):
        foreign.occupy(node, occupied)
    observer, resized = partition.rm.observer, tuple(node.total) != before
    if resized:
        observer.node_resized(node)
    if _ready(node) != was_ready:
        observer.node_ready(node, not was_ready)
    if resized:
        partition.capacity_changed(before, tuple(node.total))
        partition.node_index.resized(node, before)
    accounting.node_gained(node)


def _check(kernel: Kernel, info: NodeInfo) -> None:
    if problem := kernel.options.bounds.problem_of(info):
        raise Refused(f"node {info.nodeID[:50]!r} has {problem}", "bounds")


def _ready(node: Node) -> bool:
    """Whether the node reports itself ready. This is shown, but does not stop allocations (X19, 5.15)."""
    return node.attributes.get(NODE_READY_ATTRIBUTE, "true").lower() == "true"


def trigger(kernel: Kernel, rm: ResourceManager, info: NodeInfo, fires: NodeFires) -> None:
    """DRAIN_NODE, DRAIN_TO_SCHEDULABLE, DECOMISSION. Raises ``Refused`` if illegal (X20)."""
    node, name = _known(rm, info, fires), fires.actions[info.action]
    if not fires.node.allows(node.state, name):
        raise Refused(f"node {node.node_id} is {node.state}: {name} is not possible", "state")
    kernel.fire(fires.node, node, name)


def _known(rm: ResourceManager, info: NodeInfo, fires: NodeFires) -> Node:
    """The node of this id. Raises ``Refused``."""
    for partition in rm.partitions.values():
        if info.nodeID in partition.nodes:
            return partition.nodes[info.nodeID]
    name = fires.actions[info.action]
    text = f"node {info.nodeID!r} is not known: {name} is not possible"
    raise Refused(text, "unknown")


def _quantities(
    partition: Partition, info: NodeInfo, resource: Resource, field: str
) -> tuple[int, ...]:
    for name, quantity in sorted(resource.resources.items()):
        if quantity.value < 0:
            raise Refused(f"node {info.nodeID}: {field}[{name}] is negative ({quantity.value})")
    if problem := partition.registry.problem_of(resource.resources, of_nodes=True):
        raise Refused(f"node {info.nodeID}: {field} has {problem}", "bounds")
    read = partition.registry.read(resource)
    if problem := partition.registry.problem_of_units(read):
        raise Refused(f"node {info.nodeID}: {field} has {problem}", "bounds")
    return read


def _know_units(node: Node) -> None:
    """Give the units of shared devices their part of the capacity (Q14)."""
    registry = node.partition.registry
    node.total = registry.with_units(tuple(node.total))
    registry.lengthen(node.totals)
    if node.units is None and registry.shared and any(node.total[at] for at in registry.hidden):
        node.units = NodeUnits()
    node.available = [
        whole - used - taken
        for whole, used, taken in zip(node.total, node.allocated, node.occupied, strict=True)
    ]
    foreign.occupy_units(node)
