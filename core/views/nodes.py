"""Nodes as data, and their utilisation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from quadriga.core.resources.vectors import Vector, exact_share
from quadriga.core.views.allocations import (
    AllocationSnapshot,
    allocation_objects,
    snapshot_allocations,
)
from quadriga.core.views.quantities import amounts, percentages, provided
from quadriga.si.constants import HOST_NAME, RACK_NAME

if TYPE_CHECKING:
    from quadriga.core.model.node import ForeignAllocation, Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.views.objects import (
        Bucket,
        ForeignObject,
        NodeObject,
        PartitionUtilisation,
        TypeUtilisation,
    )

#: names of the ten buckets, from empty to full
BUCKETS: Final = tuple(f"{low}-{low + 10}%" for low in range(0, 100, 10))


#: the node; its attributes; its capacity, what is allocated, occupied, available; its allocations; its
#: foreign allocations; whether it is schedulable; the asks that it is reserved for
NodeSnapshot = tuple[
    "Node",
    dict[str, str],
    tuple[int, ...],
    tuple[int, ...],
    tuple[int, ...],
    tuple[int, ...],
    tuple[AllocationSnapshot, ...],
    tuple["ForeignSnapshot", ...],
    bool,
    tuple[str, ...],
]

#: the foreign allocation; its tags, resources and priority, whether it may be preempted
ForeignSnapshot = tuple["ForeignAllocation", dict[str, str], Vector, int, bool]


def snapshot_nodes(partition: Partition, page: slice) -> list[NodeSnapshot]:
    """Snapshots of the nodes of this page, by id."""
    nodes = partition.nodes
    return [snapshot_node(nodes[node_id]) for node_id in partition.node_index.node_ids()[page]]


def snapshot_node(node: Node) -> NodeSnapshot:
    reserved_for: tuple[str, ...] = ()
    if node.reservation is not None:
        every = (node.reservation, *node.also_reserved)
        reserved_for = tuple(sorted(f"{each.ask.app.app_id}|{each.ask.ask_key}" for each in every))
    foreign: tuple[ForeignSnapshot, ...] = ()
    if node.foreign:
        foreign = tuple(
            [(f, f.tags, f.vector, f.priority, f.preemptable) for f in node.foreign.values()]
        )
    return (
        node,
        node.attributes,
        tuple(node.total),
        tuple(node.allocated),
        tuple(node.occupied),
        tuple(node.available),
        snapshot_allocations(node.allocations) if node.allocations else (),
        foreign,
        node.open,
        reserved_for,
    )


def node_object(snapshot: NodeSnapshot, *, allocations: bool = True) -> NodeObject:
    """The snapshot as an object; without ``allocations`` their list is empty.

    Real allocations that wait for a placeholder on another node are included (X18). All amounts have
    every type of the capacity.
    """
    (
        node,
        attributes,
        total,
        allocated,
        occupied,
        available,
        running,
        foreign,
        is_open,
        reserved_for,
    ) = snapshot
    partition = node.partition
    has = amounts(partition, total)
    given = amounts(partition, allocated, has)
    others = sorted(foreign, key=lambda one: one[0].allocation_key)
    return {
        "nodeID": node.node_id,
        "hostName": attributes.get(HOST_NAME, ""),
        "rackName": attributes.get(RACK_NAME, ""),
        "partition": partition.name,
        "attributes": dict(sorted(attributes.items())),
        "capacity": has,
        "allocated": given,
        "occupied": amounts(partition, occupied, has),
        "available": amounts(partition, available, has),
        "utilized": percentages(given, has),
        "allocations": allocation_objects(running) if allocations else [],
        "foreignAllocations": [_foreign_object(each) for each in others],
        "schedulable": is_open,
        "isReserved": bool(reserved_for),
        "reservations": list(reserved_for),
    }


def _foreign_object(snapshot: ForeignSnapshot) -> ForeignObject:
    foreign, tags, vector, priority, preemptable = snapshot
    return {
        "allocationKey": foreign.allocation_key,
        "allocationTags": dict(sorted(tags.items())),
        "allocationTime": foreign.created,
        "resource": amounts(foreign.node.partition, vector),
        "priority": str(priority),
        "nodeId": foreign.node.node_id,
        "preemptable": preemptable,
    }


# -- utilisation -----------------------------------------------------------------------------------


def bucket_of(used: int, whole: int) -> int:
    """The index of the bucket: (0, 10 %] is the first and includes 0; the last has no upper end (5.13)."""
    return min(9, max(0, -(-10 * used // whole) - 1))


def utilisation(partition: Partition) -> PartitionUtilisation:
    """The nodes in each bucket, for every type that some node has."""
    return {
        "clusterId": partition.rm.rm_id,
        "partition": partition.name,
        "utilizations": [utilisation_of(partition, name) for name in provided(partition)],
    }


def utilisation_of(partition: Partition, name: str) -> TypeUtilisation:
    """One type; nodes that have none of it are in no bucket."""
    at = partition.registry.index.get(name)
    members: list[list[str]] = [[] for _ in BUCKETS]
    if at is not None:
        for node_id in sorted(partition.nodes):
            node = partition.nodes[node_id]
            if node.total[at] > 0:
                members[bucket_of(node.allocated[at], node.total[at])].append(node_id)
    return {"type": name, "utilization": _buckets(members)}


def _buckets(members: Iterable[list[str]]) -> list[Bucket]:
    return [
        {"bucketName": name, "numOfNodes": len(nodes), "nodeNames": nodes}
        for name, nodes in zip(BUCKETS, members, strict=True)
    ]


def dominant_type(partition: Partition) -> str:
    """The type of which the largest share is allocated, the first name among equals; an empty text
    without nodes."""
    capacity = provided(partition)
    used = partition.root.allocated
    index = partition.registry.index

    def share(name: str) -> int:
        return exact_share(used[index[name]], capacity[name])

    return max(sorted(capacity), key=share, default="")
