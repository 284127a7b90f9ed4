"""Asks and gangs that predicates refused, and when they are tried again.

Predicates that know the refused nodes say what each refusal rests on (``KnownRefusals``). Such an ask is tried
again when a node that does not refuse it gains room, when a node may have stopped refusing it, and from time
to time, since a reservation or a preemption may have become possible. Other predicates do not say it, and
their asks are tried again in each call of ``schedule``.

With a budget a call looks at some of the asks, those of the highest priority first, and the next call goes
on: many refused asks of one application delay nobody else's. See D310.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from quadriga.base.times import FOREVER, SECOND
from quadriga.core.model.waiting import Refusal
from quadriga.core.resources.units import fit
from quadriga.core.runtime.remote_predicates import awaited
from quadriga.core.topology.members import predicate_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node, NodeOrder
    from quadriga.core.model.partition import Partition
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.runtime.kernel import Kernel
    from quadriga.si.predicates import KnownRefusals

#: with a budget, the work of one call, where a look at a refusal is 1. What the predicates have to look at for
#: one question has no bound here, so a call asks few.
_WORK: Final = 1_024
_QUESTION: Final = 128
_TRY: Final = 128
_TRY_GANG: Final = 512
#: without a change, an ask is tried again after a quarter of its age, but not sooner or later than this
_SOONEST: Final = SECOND
_LATEST: Final = 10 * SECOND


def refusal_of(kernel: Kernel, partition: Partition, asks: Sequence[Ask]) -> Refusal:
    """What predicates say now of these asks: of one ask, or of the first of each group of a gang."""
    now = kernel.now
    predicate = kernel.predicates.get(partition.rm.rm_id)
    known: list[KnownRefusals | None] = []
    again = now + _LATEST
    for ask in asks:
        if ask.kind.requires.locality is not None and not _starts_with_others(ask):
            predicate = predicate_of(kernel, ask)
        known.append(predicate and known_refusals(predicate, ask, partition.node_index))
        again = min(again, now + max(_SOONEST, (now - ask.created) // 4))
        if partition.rm.reservations:
            again = _earlier(again, ask.created + kernel.options.reservation_delay, now)
        if ask.preemption_queue is not None and not ask.preempted:
            due = ask.created + ask.app.queue.properties.preemption_delay
            again = _earlier(again, max(due, ask.preempt_from), now)
    return Refusal(asks, known, partition.node_index.node_ids(), again)


def _starts_with_others(ask: Ask) -> bool:
    return ask.group is not None and ask.app.gang.starts_whole(ask.group)


def _earlier(again: int, due: int, now: int) -> int:
    return due if now < due < again else again


def retry(
    kernel: Kernel, partition: Partition, *, bounded: bool
) -> tuple[list[Ask], list[Application]]:
    """The asks and gangs to be tried again now, the newest ask first.

    ``bounded``: at most what one call may cost; ``waiting.to_look_at`` has those that are left.
    """
    waiting = partition.waiting
    if not waiting.to_look_at:
        _begin(partition, kernel.now)
    asks: list[Ask] = []
    gangs: list[Application] = []
    left = _WORK
    while waiting.to_look_at and (left > 0 or not bounded):
        each = waiting.to_look_at.pop()
        gang = each in waiting.deferred_gangs
        deferred: dict[Any, Refusal | None] = (
            waiting.deferred_gangs if gang else waiting.deferred_asks
        )
        if each not in deferred:
            continue
        refusal = deferred[each]
        members: Iterable[Ask] = each.asks.values() if gang else (each,)
        if any(awaited(kernel, ask) for ask in members):
            waiting.await_change(None)
            continue
        if refusal is not None:
            questions = refusal.outdated
            if not _may_have_ended(kernel, partition, refusal):
                left -= 1 + _QUESTION * questions
                waiting.await_change(refusal)
                continue
        del deferred[each]
        left -= _TRY_GANG if gang else _TRY
        (gangs if gang else asks).append(each)
    return sorted(asks, key=_by_arrival, reverse=True), gangs


def _begin(partition: Partition, now: int) -> None:
    """Look at all of them if something has changed."""
    waiting, grown = partition.waiting, partition.node_index.grown
    if not waiting.deferred_asks and not waiting.deferred_gangs:
        grown.clear()
        waiting.grown.clear()
        return
    if now < waiting.again and not grown and not any(each.outdated for each in waiting.rest_on):
        return
    # from the end
    waiting.to_look_at = sorted(waiting.deferred_asks, key=_turn, reverse=True)
    waiting.to_look_at += reversed(waiting.deferred_gangs)
    waiting.grown = list(grown)
    grown.clear()
    waiting.rest_on.clear()
    waiting.again = FOREVER


def _may_have_ended(kernel: Kernel, partition: Partition, refusal: Refusal) -> bool:
    """Whether another try may find a node."""
    waiting, node_index = partition.waiting, partition.node_index
    if kernel.now >= refusal.again or refusal.node_ids is not node_index.node_ids():
        return True
    predicate = kernel.predicates.get(partition.rm.rm_id)
    for at, (ask, known) in enumerate(zip(refusal.asks, refusal.known, strict=True)):
        if known is None or known.revisions is None:
            return True
        if known.outdated:
            fresh = predicate and known_refusals(predicate, ask, node_index)
            if fresh is None or bool((known.numbers.astype(bool) & (fresh.numbers == 0)).any()):
                return True
            refusal.known[at] = known = fresh
        for node in waiting.grown:
            if node.open and not known.numbers[node_index.position(node)] and _has_room(node, ask):
                return True
    return False


def _has_room(node: Node, ask: Ask) -> bool:
    requires = ask.kind.requires
    if requires.required_node not in ("", node.node_id):
        return False
    if requires.shares and not fit(requires.shares, node.available):
        return False
    return all(free >= asked for free, asked in zip(node.available, requires.vector, strict=False))


def _turn(ask: Ask) -> tuple[int, int]:
    return -ask.priority, ask.seq


def _by_arrival(ask: Ask) -> int:
    return ask.seq


def known_refusals(predicate: Any, ask: Ask, node_index: NodeOrder) -> KnownRefusals | None:
    """The refused nodes, by position; ``None`` if the predicate does not know them."""
    find = getattr(predicate, "refused_nodes", None)
    found: KnownRefusals | None = find and find(ask.ask_key, node_index.node_ids())
    return found


def first_not_refused(
    predicate: Any, ask: Ask, shape: Shape, node_index: NodeOrder, known: KnownRefusals
) -> tuple[Node | None, dict[str, int]]:
    """The first node in order that has room and that the predicate accepts, as asking about each would find. Only
    the nodes that are left are asked about, so the choice costs little more than without predicates.

    Without one also the number of nodes by the reason of their refusal.
    """
    refused: dict[str, int] = {}
    for node in node_index.without(shape, known.numbers):
        reason = predicate(ask.ask_key, node.node_id, True)
        if reason is None:
            return node, {}
        refused[reason] = refused.get(reason, 0) + 1
    for number, count in enumerate(node_index.tally(shape, known.numbers)):
        if number and count:
            reason = known.reasons[number - 1]
            refused[reason] = refused.get(reason, 0) + count
    return None, refused
