"""Nodes as data, and how full they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from quadriga.core.model.resources import Vector, exact_share
from quadriga.core.views.allocations import AllocationSeen, allocation_objects, see_allocations
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
    "NodeSeen",
    "bucket_of",
    "dominant_type",
    "see_node",
    "see_nodes",
    "show_node",
    "utilisation",
    "utilisation_of",
]

#: names of the ten buckets, from empty to full
BUCKETS: Final = tuple(f"{low}-{low + 10}%" for low in range(0, 100, 10))


#: the node; its attributes; what it has, what is allocated, occupied, available; its allocations; what
#: others run; whether it takes allocations; for whom it is reserved
NodeSeen = tuple[
    "Node",
    dict[str, str],
    tuple[int, ...],
    tuple[int, ...],
    tuple[int, ...],
    tuple[int, ...],
    tuple[AllocationSeen, ...],
    tuple["ForeignSeen", ...],
    bool,
    tuple[str, ...],
]

#: what others run; its tags, its resources, its priority, whether it may be preempted
ForeignSeen = tuple["ForeignAllocation", dict[str, str], Vector, int, bool]


def see_nodes(partition: Partition) -> list[NodeSeen]:
    """All nodes in order of their ids, as they are now."""
    nodes = partition.nodes
    return [see_node(nodes[node_id]) for node_id in sorted(nodes)]


def see_node(node: Node) -> NodeSeen:
    kept: tuple[str, ...] = ()
    if node.reservation is not None:
        every = (node.reservation, *node.also_reserved)
        kept = tuple(sorted(f"{each.ask.app.app_id}|{each.ask.ask_key}" for each in every))
    foreign: tuple[ForeignSeen, ...] = ()
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
        see_allocations(node.allocations) if node.allocations else (),
        foreign,
        node.open,
        kept,
    )


def show_node(seen: NodeSeen, *, allocations: bool = True) -> NodeObject:
    """What was seen. Real allocations that wait for a placeholder elsewhere are among its own (X18);
    the list of them is left empty without ``allocations``.

    ``attributes`` is always there, and so are the types of its capacity in all amounts.
    """
    node, attributes, total, allocated, occupied, available, running, foreign, is_open, kept = seen
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
        "isReserved": bool(kept),
        "reservations": list(kept),
    }


def _foreign_object(seen: ForeignSeen) -> ForeignObject:
    foreign, tags, vector, priority, preemptable = seen
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
