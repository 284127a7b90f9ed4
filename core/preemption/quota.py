"""Preemption for quotas: a managed queue that has used more than its max for some time gives back
what is above it (2.8, 2.21).

A queue gets above its max when the max is lowered, or when something enters its books that no quota
was asked for: allocations that ran before, that the resource manager placed itself, or that grew.

Queues further up go first. What is to be given back is shared out from the queue downwards, by what
each queue below uses above its guarantee, and rounded half to even; each leaf then gives back until
it has done its part. Nobody falls below what is guaranteed, so a queue may stay above its max; it is
looked at again after the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quadriga.core.events import producers
from quadriga.core.model.queue import LeafQueue
from quadriga.core.preemption.candidates import Candidate, by_kind, of_application
from quadriga.core.preemption.eviction import take

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.runtime.kernel import Kernel

__all__ = ["enforce", "excess_of", "part_of", "watch_growth", "watch_quotas"]

#: amounts by type
Amounts = dict[int, int]


def watch_quotas(kernel: Kernel, partition: Partition) -> None:
    """Quotas, delays or whether they are enforced may have changed: see who uses too much now."""
    for queue in partition.queues():  # parents first, so their timers fire first
        if not _enforced(queue) or not excess_of(queue):
            if queue.quota_timer is not None:
                queue.quota_timer.cancel()
                queue.quota_timer = None
        elif queue.quota_timer is None:
            _arm(kernel, queue, kernel.now)
        elif queue.quota_timer.when != _due(kernel, queue):  # the delay is another (2.21)
            queue.quota_timer.cancel()
            _arm(kernel, queue, queue.above_max_since)


def watch_growth(kernel: Kernel, leaf: Queue) -> None:
    """The leaf got something without a look at the quotas: those above their max now have their
    whole delay from now on, unless it runs already (2.21)."""
    for queue in reversed(leaf.lineage):  # parents first, so their timers fire first
        if queue.quota_timer is None and _enforced(queue) and excess_of(queue):
            _arm(kernel, queue, kernel.now)


def _enforced(queue: Queue) -> bool:
    """Whether it has to give back what it uses above its max."""
    return (
        queue.managed
        and queue.properties.quota_preemption_delay > 0
        and queue.partition.config.quota_preemption_enabled
    )


def _arm(kernel: Kernel, queue: Queue, since: int) -> None:
    """Its delay runs, from the instant ``since`` on."""
    queue.above_max_since = since
    left = _due(kernel, queue) - kernel.now
    queue.quota_timer = kernel.timers.start(kernel.now, left, "queue.quota", queue)


def _due(kernel: Kernel, queue: Queue) -> int:
    """When its delay is over: at once where a shorter delay would have been over already."""
    return max(kernel.now, queue.above_max_since + queue.properties.quota_preemption_delay)


class _Run:
    """One enforcement of one queue's max: what it has to give back, who could go and who goes."""

    __slots__ = ("candidates", "excess", "queue", "victims")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.excess = excess_of(queue)
        self.candidates: dict[Allocation, None] = {}
        self.victims: list[Allocation] = []

    @property
    def claimed(self) -> Amounts:
        """What the victims hold, by type."""
        sums: Amounts = {}
        for victim in self.victims:
            for place, amount in enumerate(victim.vector):
                if amount:
                    sums[place] = sums.get(place, 0) + amount
        return sums


def enforce(kernel: Kernel, queue: Queue) -> None:
    """The queue had time enough: ask back what it uses above its max."""
    queue.quota_timer = None
    if queue.partition.queue(queue.path) is not queue:
        return  # it is gone
    run = _Run(queue)
    if run.excess:
        for leaf, part in _shared_out(queue, run.excess).items():
            _give_back(kernel, run, leaf, part)
        for below in queue.walk():  # what rounding has left
            if isinstance(below, LeafQueue):
                _give_back(kernel, run, below, excess_of(queue))
        log = queue.partition.rm.events
        if log is not None and (run.candidates or not queue.leaf):
            could_go, go = len(run.candidates), len(run.victims)
            producers.quota_enforced(log, queue, run.excess, run.claimed, could_go, go)
    watch_quotas(kernel, queue.partition)


def excess_of(queue: Queue) -> Amounts:
    """What the queue uses above its own max and has not been asked for yet, by type."""
    if queue.parent is None:  # root's is what the nodes have
        return {}
    found = {}
    for place, most in queue.limits:
        over = queue.allocated[place] - queue.preempting[place] - most
        if over > 0:
            found[place] = over
    return found


def _shared_out(queue: Queue, excess: Amounts) -> dict[LeafQueue, Amounts]:
    """The part of each leaf below, or of the queue itself if it is one."""
    if isinstance(queue, LeafQueue):
        return {queue: excess} if excess else {}
    spare = {child: _spare(child) for _, child in sorted(queue.children.items())}
    parts: dict[LeafQueue, Amounts] = {}
    for child, amounts in spare.items():
        part = {}
        for place, over in excess.items():
            whole = sum(each[place] for each in spare.values())
            if whole and (mine := part_of(over, amounts[place], whole)):
                part[place] = min(mine, amounts[place])
        parts.update(_shared_out(child, part))
    return parts


def _spare(queue: Queue) -> list[int]:
    """What the queue uses above its guarantee, by type."""
    guaranteed = queue.guaranteed_by_type
    return [
        max(0, used - going - guaranteed.get(place, 0))
        for place, (used, going) in enumerate(zip(queue.allocated, queue.preempting, strict=True))
    ]


def part_of(amount: int, share: int, whole: int) -> int:
    """``amount * share / whole``, rounded half to even, exactly."""
    part, rest = divmod(amount * share, whole)
    if 2 * rest > whole or (2 * rest == whole and part % 2):
        part += 1
    return part


def _give_back(kernel: Kernel, run: _Run, leaf: LeafQueue, part: Amounts) -> None:
    """Ask back from the leaf until it has done its part, or the queue is within its max."""
    queue, left = run.queue, dict(part)
    found = sorted(_candidates(leaf), key=by_kind)
    for candidate in found:
        if _holds_any(candidate.allocation, run.excess):
            run.candidates[candidate.allocation] = None
    text = f"preempting allocations to enforce new max quota for queue : {queue.path}"
    for candidate in found:
        excess = excess_of(queue)
        left = {place: amount for place, amount in left.items() if amount > 0 and place in excess}
        if not left:
            return
        vector = candidate.allocation.vector
        if _holds_any(candidate.allocation, left) and _keeps_guarantees(leaf, vector):
            run.victims.append(candidate.allocation)
            take(kernel, [candidate.allocation], text, queue)
            for place in left:
                left[place] -= vector[place] if place < len(vector) else 0


def _holds_any(allocation: Allocation, amounts: Amounts) -> bool:
    vector = allocation.vector
    return any(place < len(vector) and vector[place] > 0 for place in amounts)


def _candidates(leaf: LeafQueue) -> Iterator[Candidate]:
    for app in leaf.apps.values():
        yield from of_application(app)


def _keeps_guarantees(leaf: LeafQueue, vector: tuple[int, ...]) -> bool:
    """Whether no queue falls below its guarantee, for any type, with so much less in use."""
    return all(
        queue.allocated[place] - queue.preempting[place] - vector[place] >= amount
        for queue in leaf.lineage
        for place, amount in queue.guaranteed_by_type.items()
        if place < len(vector) and vector[place]
    )
