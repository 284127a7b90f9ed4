"""What ``explain`` says about an ask and preemption: whether it was tried, why it failed, what it waits
for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.preemption.queue_snapshot import Snapshots
from quadriga.fsm.table import SECOND

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.failed_preemptions import FailedPreemption
    from quadriga.core.runtime.kernel import Kernel

__all__ = ["story_of"]


def story_of(kernel: Kernel, ask: Ask) -> tuple[bool, str, str]:
    """Whether preemption does not stand in the ask's way, the reason, and a remedy (or an empty text)."""
    if ask.preempted:
        return True, f"{ask.preempt_outcome}: waits for the confirmations", ""
    if ask.required_node:
        return _on_required_node(ask)
    if not ask.app.partition.config.preemption_enabled:
        return True, "preemption is disabled in this partition", ""
    if not ask.terms.allow_preempt_other:
        return True, "its preemption policy does not let it preempt others", ""
    queue = ask.app.queue
    path = Snapshots().path(queue)
    text = ask.app.partition.registry.text
    if not path[0].guaranteed:
        return True, f"nothing is guaranteed to {queue.path}, so it may not preempt (5.9)", ""
    if path[0].full_for(ask.vector):
        why = f"{queue.path} has no room for it under its max, so nobody outside may be preempted"
        return False, f"{why} (5.9)", f"more max for {queue.path}, or less in use there"
    over = path[0].excess(ask.vector)
    if any(over):
        why = f"{queue.path} would be {text(over)} above what is guaranteed to it, so it may not"
        return False, f"{why} preempt (5.9)", f"{text(over)} more guaranteed to {queue.path}"
    due = max(ask.created + queue.properties.preemption_delay, ask.preempt_from)
    if due > kernel.now:
        again = f"may preempt in {(due - kernel.now) / SECOND:g} s"
        return True, f"{ask.preempt_outcome}; {again}" if ask.preempt_outcome else again, ""
    failed = _failure(ask)
    if failed is not None:
        due = failed.retry_at
        again = f" in {(due - kernel.now) / SECOND:g} s" if due > kernel.now else ""
        return False, f"{failed.why}; tries again{again} if something has changed", ""
    return True, "may preempt in the next round", ""


def _failure(ask: Ask) -> FailedPreemption | None:
    """The failed attempt of an ask of the same shape in its leaf."""
    group = ask.group
    if group is None:
        return None
    return ask.app.partition.failed_preemptions.by_shape.get((ask.app.queue, group.shape))


def _on_required_node(ask: Ask) -> tuple[bool, str, str]:
    kept = [each.node.node_id for each in ask.app.reservations if each.ask is ask]
    if not kept:
        return True, f"preempts only with node {ask.required_node} reserved (2.8)", ""
    if ask.preempt_outcome:
        return False, f"has node {kept[0]} reserved; {ask.preempt_outcome}", ""
    return True, f"has node {kept[0]} reserved and may preempt there in the next round", ""
