"""Preemption for quotas: a managed queue that has been above its max for some time is brought back to
it (2.8, 2.21).

A queue gets above its max when the max is lowered, or through allocations that no quota was checked
for: recovered ones, ones that the resource manager placed itself, and ones that grew.

Parents are enforced before their children. The excess is divided among the queues below in proportion
to what each uses above its guarantee, rounded half to even; then each leaf evicts until it has freed
its part. No queue falls below its guarantee, so a queue may stay above its max; it is checked again
after the same delay.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quadriga.core.model.queue import LeafQueue
from quadriga.core.preemption.candidates import (
    Candidate,
    Eviction,
    by_kind,
    holds_any,
    of_application,
)

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.runtime.kernel import Kernel

#: amounts by type
Amounts = dict[int, int]


def watch_quotas(kernel: Kernel, partition: Partition) -> None:
    """Start or stop the delays of queues after a change of quotas, delays or their enforcement."""
    for queue in partition.queues():  # parents first, so their timers fire first
        if not _enforced(queue) or not excess_of(queue):
            if queue.quota_timer is not None:
                queue.quota_timer.cancel()
                queue.quota_timer = None
        elif queue.quota_timer is None:
            _arm(kernel, queue, kernel.now)
        elif queue.quota_timer.when != _due(kernel, queue):  # the delay has changed (2.21)
            queue.quota_timer.cancel()
            _arm(kernel, queue, queue.above_max_since)


def watch_growth(kernel: Kernel, leaf: Queue) -> None:
    """The leaf got resources without a check of quotas: start the delay of the queues on its path that
    are above their max, unless it runs already (2.21)."""
    for queue in reversed(leaf.lineage):  # parents first, so their timers fire first
        if queue.quota_timer is None and _enforced(queue) and excess_of(queue):
            _arm(kernel, queue, kernel.now)


def _enforced(queue: Queue) -> bool:
    """Whether the queue's max is enforced by preemption."""
    return (
        queue.managed
        and queue.properties.quota_preemption_delay > 0
        and queue.partition.config.quota_preemption_enabled
    )


def _arm(kernel: Kernel, queue: Queue, since: int) -> None:
    """Start the queue's delay, counted from the instant ``since`` (ns)."""
    queue.above_max_since = since
    left = _due(kernel, queue) - kernel.now
    queue.quota_timer = kernel.timers.start(kernel.now, left, "queue.quota", queue)


def _due(kernel: Kernel, queue: Queue) -> int:
    """The end of the queue's delay (ns), now if that has passed already."""
    return max(kernel.now, queue.above_max_since + queue.properties.quota_preemption_delay)


class _Run:
    """One enforcement of one queue's max: its excess, the candidates and the victims."""

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
            for index, amount in enumerate(victim.vector):
                if amount:
                    sums[index] = sums.get(index, 0) + amount
        return sums


def enforce(kernel: Kernel, queue: Queue) -> Iterator[Eviction]:
    """The queue's delay is over: bring it back to its max.

    The caller carries out each eviction before it asks for the next one, which depends on what the
    queue still uses.
    """
    queue.quota_timer = None
    if queue.partition.queue(queue.path) is not queue:
        return  # it was removed
    run = _Run(queue)
    if run.excess:
        for leaf, part in _shared_out(queue, run.excess).items():
            yield from _evict_from(run, leaf, part)
        for below in queue.walk():  # the rest left by rounding
            if isinstance(below, LeafQueue):
                yield from _evict_from(run, below, excess_of(queue))
        if run.candidates or not queue.leaf:
            candidates, victims = len(run.candidates), len(run.victims)
            queue.partition.rm.observer.quota_enforced(
                queue, run.excess, run.claimed, candidates, victims
            )
    watch_quotas(kernel, queue.partition)


def excess_of(queue: Queue) -> Amounts:
    """What the queue uses above its own max, without what is being preempted already, by type."""
    if queue.parent is None:  # root's max is the sum of the nodes
        return {}
    found = {}
    for index, most in queue.limits:
        over = queue.allocated[index] - queue.preempting[index] - most
        if over > 0:
            found[index] = over
    return found


def _shared_out(queue: Queue, excess: Amounts) -> dict[LeafQueue, Amounts]:
    """Divide the excess among the leaves below the queue, or return all of it for a leaf."""
    if isinstance(queue, LeafQueue):
        return {queue: excess} if excess else {}
    spare = {child: _spare(child) for _, child in sorted(queue.children.items())}
    parts: dict[LeafQueue, Amounts] = {}
    for child, amounts in spare.items():
        part = {}
        for index, over in excess.items():
            whole = sum(each[index] for each in spare.values())
            if whole and (mine := part_of(over, amounts[index], whole)):
                part[index] = min(mine, amounts[index])
        parts.update(_shared_out(child, part))
    return parts


def _spare(queue: Queue) -> list[int]:
    """What the queue uses above its guarantee, by type."""
    guaranteed = queue.guaranteed_by_type
    return [
        max(0, used - going - guaranteed.get(index, 0))
        for index, (used, going) in enumerate(zip(queue.allocated, queue.preempting, strict=True))
    ]


def part_of(amount: int, share: int, whole: int) -> int:
    """``amount * share / whole``, rounded half to even, exactly."""
    part, rest = divmod(amount * share, whole)
    if 2 * rest > whole or (2 * rest == whole and part % 2):
        part += 1
    return part


def _evict_from(run: _Run, leaf: LeafQueue, part: Amounts) -> Iterator[Eviction]:
    """Evict from the leaf until it has freed its part or the queue is within its max."""
    queue, left = run.queue, dict(part)
    found = sorted(_candidates(leaf), key=by_kind)
    for candidate in found:
        if holds_any(candidate.allocation.vector, run.excess):
            run.candidates[candidate.allocation] = None
    text = f"preempting allocations to enforce new max quota for queue : {queue.path}"
    for candidate in found:
        excess = excess_of(queue)
        left = {index: amount for index, amount in left.items() if amount > 0 and index in excess}
        if not left:
            return
        vector = candidate.allocation.vector
        if holds_any(candidate.allocation.vector, left) and _keeps_guarantees(leaf, vector):
            run.victims.append(candidate.allocation)
            yield Eviction((candidate.allocation,), queue, text)
            for index in left:
                left[index] -= vector[index] if index < len(vector) else 0


def _candidates(leaf: LeafQueue) -> Iterator[Candidate]:
    for app in leaf.apps.values():
        yield from of_application(app)


def _keeps_guarantees(leaf: LeafQueue, vector: tuple[int, ...]) -> bool:
    """Whether no queue on the leaf's path falls below its guarantee without this vector."""
    return all(
        queue.allocated[index] - queue.preempting[index] - vector[index] >= amount
        for queue in leaf.lineage
        for index, amount in queue.guaranteed_by_type.items()
        if index < len(vector) and vector[index]
    )
