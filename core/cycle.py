"""One decision: which ask gets what, in one partition (5.2).

Three things are tried in this order: asks that have a node reserved, gang members that can take
over a placeholder, and all others. For the last two the tree is walked down from root along the best
child for any want that can be served (see ``order.ranking``), so the walk ends at the ask that a full
sort of queues, applications and asks would have found. What then turns out not to be possible (a
quota, the whole-gang gate, no node) is remembered where it failed and the walk starts again; the next
one does not come by there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core import books, gang, reservation
from quadriga.core.kernel import Kernel
from quadriga.core.model.allocation import Allocation
from quadriga.core.model.application import Application
from quadriga.core.order.shapes import REPLACE
from quadriga.fsm import ALLOCATION, APPLICATION, ASK
from quadriga.fsm import allocation as allocation_life
from quadriga.fsm import application as app_life
from quadriga.fsm import ask as ask_life
from quadriga.fsm import queue as queue_life

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.order.shapes import Shape

__all__ = ["allocate", "decide", "next_uuid"]


def decide(kernel: Kernel, partition: Partition) -> bool:
    """Make one decision (an allocation or a replacement). Whether there was one to make."""
    if partition.state == queue_life.STOPPED or not partition.nodes:
        return False
    if partition.woken and _serve_reserved(kernel, partition):
        return True
    if partition.root.offered & REPLACE and _serve_replacement(kernel, partition):
        return True
    if _serve_next(kernel, partition):
        return True
    partition.exhausted_at = partition.arrivals
    return False


# -- the walk --------------------------------------------------------------------------------------


def _descend(partition: Partition, able: int) -> tuple[Application, AskGroup] | None:
    """Down the best child of every level to the group whose head is next in order."""
    able &= partition.root.offered
    level = partition.root.best(able)
    if level is None:
        return None
    while not isinstance(level, Application):
        able &= ~level.blocked  # what a quota blocks here, nobody below may be chosen for
        level = level.best(able)
    group: AskGroup = level.best(able)
    return level, group


def _serve_next(kernel: Kernel, partition: Partition) -> bool:
    board = partition.board
    while True:
        found = _descend(partition, board.able)
        if found is None:
            return False
        app, group = found
        shape = group.shape
        short = _out_of_quota(app, shape)
        if short is not None:
            short.run_short(shape)
            continue
        if group.placeholder and not app.gang_started and not gang.may_start(app):
            continue
        if not group.bits & board.able & shape.place:
            _reserve(kernel, partition, group)
            continue
        ask = group.head
        node = _node_for(kernel, partition, ask)
        if node is not None:
            if ask.reservations:
                own = next(r for r in app.reservations if r.ask is ask)
                reservation.cancel(partition, own)
            allocate(kernel, ask, node)
            return True


def _out_of_quota(app: Application, shape: Shape) -> Queue | None:
    """The lowest queue above the application whose quota has no room for the shape."""
    for queue in app.queue.lineage:
        if queue.limits and not queue.has_room(shape):
            return queue
    return None


def _node_for(kernel: Kernel, partition: Partition, ask: Ask) -> Node | None:
    """The first node in order that fits and that the resource manager's predicates accept."""
    assert ask.group is not None
    shape = ask.group.shape
    predicate = kernel.predicates.get(partition.rm.rm_id)
    if predicate is None:
        return partition.board.best(shape)
    if partition.board.best(shape) is None:
        return None
    for node in partition.board.in_order(shape):
        if predicate(ask.ask_key, node.node_id, True) is None:
            return node
    set_aside(partition, ask)
    return None


def set_aside(partition: Partition, ask: Ask) -> None:
    """No node for this ask in this round, for a reason that only the outside knows."""
    partition.leave(ask)
    partition.aside[ask] = None


def _reserve(kernel: Kernel, partition: Partition, group: AskGroup) -> None:
    """Keep a node for the group's first ask that has waited long enough and fits nowhere."""
    ask = reservation.candidate(group, kernel.now, kernel.options.reservation_delay)
    if ask is not None and partition.rm.reservations:
        node = partition.board.best_to_reserve(group.shape)
        if node is None:
            return
        predicate = kernel.predicates.get(partition.rm.rm_id)
        if predicate is not None and predicate(ask.ask_key, node.node_id, False) is not None:
            set_aside(partition, ask)
            return
        made = reservation.reserve(partition, ask, node, kernel.now)
        limit = kernel.options.reservation_give_up
        kernel.timers.start(kernel.now, limit, "reservation.give_up", made)
    reservation.wait_to_reserve(kernel, group)


# -- asks with reservations ------------------------------------------------------------------------


def _serve_reserved(kernel: Kernel, partition: Partition) -> bool:
    """The first reservation, in order of queues, applications and asks, that can be used now."""
    while partition.woken:
        first = min(partition.woken, key=_order)
        app = first.ask.app
        own = sorted((r for r in partition.woken if r.ask.app is app), key=_order)
        for elsewhere in (False, True):
            for each in own:
                if each in partition.woken and _use(kernel, partition, each, elsewhere):
                    return True
        for each in own:
            partition.woken.pop(each, None)
    return False


def _order(each: reservation.Reservation) -> tuple[object, ...]:
    app = each.ask.app
    path = tuple(q.rank or q.make_rank() for q in reversed(app.queue.lineage[:-1]))
    return path, app.rank or app.make_rank(), -each.ask.priority, each.ask.seq, each.node.node_id


def _use(
    kernel: Kernel, partition: Partition, each: reservation.Reservation, elsewhere: bool
) -> bool:
    ask = each.ask
    group = ask.group
    if group is None or not group.bits or ask.app.blocked:
        return False
    shape = group.shape
    lane = ask.app.above
    if (lane is not None and lane.blocked) or _out_of_quota(ask.app, shape) is not None:
        partition.stalled[each] = None
        return False
    if group.placeholder and not ask.app.gang_started and not gang.may_start(ask.app):
        return False
    node: Node | None = each.node
    if elsewhere:
        if ask.required_node:
            return False
        node = partition.board.best(shape)
    elif not shape.fits(each.node.available) or not each.node.open:
        return False
    if node is None:
        return False
    predicate = kernel.predicates.get(partition.rm.rm_id)
    if predicate is not None and predicate(ask.ask_key, node.node_id, True) is not None:
        return False
    reservation.cancel(partition, each)
    allocate(kernel, ask, node)
    return True


# -- replacement -----------------------------------------------------------------------------------


def _serve_replacement(kernel: Kernel, partition: Partition) -> bool:
    while True:
        found = _descend(partition, REPLACE)
        if found is None:
            return False
        ask = found[1].head
        if gang.replace(kernel, ask):
            return True


# -- allocation ------------------------------------------------------------------------------------


def next_uuid(ask: Ask) -> str:
    """``<allocationKey>-<n>``; n counts that key's allocations in the application (X12)."""
    serial = ask.app.serial
    number = serial.get(ask.ask_key, 0)
    serial[ask.ask_key] = number + 1
    return f"{ask.ask_key}-{number}"


def allocate(kernel: Kernel, ask: Ask, node: Node) -> Allocation:
    """Allocate the ask's next repeat on the node, and say so (G4)."""
    app = ask.app
    partition = app.partition
    allocation = Allocation(ask, next_uuid(ask), node, kernel.now)
    books.use_node(allocation)
    books.hold(allocation)
    books.unexpect(ask, 1)
    group = ask.group
    kernel.fire(ASK, ask, ask_life.ALLOCATE)
    kernel.fire(ALLOCATION, allocation, allocation_life.ALLOCATE)
    ask.pending -= 1
    if ask.placeholder:
        gang.placeholder_landed(kernel, allocation)
    else:
        kernel.fire(APPLICATION, app, app_life.RUN)
    kernel.outbox.allocated(allocation)
    if not ask.pending:
        if ask.reservations:
            reservation.cancel_all_of(partition, ask)
        partition.leave(ask)
        partition.unhinted.pop(ask, None)
        del app.asks[ask.ask_key]
    if group is not None and group.placeholder and not group.asks:
        app.partition.offer_replacements(app)
    return allocation
