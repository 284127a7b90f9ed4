"""When an ask may preempt: after its queue's delay, then every 15 s (5.9).

A group of asks that may not preempt others has no preemption queue. For a group that may, a timer tells
when the next ask becomes due.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.core.model.ask import PreemptionQueue
from quadriga.core.model.failed_preemptions import RETRY

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.runtime.kernel import Kernel

#: at most this many preemption attempts fail in one leaf and round
ATTEMPTS: Final = 10


def enter(kernel: Kernel, ask: Ask) -> None:
    """The ask waits (again): add it to its group's preemption queue if it may preempt others (5.9).

    An ask that requires a node preempts on that node only, and not through the queue (2.8).
    """
    if not ask.terms.allow_preempt_other or ask.preempted or ask.required_node:
        return
    group = ask.group
    if group is None or not ask.app.partition.config.preemption_enabled:
        return
    if group.preemption_queue is None:
        group.preemption_queue = PreemptionQueue()
    if ask.preemption_queue is group.preemption_queue:
        return  # it left the group and returned: its entry is still there
    ask.preemption_queue = group.preemption_queue
    when = max(ask.created + ask.app.queue.properties.preemption_delay, ask.preempt_from)
    group.preemption_queue.add(ask, when, kernel.now)
    refresh(kernel, group)


def is_due(ask: Ask, now: int) -> bool:
    """Whether the ask may preempt now."""
    if ask.preemption_queue is None or ask.preempted or ask.preempt_from > now:
        return False
    return ask.created + ask.app.queue.properties.preemption_delay <= now


def retry_later(kernel: Kernel, ask: Ask) -> None:
    """The ask has tried to preempt: it may again after 15 s, or never if it succeeded.

    Not needed where the failure is remembered for the whole leaf (``failed_preemptions``).
    """
    group, queue = ask.group, ask.preemption_queue
    ask.preempt_from = kernel.now + RETRY
    if group is None or queue is None:
        return
    if ask.preempted:
        ask.preemption_queue = None
    else:
        queue.add(ask, ask.preempt_from, kernel.now)
    refresh(kernel, group)


def refresh(kernel: Kernel, group: AskGroup) -> None:
    """Announce whether some ask of the group may preempt now, and set the timer for the next one."""
    queue = group.preemption_queue
    if queue is None:
        return
    preempting = queue.first_due(group, kernel.now) is not None
    when = None if preempting else queue.next_due(group)
    if queue.timer is None or queue.timer.when != when:
        queue.cancel_timer()
        if when is not None:
            left = when - kernel.now
            queue.timer = kernel.timers.start(kernel.now, left, "group.preempt", group)
    if preempting != group.preempting:
        group.preempting = preempting
        partition = group.app.partition
        partition.waiting.refresh_group(group)
        failures = partition.failed_preemptions
        if preempting and failures.by_shape:
            failed = failures.by_shape.get((group.app.queue, group.shape))
            if failed is not None and failed.priority < group.priority:
                failures.remove(failed)


def rebuild(kernel: Kernel, partition: Partition) -> None:
    """The configuration may have changed the delays, or switched preemption on or off (2.2)."""
    partition.failed_preemptions.allow_all_retries()
    for app in partition.applications.values():
        for group in list(app.groups.values()):
            if group.preemption_queue is not None:
                group.preemption_queue.cancel_timer()
                group.preemption_queue = None
                group.preempting = False
                partition.waiting.refresh_group(group)
            _enter_all(kernel, app, group)
        if app.gang.lacks and app.gang.admission == "atomic":
            app.gang.try_again()


def _enter_all(kernel: Kernel, app: Application, group: AskGroup) -> None:
    for ask in list(group.asks.values()):
        if ask.terms.allow_preempt_other:
            ask.preemption_queue = None
            enter(kernel, ask)
