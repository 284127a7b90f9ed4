"""Asks that come as allocations without a node: the form of SI 1.6 and later (X45).

SI 1.6 has no field ``asks``: an Allocation message without a node is an ask, and one with a node is an
allocation. The key is the only name of both. So the same key again changes the pending ask, or the size
of its allocation; it never requests a second allocation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quadriga.core.intake import asks, foreign, recovery
from quadriga.core.intake.repeated_asks import ALLOCATIONS, EncodedAsks, add_repeated
from quadriga.core.intake.routes import Answers
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.runtime.refusal import Refused
from quadriga.si import Allocation as AllocationMessage
from quadriga.si import AllocationAsk, AllocationRequest, RejectedAllocation

if TYPE_CHECKING:
    from quadriga.core.intake.fires import AskFires
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.resource_manager import ResourceManager


def is_ask(message: AllocationMessage) -> bool:
    """Whether the message is an ask. A foreign allocation never is (X19)."""
    return not (message.nodeID or foreign.is_foreign(message))


def is_report(message: AllocationMessage) -> bool:
    """Whether the message reports an allocation that runs already (2.11)."""
    return not is_ask(message)


def add_asks(
    kernel: Kernel,
    rm: ResourceManager,
    messages: Iterable[AllocationMessage],
    fires: AskFires,
    answers: Answers,
) -> None:
    """Add new asks and change known ones; all rejections go in one response (M3)."""
    asks, at = list(messages), 0
    encoded = None
    if len(asks) > 1:
        wire = AllocationRequest(allocations=asks).SerializeToString()
        encoded = EncodedAsks(wire, ALLOCATIONS)
    rejected = []
    while at < len(asks):
        message = asks[at]
        own = encoded.read() if encoded is not None else b""
        at += 1
        try:
            ask = _add_ask(kernel, rm, message, fires)
        except Refused as refused:
            kernel.tally.rejected["ask", refused.kind] += 1
            rejected.append(
                RejectedAllocation(
                    allocationKey=message.allocationKey,
                    applicationID=message.applicationID,
                    reason=str(refused),
                )
            )
        else:
            if ask is not None and encoded is not None:
                at += add_repeated(kernel, ask, own, encoded, len(asks) - at, fires)
    if rejected:
        kernel.tally.asks_rejected += len(rejected)
        answers.rejected_allocations(kernel, rm, rejected)


def _add_ask(
    kernel: Kernel, rm: ResourceManager, message: AllocationMessage, fires: AskFires
) -> Ask | None:
    """Add or change the ask, or resize its allocation. Returns the ask if it is new."""
    held = _held(rm, message)
    if held is None:
        return asks.add_ask(kernel, rm, _as_ask(message), fires, by_key=True)
    problem = recovery.resize(kernel, held, message)
    if problem:
        key, app_id = message.allocationKey, message.applicationID
        raise Refused(f"allocation {key!r} of application {app_id} {problem}", "state")
    return None


def _held(rm: ResourceManager, message: AllocationMessage) -> Allocation | None:
    """The allocation of the message's key, if its ask came in this form too."""
    key = message.allocationKey
    partition = rm.partitions.get(message.partitionName or "default")
    app = partition.applications.get(message.applicationID) if partition is not None else None
    if app is None or key not in app.serial or key in app.asks:
        return None
    held = [each for each in app.held_of(key) if each.ask.terms.by_key]
    return held[-1] if held else None


def _as_ask(message: AllocationMessage) -> AllocationAsk:
    """The message in the form of a request's ``asks``."""
    ask = AllocationAsk(
        allocationKey=message.allocationKey,
        applicationID=message.applicationID,
        partitionName=message.partitionName,
        resourceAsk=message.resourcePerAlloc,
        maxAllocations=1,
        priority=message.priority,
        tags=message.allocationTags,
        taskGroupName=message.taskGroupName,
        placeholder=message.placeholder,
        Originator=message.originator,
    )
    if message.HasField("preemptionPolicy"):
        ask.preemptionPolicy.CopyFrom(message.preemptionPolicy)
    return ask
