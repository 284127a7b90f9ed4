"""Preemption on a required node: an ask that can run on one node only, has that node reserved and does
not fit there, evicts allocations from it, whatever is guaranteed to their queues (2.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.core.model.failed_preemptions import RETRY
from quadriga.core.preemption.candidates import (
    Candidate,
    Eviction,
    by_kind,
    gathers,
    of_application,
)
from quadriga.core.preemption.shortfall import add_to
from quadriga.core.resources.units import fit, give
from quadriga.core.resources.vectors import Totals, covers

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Reservation
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node
    from quadriga.core.runtime.kernel import Kernel

NOT_ENOUGH: Final = "those of its priority or less on its node hold too little"


def preempt_on_required_node(kernel: Kernel, reservation: Reservation) -> Eviction | None:
    """What to evict for the ask from the node that it has reserved. Succeeds once for each ask."""
    ask, node = reservation.ask, reservation.node
    if ask.preempted:
        return None
    victims = _victims(ask, node)
    if not victims:
        ask.preempt_outcome = NOT_ENOUGH
        node.partition.rm.observer.no_victims(ask)
        # A change of the node retries the reservation; the start of a gang there is no such change.
        if any(gathers(allocation.ask.app) for allocation in node.allocations):
            kernel.timers.start(kernel.now, RETRY, "reservation.preempt", reservation)
        return None
    ask.preempted = True
    ask.preempt_outcome = f"preempted, to run on node {node.node_id}"
    text = f"preempting allocations to free up resources to run daemon set ask: {ask.ask_key}"
    return Eviction(tuple([candidate.allocation for candidate in victims]), ask, text)


def _victims(ask: Ask, node: Node) -> list[Candidate]:
    """Candidates in order until they hold what is asked for; none if the ask would still not fit."""
    found = [
        candidate
        for app in dict.fromkeys(allocation.ask.app for allocation in node.allocations)
        for candidate in of_application(app)
        if candidate.allocation.node is node and may_evict_for(ask, candidate)
    ]
    victims: list[Candidate] = []
    freed = [0] * len(node.available)
    for candidate in sorted(found, key=by_kind):
        if _covers(freed, ask):
            break
        victims.append(candidate)
        add_to(freed, candidate.allocation.vector)
        give(freed, candidate.allocation.units)
    add_to(freed, tuple(node.available))
    return victims if _covers(freed, ask) else []


def _covers(free: Totals, ask: Ask) -> bool:
    shares = ask.kind.requires.shares
    return covers(free, ask.vector) and (not shares or fit(shares, free))


def may_evict_for(ask: Ask, candidate: Candidate) -> bool:
    """Whether the candidate has no higher priority and holds some of what is asked for."""
    held = candidate.allocation.vector
    return candidate.allocation.ask.priority <= ask.priority and any(
        value and index < len(held) and held[index] for index, value in enumerate(ask.vector)
    )
