"""Preemption on a required node: an ask that can run there and nowhere else, that has the node
reserved and does not fit, pushes out others there, whatever is guaranteed to whom (2.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.core.events import producers
from quadriga.core.model.resources import covers
from quadriga.core.preemption.candidates import Candidate, by_kind, gathers, of_application
from quadriga.core.preemption.eviction import found_nobody, take
from quadriga.core.preemption.failed_preemptions import RETRY
from quadriga.core.preemption.shortfall import add_to

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node
    from quadriga.core.model.reservation import Reservation
    from quadriga.core.runtime.kernel import Kernel

__all__ = ["preempt_on_required_node"]

NOT_ENOUGH: Final = "those of its priority or less on its node hold too little"


def preempt_on_required_node(kernel: Kernel, kept: Reservation) -> bool:
    """Push out whom the ask needs to, once. Whether somebody has to go."""
    ask, node = kept.ask, kept.node
    if ask.preempted:
        return False
    victims = _victims(ask, node)
    if not victims:
        found_nobody(kernel, ask, NOT_ENOUGH)
        if (log := node.partition.rm.events) is not None:
            producers.no_victims(log, ask)
        # the node's changes wake the reservation; that a gang there has started is none of them
        if any(gathers(allocation.ask.app) for allocation in node.allocations):
            kernel.timers.start(kernel.now, RETRY, "reservation.preempt", kept)
        return False
    ask.preempted = True
    ask.preempt_outcome = f"preempted, to run on node {node.node_id}"
    text = f"preempting allocations to free up resources to run daemon set ask: {ask.ask_key}"
    take(kernel, [candidate.allocation for candidate in victims], text, ask)
    return True


def _victims(ask: Ask, node: Node) -> list[Candidate]:
    """In order, until they hold what is asked for; none if that and what is free is not enough."""
    found = [
        candidate
        for app in dict.fromkeys(allocation.ask.app for allocation in node.allocations)
        for candidate in of_application(app)
        if candidate.allocation.node is node and _may_go_for(ask, candidate)
    ]
    victims: list[Candidate] = []
    freed = [0] * len(node.available)
    for candidate in sorted(found, key=by_kind):
        if covers(freed, ask.vector):
            break
        victims.append(candidate)
        add_to(freed, candidate.allocation.vector)
    add_to(freed, tuple(node.available))
    return victims if covers(freed, ask.vector) else []


def _may_go_for(ask: Ask, candidate: Candidate) -> bool:
    """Of no higher priority, and with something of what is asked for."""
    held = candidate.allocation.vector
    return candidate.allocation.ask.priority <= ask.priority and any(
        value and place < len(held) and held[place] for place, value in enumerate(ask.vector)
    )
