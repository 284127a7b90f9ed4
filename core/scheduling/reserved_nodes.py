"""Asks with a reserved node, which are served before all others (5.8).

They are tried in the order of queues, then of applications by submission, then of asks. For each
application the reserved nodes that may have gained room are tried first, then all other nodes. A
reservation that cannot be used is not tried again until something has changed for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from quadriga.core.gangs import admission as gang_admission
from quadriga.core.gangs.admission import precedes
from quadriga.core.model.queue import LeafQueue
from quadriga.core.preemption.required_node import preempt_on_required_node
from quadriga.core.resources.shapes import ELSEWHERE, RETRY_RESERVATION, START_GANG
from quadriga.core.steps import gang, limits, reservation
from quadriga.core.steps.allocating import allocate
from quadriga.core.steps.next_ask import node_for, out_of_quota
from quadriga.core.steps.releasing import evict
from quadriga.core.topology.members import predicate_of

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Reservation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.resources.demand import Level
    from quadriga.core.runtime.kernel import Kernel
from quadriga.core.scheduling.round import Round


def serve_reserved(round_: Round) -> bool:
    """Allocate the first reservation that can be used now, there or elsewhere."""
    kernel, partition = round_.kernel, round_.partition
    protected = partition.waiting.protected
    if protected is not None and not protected.gang.lacks:  # its planned start has come (Q9)
        if gang_admission.serve_protected(kernel, protected):
            return True
    while True:
        own = _first_to_retry(partition)
        other, feasible = _first_elsewhere(partition)
        if own is None and other is None:
            return False
        if own is not None and (other is None or own is other or precedes(own, other)):
            for each in sorted(partition.waiting.retries.of(own), key=_order):
                if each in partition.waiting.retries:
                    partition.waiting.retries.discard(each)
                    if _serve(kernel, partition, each):
                        return True
        elif other is not None and _serve_elsewhere(round_, other, feasible):
            return True


def _first_to_retry(partition: Partition) -> Application | None:
    """Return the first application with a reservation to retry."""
    queue = partition.root
    if not queue.demand & RETRY_RESERVATION:
        return None
    while not queue.leaf:
        queue = queue.best(RETRY_RESERVATION)
    return partition.waiting.retries.first_in(queue)


def _order(each: Reservation) -> tuple[int, int, str]:
    return -each.ask.priority, each.ask.seq, each.node.node_id


# -- on the reserved node --------------------------------------------------------------------------


def _serve(kernel: Kernel, partition: Partition, each: Reservation) -> bool:
    ask = each.ask
    app, group = ask.app, ask.group
    if app.gang.victims:
        return gang_admission.serve_reserving(kernel, each)
    if group is None or not group.demand or app.blocked or group.demand & START_GANG:
        return False
    shape = group.shape
    fits = shape.fits(each.node.available)
    if not fits and not ask.required_node:  # only an ask with a required node may preempt there
        return False
    if (
        app.not_admitted
        or limits.full(app) is not None
        or limits.short(app, shape) is not None
        or out_of_quota(app, shape) is not None
    ):
        partition.waiting.short_of_quota[each] = None
        if fits:
            partition.node_index.gained(each.node)  # it may be lent now (Q7)
        return False
    if group.kind.placeholder and not app.gang.started and not gang.may_start(kernel, app):
        return False
    if not fits:
        eviction = preempt_on_required_node(kernel, each)
        if eviction is not None:
            evict(kernel, eviction)
        return False
    if not each.node.open and not ask.required_node:
        return False
    predicate = predicate_of(kernel, ask)
    if predicate is not None and predicate(ask.ask_key, each.node.node_id, True) is not None:
        partition.waiting.deferred_reservations[each] = None
        return False
    reservation.cancel(partition, each)
    ask.last_quota_event = 0  # the reservation already ended the wait for quota
    allocate(kernel, ask, each.node)
    return True


# -- on any other node -----------------------------------------------------------------------------


def _first_elsewhere(partition: Partition) -> tuple[Application | None, int]:
    """Return the first application whose reserving ask may fit on another node, and its open demand."""
    shapes = partition.shapes
    level: Level = partition.root
    feasible = (partition.node_index.feasible << ELSEWHERE) & shapes.elsewhere & level.demand
    while feasible and not isinstance(level, LeafQueue):
        level = level.best(feasible)
        feasible &= ~level.blocked
    if not feasible:
        return None, 0
    assert isinstance(level, LeafQueue)
    waiting = ((app, bits) for app in level.reserving if (bits := _passed(app, level, feasible)))
    return min(waiting, key=lambda pair: pair[0].seq, default=(None, 0))


def _passed(app: Application, leaf: LeafQueue, feasible: int) -> int:
    """Return the part of ``feasible`` that nothing between the application and its leaf blocks."""
    feasible &= app.demand_below
    level: Level | None = app
    while feasible and level is not None and level is not leaf:
        feasible &= ~level.blocked
        level = level.above
    return feasible


def _serve_elsewhere(round_: Round, app: Application, feasible: int) -> bool:
    """Allocate the first reserving ask that fits on another node, and cancel its reservation (5.8)."""
    kernel, partition = round_.kernel, round_.partition
    groups = (group for group in app.groups.values() if group.demand & feasible)
    group = min(groups, key=lambda each: each.key_for(feasible))
    shape = group.shape
    if app.limiting and limits.held_back(app, shape):
        return False
    short = out_of_quota(app, shape)
    if short is not None:
        short.run_short(shape)
        return False
    if group.kind.placeholder and not app.gang.started and not gang.may_start(kernel, app):
        return False
    # At most ``reserved`` asks have one.
    for ask in list(islice(_reserving(group), group.reserved)):
        node = node_for(kernel, partition, ask)
        if node is not None:
            own = next(r for r in app.reservations if r.ask is ask)
            reservation.cancel(partition, own)
            allocate(kernel, ask, node)
            return True
        if not partition.node_index.feasible & shape.allocate:  # no node has room for any of them
            return False
    round_.stay_on_reserved_nodes(group)  # predicates have refused all of them
    return False


def _reserving(group: AskGroup) -> Iterator[Ask]:
    """Yield the asks of the group that have a reservation."""
    for ask in group.asks.values():
        if ask.reservations:
            yield ask
