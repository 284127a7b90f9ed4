"""Preemption for guarantees: an ask whose queue is below its guarantee, and stays within it with the
ask, evicts allocations of queues that are above theirs (5.9).

An attempt is complete or does nothing: it needs a node, victims on that node, and victims elsewhere if
a queue on the ask's path would still be above its bound. The victims stay allocated until the resource
manager confirms; the node is reserved for the ask meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Final

from quadriga.core.model.failed_preemptions import FailedPreemption
from quadriga.core.model.queue import LeafQueue
from quadriga.core.preemption import preemption_queue
from quadriga.core.preemption.candidates import Eviction
from quadriga.core.preemption.former_guarantees import FormerSnapshots
from quadriga.core.preemption.known_candidates import expect_evicted, known_candidates
from quadriga.core.preemption.on_nodes import best_offer
from quadriga.core.preemption.queue_snapshot import ABOVE, AT_MAX, NO_GUARANTEE, Snapshots
from quadriga.core.preemption.shortfall import Shortfall

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.preemption.candidates import Candidate
    from quadriga.core.preemption.on_nodes import Offer
    from quadriga.core.runtime.kernel import Kernel

#: why an attempt failed, as ``explain`` says it, beside the reasons of ``queue_snapshot``
NO_CANDIDATES: Final = (
    "no queue outside is above its guarantee with something that may be preempted"
)
TOO_LITTLE: Final = "all who may be preempted hold too little for the queues above"
NO_NODE: Final = "on no node would it have room"
NOT_WITHIN: Final = "its queue would not be within its guarantee"


def attempt(kernel: Kernel, ask: Ask, *, nodes_tried: bool) -> Eviction | None:
    """What to evict for the ask, which is due. A failure is remembered.

    ``nodes_tried``: no node has room for the ask; otherwise only a quota has none, and a node may.
    """
    if kernel.measure is None:
        found = _plan(kernel, ask, nodes_tried)
    else:
        with kernel.measure("preemption"):
            found = _plan(kernel, ask, nodes_tried)
    if isinstance(found, str):
        ask.preempt_outcome = found
        _remember_failure(kernel, ask, found)
        return None
    offer, more = found
    ask.preempted = True
    ask.preempt_outcome = f"preempted, to run on node {offer.node.node_id}"
    preemption_queue.retry_later(kernel, ask)
    text = f"preempting allocations to free up resources to run ask: {ask.ask_key}"
    victims = tuple([candidate.allocation for candidate in (*offer.chosen, *more)])
    expect_evicted(ask.app.partition, victims)
    return Eviction(victims, ask, text, offer.node)


def _remember_failure(kernel: Kernel, ask: Ask, why: str) -> None:
    """Asks of the same shape in the leaf would fail as well, until something has changed."""
    group, leaf = ask.group, ask.app.queue
    assert group is not None
    assert isinstance(leaf, LeafQueue)
    if leaf.priority is not None and leaf.priority > group.priority:
        for app in leaf.apps.values():  # an ask of a higher priority may succeed
            for other in app.groups.values():
                if other.shape is group.shape and other.priority > group.priority:
                    preemption_queue.retry_later(kernel, ask)
                    return
    remember(leaf.partition, FailedPreemption(leaf, group.shape, group.priority, kernel.now, why))


def remember(partition: Partition, failed: FailedPreemption) -> None:
    """Do not repeat the attempt before a change that may make it succeed."""
    if failed.why == NO_GUARANTEE:
        partition.failed_preemptions.add(failed)
    elif failed.why in (ABOVE, AT_MAX):
        partition.failed_preemptions.add_until_returned(failed)
    else:
        partition.failed_preemptions.add_until_change(failed, partition.waiting.epoch)


def _plan(kernel: Kernel, ask: Ask, nodes_tried: bool) -> tuple[Offer, list[Candidate]] | str:
    """The node with its victims, and the victims elsewhere; or why there are none."""
    group = ask.group
    assert group is not None
    snapshots = snapshots_for(kernel, ask.app.queue)
    refused = snapshots.refusal(ask.vector)
    if refused is not None:
        return refused.why
    known = known_candidates(kernel, ask, snapshots)
    if not known.number:
        return NO_CANDIDATES
    path = snapshots.path
    with_all = Shortfall(path, ask.vector)
    for leaf, total in known.totals.items():
        with_all.evict_from(snapshots.of(leaf), total)
    if not with_all.covered:
        return TOO_LITTLE
    with closing(known.offers(ask, group.shape, snapshots, nodes_tried=nodes_tried)) as offers:
        offer = best_offer(kernel, ask, offers)
    if offer is None:
        return NO_NODE
    in_order = known.in_order(snapshots)
    more = further_victims(Shortfall(path, ask.vector), offer.chosen, in_order)
    if more is None or not (offer.chosen or more):
        return NOT_WITHIN
    return offer, more


def snapshots_for(kernel: Kernel, leaf: Queue) -> Snapshots:
    """What an attempt in this leaf compares, in the form that the options choose."""
    return Snapshots(leaf) if kernel.options.preempt_unguaranteed else FormerSnapshots(leaf)


def further_victims(
    shortfall: Shortfall, victims: Collection[Candidate], in_order: Iterable[Candidate]
) -> list[Candidate] | None:
    """The victims needed beside those on nodes, until every queue above the ask is within its bound;
    ``None`` if they do not suffice (5.9, step 6). The candidates come in the order of ``willing_first``."""
    chosen = {candidate.allocation for candidate in victims}
    for candidate in victims:
        shortfall.force(candidate)
    more: list[Candidate] = []
    amounts = shortfall.amounts
    if any(amounts):
        for candidate in in_order:
            if candidate.allocation in chosen or not shortfall.evict(candidate):
                continue
            rest = shortfall.amounts
            if rest == amounts:
                shortfall.keep(candidate)
                continue
            more.append(candidate)
            amounts = rest
            if not any(amounts):
                break
    return None if any(amounts) else more
