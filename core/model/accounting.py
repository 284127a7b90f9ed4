"""Accounting: the only module that adds allocations to the totals in use and subtracts them.

An allocation is charged to its node from the decision on. It is charged to its application, to the
queues above and to the ledgers of its user and group while the application holds it. Pending is what is
asked for and neither allocated nor parked.

Most variants are built from one primitive, ``_post``. Those that run for each allocation have loops of
their own, because they are the hottest code of the scheduler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.resources import units
from quadriga.core.resources.vectors import Totals, Vector, minus, plus
from quadriga.fsm.lifecycles.allocation import PREEMPTION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.model.queue import Queue
    from quadriga.core.resources.shapes import Shape


def _post(vector: Vector, times: int, totals: Totals, others: Sequence[Totals] = ()) -> None:
    """Add ``times`` the vector to these totals and to each of the others; a negative number
    subtracts."""
    for at, value in enumerate(vector):
        if value:
            value *= times
            totals[at] += value
            for other in others:
                other[at] += value


# -- nodes -----------------------------------------------------------------------------------------


def charge_node(allocation: Allocation) -> None:
    """Charge the allocation to its node."""
    node = allocation.node
    node.allocations[allocation] = None
    _use(node, allocation.vector, 1)
    if node.units is not None:
        _use_units(node, allocation)
    node.partition.node_index.changed(node)


def refund_node(allocation: Allocation) -> None:
    """Refund the allocation to its node."""
    node = allocation.node
    del node.allocations[allocation]
    _use(node, allocation.vector, -1)
    if node.units is not None:
        _refund_units(node, allocation)
    node_gained(node)


def replace_on_node(placeholder: Allocation, real: Allocation) -> None:
    """Replace a placeholder by a real allocation on the same node in one step (G31)."""
    node = real.node
    del node.allocations[placeholder]
    if placeholder.vector == real.vector:
        node.allocations[real] = None
        if node.units is not None and placeholder in node.units.of:
            node.units.of[real] = node.units.of.pop(placeholder)
        _node_changed(node)
        return
    if real in node.allocations:  # its growth is charged already (X37)
        _use(node, real.growth, -1)
    node.allocations[real] = None
    _use(node, placeholder.vector, -1)
    _use(node, real.vector, 1)
    if node.units is not None:
        _refund_units(node, placeholder)
        _use_units(node, real)
    node_gained(node)


def _use(node: Node, vector: Vector, times: int) -> None:
    allocated, available = node.allocated, node.available
    for at, value in enumerate(vector):
        if value:
            value *= times
            allocated[at] += value
            available[at] -= value


def _use_units(node: Node, allocation: Allocation) -> None:
    """Charge the units of shared devices that the allocation has, or choose some (Q14)."""
    assert node.units is not None
    known = node.units.of
    if allocation not in known:
        shares = node.partition.registry.shares_of(allocation.vector)
        if not shares:
            return
        known[allocation] = units.choose(shares, node.available)
    units.use(known[allocation], 1, node.allocated, node.available)


def _refund_units(node: Node, allocation: Allocation) -> None:
    assert node.units is not None
    units.use(node.units.of.pop(allocation, ()), -1, node.allocated, node.available)


def node_gained(node: Node) -> None:
    """The node may have more room: retry asks of all shapes and the reservations of the node."""
    node.partition.node_index.gained(node)
    _node_changed(node)


def _node_changed(node: Node) -> None:
    """The allocations of the node changed: retry its reservations, which may also preempt."""
    waiting = node.partition.waiting
    waiting.allocation_epoch += 1
    if node.reservation is not None:
        waiting.retries.add(node.reservation)
        if node.also_reserved:
            waiting.retries.update(node.also_reserved)


# -- applications, queues, users -------------------------------------------------------------------


def charge(allocation: Allocation) -> None:
    """Charge the allocation to its application, the queues above, the user and the group."""
    app = allocation.ask.app
    _held_by(app, allocation)[allocation.uuid] = allocation
    app.lengthen(len(allocation.vector))
    if not app.counted:
        start_counting(app)
    usage = [ledger.usage for ledger in app.ledgers]
    _post(allocation.vector, 1, _total_of(app, allocation), usage)
    _mark_changed(app)
    for queue in app.queue.lineage:
        _post(allocation.vector, 1, queue.allocated)
        queue.rank = None
        queue.untie()


def charge_new(allocation: Allocation) -> None:
    """Charge a new allocation of a pending ask to everything in one pass: ``charge_node``, ``charge``
    and ``remove_pending``."""
    group = allocation.ask.group
    assert group is not None
    app = group.app
    if not app.counted:
        start_counting(app)
    charge_placement(allocation.node, group.shape, app.queue.lineage)
    register(allocation)
    charge_application(group, 1)


def register(allocation: Allocation) -> None:
    """Register the allocation with its node and its application without charging it."""
    node = allocation.node
    node.allocations[allocation] = None
    _held_by(allocation.ask.app, allocation)[allocation.uuid] = allocation
    if node.units is not None and (group := allocation.ask.group) and group.shape.shares:
        node.units.register(allocation, group.shape)


def charge_placement(node: Node, shape: Shape, queues: tuple[Queue, ...]) -> None:
    """Charge one pending ask of this shape to its node and to these queues.

    The next decision reads these totals; ``charge_application`` may follow later.
    """
    need = shape.need
    allocated, available = node.allocated, node.available
    for at, value in need:
        allocated[at] += value
        available[at] -= value
    if shape.shares and node.units is not None:
        node.units.pick(shape, 1, allocated, available)
    node.partition.node_index.took(node, shape)
    for queue in queues:
        allocated, pending = queue.allocated, queue.pending
        for at, value in need:
            allocated[at] += value
            pending[at] -= value
        queue.rank = None
        if queue.tied:
            queue.untie()


def charge_planned(node: Node, shape: Shape, number: int) -> None:
    """Charge this number of pending asks of this shape to their node alone; a negative number refunds
    them. ``charge_above`` follows when the plan is carried out."""
    allocated, available = node.allocated, node.available
    for at, value in shape.need:
        value *= number
        allocated[at] += value
        available[at] -= value
    if shape.shares and node.units is not None:
        node.units.pick(shape, number, allocated, available)
    node.partition.node_index.took(node, shape)


def charge_above(group: AskGroup, number: int) -> None:
    """Charge this number of pending asks of the group, whose nodes are charged already, to everything
    above them."""
    app = group.app
    if not app.counted:
        start_counting(app)
    for queue in app.queue.lineage:
        charge_queue(queue, group.shape, number)
    charge_application(group, number)


def charge_application(group: AskGroup, number: int) -> None:
    """Charge this number of pending asks of the group to its application, user and group."""
    app = group.app
    if (changes := app.partition.quota_changes) is not None:
        changes.applications[app] = None
    if group.kind.placeholder:
        held = app.allocated_placeholder
    else:
        held = app.allocated
        if app.queue.fair:
            app.rank = None
    pending, usage, other_usages = app.pending, app.user_usage, app.other_usages
    for at, value in group.shape.need:
        value *= number
        held[at] += value
        pending[at] -= value
        usage[at] += value
        for other in other_usages:
            other[at] += value


def charge_queue(queue: Queue, shape: Shape, number: int) -> None:
    """Charge this number of pending asks of the shape to one queue."""
    for at, value in shape.need:
        queue.allocated[at] += value * number
        queue.pending[at] -= value * number
    queue.rank = None
    queue.untie()


def _held_by(app: Application, allocation: Allocation) -> dict[str, Allocation]:
    """The mapping (by UUID) that holds the allocation: placeholders or real allocations."""
    return app.placeholders if allocation.ask.kind.placeholder else app.allocations


def _total_of(app: Application, allocation: Allocation) -> Totals:
    """The total of the application that counts the allocation."""
    return app.allocated_placeholder if allocation.ask.kind.placeholder else app.allocated


def start_counting(app: Application) -> None:
    """Count the application as running for its user and its group (2.5)."""
    app.counted = True
    app.partition.rm.observer.application_counted(app)
    for ledger in app.ledgers:
        ledger.running[app] = None


def _mark_changed(app: Application) -> None:
    """The allocated resources of the application changed: mark it for quota events and order."""
    if (changes := app.partition.quota_changes) is not None:
        changes.applications[app] = None
    if app.queue.fair:
        app.rank = None


def refund(allocation: Allocation) -> None:
    """Refund an allocation that ended; asks that lacked quota are retried."""
    app = allocation.ask.app
    held = _total_of(app, allocation)
    app.note_most(held)
    del _held_by(app, allocation)[allocation.uuid]
    _post(allocation.vector, -1, held)
    if allocation.reason == PREEMPTION:
        app.preempting -= 1
        app.preempted += 1
        for queue in app.queue.lineage:
            _post(allocation.vector, -1, queue.preempting)
    _refund_quota(app, allocation.vector)


def _refund_quota(app: Application, vector: Vector) -> None:
    """Refund a vector to the ledgers of the user and the group and to every queue above."""
    partition, lineage = app.partition, app.queue.lineage
    accounts = [ledger.usage for ledger in app.ledgers]
    accounts += app.queue.allocated_upwards
    for at, value in enumerate(vector):
        if value:
            for totals in accounts:
                totals[at] -= value
    partition.waiting.demand_epoch += 1
    _mark_changed(app)
    if app.queue.fair:
        app.touch()
    for queue in lineage:
        queue.touch()
    for queue in lineage:
        if queue.short_of or queue.above_guarantee or queue.gated:
            queue.regained()
    for ledger in app.limiting:
        if ledger.short_of or ledger.gated:
            ledger.regained()
    partition.waiting.retry_short_of_quota()


def mark_preempted(allocation: Allocation) -> None:
    """Count the allocation as being preempted (2.8); it stays charged until it ends."""
    app = allocation.ask.app
    app.preempting += 1
    app.partition.waiting.allocation_epoch += 1
    for queue in app.queue.lineage:
        _post(allocation.vector, 1, queue.preempting)
        queue.shrunk()


def resize(allocation: Allocation, vector: Vector) -> None:
    """Give an allocation that is not being released another size, regardless of quotas (2.20)."""
    app = allocation.ask.app
    less = minus(allocation.vector, vector)
    app.lengthen(len(less))
    had = allocation.units
    refund_node(allocation)
    allocation.vector = vector
    if had and allocation.node.units is not None:
        allocation.node.units.of[allocation] = had
    charge_node(allocation)
    held = _total_of(app, allocation)
    app.note_most(held)
    _post(less, -1, held)
    _refund_quota(app, less)


def replace(placeholder: Allocation, real: Allocation, *, lands: bool) -> None:
    """Refund the placeholder and charge the real allocation in one step (G31).

    The real allocation is never larger than the placeholder and the reserved growth, so no quota is
    exceeded in between. If it has no node yet (not ``lands``), all of it becomes growth (X39).
    """
    app = real.ask.app
    del app.placeholders[placeholder.uuid]
    app.note_most(app.allocated_placeholder)
    _post(placeholder.vector, -1, app.allocated_placeholder)
    held = placeholder.vector
    if real.growth:
        app.note_most(app.allocated)
        _post(real.growth, -1, app.allocated)
        held = plus(held, real.growth)
    _post(real.vector, 1, app.allocated)
    real.growth = () if lands else real.vector
    if lands:
        app.allocations[real.uuid] = real
    app.rank = None
    if placeholder in (lent := app.partition.lent.runtimes):
        lent[real] = lent.pop(placeholder)
    if held != real.vector:
        _refund_quota(app, minus(held, real.vector))


# -- planned allocations that are larger than their placeholders (X37), or have none left (X39) -----


def reserve_growth(real: Allocation, growth: Vector) -> None:
    """Charge the part of a planned allocation that exceeds its placeholder."""
    app = real.ask.app
    real.growth = growth
    _post(growth, 1, app.allocated, [ledger.usage for ledger in app.ledgers])
    _mark_changed(app)
    for queue in app.queue.lineage:
        _post(growth, 1, queue.allocated)
        queue.rank = None
        queue.untie()


def refund_growth(real: Allocation) -> None:
    """Refund the growth of the planned allocation."""
    app = real.ask.app
    app.note_most(app.allocated)
    _post(real.growth, -1, app.allocated)
    _refund_quota(app, real.growth)
    real.growth = ()


def adopt_growth(real: Allocation) -> None:
    """Turn the growth of a planned allocation, all of it, into a held allocation."""
    real.growth = ()
    real.ask.app.allocations[real.uuid] = real


def reserve_growth_on_node(real: Allocation) -> None:
    """Charge the growth of a planned allocation to its node."""
    node = real.node
    node.allocations[real] = None
    _use(node, real.growth, 1)
    node.partition.node_index.changed(node)


def refund_growth_on_node(real: Allocation) -> None:
    """Refund the growth of a planned allocation to its node."""
    node = real.node
    del node.allocations[real]
    _use(node, real.growth, -1)
    node_gained(node)


# -- pending ---------------------------------------------------------------------------------------


def add_pending(ask: Ask, repeats: int) -> None:
    """Add this number of allocations of the ask to the pending totals."""
    app = ask.app
    app.lengthen(len(ask.kind.vector))
    _post(ask.kind.vector, repeats, app.pending, app.queue.pending_upwards)
    for queue in app.queue.lineage:
        if queue.tied:
            queue.untie()


def remove_pending(ask: Ask, repeats: int) -> None:
    """Subtract this number of allocations of the ask from the pending totals."""
    add_pending(ask, -repeats)


# -- headroom of gangs -----------------------------------------------------------------------------


def reserve_headroom(app: Application) -> None:
    """Update the headroom that the queues reserve for the rest of a started gang (X16)."""
    remainder = app.remainder
    reserved = app.reserved_headroom
    if not remainder and not any(reserved):
        return
    app.lengthen(len(remainder))
    lowered = False
    for at, before in enumerate(reserved):
        due = remainder[at] if at < len(remainder) else 0
        if due != before:
            lowered = lowered or due < before
            reserved[at] = due
            for queue in app.queue.lineage:
                queue.reserved_headroom[at] += due - before
    if lowered:
        for queue in app.queue.lineage:
            if queue.gated:
                queue.regained()
