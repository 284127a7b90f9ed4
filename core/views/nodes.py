"""Nodes as data, and their utilisation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from quadriga.core.resources.vectors import Vector, exact_share
from quadriga.core.runtime.stepwise import Steps, chunks
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


def each_node(partition: Partition, page: slice) -> Iterator[NodeSnapshot]:
    """Snapshots of the nodes of this page, by id, without those that have left meanwhile."""
    nodes = partition.nodes
    for node_id in partition.node_index.node_ids()[page]:
        if (node := nodes.get(node_id)) is not None:
            yield snapshot_node(node)


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


def utilisation_in_steps(partition: Partition) -> Steps[PartitionUtilisation]:
    """The nodes in each bucket, for every type that some node has."""
    found = yield from types_in_steps(partition, list(provided(partition)))
    return {"clusterId": partition.rm.rm_id, "partition": partition.name, "utilizations": found}


def types_in_steps(partition: Partition, names: list[str]) -> Steps[list[TypeUtilisation]]:
    """The nodes in each bucket for these types; nodes that have none of it are in no bucket."""
    index = partition.registry.index
    types: list[tuple[int | None, list[list[str]]]] = [
        (index.get(name), [[] for _ in BUCKETS]) for name in names
    ]
    for ids in chunks(partition.node_index.node_ids()):
        for node in filter(None, map(partition.nodes.get, ids)):
            for at, members in types:
                if at is not None and node.total[at] > 0:
                    bucket = bucket_of(node.allocated[at], node.total[at])
                    members[bucket].append(node.node_id)
        yield
    return [
        {"type": name, "utilization": _buckets(members)}
        for name, (_, members) in zip(names, types, strict=True)
    ]


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
