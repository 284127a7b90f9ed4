"""The callback that the core calls on its own thread (K5).

A message is put into the shim's queue. Only what the core needs before it continues is done at once: allocations
are assumed, and predicates are answered, both from the cluster cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quadriga.k8s.cluster.cache import ClusterCache
from quadriga.k8s.shim.inputs import CoreAnswered
from quadriga.si import (
    AllocationResponse,
    ApplicationResponse,
    EventRecord,
    NodeResponse,
    PredicatesArgs,
    PreemptionPredicatesArgs,
    PreemptionPredicatesResponse,
    UpdateContainerSchedulingStateRequest,
)
from quadriga.si.predicates import KnownRefusals


class CoreCallback:
    """A `ResourceManagerCallback`. ``deliver`` takes a message from any thread."""

    def __init__(
        self,
        cache: ClusterCache,
        deliver: Callable[[CoreAnswered], None],
        dump: Callable[[], str],
    ) -> None:
        self._cache = cache
        self._deliver = deliver
        self._dump = dump

    def update_allocation(self, response: AllocationResponse) -> None:
        """Assume the new allocations, then queue the message."""
        refusals: dict[str, str] = {}
        cache = self._cache
        for allocation in response.new:
            uid = allocation.allocationKey
            refusal = cache.assume(uid, allocation.nodeID)
            if refusal is not None:
                refusals[uid] = refusal
        self._deliver(CoreAnswered(response, refusals))

    def update_application(self, response: ApplicationResponse) -> None:
        """Queue the message."""
        self._deliver(CoreAnswered(response))

    def update_node(self, response: NodeResponse) -> None:
        """Queue the message."""
        self._deliver(CoreAnswered(response))

    def predicates(self, args: PredicatesArgs) -> str | None:
        """Return the first reason against the node. Without one, an allocation counts there for a moment (K99)."""
        return self._cache.predicates(args.allocationKey, args.nodeID, args.allocate)

    def refusal(self, args: PredicatesArgs) -> str | None:
        """Return the first reason against the node for an explanation, without assuming anything (K99)."""
        return next(iter(self._cache.refusals(args.allocationKey, args.nodeID)), None)

    def refused_nodes(self, uid: str, nodes: tuple[str, ...]) -> KnownRefusals | None:
        """Return the nodes that refuse the pod: the core then asks only about the others (K137)."""
        return self._cache.refused_nodes(uid, nodes)

    def preemption_predicates(self, args: PreemptionPredicatesArgs) -> PreemptionPredicatesResponse:
        """Return which victims must be evicted before the pod may go to the node (K117)."""
        index = self._cache.preemption_predicates(
            args.allocationKey, args.nodeID, tuple(args.preemptAllocationKeys), args.startIndex
        )
        if index is None:
            return PreemptionPredicatesResponse(success=False, index=-1)
        return PreemptionPredicatesResponse(success=True, index=index)

    def send_event(self, events: Sequence[EventRecord]) -> None:
        """Queue the events."""
        self._deliver(CoreAnswered(events))

    def update_container_scheduling_state(
        self, request: UpdateContainerSchedulingStateRequest
    ) -> None:
        """Queue the message."""
        self._deliver(CoreAnswered(request))

    def get_state_dump(self) -> str:
        """Return the shim's part of a state dump (K17)."""
        return self._dump()
