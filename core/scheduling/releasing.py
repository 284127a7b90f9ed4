"""Allocations are asked back from the resource manager.

Their resources stay in use until the resource manager confirms the release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.model import accounting
from quadriga.fsm import ALLOCATION
from quadriga.fsm import allocation as allocation_fsm

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.preemption.eviction import Eviction
    from quadriga.core.runtime.kernel import Kernel

__all__ = ["evict", "release"]


def release(kernel: Kernel, allocation: Allocation, reason: str, text: str) -> None:
    """Ask for one allocation back, unless that has been done already (R5)."""
    if allocation.state not in allocation_fsm.RELEASABLE:
        return
    allocation.reason = reason
    allocation.message = text
    if allocation.ask.placeholder:
        app = allocation.ask.app
        group = app.gang.task_groups[allocation.ask.task_group]
        group.take(allocation)
        if not group.available:
            app.partition.waiting.offer_replacements(app)
    kernel.fire(ALLOCATION, allocation, allocation_fsm.RELEASE)


def evict(kernel: Kernel, eviction: Eviction) -> None:
    """Ask for the victims of a preemption back (2.8)."""
    for victim in eviction.victims:
        victim.node.partition.rm.observer.preempted(victim, eviction.cause)
        release(kernel, victim, allocation_fsm.PREEMPTION, eviction.message)
        accounting.mark_preempted(victim)
