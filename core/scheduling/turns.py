"""One call of ``Scheduler.schedule``: resource managers take turns, each with its own partitions.

A resource manager does not wait for the others: without a budget each has all its rounds at once. With a
budget of decisions they take turns, and the next call continues where the last one ended. See D56.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from quadriga.core.gangs import admission as gang_admission
from quadriga.core.gangs import replacement
from quadriga.core.ordering import by_run_time
from quadriga.core.preemption import failed_preemptions
from quadriga.core.scheduling import scale_up, skipped
from quadriga.core.scheduling.batch import decide_all
from quadriga.core.scheduling.cycle import decide
from quadriga.core.steps import quota_plans, refused, reservation
from quadriga.fsm import RESOURCE_MANAGER
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm

if TYPE_CHECKING:
    from quadriga.core.model.partition import Partition
    from quadriga.core.runtime.kernel import Kernel

#: with a budget, a turn has at least this number of decisions, if the budget has
_TURN: Final = 64


class Turns:
    """Remembers which resource manager is next, from one call to the next one."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        #: the rmID of the first turn
        self._next = ""

    def schedule(
        self, kernel: Kernel, partitions: list[Partition], limit: int | None, budget: int | None
    ) -> bool:
        """Make decisions in these partitions. Return True if more decisions are left.

        ``limit`` bounds the number of rounds, ``budget`` the number of decisions (``None``: no bound).
        """
        most = 0
        whole = budget or 0
        unfinished = False
        served = [partition for partition in partitions if _is_served(partition)]
        owners = self._in_turn(served)
        turn = max(_TURN, (budget or 0) // max(1, len(owners)))
        for own in owners:
            allowed = -1 if limit is None else limit
            if budget is not None:
                if budget <= 0:
                    self._next = own[0].rm.rm_id
                    unfinished = True
                    break
                rounds = max(1, min(turn, budget) // len(own))
                allowed = rounds if limit is None else min(limit, rounds)
            try:
                rounds, more = _serve(kernel, own, allowed, bounded=budget is not None)
            except Exception:
                # A bug, or a predicate raised: the others come first in the next call.
                self._next = _after(owners, own)
                raise
            if budget is not None:
                budget -= rounds * len(own)
            most = max(most, rounds)
            unfinished = unfinished or bool(more)
        kernel.tally.rounds += most
        if kernel.hints_in_slices:
            # with what the decisions have left of the budget, and at least a quarter of it
            steps = None if budget is None else max(budget, whole // 4)
            unfinished = _continue_inspections(partitions, steps) or unfinished
        _start_timers(kernel, partitions, served)
        return unfinished

    def _in_turn(self, served: list[Partition]) -> list[list[Partition]]:
        """Return the partitions to be served, by resource manager, in the order of their turns."""
        if len(served) < 2:
            return [served] if served else []
        owners = [list(own) for _, own in groupby(served, key=lambda partition: partition.rm.rm_id)]
        first = sum(own[0].rm.rm_id < self._next for own in owners)
        return owners[first:] + owners[:first]


def _is_served(partition: Partition) -> bool:
    """Whether the partition's resource manager is connected; otherwise nothing is scheduled (2.10)."""
    return RESOURCE_MANAGER.allows(partition.rm.state, resource_manager_fsm.DISCONNECT)


def _after(owners: list[list[Partition]], own: list[Partition]) -> str:
    """Return the ID of the resource manager after this one."""
    following = owners[(owners.index(own) + 1) % len(owners)]
    return following[0].rm.rm_id


def _serve(
    kernel: Kernel, partitions: list[Partition], most: int, *, bounded: bool
) -> tuple[int, list[Partition]]:
    """Make at most ``most`` rounds (negative: no bound) in the partitions of one resource manager.

    Return the number of rounds, and the partitions with more to decide.
    """
    for partition in partitions:
        partition.node_index.now = kernel.now
        partition.failed_preemptions.candidates = None
        partition.renew_shares()
        if partition.waiting.to_score:
            by_run_time.renew(partition.waiting, kernel.now)
        _retry_deferred(kernel, partition, bounded=bounded)
        if partition.waiting.short_quotas or partition.waiting.quota_plans:
            quota_plans.renew(kernel, partition)
        if partition.waiting.gangs:
            gang_admission.replan(kernel, partition)
    going, left = partitions, most
    while len(going) > 1 and left:
        going = [partition for partition in going if decide(kernel, partition)]
        left -= 1
    if going and left:
        rounds, more = decide_all(kernel, going[0], left)
        left -= rounds
        going = going if more else []
    for partition in partitions:
        partition.failed_preemptions.candidates = None
        partition.waiting.undecided = partition in going
        if not partition.waiting.undecided and partition.nodes:
            partition.rm.observer.round_ended(partition)
    return most - left, [each for each in partitions if each in going or each.waiting.to_look_at]


def _retry_deferred(kernel: Kernel, partition: Partition, *, bounded: bool) -> None:
    """Try again what was deferred before: asks, gangs and reservations that predicates refused, and gang
    members that lacked room."""
    waiting = partition.waiting
    if waiting.stranded:
        replacement.place_stranded(kernel, partition)
    if waiting.too_large_to_replace:
        replacement.retry_too_large(partition)
    if waiting.deferred_reservations:
        waiting.retries.update(waiting.deferred_reservations)
        waiting.deferred_reservations.clear()
    asks, gangs = refused.retry(kernel, partition, bounded=bounded)
    for app in gangs:
        gang_admission.retry(app)
    for ask in asks:  # the newest first: most of them become the head of their group at once
        reservation.enqueue(kernel, ask)


def _continue_inspections(partitions: list[Partition], steps: int | None) -> bool:
    """Inspect the next asks that may lack nodes; return True if more are left.

    ``steps`` bounds their number in all partitions together (``None``: no bound).
    """
    looking = [each for each in partitions if each.hints.inspection is not None]
    for partition in looking:
        most = -1 if steps is None else max(1, steps // len(looking))
        scale_up.continue_inspection(partition, most)
    return any(partition.hints.inspection is not None for partition in looking)


def _start_timers(kernel: Kernel, partitions: list[Partition], served: list[Partition]) -> None:
    """Start the timers of later inspections and retries."""
    for partition in partitions:
        if partition.hints.asks and partition in served:
            scale_up.watch(kernel, partition)
        if partition.rm.all_states and partition in served:
            skipped.watch(kernel, partition)
        if partition.failed_preemptions.by_shape and partition in served:
            failed_preemptions.watch(kernel, partition)
