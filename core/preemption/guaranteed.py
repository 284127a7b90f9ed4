"""Preemption for what is guaranteed: an ask whose queue is below its guarantee, and would not be
above it with the ask, takes from queues that are above theirs (5.9).

Either everything is found (a node, victims there, and others if a queue on the path would still be
above its bound), or nothing happens. What is taken stays allocated until the resource manager
confirms; the node is reserved for the ask meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.core.model.queue import LeafQueue
from quadriga.core.preemption import preemption_queue
from quadriga.core.preemption.candidates import candidates_for
from quadriga.core.preemption.eviction import found_nobody, take
from quadriga.core.preemption.failed_preemptions import Vain
from quadriga.core.preemption.on_nodes import Search, best_offer
from quadriga.core.preemption.queue_snapshot import Snapshot
from quadriga.core.preemption.shortfall import Relief
from quadriga.core.scheduling import reservation

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask
    from quadriga.core.preemption.candidates import Candidate
    from quadriga.core.preemption.on_nodes import Offer
    from quadriga.core.runtime.kernel import Kernel

__all__ = ["attempt"]

NO_GUARANTEE: Final = "nothing is guaranteed to its queue or any above"
ABOVE: Final = "its queue would be above its guarantee"
AT_MAX: Final = "its queue would be above its max"
NOBODY: Final = "nobody outside its queue is above the guarantee and may be preempted"
TOO_LITTLE: Final = "all who may be preempted hold too little for the queues above"
NO_NODE: Final = "on no node would it have room"
NOT_WITHIN: Final = "its queue would not be within its guarantee"


def attempt(kernel: Kernel, ask: Ask, *, nodes_tried: bool) -> bool:
    """Try to make room for the ask whose turn it is. Whether somebody has to go for it.

    ``nodes_tried``: no node has room for it; otherwise only a quota has none, and a node may.
    """
    if kernel.measure is None:
        found = _plan(kernel, ask, nodes_tried)
    else:
        with kernel.measure("preemption"):
            found = _plan(kernel, ask, nodes_tried)
    if isinstance(found, str):
        found_nobody(kernel, ask, found)
        _remember(kernel, ask, found)
        return False
    offer, more = found
    ask.preempted = True
    ask.preempt_outcome = f"preempted, to run on node {offer.node.node_id}"
    preemption_queue.tried(kernel, ask)
    text = f"preempting allocations to free up resources to run ask: {ask.ask_key}"
    take(kernel, [c.allocation for c in (*offer.chosen, *more)], text, ask)
    if ask.reservations < ask.pending and offer.node.reservation is None:
        reservation.make(kernel, ask, offer.node)
    return True


def _remember(kernel: Kernel, ask: Ask, why: str) -> None:
    """Alike asks of its leaf would not find anybody either, until something changes for them."""
    group, leaf, partition = ask.group, ask.app.queue, ask.app.partition
    assert group is not None
    assert isinstance(leaf, LeafQueue)
    if leaf.priority is not None and leaf.priority > group.priority:
        for app in leaf.apps.values():  # somebody more urgent may fare better
            for other in app.groups.values():
                if other.shape is group.shape and other.priority > group.priority:
                    preemption_queue.tried(kernel, ask)
                    return
    vain = Vain(leaf, group.shape, group.priority, kernel.now, why)
    if why == NO_GUARANTEE:
        partition.vain.until_configured(vain)
    elif why in (ABOVE, AT_MAX):
        partition.vain.until_returned(vain)
    else:
        partition.vain.until_any_change(vain, partition.version)


def _plan(kernel: Kernel, ask: Ask, nodes_tried: bool) -> tuple[Offer, list[Candidate]] | str:
    """The node with its victims, and the victims elsewhere; or why there are none."""
    group = ask.group
    assert group is not None
    snapshot = Snapshot()
    path = snapshot.path(ask.app.queue)
    if not path[0].guaranteed:
        return NO_GUARANTEE
    # its queue's own, which no victim can change
    if path[0].full_for(ask.vector):
        return AT_MAX
    if any(path[0].excess(ask.vector)):
        return ABOVE
    found = candidates_for(ask, snapshot)
    if not found:
        return NOBODY
    everybody = Relief(path, ask.vector)
    everybody.take_all(found)
    if not everybody.enough:
        return TOO_LITTLE
    offer = best_offer(kernel, ask, Search(ask, group.shape, found, nodes_tried=nodes_tried))
    if offer is None:
        return NO_NODE
    more = _more(Relief(path, ask.vector), offer, found)
    if more is None or not (offer.chosen or more):
        return NOT_WITHIN
    return offer, more


def _more(relief: Relief, offer: Offer, found: list[Candidate]) -> list[Candidate] | None:
    """The victims needed beside those on the node, until every queue above the ask is within its
    bound; ``None`` if they do not suffice (5.9, step 6)."""
    chosen = set(offer.chosen)
    for candidate in offer.chosen:
        relief.take(candidate)
    more: list[Candidate] = []
    shortfall = relief.shortfall
    if any(shortfall):
        for candidate in sorted(found, key=lambda each: each.willing_first):
            if candidate in chosen or not relief.keeps_guarantee(candidate):
                continue
            relief.take(candidate)
            rest = relief.shortfall
            if rest == shortfall:
                relief.take(candidate, -1)
                continue
            more.append(candidate)
            shortfall = rest
            if not any(shortfall):
                break
    return None if any(shortfall) else more
