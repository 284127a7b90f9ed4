"""What ``explain`` says about an ask and preemption: whether it was tried, why it failed, what it waits
for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.base.times import SECOND
from quadriga.core.model.gang import ASKS, LIMIT, PREDICATES
from quadriga.core.preemption import for_gang
from quadriga.core.preemption.guaranteed import snapshots_for
from quadriga.core.preemption.queue_snapshot import ABOVE, AT_MAX, NO_GUARANTEE, PROMISED, Refusal

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.failed_preemptions import FailedPreemption
    from quadriga.core.runtime.kernel import Kernel


def story_of(kernel: Kernel, ask: Ask) -> tuple[bool, str]:
    """Whether preemption does not stand in the ask's way, and the reason."""
    if awaits_victims(ask):
        return True, f"{ask.preempt_outcome}: waits for the confirmations"
    if waits_with_its_gang(ask):
        return _of_gang(kernel, ask.app)
    if ask.required_node:
        return _on_required_node(ask)
    if not ask.app.partition.config.preemption_enabled:
        return True, "preemption is disabled in this partition"
    if not ask.terms.allow_preempt_other:
        return True, "its preemption policy does not let it preempt others"
    queue = ask.app.queue
    refused = snapshots_for(kernel, queue).refusal(ask.vector)
    if refused is not None:
        return _of_refusal(refused, ask.app, "it")
    due = max(ask.created + queue.properties.preemption_delay, ask.preempt_from)
    if due > kernel.now:
        again = f"may preempt in {(due - kernel.now) / SECOND:g} s"
        return True, f"{ask.preempt_outcome}; {again}" if ask.preempt_outcome else again
    return _of_next_attempt(kernel, _failure(ask))


def _of_refusal(refused: Refusal, app: Application, what: str) -> tuple[bool, str]:
    """Why the guarantees do not let ``what`` of the application preempt: the ask, or all members."""
    leaf, path = app.queue.path, refused.queue.path
    why = refused.why
    who, with_what = ("it", "") if what == "it" else ("the gang", f" with {what}")
    if why == PROMISED:
        with_what += ", with what others wait for that have preempted"
    if why == NO_GUARANTEE:
        if not any(queue.guaranteed_by_type for queue in app.queue.lineage):
            return True, f"nothing is guaranteed to {leaf}, so it may not preempt"
        return True, f"nothing of what {what} asks for is guaranteed to {leaf}"
    if why == AT_MAX:
        why = f"{leaf} has no room for {what} under its max, so nothing outside may be preempted"
        return False, f"{why}"
    if why in (ABOVE, PROMISED):
        over = app.partition.registry.words(refused.over)
        why = f"{path} would be {over} above what is guaranteed to it{with_what}, so {who} may not preempt"
        return False, f"{why}"
    return True, why


def awaits_victims(ask: Ask) -> bool:
    """Whether allocations have been preempted for the ask, which is to get their room."""
    return ask.preempted and (bool(ask.app.gang.victims) or not waits_with_its_gang(ask))


def waits_with_its_gang(ask: Ask) -> bool:
    """Whether the ask waits to be placed together with all other members of its gang (Q2)."""
    app = ask.app
    return app.is_gang and ask.group is not None and app.gang.starts_whole(ask.group)


def _of_next_attempt(kernel: Kernel, failed: FailedPreemption | None) -> tuple[bool, str]:
    """What is said when nothing but the last attempt can stand in the way."""
    if failed is not None:
        due = failed.retry_at
        again = f" in {(due - kernel.now) / SECOND:g} s" if due > kernel.now else ""
        return False, f"{failed.why}; tries again{again} if something has changed"
    return True, "may preempt in the next round"


def _of_gang(kernel: Kernel, app: Application) -> tuple[bool, str]:
    """The story of a gang that preempts for all its members together."""
    own, queue = app.gang, app.queue
    if own.preempted:
        return False, "has preempted once for all its members, and they did not fit then"
    if own.lacks in _NOT_HELPED:
        return True, _NOT_HELPED[own.lacks]
    members = own.members
    several = for_gang.from_queues(members)
    if several and not app.partition.config.preemption_enabled:
        return True, "preemption is disabled in this partition"
    refused = for_gang.refusal(app, members, snapshots_for(kernel, queue)) if several else None
    if refused is not None:
        return _of_refusal(refused, app, "all members")
    due = for_gang.due(app, several)
    if due > kernel.now:
        return True, f"may preempt in {(due - kernel.now) / SECOND:g} s"
    return _of_next_attempt(kernel, own.failed_preemption)


#: by what the gang lacks, why no preemption helps
_NOT_HELPED: Final = {
    ASKS: "the gang may preempt only when all its asks have arrived",
    LIMIT: "a limit of a user or a group is no reason to preempt",
    PREDICATES: "nodes have room, so there is no reason to preempt",
}


def _failure(ask: Ask) -> FailedPreemption | None:
    """The failed attempt of an ask of the same shape in its leaf."""
    group = ask.group
    if group is None:
        return None
    return ask.app.partition.failed_preemptions.by_shape.get((ask.app.queue, group.shape))


def _on_required_node(ask: Ask) -> tuple[bool, str]:
    kept = [each.node.node_id for each in ask.app.reservations if each.ask is ask]
    if not kept:
        return True, f"preempts only with node {ask.required_node} reserved"
    if ask.preempt_outcome:
        return False, f"has node {kept[0]} reserved; {ask.preempt_outcome}"
    return True, f"has node {kept[0]} reserved and may preempt there in the next round"
