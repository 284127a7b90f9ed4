"""Asks in the form of SI 1.6 and later, where an Allocation without a node is an ask (K8, X45).

In this form the key is the only name of an ask and of its allocation. An ask with the key of an existing
allocation would change its size, and a release of the key ends either.
"""

from __future__ import annotations

from collections.abc import Iterator

from quadriga.si import (
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    AllocationRequest,
)


def unified(request: AllocationRequest) -> Iterator[AllocationRequest]:
    """Yield the requests of SI 1.6 that mean what this one means in SI 1.5, to be sent in this order.

    An ask beside a release of the allocation with its key is a second attempt after a failed bind (K108): the
    release must be handled first, so it goes into an earlier request.
    """
    asked = {each.allocationKey for each in request.asks}
    first, rest = list[AllocationRelease](), list[AllocationRelease]()
    for release in request.releases.allocationsToRelease:
        is_replaced = release.UUID and release.allocationKey in asked
        (first if is_replaced else rest).append(_by_key(release))
    rest += [_by_key(each) for each in request.releases.allocationAsksToRelease]
    replaced = {each.allocationKey for each in first}
    # reports about such an allocation end with it
    allocations = [each for each in request.allocations if each.allocationKey not in replaced]
    allocations += [_as_allocation(each) for each in request.asks]
    if first:
        yield _request(request, (), first)
    if allocations or rest or not first:
        yield _request(request, allocations, rest)


def _request(
    request: AllocationRequest,
    allocations: list[Allocation] | tuple[()],
    releases: list[AllocationRelease],
) -> AllocationRequest:
    made = AllocationRequest(rmID=request.rmID, allocations=allocations)
    if releases:
        made.releases.CopyFrom(AllocationReleasesRequest(allocationsToRelease=releases))
    return made


def _as_allocation(ask: AllocationAsk) -> Allocation:
    """Return the ask as an Allocation without a node. There is no field for the number of allocations, which is
    1 (K6)."""
    made = Allocation(
        allocationKey=ask.allocationKey,
        applicationID=ask.applicationID,
        partitionName=ask.partitionName,
        resourcePerAlloc=ask.resourceAsk,
        priority=ask.priority,
        allocationTags=ask.tags,
        taskGroupName=ask.taskGroupName,
        placeholder=ask.placeholder,
        originator=ask.Originator,
    )
    if ask.HasField("preemptionPolicy"):
        made.preemptionPolicy.CopyFrom(ask.preemptionPolicy)
    return made


def _by_key(release: AllocationRelease | AllocationAskRelease) -> AllocationRelease:
    return AllocationRelease(
        partitionName=release.partitionName,
        applicationID=release.applicationID,
        allocationKey=release.allocationKey,
        terminationType=release.terminationType,
        message=release.message,
    )
