"""The choice of a node and of the victims on it (5.9, steps 4 and 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from quadriga.core.preemption.shortfall import Evicted, add_to
from quadriga.core.resources.units import give
from quadriga.core.runtime.remote_predicates import AnswerPending
from quadriga.core.topology.members import MemberPredicate
from quadriga.si.predicates import ANSWER_PENDING, ANSWER_PENDING_INDEX

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node
    from quadriga.core.preemption.candidates import Candidate
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.resources.vectors import Totals
    from quadriga.core.runtime.kernel import Kernel

#: number of nodes that the resource manager is asked about before its answers are compared
_BATCH: Final = 10
#: parts of an offer's score: it has an originator, or an allocation that opted out, among its
#: victims, or the predicates refuse it
_ORIGINATOR: Final = 1 << 33
_OPTED_OUT: Final = 1 << 34
_FAILED: Final = 1 << 35
#: an offer below this score ends the search
_GOOD: Final = 1 << 32


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """The node has room without the first ``index + 1`` of ``victims``; -1: it has room already."""

    node: Node
    index: int
    victims: tuple[Candidate, ...]

    @property
    def chosen(self) -> tuple[Candidate, ...]:
        return self.victims[: self.index + 1]

    @property
    def gangs(self) -> int:
        """How many complete gangs would lose a member."""
        return len({c.allocation.ask.app for c in self.chosen if c.breaks_gang})

    @property
    def order(self) -> tuple[int, int, str]:
        return self.index, self.gangs, self.node.node_id


def lowest_index(node: Node, shape: Shape, here: list[Allocation]) -> int:
    """A lower bound of the index of the node's offer: as if every candidate were as large as the largest."""
    least = 0
    for at, value in shape.need:
        short = value - node.available[at]
        if short > 0:
            vectors = (allocation.vector for allocation in here)
            largest = max((vector[at] for vector in vectors if at < len(vector)), default=0)
            if not largest:
                return len(here)
            least = max(least, -(-short // largest) - 1)
    return least


def may_use(node: Node, ask: Ask) -> bool:
    """Whether the node takes allocations, and is not reserved for another ask."""
    kept = node.reservation
    return node.open and (kept is None or kept.ask is ask)


def offer_on(
    node: Node, shape: Shape, here: list[Candidate], available: Totals, before: Evicted
) -> Offer | None:
    """Order the candidates in two passes. The first moves candidates to the end that hold nothing of
    what the node lacks; the second keeps, in this order, those that their queues can spare.

    ``available`` is what the node has free, and ``before`` what is evicted from the queues already.
    """
    here = sorted(here, key=lambda candidate: candidate.willing_first)
    free, evicted = list(available), Evicted(before)
    head: list[Candidate] = []
    tail: list[Candidate] = []
    for candidate in here:
        if not evicted.add(candidate):
            continue
        vector = candidate.allocation.vector
        if any(
            free[at] < value and at < len(vector) and vector[at] for at, value in shape.need
        ) or (shape.shares and candidate.allocation.units and not shape.fits(free)):
            add_to(free, vector)
            give(free, candidate.allocation.units)
            head.append(candidate)
        else:
            evicted.remove(candidate)
            tail.append(candidate)
    free, evicted = list(available), Evicted(before)
    victims: list[Candidate] = []
    index = -1
    for candidate in head + tail:
        if evicted.add(candidate):
            add_to(free, candidate.allocation.vector)
            give(free, candidate.allocation.units)
            victims.append(candidate)
            if index < 0 and shape.fits(free):
                index = len(victims) - 1
    if shape.shares and index > 0:
        return _spare(node, shape, victims, index, list(available))
    return Offer(node, index, tuple(victims)) if index >= 0 else None


def _spare(node: Node, shape: Shape, victims: list[Candidate], index: int, free: Totals) -> Offer:
    """The offer without victims on units that the shape does not get, which come last instead."""
    chosen, spared = victims[: index + 1], []
    for each in chosen:
        add_to(free, each.allocation.vector)
        give(free, each.allocation.units)
    for each in list(chosen):
        add_to(free, each.allocation.vector, -1)
        give(free, each.allocation.units, -1)
        if shape.fits(free):
            chosen.remove(each)
            spared.append(each)
        else:
            add_to(free, each.allocation.vector)
            give(free, each.allocation.units)
    return Offer(node, len(chosen) - 1, (*chosen, *victims[index + 1 :], *spared))


# -- the choice ------------------------------------------------------------------------------------


def best_offer(kernel: Kernel, ask: Ask, offers: Iterator[Offer]) -> Offer | None:
    """The offer with the fewest victims, then the fewest gangs broken, then the first node id: the first of
    ``offers``.

    A resource manager with predicates is asked, ten nodes at a time, whether the pod fits the node
    without some of the victims, and without how many (I37). One that has predicates but no preemption
    predicates is not asked: the shortest list of victims is used (X24).
    """
    rm_id = ask.app.partition.rm.rm_id
    if rm_id not in kernel.predicates and rm_id not in kernel.preemption_predicates:
        return next(offers, None)
    best: Offer | None = None
    lowest = (_FAILED, 0)
    while batch := list(islice(offers, _BATCH)):
        answers = [answer(kernel, rm_id, ask, each) for each in batch]
        if ANSWER_PENDING in answers:  # every question of the batch is on its way now
            raise AnswerPending
        for said in answers:
            if isinstance(said, Offer) and (_score(said), said.gangs) < lowest:
                best, lowest = said, (_score(said), said.gangs)
        if lowest[0] < _GOOD:
            break
    return best


def answer(kernel: Kernel, rm_id: str, ask: Ask, offer: Offer) -> Offer | str | None:
    """The offer as the resource manager changes it; ``None`` if the pod would not fit, `ANSWER_PENDING`
    while its answer is missing."""
    if ask.kind.requires.locality is not None:
        if MemberPredicate(ask, None)(ask.ask_key, offer.node.node_id, True) is not None:
            return None
    if not offer.victims:
        predicate = kernel.predicates.get(rm_id)
        said = predicate and predicate(ask.ask_key, offer.node.node_id, True)
        return offer if said is None else said if said is ANSWER_PENDING else None
    asked = kernel.preemption_predicates.get(rm_id)
    if asked is None:
        return offer
    keys = [candidate.allocation.ask.ask_key for candidate in offer.victims]
    index = asked(ask.ask_key, offer.node.node_id, keys, offer.index)
    if index == ANSWER_PENDING_INDEX:
        return ANSWER_PENDING
    if index is None or not 0 <= index < len(offer.victims):
        return None
    return Offer(offer.node, index, offer.victims)


def _score(offer: Offer) -> int:
    """Lower is better: the number of victims, plus a penalty for an originator and for an allocation
    that has opted out."""
    score = 0
    for candidate in offer.chosen:
        ask = candidate.allocation.ask
        score |= _ORIGINATOR if ask.terms.originator else 0
        score |= 0 if ask.terms.allow_preempt_self else _OPTED_OUT
    return score + len(offer.chosen)
