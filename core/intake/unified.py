"""Asks that come as allocations without a node: the form of SI 1.6 and later (X45).

There the field ``asks`` is gone: one message is an ask while it names no node, and the allocation once
it does. Its key is the only name of both. So the same key again changes the pending ask, or else the
size of the allocation that the ask has got, and never asks for a second one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quadriga.core.intake import asks, foreign, recovery
from quadriga.core.intake.repeated_asks import ALLOCATIONS, EncodedAsks, add_repeated
from quadriga.core.model.refusal import Refused
from quadriga.core.runtime.kernel import Kernel
from quadriga.si import Allocation as AllocationMessage
from quadriga.si import AllocationAsk, AllocationRequest, RejectedAllocation

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.resource_manager import ResourceManager

__all__ = ["add_asks", "is_ask", "is_report"]


def is_ask(message: AllocationMessage) -> bool:
    """Whether a node is wanted for it. What others run has one always (X19)."""
    return not (message.nodeID or foreign.is_foreign(message))


def is_report(message: AllocationMessage) -> bool:
    """Whether it runs already (2.11)."""
    return not is_ask(message)


def add_asks(kernel: Kernel, rm: ResourceManager, messages: Iterable[AllocationMessage]) -> None:
    """Take up new asks and changes of known ones; all rejections go in one response (M3)."""
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
            ask = _take_up(kernel, rm, message)
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
                at += add_repeated(kernel, ask, own, encoded, len(asks) - at)
    if rejected:
        kernel.tally.asks_rejected += len(rejected)
        kernel.outbox.rejected_allocations(rm, rejected)


def _take_up(kernel: Kernel, rm: ResourceManager, message: AllocationMessage) -> Ask | None:
    """The ask, if it is a new one."""
    held = _held(rm, message)
    if held is None:
        return asks.take_up(kernel, rm, _as_ask(message), by_key=True)
    problem = recovery.resize(kernel, held, message)
    if problem:
        key, app_id = message.allocationKey, message.applicationID
        raise Refused(f"allocation {key!r} of application {app_id} {problem}", "state")
    return None


def _held(rm: ResourceManager, message: AllocationMessage) -> Allocation | None:
    """The allocation that this key has already, if it was asked for in this form."""
    key = message.allocationKey
    partition = rm.partitions.get(message.partitionName or "default")
    app = partition.applications.get(message.applicationID) if partition is not None else None
    if app is None or key not in app.serial or key in app.asks:
        return None
    held = [each for each in app.held_of(key) if each.ask.terms.by_key]
    return held[-1] if held else None


def _as_ask(message: AllocationMessage) -> AllocationAsk:
    """The same as one of ``asks``, which says more than this form can."""
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
