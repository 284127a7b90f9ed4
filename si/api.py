"""The interface for a resource manager (RM) in the same process: two protocols and an optional
extension.

An RM calls `SchedulerAPI`; the scheduler calls the `ResourceManagerCallback` that the RM registers
with. A class need not inherit from these protocols to implement them. Over gRPC the same messages
travel in the streams of ``service Scheduler``.

Units are those of the messages: memory in bytes, vcore in thousandths of a core, times as the name
of the field says. If one item of a request is wrong (an ask, a node), it is rejected and the others
are applied. If a request is wrong as a whole, it raises `RequestError` and nothing is applied.
"""

from __future__ import annotations

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
    """A request that was refused as a whole.

    `request` is the name of its message, `field` the path of the wrong field, `reason` the
    explanation. None of them contains the value of a field marked ``si_secret``.
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
    """The methods that the scheduler offers to an RM (I3).

    Requests are queued and answered later through the callback. The requests of one RM are
    processed in their order.
    """

    def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> RegisterResourceManagerResponse:
        """Register the RM with its `callback` (I5). Every RM calls this method first.

        If the rmID is known already, the scheduler drops the RM's nodes, applications and
        allocations, and the RM reports them again (I7, I8). Raises RequestError for a missing rmID
        or an invalid configuration.
        """

    def update_allocation(self, request: AllocationRequest) -> None:
        """Add or change asks, then release asks, then release allocations (M2).

        The answer is `ResourceManagerCallback.update_allocation`. Raises RequestError for an rmID
        that is not registered.
        """

    def update_application(self, request: ApplicationRequest) -> None:
        """Add applications, then remove applications together with their asks and allocations (M5,
        I23).

        The answer is `ResourceManagerCallback.update_application`. Raises RequestError for an rmID
        that is not registered.
        """

    def update_node(self, request: NodeRequest) -> None:
        """Create, update, drain, undrain or remove nodes, as the `action` of each one says (I30 to
        I33).

        The answer is `ResourceManagerCallback.update_node`, also for a wrong action on a node
        (X20). Raises RequestError for an rmID that is not registered.
        """

    def update_configuration(self, request: UpdateConfigurationRequest) -> None:
        """Change the queues and settings of a registered RM at run time (I39).

        Raises RequestError for an rmID that is not registered or an invalid configuration; the old
        configuration then stays in force.
        """


@runtime_checkable
class ResourceManagerCallback(Protocol):
    """The methods that an RM offers to the scheduler (I4), all in one interface (M9).

    Calls may come from another thread than the RM's own. They must return soon, since the scheduler
    may be waiting. `NullCallback` implements each of them without effect.
    """

    def update_allocation(self, response: AllocationResponse) -> None:
        """Allocations that were made, released and rejected (M3, M4, M8).

        The RM confirms a release that the scheduler began with an AllocationRequest of the same
        terminationType (R3).
        """

    def update_application(self, response: ApplicationResponse) -> None:
        """Applications that were accepted, were rejected, or have changed their state (M5, M8)."""

    def update_node(self, response: NodeResponse) -> None:
        """Nodes that were accepted and rejected (M7, M8)."""

    def predicates(self, args: PredicatesArgs) -> str | None:
        """Whether the ask may go to the node (I36): None if it may, else the reason against it."""

    def preemption_predicates(self, args: PreemptionPredicatesArgs) -> PreemptionPredicatesResponse:
        """How many of the victims must be evicted before the ask fits on the node (I37).

        The first attempt evicts the victims 0 to startIndex; each further attempt evicts one more.
        """

    def send_event(self, events: Sequence[EventRecord]) -> None:
        """Events for display, oldest first (I40)."""

    def update_container_scheduling_state(
        self, request: UpdateContainerSchedulingStateRequest
    ) -> None:
        """The outcome for an ask in a scheduling cycle (I38). It may repeat an earlier one (I5)."""


@runtime_checkable
class StateDumpPlugin(Protocol):
    """An optional method of an RM: its own part of a state dump (I4)."""

    def get_state_dump(self) -> str:
        """The state of the RM as JSON text. May raise; the dump then reports the error and
        continues."""


@runtime_checkable
class RefusalPlugin(Protocol):
    """An optional method of an RM in this process: its predicates as a read, for explanations."""

    def refusal(self, args: PredicatesArgs) -> str | None:
        """The answer of `predicates` to this question (I36). Unlike there, the RM must not take a yes
        for a decision: nothing follows from it."""


class NullCallback:
    """A `ResourceManagerCallback` without effect, as a base for RMs that implement only some
    methods.

    It accepts every node. For preemption it gives the answer that the scheduler assumes for an RM
    without predicates (X24): the first attempt suffices.
    """

    def update_allocation(self, response: AllocationResponse) -> None:
        """Ignored. The scheduler sends an unconfirmed release again."""

    def update_application(self, response: ApplicationResponse) -> None:
        """Ignored."""

    def update_node(self, response: NodeResponse) -> None:
        """Ignored."""

    def predicates(self, args: PredicatesArgs) -> str | None:
        """Accept every node."""
        return None

    def preemption_predicates(self, args: PreemptionPredicatesArgs) -> PreemptionPredicatesResponse:
        """Accept the first attempt."""
        return PreemptionPredicatesResponse(success=True, index=args.startIndex)

    def send_event(self, events: Sequence[EventRecord]) -> None:
        """Ignored."""

    def update_container_scheduling_state(
        self, request: UpdateContainerSchedulingStateRequest
    ) -> None:
        """Ignored."""


def has_own(callback: object, method: str) -> bool:
    """Whether the callback implements the method itself, rather than inheriting it from
    `NullCallback`."""
    found = getattr(callback, method, None)
    nothing = getattr(NullCallback, method, None)
    return found is not None and getattr(found, "__func__", found) is not nothing


class Outcome(Protocol):
    """Receives the result of a request: a future, or an object with these two methods of one."""

    def set_result(self, result: None) -> None: ...

    def set_exception(self, exception: BaseException | None) -> None: ...
