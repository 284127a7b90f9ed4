"""Requests to the resource manager to release allocations.

The resources stay charged until the resource manager confirms the release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.model import accounting
from quadriga.fsm import ALLOCATION
from quadriga.fsm.lifecycles import allocation as allocation_fsm

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.preemption.candidates import Eviction
    from quadriga.core.runtime.kernel import Kernel


def release(kernel: Kernel, allocation: Allocation, reason: str, text: str) -> None:
    """Request the release of one allocation, unless it was requested before (R5)."""
    if allocation.state not in allocation_fsm.RELEASABLE:
        return
    mark_released(allocation, reason, text)
    kernel.fire(ALLOCATION, allocation, allocation_fsm.RELEASE)


def mark_released(allocation: Allocation, reason: str, text: str) -> None:
    """Note why the release is requested, before it is; members can no longer replace a placeholder."""
    allocation.reason = reason
    allocation.message = text
    if allocation.ask.kind.placeholder:
        app = allocation.ask.app
        group = app.gang.task_groups[allocation.ask.kind.task_group]
        group.take(allocation)
        if not group.available:
            app.partition.waiting.offer_replacements(app, group.name)


def evict(kernel: Kernel, eviction: Eviction) -> None:
    """Request the release of the victims of a preemption (2.8)."""
    for victim in eviction.victims:
        victim.node.partition.rm.observer.preempted(victim, eviction.cause)
        release(kernel, victim, allocation_fsm.PREEMPTION, eviction.message)
        accounting.mark_preempted(victim)
