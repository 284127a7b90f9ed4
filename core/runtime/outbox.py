"""The outbox: messages to resource managers, in the order in which they were decided.

One output is one callback of a resource manager. Consecutive releases go out together, new allocations
one by one unless batching is configured. Messages are never reordered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from quadriga.core.model.ask import PLAIN, Ask, Terms
from quadriga.core.runtime.dialect import DIALECTS
from quadriga.fsm.lifecycles.allocation import PREEMPTION, REPLACEMENT, TIMEOUT
from quadriga.si import Allocation as AllocationMessage
from quadriga.si import (
    AllocationAskRelease,
    AllocationRelease,
    AllocationResponse,
    ApplicationResponse,
    EventRecord,
    NodeResponse,
    PreemptionPolicy,
    RejectedAllocation,
    RejectedAllocationAsk,
    TerminationType,
    UpdateContainerSchedulingStateRequest,
)
from quadriga.si.constants import TAG_DEVICES

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application, EndedApplication
    from quadriga.core.model.ask import AskKind
    from quadriga.core.model.node import ForeignAllocation
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.resource_manager import ResourceManager


#: at most this many templates are kept for a partition
_LIMIT: Final = 10_000


class AllocationTemplates:
    """Encoded templates of Allocation messages, by the application's id and the kind of ask.

    All messages of one application and one kind of ask have the same content but for the key, the UUID and
    the node. That content is encoded once for a partition, as a response with one new allocation; to decode
    each message from these bytes is quicker than to build it or to copy one with a map in it.
    """

    __slots__ = ("_encoded", "_kinds", "_partition")

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._encoded: dict[tuple[str, AskKind], bytes] = {}
        #: the kinds in the keys, so that keys with equal kinds share one
        self._kinds: dict[AskKind, AskKind] = {}

    def of(self, ask: Ask) -> bytes:
        """The template of the messages about this ask's allocations."""
        key = (ask.app.app_id, ask.kind)
        known = self._encoded.get(key)
        return known if known is not None else self._encode(key)

    def _encode(self, key: tuple[str, AskKind]) -> bytes:
        app_id, kind = key
        partition = self._partition
        message = AllocationMessage(
            applicationID=app_id,
            resourcePerAlloc=partition.registry.message(kind.vector),
            priority=kind.priority,
            partitionName=partition.name,
            taskGroupName=kind.task_group,
            placeholder=kind.placeholder,
        )
        if len(self._encoded) >= _LIMIT:
            self._encoded.clear()
            self._kinds.clear()
        encoded = AllocationResponse(new=[message]).SerializeToString()
        self._encoded[app_id, self._kinds.setdefault(kind, kind)] = encoded
        return encoded


Message = (
    AllocationResponse
    | ApplicationResponse
    | NodeResponse
    | UpdateContainerSchedulingStateRequest
    | EventRecord
)

#: the type on the wire for each reason of a release by the scheduler (I28)
TERMINATION = {
    TIMEOUT: TerminationType.TIMEOUT,
    PREEMPTION: TerminationType.PREEMPTED_BY_SCHEDULER,
    REPLACEMENT: TerminationType.PLACEHOLDER_REPLACED,
}
#: types that the scheduler creates and the resource manager confirms (R2). Every other type that
#: arrives, even an unknown one, is handled as STOPPED_BY_RM and answered (R3, X30)
BY_SCHEDULER: Final = frozenset(TERMINATION.values())


class Output(NamedTuple):
    """One message for one resource manager."""

    rm_id: str
    message: Message


_response_of = AllocationResponse.FromString

#: as fast as a plain tuple; one is made for each allocation
_output: Callable[[tuple[str, Message]], Output] = partial(tuple.__new__, Output)


class Outbox:
    """Collects outputs until they are taken. A message has at most ``batch`` new allocations."""

    __slots__ = ("_batch", "_open", "outputs", "templates")

    def __init__(self, batch: int) -> None:
        self.outputs: list[Output] = []
        self._batch = batch
        #: the response of the last output, while more items may be added to it
        self._open: tuple[str, str, AllocationResponse] | None = None
        self.templates: dict[Partition, AllocationTemplates] = {}

    def take(self) -> list[Output]:
        """Return all outputs so far, and empty the outbox."""
        outputs, self.outputs = self.outputs, []
        self._open = None
        return outputs

    def add(self, rm: ResourceManager, message: Message) -> None:
        self.outputs.append(Output(rm.rm_id, message))
        self._open = None

    def _response(self, rm: ResourceManager, kind: str) -> AllocationResponse:
        """Return the last response if it is of this kind, else a new one."""
        if self._open is not None and self._open[:2] == (rm.rm_id, kind):
            return self._open[2]
        response = AllocationResponse()
        self.outputs.append(Output(rm.rm_id, response))
        self._open = (rm.rm_id, kind, response)
        return response

    # -- allocations -----------------------------------------------------------------------------

    def allocated(self, allocations: Sequence[Allocation]) -> None:
        """New (or recovered and echoed) allocations of one partition (G4, G33)."""
        if not allocations:
            return
        partition = allocations[0].ask.app.partition
        templates = self.templates.get(partition)
        if templates is None:
            templates = self.templates[partition] = AllocationTemplates(partition)
        rm = partition.rm
        messages = self._new(rm, [templates.of(allocation.ask) for allocation in allocations])
        for allocation, message in zip(allocations, messages, strict=True):
            ask = allocation.ask
            message.allocationKey = ask.ask_key
            message.UUID = allocation.uuid
            message.nodeID = allocation.node.node_id
            if allocation.vector is not ask.kind.vector:  # the ask has changed since (I17)
                changed = partition.registry.message(allocation.vector)
                message.resourcePerAlloc.CopyFrom(changed)
            if rm.speaks_allocation_id:
                message.allocationID = allocation.uuid
            if ask.terms is not PLAIN:
                _add_terms(message, ask.terms)
            if allocation.node.units is not None and (units := allocation.units):
                message.allocationTags[TAG_DEVICES] = partition.registry.units_text(units)

    def _new(self, rm: ResourceManager, templates: list[bytes]) -> list[AllocationMessage]:
        """Make a message for each template, with at most ``batch`` messages in one response."""
        messages = []
        if self._batch == 1:
            rm_id, outputs = rm.rm_id, self.outputs
            for template in templates:
                response = _response_of(template)
                outputs.append(_output((rm_id, response)))
                messages.append(response.new[0])
            self._open = None
            return messages
        while templates:
            response = self._response(rm, "new")
            known = len(response.new)
            if known >= self._batch:
                self._open = None
                continue
            room = self._batch - known
            response.MergeFromString(b"".join(templates[:room]))
            messages += response.new[known:]
            templates = templates[room:]
        return messages

    def partition_dropped(self, partition: Partition) -> None:
        """Forget the templates of a partition that is no more."""
        self.templates.pop(partition, None)

    def released(self, allocation: Allocation, kind: TerminationType, text: str) -> None:
        """Send a release by the scheduler, or confirm one by the resource manager (R3)."""
        app = allocation.ask.app
        rm = app.partition.rm
        message = self._response(rm, "released").released.add()
        message.partitionName = app.partition.name
        message.applicationID = app.app_id
        message.UUID = allocation.uuid
        if rm.speaks_allocation_id:
            message.allocationID = allocation.uuid
        message.allocationKey = allocation.ask.ask_key
        message.terminationType = kind
        message.message = text

    def released_by_key(self, ask: Ask, kind: TerminationType, text: str) -> None:
        """Send the release of an ask that came as an allocation, by its key (X45)."""
        app = ask.app
        self._response(app.partition.rm, "released").released.append(
            AllocationRelease(
                partitionName=app.partition.name,
                applicationID=app.app_id,
                allocationKey=ask.ask_key,
                terminationType=kind,
                message=text,
            )
        )

    def released_foreign(self, gone: ForeignAllocation, kind: TerminationType, text: str) -> None:
        """Confirm the release of a foreign allocation, which has no application (X19, R3)."""
        partition = gone.node.partition
        self._response(partition.rm, "released").released.append(
            AllocationRelease(
                partitionName=partition.name,
                allocationKey=gone.allocation_key,
                terminationType=kind,
                message=text,
            )
        )

    def released_asks(self, asks: Iterable[Ask], kind: TerminationType, text: str) -> None:
        """Send releases of asks that timed out, or confirm those of the resource manager."""
        for ask in asks:
            app = ask.app
            self._response(app.partition.rm, "releasedAsks").releasedAsks.append(
                AllocationAskRelease(
                    partitionName=app.partition.name,
                    applicationID=app.app_id,
                    allocationKey=ask.ask_key,
                    terminationType=kind,
                    message=text,
                )
            )

    def rejected_asks(self, rm: ResourceManager, rejected: list[RejectedAllocationAsk]) -> None:
        """Send all rejected asks of one request (M3)."""
        self.add(rm, AllocationResponse(rejected=rejected))

    def rejected_allocations(self, rm: ResourceManager, rejected: list[RejectedAllocation]) -> None:
        """Send all rejected reports of allocations of one request (2.11)."""
        self.add(rm, AllocationResponse(rejectedAllocations=rejected))

    # -- applications ----------------------------------------------------------------------------

    def updated(self, app: Application | EndedApplication, state: str, text: str, now: int) -> None:
        """Send a state change, in the resource manager's dialect (X1, X34)."""
        rm = app.partition.rm
        dialect = DIALECTS[rm.dialect]
        response = ApplicationResponse()
        updated = response.updated.add()  # faster than arguments of the constructors
        updated.applicationID = app.app_id
        updated.state = dialect.state(state)
        updated.stateTransitionTimestamp = now
        updated.message = dialect.message(text)
        self.add(rm, response)

    def container_state(
        self,
        ask: Ask,
        state: UpdateContainerSchedulingStateRequest.SchedulingState,
        reason: str,
    ) -> None:
        """Send the scheduling state of a pending ask (I5, I38)."""
        self.add(
            ask.app.partition.rm,
            UpdateContainerSchedulingStateRequest(
                applicartionID=ask.app.app_id,
                allocationKey=ask.ask_key,
                state=state,
                reason=reason,
            ),
        )


def _add_terms(message: AllocationMessage, terms: Terms) -> None:
    if terms.tags:
        message.allocationTags.update(terms.tags)
    if terms.originator:
        message.originator = True
    if not terms.allow_preempt_self or terms.allow_preempt_other:
        message.preemptionPolicy.CopyFrom(
            PreemptionPolicy(
                allowPreemptSelf=terms.allow_preempt_self,
                allowPreemptOther=terms.allow_preempt_other,
            )
        )
