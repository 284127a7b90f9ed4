"""Nodes as data, and how full they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from quadriga.core.resources import exact_share
from quadriga.core.views.allocations import allocation_objects
from quadriga.core.views.quantities import amounts, percentages, provided
from quadriga.si.constants import HOST_NAME, RACK_NAME

if TYPE_CHECKING:
    from quadriga.core.model.foreign import ForeignAllocation
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.views.objects import (
        Bucket,
        ForeignObject,
        NodeObject,
        PartitionUtilisation,
        TypeUtilisation,
    )

__all__ = [
    "BUCKETS",
    "bucket_of",
    "dominant_type",
    "node_object",
    "node_objects",
    "utilisation",
    "utilisation_of",
]

#: names of the ten buckets, from empty to full
BUCKETS: Final = tuple(f"{low}-{low + 10}%" for low in range(0, 100, 10))


def node_objects(partition: Partition) -> list[NodeObject]:
    """All nodes in order of their ids."""
    return [node_object(partition.nodes[node_id]) for node_id in sorted(partition.nodes)]


def node_object(node: Node) -> NodeObject:
    """The node. Real allocations that wait for a placeholder elsewhere are among its own (X18).

    ``attributes`` is always there, and so are the types of its capacity in all amounts.
    """
    partition = node.partition
    total = amounts(partition, node.total)
    allocated = amounts(partition, node.allocated, total)
    kept = [node.reservation, *node.also_reserved] if node.reservation is not None else []
    return {
        "nodeID": node.node_id,
        "hostName": node.attributes.get(HOST_NAME, ""),
        "rackName": node.attributes.get(RACK_NAME, ""),
        "partition": partition.name,
        "attributes": dict(sorted(node.attributes.items())),
        "capacity": total,
        "allocated": allocated,
        "occupied": amounts(partition, node.occupied, total),
        "available": amounts(partition, node.available, total),
        "utilized": percentages(allocated, total),
        "allocations": allocation_objects(node.allocations),
        "foreignAllocations": [_foreign_object(node.foreign[key]) for key in sorted(node.foreign)],
        "schedulable": node.open,
        "isReserved": node.reservation is not None,
        "reservations": sorted(f"{r.ask.app.app_id}|{r.ask.ask_key}" for r in kept),
    }


def _foreign_object(foreign: ForeignAllocation) -> ForeignObject:
    return {
        "allocationKey": foreign.allocation_key,
        "allocationTags": dict(sorted(foreign.tags.items())),
        "allocationTime": foreign.created,
        "resource": amounts(foreign.node.partition, foreign.vector),
        "priority": str(foreign.priority),
        "nodeId": foreign.node.node_id,
        "preemptable": foreign.preemptable,
    }


# -- utilisation -----------------------------------------------------------------------------------


def bucket_of(used: int, whole: int) -> int:
    """Which of the ten buckets: (0, 10 %] is the first and has 0 as well, the last all above (5.13)."""
    return min(9, max(0, -(-10 * used // whole) - 1))


def utilisation(partition: Partition) -> PartitionUtilisation:
    """For every type that some node has: how many nodes, and which, are how full of it."""
    return {
        "clusterId": partition.rm.rm_id,
        "partition": partition.name,
        "utilizations": [utilisation_of(partition, name) for name in provided(partition)],
    }


def utilisation_of(partition: Partition, name: str) -> TypeUtilisation:
    """One type; nodes without any of it are in no bucket."""
    place = partition.registry.index.get(name)
    members: list[list[str]] = [[] for _ in BUCKETS]
    if place is not None:
        for node_id in sorted(partition.nodes):
            node = partition.nodes[node_id]
            if node.total[place] > 0:
                members[bucket_of(node.allocated[place], node.total[place])].append(node_id)
    return {"type": name, "utilization": _buckets(members)}


def _buckets(members: Iterable[list[str]]) -> list[Bucket]:
    return [
        {"bucketName": name, "numOfNodes": len(nodes), "nodeNames": nodes}
        for name, nodes in zip(BUCKETS, members, strict=True)
    ]


def dominant_type(partition: Partition) -> str:
    """The type of which the largest share is allocated; the first name among equals, an empty text
    without nodes."""
    capacity = provided(partition)
    used = partition.root.allocated
    index = partition.registry.index

    def share(name: str) -> int:
        return exact_share(used[index[name]], capacity[name])

    return max(sorted(capacity), key=share, default="")
