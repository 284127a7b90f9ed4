"""What ran before the scheduler started: allocations that the resource manager reports (2.11).

A recovered allocation brings no ask, so one is made from it (G56). It enters the books without any
quota check, and its application goes through the same triggers as if it had been allocated here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core import books, gang
from quadriga.core.kernel import Kernel
from quadriga.core.model.allocation import Allocation
from quadriga.core.model.ask import Ask
from quadriga.fsm import ALLOCATION, APPLICATION, ASK
from quadriga.fsm import allocation as life
from quadriga.fsm import application as app_life
from quadriga.fsm import ask as ask_life
from quadriga.si import Allocation as AllocationMessage
from quadriga.si import RejectedAllocation

if TYPE_CHECKING:
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.resource_manager import ResourceManager

__all__ = ["give_back_leftover", "problem_of", "recover", "recover_allocations"]


def problem_of(partition: Partition, messages: list[AllocationMessage]) -> str:
    """Why these cannot be recovered, or an empty text."""
    seen: set[tuple[str, str]] = set()
    for message in messages:
        problem = _problem(partition, message)
        named = (message.applicationID, _uuid(message))
        if not problem and named in seen:
            problem = "is reported twice"
        seen.add(named)
        if problem:
            return f"allocation {_uuid(message)!r} of {message.applicationID!r} {problem}"
    return ""


def _uuid(message: AllocationMessage) -> str:
    return message.UUID or message.allocationID or (message.allocationKey + "-0")


def _problem(partition: Partition, message: AllocationMessage) -> str:
    if not message.applicationID:
        return "has no applicationID: independent allocations are not supported (I42)"
    if not message.allocationKey:
        return "has no allocationKey"
    app = partition.applications.get(message.applicationID)
    if app is None:
        return "belongs to an unknown application"
    if not APPLICATION.allows(app.state, app_life.ASK):
        return f"belongs to an application that is {app.state}"
    if _uuid(message) in app.allocations or _uuid(message) in app.placeholders:
        return "is known already"
    if any(a.planned is not None and a.planned.uuid == _uuid(message) for a in app.asks.values()):
        return "has the UUID of a replacement in flight"
    quantities = [q.value for q in message.resourcePerAlloc.resources.values()]
    if any(value < 0 for value in quantities) or not any(quantities):
        return "has no usable resourcePerAlloc"
    return ""


def recover(
    kernel: Kernel, partition: Partition, node: Node, message: AllocationMessage
) -> Allocation:
    """Enter one reported allocation. It has been checked by ``problem_of``."""
    app = partition.applications[message.applicationID]
    partition.arrivals += 1
    vector = partition.registry.read(message.resourcePerAlloc)
    ask = Ask(app, message.allocationKey, vector, partition.arrivals, kernel.now)
    ask.priority = message.priority
    ask.task_group = message.taskGroupName
    ask.placeholder = message.placeholder and bool(message.taskGroupName)  # G57, I18
    ask.originator = message.originator
    ask.tags = dict(message.allocationTags)
    if message.HasField("preemptionPolicy"):
        ask.allow_preempt_self = message.preemptionPolicy.allowPreemptSelf
        ask.allow_preempt_other = message.preemptionPolicy.allowPreemptOther
    uuid = _uuid(message)
    key, _, number = uuid.rpartition("-")
    if number.isdecimal() and len(number) < 19:  # no UUID is given twice, whoever brought it (X12)
        app.serial[key] = max(app.serial.get(key, 0), int(number) + 1)
    allocation = Allocation(ask, uuid, node, kernel.now)
    kernel.fire(ASK, ask, ask_life.SUBMIT)
    kernel.fire(APPLICATION, app, app_life.ASK)
    books.use_node(allocation)
    books.hold(allocation)
    kernel.fire(ASK, ask, ask_life.ALLOCATE)
    kernel.fire(ALLOCATION, allocation, life.ALLOCATE)
    ask.pending = 0
    if ask.placeholder:
        group = gang.task_group_of(app, ask.task_group, vector)
        group.count += 1
        group.pending += 1
        gang.placeholder_landed(kernel, allocation)
    elif app.state in app_life.RUNS_ON_ALLOCATION:
        kernel.fire(APPLICATION, app, app_life.RUN)
    return allocation


def give_back_leftover(kernel: Kernel, allocation: Allocation) -> None:
    """X25: a placeholder of a gang that is giving its placeholders back is asked back as well."""
    if allocation.placeholder and allocation.ask.app.state in app_life.GIVES_BACK:
        text = "releasing allocated placeholders on placeholder timeout"
        gang.release(kernel, allocation, life.TIMEOUT, text)


def recover_allocations(
    kernel: Kernel, rm: ResourceManager, messages: list[AllocationMessage]
) -> None:
    """AllocationRequest.allocations (2.20): accepted ones are echoed as new, others rejected."""
    rejected = []
    for message in messages:
        partition = rm.partitions.get(message.partitionName or "default")
        node = partition.nodes.get(message.nodeID) if partition is not None else None
        if partition is None:
            problem = f"names the unknown partition {message.partitionName!r}"
        elif node is None:
            problem = f"names the unknown node {message.nodeID!r}"
        else:
            problem = problem_of(partition, [message])
            if not problem:
                allocation = recover(kernel, partition, node, message)
                kernel.outbox.allocated(allocation)
                give_back_leftover(kernel, allocation)
                continue
        rejected.append(
            RejectedAllocation(
                allocationKey=message.allocationKey,
                applicationID=message.applicationID,
                reason=problem,
            )
        )
    if rejected:
        kernel.outbox.rejected_allocations(rm, rejected)
