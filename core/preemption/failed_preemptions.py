"""When a failed preemption is tried again (5.9).

An ask may try to preempt every 15 s. Where one ask found no victims, all asks of its leaf with the same
shape would find none either, and a retry would fail as well until something has changed. Which change
matters depends on the reason: a leaf that would be above its guarantee or its max must get resources
back; a leaf without any guarantee needs another configuration; in all other cases any change in the
partition may help.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.model.partition import Partition
    from quadriga.core.runtime.kernel import Kernel


def retry_due(partition: Partition, now: int) -> None:
    """Let the asks try again whose time has come and for whom something has changed."""
    failures = partition.failed_preemptions
    failures.note_version(partition.waiting.epoch)
    if failures.retriable and failures.next_retry <= now:
        for failed in [failed for failed in failures.retriable if failed.retry_at <= now]:
            failures.remove(failed)
        failures.next_retry = min((failed.retry_at for failed in failures.retriable), default=0)


def watch(kernel: Kernel, partition: Partition) -> None:
    """Start the timer of the next retry, so that the driver schedules at that instant."""
    failures = partition.failed_preemptions
    failures.note_version(partition.waiting.epoch)
    when = max(failures.next_retry, kernel.now) if failures.retriable else None
    if failures.timer is not None and failures.timer.when != when:
        failures.timer.cancel()
        failures.timer = None
    if when is not None and failures.timer is None:
        left = when - kernel.now
        failures.timer = kernel.timers.start(kernel.now, left, "partition.preempt", partition)
