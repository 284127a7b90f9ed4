"""Allocation of one ask to a node, charged and announced (G4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.model import accounting
from quadriga.core.model.allocation import Allocation, next_uuid
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.scheduling import gang, reservation
from quadriga.fsm import ALLOCATION, APPLICATION, ASK
from quadriga.fsm import allocation as allocation_fsm
from quadriga.fsm import application as application_fsm
from quadriga.fsm import ask as ask_fsm

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node

__all__ = ["allocate"]


def allocate(kernel: Kernel, ask: Ask, node: Node) -> Allocation:
    """Allocate the ask's next repeat on the node, and announce it (G4)."""
    app = ask.app
    partition = app.partition
    if ask.last_quota_event or app.last_quota_event:
        partition.rm.observer.ask_served(ask)
    allocation = Allocation(ask, next_uuid(ask), node, kernel.now)
    accounting.charge_new(allocation)
    partition.waiting.allocation_epoch += 1
    group = ask.group
    kernel.fire(ASK, ask, ask_fsm.ALLOCATE)
    kernel.fire(ALLOCATION, allocation, allocation_fsm.ALLOCATE)
    ask.pending -= 1
    if ask.kind.placeholder:
        gang.placeholder_allocated(kernel, allocation)
    elif not APPLICATION.idles(app.state, application_fsm.RUN):
        kernel.fire(APPLICATION, app, application_fsm.RUN)
    landed = (allocation,)
    partition.rm.observer.allocated(landed)
    kernel.outbox.allocated(landed)
    if not ask.pending:
        if ask.reservations:
            reservation.cancel_all_of(partition, ask)
        partition.waiting.remove(ask)
        partition.hints.asks.pop(ask, None)
        del app.asks[ask.ask_key]
    if group is not None and group.kind.placeholder and not group.asks:
        app.partition.waiting.offer_replacements(app)
    return allocation
