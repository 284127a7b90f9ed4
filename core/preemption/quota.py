"""Preemption for a lowered quota: a queue that has used more than its new max for some time gives
back what is above it (2.8, +1.8).

Queues further up go first. What is to be given back is shared out from the queue downwards, by what
each queue below uses above its guarantee, and rounded half to even; each leaf then gives back until
it has done its part. Nobody falls below what is guaranteed, so a queue may stay above its max; it is
looked at again after the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quadriga.core.model.queue import LeafQueue
from quadriga.core.preemption.candidates import Candidate, by_kind, of_application
from quadriga.core.preemption.taking import take

if TYPE_CHECKING:
    from quadriga.core.kernel import Kernel
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue

__all__ = ["enforce", "excess_of", "part_of", "watch_quotas"]

#: amounts by type
Amounts = dict[int, int]


def watch_quotas(kernel: Kernel, partition: Partition) -> None:
    """Quotas, delays or whether they are enforced may have changed: see who uses too much now."""
    for queue in partition.queues():  # parents first, so their timers fire first
        delay = queue.properties.quota_preemption_delay
        wanted = partition.config.quota_preemption_enabled and queue.managed and delay > 0
        if not wanted or not excess_of(queue):
            if queue.quota_timer is not None:
                queue.quota_timer.cancel()
                queue.quota_timer = None
        elif queue.quota_timer is None:
            queue.quota_timer = kernel.timers.start(kernel.now, delay, "queue.quota", queue)


def enforce(kernel: Kernel, queue: Queue) -> None:
    """The queue had time enough: ask back what it uses above its max."""
    queue.quota_timer = None
    if queue.partition.queue(queue.path) is not queue:
        return  # it is gone
    parts = _shared_out(queue, excess_of(queue))
    for leaf, part in parts.items():
        _give_back(kernel, queue, leaf, part)
    for below in queue.walk():  # what rounding has left
        if isinstance(below, LeafQueue):
            _give_back(kernel, queue, below, excess_of(queue))
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


def _give_back(kernel: Kernel, queue: Queue, leaf: LeafQueue, part: Amounts) -> None:
    """Ask back from the leaf until it has done its part, or the queue is within its max."""
    left = dict(part)
    text = f"preempting allocations to enforce new max quota for queue : {queue.path}"
    for candidate in sorted(_candidates(leaf), key=by_kind):
        excess = excess_of(queue)
        left = {place: amount for place, amount in left.items() if amount > 0 and place in excess}
        if not left:
            return
        vector = candidate.allocation.vector
        if not any(place < len(vector) and vector[place] for place in left):
            continue
        if _keeps_guarantees(leaf, vector):
            take(kernel, [candidate.allocation], text, queue)
            for place in left:
                left[place] -= vector[place] if place < len(vector) else 0


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
