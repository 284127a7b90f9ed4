"""Preemption for a waiting gang whose members are placed in one step (G3, 5.9).

A gang that was tried in vain may preempt, by the rules for single asks, once for all its members. The
nodes that its plan uses are reserved for it, so that nothing else takes the room that victims leave. It
is tried again when its victims on these nodes are gone. If it does not fit even then, because a node or
a quota was lost meanwhile, it returns the nodes and waits like other gangs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.base.times import SECOND
from quadriga.core.model.failed_preemptions import RETRY
from quadriga.core.model.gang import NODES, QUOTA, FailedGangPreemption
from quadriga.core.preemption import for_gang, preemption_queue
from quadriga.core.preemption.guaranteed import remember
from quadriga.core.runtime.remote_predicates import AnswerPending
from quadriga.core.steps import reservation
from quadriga.core.steps.releasing import evict
from quadriga.fsm.lifecycles import allocation as allocation_fsm

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.preemption.for_gang import GangEviction
    from quadriga.core.runtime.kernel import Kernel

#: the timer after which all members of a gang have waited for the preemption delay
_TIMER: Final = "application.gang_preempt"

_STILL_SHORT: Final = "it does not fit, although the victims of its preemption are gone"
_OTHERS_FIRST: Final = "other gangs of its queue were tried first"


def preempt(kernel: Kernel, app: Application) -> bool:
    """The gang was tried in vain: preempt for its outstanding members if that makes room for all."""
    own, partition = app.gang, app.partition
    if own.lacks not in (NODES, QUOTA) or own.preempted or own.failed_preemption is not None:
        return False
    members = own.members
    several = for_gang.from_queues(members)
    if not _may_preempt(kernel, app, several):
        if len(several) == len(members):  # no member requires its node
            return False
    failures = partition.failed_preemptions
    if failures.count_gang(app.queue, kernel.now) > preemption_queue.ATTEMPTS:
        soon = kernel.now - RETRY + SECOND
        failed = FailedGangPreemption(app, members[0].shape, 0, soon, _OTHERS_FIRST)
        failures.add(failed)
        failures.allow_retry(failed)
        return False
    try:
        found = for_gang.search(kernel, app, members, short_of_quota=own.lacks == QUOTA)
    except AnswerPending:
        partition.waiting.defer_gang(app)
        return False
    if isinstance(found, str):
        if found != for_gang.NOT_YET:
            remember(
                app.partition, FailedGangPreemption(app, members[0].shape, 0, kernel.now, found)
            )
        return False
    carry_out(kernel, app, members, found, "preempted, to run all members of its gang")
    return True


def may_come(app: Application) -> bool:
    """Whether the next attempt of the gang may preempt."""
    own = app.gang
    if own.preempted or own.failed_preemption is not None:
        return False
    enabled = app.partition.config.preemption_enabled
    return enabled and any(queue.guaranteed_by_type for queue in app.queue.lineage)


def _may_preempt(kernel: Kernel, app: Application, members: list[AskGroup]) -> bool:
    """Whether the gang may preempt for the guarantee of its queue: all these members have waited for
    the delay. Otherwise it is tried again then."""
    if not members or not may_come(app):
        return False
    due, own = for_gang.due(app, members), app.gang
    if due <= kernel.now:
        return True
    if not any(timer.name == _TIMER and timer.when == due for timer in own.timers):
        timer = kernel.timers.start(kernel.now, due - kernel.now, _TIMER, app)
        own.timers = (*own.timers, timer)
    return False


def carry_out(
    kernel: Kernel, app: Application, members: list[AskGroup], found: GangEviction, outcome: str
) -> None:
    """Evict the victims and reserve the nodes for the gang; ``outcome`` is what is said of its members."""
    own = app.gang
    own.preempted = True
    own.victims = found.victims
    for each in found.evictions:
        evict(kernel, each)
    _cancel_reservations(app)
    for node, ask in found.nodes.items():
        reservation.make(kernel, ask, node, bounded=False)
    for group in members:
        for ask in list(group.asks.values()):
            ask.preempted = True
            ask.preempt_outcome = outcome
            preemption_queue.retry_later(kernel, ask)


def _cancel_reservations(app: Application) -> None:
    for each in list(app.reservations):
        reservation.cancel(app.partition, each)


def awaits_room(app: Application) -> bool:
    """Whether victims are still on the nodes that are reserved for the gang."""
    kept = {each.node for each in app.reservations}
    return any(
        victim.state in allocation_fsm.ASKED_BACK and victim.node in kept
        for victim in app.gang.victims
    )


def return_nodes(app: Application) -> None:
    """The gang was tried in vain: return the nodes reserved for it, unless victims are to leave."""
    own = app.gang
    if any(victim.state in allocation_fsm.ASKED_BACK for victim in own.victims):
        return
    own.victims = ()
    app.partition.rm.observer.gang_gave_back(app, _STILL_SHORT)
    _cancel_reservations(app)


def forget(app: Application) -> None:
    """The members no longer wait: forget the victims and the failed attempt."""
    own = app.gang
    own.victims = ()
    if own.failed_preemption is not None:
        app.partition.failed_preemptions.forget(own.failed_preemption)
        own.failed_preemption = None
