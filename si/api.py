"""The interface for a resource manager (RM) in the same process: two protocols and an extra.

An RM calls `SchedulerAPI` and is called through the `ResourceManagerCallback` it registers with.
Neither side needs to inherit from the protocols; a class with the methods will do. Over gRPC the
same messages travel in the streams of ``service Scheduler``.

Units are those of the messages: memory in bytes, vcore in thousandths of a core, times as the name
of the field says. Errors: an item of a request that is wrong (an ask, a node) is answered with a
rejection of that item, while the others are applied; a request that is wrong as a whole raises
`RequestError`, and nothing of it is applied.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from quadriga.si.v1.si_pb2 import (
    AllocationRequest,
    AllocationResponse,
    ApplicationRequest,
    ApplicationResponse,
    EventRecord,
    NodeRequest,
    NodeResponse,
    PredicatesArgs,
    PreemptionPredicatesArgs,
    PreemptionPredicatesResponse,
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    UpdateConfigurationRequest,
    UpdateContainerSchedulingStateRequest,
)


class RequestError(ValueError):
    """A request that is refused as a whole.

    `request` is the name of its message, `field` the path of the field at fault, `reason` what is
    wrong with it. None of them holds the value of a field marked ``si_secret``.
    """

    def __init__(self, request: str, field: str, reason: str) -> None:
        super().__init__(request, field, reason)
        self.request = request
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.request}.{self.field}: {self.reason}"


@runtime_checkable
class SchedulerAPI(Protocol):
    """What the scheduler offers to an RM (I3).

    Requests are taken over and answered later, through the callback. The order of the requests of
    one RM is kept.
    """

    def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: "ResourceManagerCallback"
    ) -> RegisterResourceManagerResponse:
        """Make the RM known, with the `callback` for all answers (I5). Comes before all else.

        An rmID that is known already loses its nodes, applications and allocations here, and the
        RM reports them again (I7, I8). Raises RequestError for a missing rmID or a configuration
        that does not hold.
        """
        ...

    def update_allocation(self, request: AllocationRequest) -> None:
        """Add or change asks, then release asks, then release allocations (M2).

        Answered by `ResourceManagerCallback.update_allocation`. Raises RequestError for an rmID
        that is not registered.
        """
        ...

    def update_application(self, request: ApplicationRequest) -> None:
        """Add applications, then remove applications with all that is theirs (M5, I23).

        Answered by `ResourceManagerCallback.update_application`. Raises RequestError for an rmID
        that is not registered.
        """
        ...

    def update_node(self, request: NodeRequest) -> None:
        """Create, update, drain, undrain or remove nodes, as each one's `action` says (I30 to I33).

        Answered by `ResourceManagerCallback.update_node`; also a wrong action on a node is answered
        there (X20). Raises RequestError for an rmID that is not registered.
        """
        ...

    def update_configuration(self, request: UpdateConfigurationRequest) -> None:
        """Change the queues and settings of a registered RM while it runs (I39).

        All or nothing. Raises RequestError for an rmID that is not registered or a configuration
        that does not hold; the old one then stays.
        """
        ...


@runtime_checkable
class ResourceManagerCallback(Protocol):
    """What an RM offers to the scheduler (I4), all in one place (M9).

    Calls may come from another thread than the RM's own, and must return soon: the scheduler may
    be waiting. `NullCallback` has a harmless answer for each.
    """

    def update_allocation(self, response: AllocationResponse) -> None:
        """Allocations made, released and rejected (M3, M4, M8).

        A release that the scheduler began is confirmed with an AllocationRequest that carries the
        same terminationType (R3).
        """
        ...

    def update_application(self, response: ApplicationResponse) -> None:
        """Applications accepted, rejected, and changed in state (M5, M8)."""
        ...

    def update_node(self, response: NodeResponse) -> None:
        """Nodes accepted and rejected (M7, M8)."""
        ...

    def predicates(self, args: PredicatesArgs) -> str | None:
        """Whether the ask may go to the node (I36): None if it may, else the reason against it."""
        ...

    def preemption_predicates(self, args: PreemptionPredicatesArgs) -> PreemptionPredicatesResponse:
        """How many of the victims have to go until the ask may go to the node (I37).

        The first try removes the victims 0 to startIndex, each further one a victim more.
        """
        ...

    def send_event(self, events: Sequence[EventRecord]) -> None:
        """Events to show to people, oldest first (I40)."""
        ...

    def update_container_scheduling_state(
        self, request: UpdateContainerSchedulingStateRequest
    ) -> None:
        """What became of an ask in a cycle (I38). May say what was said before (I5)."""
        ...


@runtime_checkable
class StateDumpPlugin(Protocol):
    """What an RM may offer in addition: its own part of a state dump (I4)."""

    def get_state_dump(self) -> str:
        """The state of the RM as JSON text. May raise; the dump then says so and goes on."""
        ...


class NullCallback:
    """A `ResourceManagerCallback` that ignores all news, for RMs that care about some.

    It has no objection to any node, and to preemption gives the answer which the scheduler assumes
    where an RM has none (X24): the first try does it.
    """

    def update_allocation(self, response: AllocationResponse) -> None:
        """Ignored. A release that stays unconfirmed is sent again."""

    def update_application(self, response: ApplicationResponse) -> None:
        """Ignored."""

    def update_node(self, response: NodeResponse) -> None:
        """Ignored."""

    def predicates(self, args: PredicatesArgs) -> str | None:
        """Every node will do."""
        return None

    def preemption_predicates(self, args: PreemptionPredicatesArgs) -> PreemptionPredicatesResponse:
        """The first try does it."""
        return PreemptionPredicatesResponse(success=True, index=args.startIndex)

    def send_event(self, events: Sequence[EventRecord]) -> None:
        """Ignored."""

    def update_container_scheduling_state(
        self, request: UpdateContainerSchedulingStateRequest
    ) -> None:
        """Ignored."""


def has_own(callback: object, method: str) -> bool:
    """Whether the callback does something of its own there, and not what `NullCallback` does."""
    found = getattr(callback, method, None)
    nothing = getattr(NullCallback, method, None)
    return found is not None and getattr(found, "__func__", found) is not nothing
