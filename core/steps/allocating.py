"""Allocations of asks to nodes, one by one or many at once, charged and announced (G4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from quadriga.core.model import accounting
from quadriga.core.model.allocation import Allocation, next_uuid
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.steps import gang, quota_plans, reservation
from quadriga.fsm import ALLOCATION, APPLICATION, ASK
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import ask as ask_fsm

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.gang import TaskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition

#: an ask, its node, and the task group that it is a placeholder of
Placement = tuple["TaskGroup | None", "Ask", "Node"]


def allocate(kernel: Kernel, ask: Ask, node: Node, *, node_charged: bool = False) -> Allocation:
    """Allocate the ask's next repeat on the node, and announce it (G4). ``node_charged``: a plan has
    charged the node already."""
    app = ask.app
    partition = app.partition
    if ask.last_quota_event or app.last_quota_event:
        partition.rm.observer.ask_served(ask)
    allocation = Allocation(ask, next_uuid(ask), node, kernel.now)
    group = ask.group
    if node_charged:
        assert group is not None
        accounting.register(allocation)
        accounting.charge_above(group, 1)
    else:
        accounting.charge_new(allocation)
    partition.waiting.allocation_epoch += 1
    kernel.fire(ASK, ask, ask_fsm.ALLOCATE)
    kernel.fire(ALLOCATION, allocation, allocation_fsm.ALLOCATE)
    ask.pending -= 1
    if ask.kind.placeholder:
        gang.placeholder_allocated(kernel, allocation)
    elif not APPLICATION.idles(app.state, application_fsm.RUN):
        kernel.fire(APPLICATION, app, application_fsm.RUN)
    if (planned := partition.node_index.planned) is not None:
        planned.note_lent(allocation, kernel.now)
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
    if partition.waiting.quota_plans and group is not None:
        quota_plans.took(app, group.shape, 1)
    return allocation


def allocate_all(
    kernel: Kernel, partition: Partition, placements: Sequence[Placement]
) -> list[Ask]:
    """Allocate many asks to their nodes, and announce them. Return the asks with nothing left pending.

    The nodes are charged already, and nothing but the allocations follows. The caller settles all other
    totals and takes the returned asks from their groups.
    """
    now, observer = kernel.now, partition.rm.observer
    allocations: list[Allocation] = []
    observed = 0
    for task_group, ask, node in placements:
        if ask.last_quota_event or ask.app.last_quota_event:
            observer.allocated(allocations[observed:])
            observed = len(allocations)
            observer.ask_served(ask)
        allocation = Allocation(ask, next_uuid(ask), node, now)
        accounting.register(allocation)
        if task_group is not None:
            task_group.landed(allocation)
        allocations.append(allocation)
    served: list[Ask] = []
    asks = kernel.fire_all(ASK, _asks_of(allocations, served), ask_fsm.ALLOCATE)
    taken = kernel.fire_all(ALLOCATION, allocations, allocation_fsm.ALLOCATE)
    both = chain.from_iterable(zip(asks, taken, strict=True))
    kernel.journal.add_all(now, both, kernel.cause)
    if (planned := partition.node_index.planned) is not None:
        for allocation in allocations:
            planned.note_lent(allocation, now)
    observer.allocated(allocations[observed:])
    kernel.outbox.allocated(allocations)
    partition.waiting.allocation_epoch += len(allocations)
    return served


def _asks_of(allocations: list[Allocation], served: list[Ask]) -> Iterator[Ask]:
    """The ask of each allocation. When the next one is requested, the ask has one repeat less pending;
    asks without any are added to ``served``."""
    for allocation in allocations:
        ask = allocation.ask
        yield ask
        ask.pending -= 1
        if not ask.pending:
            served.append(ask)
