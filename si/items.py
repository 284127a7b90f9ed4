"""The number of items in a request. Limits and fair sharing count asks, applications, nodes,
allocations and releases."""

from __future__ import annotations

from typing import Any

from quadriga.si.v1.si_pb2 import AllocationRequest, ApplicationRequest, NodeInfo, NodeRequest


def count(message: Any) -> int:
    """The number of items in a request; 0 for a request that only names its resource manager."""
    if isinstance(message, AllocationRequest):
        found = len(message.asks) + len(message.allocations)
        if message.HasField("releases"):
            releases = message.releases
            found += len(releases.allocationsToRelease) + len(releases.allocationAsksToRelease)
        return found
    if isinstance(message, ApplicationRequest):
        return len(message.new) + len(message.remove)
    if isinstance(message, NodeRequest):
        return sum(map(size_of_node, message.nodes))
    return 0


def size_of_node(node: NodeInfo) -> int:
    """A node counts together with the allocations that it reports."""
    return 1 + len(node.existingAllocations)
