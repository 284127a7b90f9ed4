"""One decision: which ask gets what, in one partition (5.2).

A round tries three kinds of asks in this order: asks with a reserved node (``reserved_nodes``), gang
members that can replace a placeholder, and all others. The last two are found by a walk down the queue
tree (``next_ask``). The next ask gets a node. If no node has room, it may reserve one; if a node or a
quota lacks room, it may preempt allocations (5.6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.gangs import admission as gang_admission
from quadriga.core.gangs.replacement import replace
from quadriga.core.preemption import failed_preemptions, preemption_queue
from quadriga.core.preemption.guaranteed import attempt
from quadriga.core.resources.shapes import REPLACE, START_GANG
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.runtime.remote_predicates import (
    AnswerPending,
    TooManyPending,
    awaited,
    look_ahead,
)
from quadriga.core.scheduling.reserved_nodes import serve_reserved
from quadriga.core.scheduling.round import Round
from quadriga.core.steps import backoff, gang, limits, reservation
from quadriga.core.steps.allocating import allocate
from quadriga.core.steps.next_ask import NextInLane, descend, node_for, out_of_quota, rest_of_lane
from quadriga.core.steps.refused import refusal_of
from quadriga.core.steps.releasing import evict
from quadriga.core.topology.members import predicate_of
from quadriga.fsm.lifecycles import queue as queue_fsm
from quadriga.si.predicates import ANSWER_PENDING

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition


def decide(kernel: Kernel, partition: Partition, *, begun: bool = False) -> bool:
    """Make one decision: an allocation, a replacement, a reservation, or a preemption.

    ``begun``: a batch has begun the round, with a gang that could not be placed, so asks without a
    reservation are next.

    Return True if the round made a decision or used up its preemption attempts. The Go core reports
    nothing of a round that only reserves or preempts (5.2).
    """
    waiting = partition.waiting
    # First: a retry that is due and not taken would stay due, and so would its timer.
    if partition.failed_preemptions.by_shape and not begun:
        failed_preemptions.retry_due(partition, kernel.now)
    if partition.state in queue_fsm.HALTED:
        return False
    if not partition.nodes:
        if partition.rm.all_states:  # it may add the first nodes for them (X43)
            waiting.exhausted()
        return False
    if not (
        partition.root.demand & (partition.node_index.feasible | REPLACE | START_GANG)
        or partition.reservations
        or waiting.retries
        or waiting.protected_is_due
        or partition.node_index.pass_on()
    ):  # nothing waits that could be served: most calls end here
        if waiting.backs_off:
            backoff.start_after_round(kernel, partition)
        waiting.exhausted()
        return False
    round_ = Round(kernel, partition)
    too_many_pending = False
    try:
        spent = (
            not begun
            and (
                (
                    (waiting.retries or partition.reservations or waiting.protected_is_due)
                    and serve_reserved(round_)
                )
                or (partition.root.demand & REPLACE and _serve_replacement(kernel, partition))
            )
        ) or _serve_next(round_)
    except TooManyPending:
        spent, too_many_pending = False, True
    round_.end()
    if spent:
        return True
    if waiting.backs_off:
        backoff.start_after_round(kernel, partition)
    if round_.attempts is not None and max(round_.attempts.values()) > preemption_queue.ATTEMPTS:
        return True
    if not too_many_pending:
        waiting.exhausted()
    return False


# -- asks without a reservation --------------------------------------------------------------------


def _serve_next(round_: Round) -> bool:
    kernel, partition = round_.kernel, round_.partition
    node_index = partition.node_index
    rest: NextInLane | None = None
    while True:
        # only a search that found no node keeps ``rest``: any other step may change the order
        found = rest.next(node_index.feasible | START_GANG) if rest is not None else None
        if found is None:
            rest = None
            found = descend(partition, node_index.feasible | START_GANG)
        if found is None:
            if node_index.pass_on():
                continue
            return False
        kept, rest = rest, None
        app, group, feasible = found
        shape = group.shape
        if partition.waiting.backs_off and backoff.start_before_group(kernel, app, group):
            continue
        if group.demand & START_GANG:
            if gang_admission.admit(kernel, app):
                return True
            continue
        if app.limiting and limits.held_back(app, shape):
            continue
        short = out_of_quota(app, shape)
        if short is not None and group.demand & feasible & shape.quota:
            short.run_short(shape)
            continue
        if group.kind.placeholder and not app.gang.started and not gang.may_start(kernel, app):
            continue
        if short is not None or not group.demand & feasible & shape.allocate:
            if _reserve_or_preempt(round_, group, feasible, within=short is None):
                return True
            continue
        ask = group.head
        node = node_for(kernel, partition, ask)
        if node is not None:
            if ask.reservations:
                own = next(r for r in app.reservations if r.ask is ask)
                reservation.cancel(partition, own)
            allocate(kernel, ask, node)
            return True
        if node_index.feasible & shape.allocate:
            if _fall_back(round_, ask):
                return True
        elif not (group.kind.placeholder or partition.waiting.backs_off):
            rest = kept or rest_of_lane(partition, app, node_index.feasible | START_GANG)


# -- where no node has room ------------------------------------------------------------------------


def _reserve_or_preempt(round_: Round, group: AskGroup, feasible: int, *, within: bool) -> bool:
    """Reserve a node, or preempt, for the first ask of the group that may do so (5.6, 5.7).

    ``within`` says that the quotas have room and only nodes are missing.
    """
    kernel, partition = round_.kernel, round_.partition
    shape, wanted = group.shape, group.demand & feasible
    late = due = None
    if within and wanted & shape.reserve:
        if partition.rm.reservations:
            late = reservation.candidate(group, kernel.now, kernel.options.reservation_delay)
        if late is None:
            reservation.start_reserve_timer(kernel, group)
            return False
    if wanted & shape.preempt and group.preemption_queue is not None:
        due = group.preemption_queue.first_due(group, kernel.now)
        if due is None:
            preemption_queue.refresh(kernel, group)
            return False
    if late is not None and (due is None or late.seq <= due.seq):
        return _reserve(round_, late)
    return due is not None and _preempt(round_, due, nodes_tried=within)


def _reserve(round_: Round, ask: Ask) -> bool:
    """Reserve a node for an ask that has waited long enough and fits on no node."""
    kernel, partition = round_.kernel, round_.partition
    group = ask.group
    assert group is not None
    node = partition.node_index.best_to_reserve(group.shape)
    if node is None:
        return False
    if _may_reserve(kernel, ask, node):
        _make_reservation(kernel, ask, node)
        return True
    return _fall_back(round_, ask, reserve=False)


def _make_reservation(kernel: Kernel, ask: Ask, node: Node) -> None:
    """Reserve the node for the ask, which is within its quotas."""
    partition = ask.app.partition
    if ask.last_quota_event:
        partition.rm.observer.ask_served(ask)
    reservation.make(kernel, ask, node)
    assert ask.group is not None
    reservation.start_reserve_timer(kernel, ask.group)


def _may_reserve(kernel: Kernel, ask: Ask, node: Node) -> bool:
    """Whether the predicates accept the node. A required node is not checked (5.6, step 6)."""
    predicate = predicate_of(kernel, ask)
    if predicate is None or ask.required_node:
        return True
    said = predicate(ask.ask_key, node.node_id, False)
    if said is ANSWER_PENDING:
        look_ahead(predicate, ask, (), allocate=False)
    return said is None


def _fall_back(round_: Round, ask: Ask, *, reserve: bool = True) -> bool:
    """Reserve or preempt for an ask that predicates refused, if it may.

    Otherwise the ask is deferred until another try may tell something else.
    """
    kernel, partition = round_.kernel, round_.partition
    group = ask.group
    assert group is not None
    options, now = kernel.options, kernel.now
    if awaited(kernel, ask):
        partition.waiting.defer(ask)
        return False
    if reserve and partition.rm.reservations and reservation.may_reserve(ask, now, options):
        node = partition.node_index.best_to_reserve(group.shape)
        if node is not None and _may_reserve(kernel, ask, node):
            _make_reservation(kernel, ask, node)
            return True
    if preemption_queue.is_due(ask, now) and _preempt(round_, ask, nodes_tried=True):
        return True
    if ask.group is not None:
        partition.waiting.defer(ask, refusal_of(kernel, partition, (ask,)))
    return False


def _preempt(round_: Round, ask: Ask, *, nodes_tried: bool) -> bool:
    """Try to preempt for the ask. The attempts of each leaf in a round are limited (2.8)."""
    kernel, partition = round_.kernel, round_.partition
    leaf = ask.app.queue
    assert ask.group is not None
    failed = partition.failed_preemptions.by_shape
    if (leaf, ask.group.shape) in failed:  # the ask is here because predicates refused it
        return False
    if round_.count_attempt(leaf) > preemption_queue.ATTEMPTS:
        round_.leave_out(leaf, partition.shapes.preempt)
        return False
    try:
        eviction = attempt(kernel, ask, nodes_tried=nodes_tried)
    except AnswerPending:  # the ask tries again when the answer has arrived
        partition.waiting.defer(ask)
        return False
    if eviction is None:
        return False
    evict(kernel, eviction)
    node = eviction.node
    if node is not None and ask.reservations < ask.pending and node.reservation is None:
        reservation.make(kernel, ask, node, bounded=False)
    return True


# -- replacement -----------------------------------------------------------------------------------


def _serve_replacement(kernel: Kernel, partition: Partition) -> bool:
    while True:
        found = descend(partition, REPLACE)
        if found is None:
            return False
        ask = found[1].head
        if replace(kernel, ask):
            return True
