"""The handlers of timers: one function for each, and a table at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from quadriga.base.pacing import doubled
from quadriga.core.gangs import admission as gang_admission
from quadriga.core.model.allocation import Allocation, Reservation
from quadriga.core.model.partition import Partition
from quadriga.core.model.timer import Timer
from quadriga.core.preemption import preemption_queue, quota
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.scheduling import scale_up, skipped
from quadriga.core.steps import backoff, gang, queue_tree, reservation
from quadriga.core.steps.releasing import evict, release
from quadriga.fsm import APPLICATION, LIFECYCLES
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm

if TYPE_CHECKING:
    from quadriga.core.events import EventLog
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.queue import Queue


def timer_fired(kernel: Kernel, timer: Timer) -> None:
    """Handle a timer that fired. Timers of a dropped partition are ignored."""
    partition = _partition_of(timer.entity)
    if partition is not None and partition.dropped:
        return
    if timer.entries >= 0:
        _state_timed_out(kernel, timer)
    else:
        _NAMED[timer.name](kernel, timer.entity)
    kernel.settle()


def _partition_of(entity: Any) -> Partition | None:
    if isinstance(entity, Partition):
        return entity
    if isinstance(entity, Allocation):
        entity = entity.ask
    app = getattr(entity, "app", entity)
    found: Partition | None = getattr(app, "partition", None)
    return found


def _state_timed_out(kernel: Kernel, timer: Timer) -> None:
    """Handle an entity that has been in its state for as long as the table allows."""
    entity: Any = timer.entity
    name, _, state = timer.name.partition(".")
    lifecycle = LIFECYCLES[name]
    limit = lifecycle.timed[state]
    if limit.then is None:  # nothing to fire: the watchdog reports it
        _report(kernel, name, entity, state)
        return
    kernel.fire(lifecycle, entity, limit.then, timer=True)
    if entity.entries == timer.entries and limit.backoff_to is not None:
        later = doubled(timer.delay, limit.backoff_to)
        _report(kernel, name, entity, state)
        kernel.timers.start(kernel.now, later, timer.name, entity, timer.entries)


def _report(kernel: Kernel, name: str, entity: Any, state: str) -> None:
    """Report to the watchdog that the entity outstayed its state."""
    kernel.overdue.append((kernel.now, f"{name}/{entity.key}", state))
    kernel.tally.watchdog[name, state] += 1


def _application_run_limit(kernel: Kernel, app: Application) -> None:
    """X17: kill an application that has reached its time limit."""
    if APPLICATION.allows(app.state, application_fsm.KILL):
        kernel.fire(APPLICATION, app, application_fsm.KILL, reason="ApplicationExecutionTimeout")


def _placeholder_timeout(kernel: Kernel, app: Application) -> None:
    gang.placeholders_timed_out(kernel, app)


def _gang_wait(kernel: Kernel, app: Application) -> None:
    gang.wait_timed_out(kernel, app)


def _gang_idle(kernel: Kernel, app: Application) -> None:
    gang.idle_timed_out(kernel, app)


def _gang_preempt(kernel: Kernel, app: Application) -> None:
    gang_admission.retry(app)


def _allocation_run_limit(kernel: Kernel, allocation: Allocation) -> None:
    """X17: release an allocation that has reached the time limit of its ask."""
    release(kernel, allocation, allocation_fsm.TIMEOUT, "allocation execution timeout")


def _group_reserve(kernel: Kernel, group: AskGroup) -> None:
    group.reserve_timer = None
    reservation.start_reserve_timer(kernel, group)


def _group_preempt(kernel: Kernel, group: AskGroup) -> None:
    if group.preemption_queue is not None:
        group.preemption_queue.timer = None
        preemption_queue.refresh(kernel, group)


def _reservation_preempt(kernel: Kernel, kept: Reservation) -> None:
    partition = kept.ask.app.partition
    if kept in partition.reservations:
        partition.waiting.retries.add(kept)


def _partition_preempt(kernel: Kernel, partition: Partition) -> None:
    partition.failed_preemptions.timer = None  # the next round retries


def _queue_quota(kernel: Kernel, queue: Queue) -> None:
    """Preempt in a queue whose delay above its max has passed."""
    for eviction in quota.enforce(kernel, queue):
        evict(kernel, eviction)


def _partition_inspect(kernel: Kernel, partition: Partition) -> None:
    if partition.waiting.undecided:
        # Many asks may not have been tried yet. The round that finds nothing more starts the timer again.
        partition.hints.timer = None
    else:
        scale_up.start_inspection(kernel, partition)
        if not kernel.hints_in_slices:
            scale_up.continue_inspection(partition)


def _planned_start(kernel: Kernel, partition: Partition) -> None:
    """The next round plans again, or tries the gang."""


def _partition_skipped(kernel: Kernel, partition: Partition) -> None:
    skipped.report(kernel, partition)


def _events_push(kernel: Kernel, log: EventLog) -> None:
    log.push()


# fmt: off
_NAMED: dict[str, Callable[[Kernel, Any], None]] = {
    "application.run_limit":   _application_run_limit,
    "application.placeholder": _placeholder_timeout,
    "application.gang_wait":   _gang_wait,
    "application.gang_idle":   _gang_idle,
    "application.gather":      gang_admission.gather_due,
    "application.gang_preempt": _gang_preempt,
    "application.short_of_members": gang_admission.short_for_long,
    "gang.patience":           gang_admission.gave_up,
    "allocation.run_limit":    _allocation_run_limit,
    "application.backoff":     backoff.end,
    "group.reserve":           _group_reserve,
    "group.preempt":           _group_preempt,
    "reservation.preempt":     _reservation_preempt,
    "queue.quota":             _queue_quota,
    "events.push":             _events_push,
    "partition.inspect":       _partition_inspect,
    "partition.skipped":       _partition_skipped,
    "partition.preempt":       _partition_preempt,
    "partition.clean":         queue_tree.clean,
    "partition.give_up":       reservation.expire,
    "partition.gather_budget": gang_admission.budget_regained,
    "partition.planned_start": _planned_start,
    "partition.barred":        reservation.lift_bars,
}
# fmt: on
