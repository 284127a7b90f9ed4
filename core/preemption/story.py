"""What can be said of an ask and preemption: whether it was tried, why not, what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.preemption.failed_preemptions import RETRY
from quadriga.core.preemption.queue_snapshot import Snapshot
from quadriga.fsm.table import SECOND

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask
    from quadriga.core.preemption.failed_preemptions import Vain
    from quadriga.core.runtime.kernel import Kernel

__all__ = ["story_of"]


def story_of(kernel: Kernel, ask: Ask) -> tuple[bool, str, str]:
    """Whether preemption may still help or is none of its business, the reason, and a remedy."""
    if ask.preempted:
        return True, f"{ask.preempt_outcome}: waits for the confirmations", ""
    if ask.required_node:
        return _on_required_node(ask)
    if not ask.app.partition.config.preemption_enabled:
        return True, "preemption is disabled in this partition", ""
    if not ask.terms.allow_preempt_other:
        return True, "its preemption policy does not let it preempt others", ""
    queue = ask.app.queue
    path = Snapshot().path(queue)
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
    known = _vain(ask)
    if known is not None:
        due = known.since + RETRY
        again = f" in {(due - kernel.now) / SECOND:g} s" if due > kernel.now else ""
        return False, f"{known.why}; tries again{again} if something has changed", ""
    return True, "may preempt in the next round", ""


def _vain(ask: Ask) -> Vain | None:
    """What is known of vain attempts of asks like it."""
    group = ask.group
    if group is None:
        return None
    return ask.app.partition.vain.known.get((ask.app.queue, group.shape))


def _on_required_node(ask: Ask) -> tuple[bool, str, str]:
    kept = [each.node.node_id for each in ask.app.reservations if each.ask is ask]
    if not kept:
        return True, f"preempts only with node {ask.required_node} reserved (2.8)", ""
    if ask.preempt_outcome:
        return False, f"has node {kept[0]} reserved; {ask.preempt_outcome}", ""
    return True, f"has node {kept[0]} reserved and may preempt there in the next round", ""
