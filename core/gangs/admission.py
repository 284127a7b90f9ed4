"""Atomic admission: gangs start whole, and the start of one of them may be planned (Q1 to Q5, Q9).

A queued gang is tried when its turn comes in the queues. If all its outstanding members can be placed,
they are placed at once. Otherwise the gang holds nothing, and is not tried again before what it lacked
may have come back: quota, a limit, room on nodes, or its own asks.

A gang that has waited for nodes long enough may gather: its start is planned (``planned_start``). Of the
gangs of a partition that wait so, the first in the order of queues and submission gathers, and the others
wait for their turn. Everything else in the partition goes on meanwhile; only what would delay the planned
start keeps off its nodes. See D330.

A gang that would not fit the present cluster even if nothing ran there does not gather: more nodes are
needed first, and are asked for as for other asks (5.11, G12). A gang whose asks have not all arrived
cannot be planned: it waits for them and holds nothing, and fails when its placeholder timeout passes
(G24, G45).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final

from quadriga.base.times import FOREVER, SECOND
from quadriga.core.gangs import overruns, planned_start, short_gangs
from quadriga.core.gangs import preemption as gang_preemption
from quadriga.core.gangs.placing import place_members
from quadriga.core.gangs.plan import Plan, make_plan, refund
from quadriga.core.model import predictions
from quadriga.core.model.gang import ASKS, LIMIT, NODES, PREDICATES, QUOTA, RoomWanted
from quadriga.core.model.gather_budget import BEGUN, GIVEN_UP, REFUSED, STARTED
from quadriga.core.model.queue import goes_before
from quadriga.core.resources.shapes import needed_by
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.steps import gang, limits, quota_plans
from quadriga.core.steps.refused import refusal_of
from quadriga.core.topology.domains import fits_empty_cluster
from quadriga.fsm import GANG
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import gang as gang_fsm

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Reservation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.gang import Gang, PlannedStart
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.resources.shapes import Shape

#: the timer after which a gang may gather, and that after which the budget allows it again
_GATHER_TIMER: Final = "application.gather"
_BUDGET_TIMER: Final = "partition.gather_budget"
#: at most this many gangs are planned at a time, until one can be
_MOST_PLANS: Final = 8
#: where gangs may be protected and none is, it is looked for one this often (ns) at least
_LOOK_AGAIN: Final = 60 * SECOND

# Why a gang gives its nodes back, as its event record says it (Q8).
_SPENT: Final = "the budget for idle capacity is spent, and its planned start came no nearer"
_MAY_NOT_START: Final = "its application may not start at present"
_NO_QUOTA: Final = "queue %s has no quota for its members at present"
_NO_LIMIT: Final = "a limit has no room for its members at present"
_TIMED_OUT: Final = "its placeholders have timed out"
_NO_ASKS: Final = "some of its asks have been removed"
_OTHERS_ARE_SHORT: Final = "the running gang %s has lost placeholders"


# -- one attempt -----------------------------------------------------------------------------------


def admit(kernel: Kernel, app: Application) -> bool:
    """Place all outstanding members of the gang, or preempt for them, and return True; or note what the
    gang lacks."""
    decided = _attempt(kernel, app)
    app.partition.node_index.attempted(app)
    return decided


def _attempt(kernel: Kernel, app: Application) -> bool:
    attempts = kernel.tally.gang_attempts
    if _place_all(kernel, app):
        attempts["placed"] += 1
        return True
    if app.gang.victims:
        gang_preemption.return_nodes(app)
    if gang_preemption.preempt(kernel, app):
        attempts["preempted"] += 1
        return True
    if app.gang.lacks:
        attempts[app.gang.lacks] += 1
    return False


def _place_all(kernel: Kernel, app: Application) -> bool:
    partition = app.partition
    if app.limiting and limits.held_out(app):
        return False
    members = app.gang.members
    if not app.gang.has_all_asks:
        _wait_for(kernel, app, ASKS)
        if app.gang.without_placeholders and app.gang.state in gang_fsm.KEEPS_NODES:
            kernel.fire(GANG, app.gang, gang_fsm.REQUEUE, reason=_NO_ASKS)
        return False
    demand = _demand_of(members)
    if _short_of_quota(kernel, app, demand):
        return False
    kept = {each.node: None for each in app.reservations if each.node.reservation is each}
    if (planned := partition.node_index.planned) is not None and planned.app is app:
        kept.update(dict.fromkeys(planned.needs))
    plan = make_plan(kernel, partition, members, [node for node in kept if node.open])
    if plan.places:
        several = _demand_of([group for group in members if not group.shape.required_node])
        # other nodes hold more than they have; root's max does not bound members that require a node
        if _exceeds(app, partition.root, several, kept=False):
            refund(plan)
            _wait_for_quota(kernel, app, partition.root)
            return False
        _carry_out(kernel, app, plan)
        return True
    own = app.gang
    own.outstanding = sum(group.pending for group in members)
    own.missing = plan.missing
    if not plan.lacks:
        _wait_for(kernel, app, PREDICATES)
        return False
    _wait_for(kernel, app, NODES, plan.lacks)
    if own.state in gang_fsm.KEEPS_NODES:
        return False  # it is tried again when its plan says so
    shape, more = plan.lacks[0]
    if plan.crowded:  # any node with more for any member may help
        shapes = dict.fromkeys(group.shape for group in members)
        wanted = tuple([RoomWanted(each, 1, gained=True, mixed=True) for each in shapes])
    elif own.local:  # nodes of one domain must have more
        wanted = (RoomWanted(shape, more, gained=True),)
    else:
        wanted = (RoomWanted(shape, partition.node_index.room(shape) + more, gained=False),)
    partition.node_index.await_room(app, _alike(app, members), wanted)
    return False


def _alike(app: Application, members: list[AskGroup]) -> Hashable:
    """What an attempt of the gang depends on beside the nodes: its members, their quotas and limits, and its
    place in the order. A gang that may preempt, or for which more matters, is like no other."""
    queue = app.queue
    if (
        app.reservations
        or any(app.reserved_headroom)
        or queue.stateaware
        or app.partition.waiting.backs_off
        or gang_preemption.may_come(app)
        or any(group.shape.required_node for group in members)
        or (app.gang.local and (app.allocations or app.placeholders))
    ):
        return app
    groups = tuple([(group.shape, group.pending) for group in members])
    return app.above, queue.properties.sort_policy, queue.sorts_priority, app.gang.over, groups


def _demand_of(members: list[AskGroup]) -> dict[int, int]:
    """What all members together ask for, by type."""
    return needed_by((group.shape, group.pending) for group in members)


def _short_of_quota(kernel: Kernel, app: Application, demand: dict[int, int]) -> bool:
    """Whether a quota or a limit has no room for all members. The gang then waits for it there.

    Root's quota is what the nodes have: a gang that exceeds it lacks nodes (G12).
    """
    members = app.gang.members
    for queue in app.queue.lineage[:-1]:
        if _exceeds(app, queue, demand, kept=True) or quota_plans.delays(queue, app, members):
            _wait_for_quota(kernel, app, queue)
            return True
    for ledger in app.limiting:
        for at, limit in ledger.resources:
            short = demand.get(at, 0) > max(0, limit - ledger.usage[at])
            if short or quota_plans.delays(ledger, app, members):
                ledger.gated[app] = app.partition.waiting.short_quotas[ledger] = None
                _wait_without_nodes(kernel, app, LIMIT, _NO_LIMIT)
                return True
    return False


def _exceeds(app: Application, queue: Queue, demand: dict[int, int], *, kept: bool) -> bool:
    """Whether the queue would exceed its quota; ``kept``: headroom reserved for gangs is not free."""
    for at, limit in queue.limits:
        left = limit - queue.allocated[at]
        if kept:
            left -= queue.reserved_headroom[at] - app.own_headroom(at)
        if demand.get(at, 0) > max(0, left):
            return True
    return False


def _wait_for_quota(kernel: Kernel, app: Application, queue: Queue) -> None:
    queue.gated[app] = app.partition.waiting.short_quotas[queue] = None
    _wait_without_nodes(kernel, app, QUOTA, _NO_QUOTA % queue.path)


def _wait_without_nodes(kernel: Kernel, app: Application, what: str, reason: str) -> None:
    """Do not try the gang again before a quota or a limit has room. Nodes do not help it meanwhile, so a
    gang that gathers gives them back at once (Q4)."""
    app.gang.lacks = what
    gang.attempt_failed(kernel, app)
    app.partition.waiting.refresh(app)
    app.partition.rm.observer.gang_waits(app, ())
    if app.gang.state in gang_fsm.KEEPS_NODES:
        kernel.fire(GANG, app.gang, gang_fsm.REQUEUE, reason=reason)


def _carry_out(kernel: Kernel, app: Application, plan: Plan) -> None:
    """Allocate every member to its node, in the order of the asks (G4)."""
    _stop_waiting(app)
    gang_preemption.forget(app)
    app.partition.waiting.gangs.pop(app, None)
    app.partition.rm.observer.gang_placed(app, len(plan.places))
    kernel.fire(GANG, app.gang, gang_fsm.PLACE)
    place_members(kernel, app, plan)
    if app.partition.waiting.quota_plans:
        quota_plans.took(app)


# -- waiting ---------------------------------------------------------------------------------------


def _wait_for(
    kernel: Kernel, app: Application, what: str, lacks: Sequence[tuple[Shape, int]] = ()
) -> None:
    """Do not try the gang again before that may have come back. ``lacks`` are the members without room
    on nodes."""
    waiting, own = app.partition.waiting, app.gang
    own.lacks = what
    gang.attempt_failed(kernel, app)
    waiting.refresh(app)
    app.partition.rm.observer.gang_waits(app, lacks)
    if what == PREDICATES:
        heads = [group.head for group in app.groups.values()]
        waiting.defer_gang(app, refusal_of(kernel, app.partition, heads))
        return
    waiting.gangs[app] = None
    if own.waiting_since < 0:
        own.waiting_since = quota_plans.waits_since(app, kernel.now)
        _await_due(kernel, app)


def retry(app: Application) -> None:
    """Try the gang again: its asks, its limits or the answers for it have changed."""
    if app.gang.lacks:
        _stop_waiting(app)
        app.partition.waiting.refresh(app)


def retry_local(partition: Partition) -> None:
    """Domains are others than before: try the gangs again that want something of them (Q13)."""
    waiting = partition.waiting
    for app in [*waiting.gangs, *waiting.deferred_gangs]:
        if app.gang.local:
            retry(app)


def _stop_waiting(app: Application) -> None:
    own, partition = app.gang, app.partition
    for queue in app.queue.lineage:
        queue.gated.pop(app, None)
    for ledger in app.limiting:
        ledger.gated.pop(app, None)
    partition.waiting.deferred_gangs.pop(app, None)
    partition.node_index.forget_wait(app)
    own.lacks = ""


def state_changed(kernel: Kernel, app: Application) -> None:
    """The application of a gang has entered a state in which its members no longer wait for places, or
    wait for them anew (Q5)."""
    own = app.gang
    if app.state in application_fsm.GIVES_BACK:
        kernel.fire(GANG, own, gang_fsm.REQUEUE, reason=_TIMED_OUT)
        gang_preemption.forget(app)
        own.preempted = False  # its members are other asks from now on
    if app.state in application_fsm.BEFORE_RUNNING:
        return
    _stop_waiting(app)
    gang_preemption.forget(app)
    app.partition.waiting.gangs.pop(app, None)
    if app.state not in application_fsm.COUNTED:
        app.partition.waiting.short_of_members.pop(app, None)
    own.waiting_since = -1
    own.refused = False
    for timer in own.timers:
        timer.cancel()
    own.timers = ()
    if app.state in application_fsm.GANG_OVER:
        if GANG.allows(own.state, gang_fsm.END):
            kernel.fire(GANG, own, gang_fsm.END)
    elif own.without_placeholders and not app.allocations:
        # All asks were removed, and may come again.
        if own.state in gang_fsm.KEEPS_NODES:
            kernel.fire(GANG, own, gang_fsm.REQUEUE, reason=_NO_ASKS)
    elif own.state in gang_fsm.WAITS and app.state in application_fsm.SERVED:
        kernel.fire(GANG, own, gang_fsm.PLACE)


# -- the protected gang ----------------------------------------------------------------------------


def _await_due(kernel: Kernel, app: Application) -> None:
    """Look at the gang when it may be protected."""
    left = max(0, app.gang.may_gather_from - kernel.now)
    timer = kernel.timers.start(kernel.now, left, _GATHER_TIMER, app)
    app.gang.timers = (*app.gang.timers, timer)


def _rest(kernel: Kernel, app: Application) -> None:
    """Let others be protected before the gang."""
    app.gang.rest(kernel.now)
    _await_due(kernel, app)


def _is_candidate(app: Application) -> bool:
    own = app.gang
    return (
        own.state in gang_fsm.WAITS
        and own.lacks in (NODES, "")  # or it is to be tried, as what it lacked may have come back
        and not app.blocked
        and not app.not_admitted
        and own.admission == "atomic"
        and fits_empty_cluster(app.partition, own.members)
    )


def gather_due(kernel: Kernel, app: Application) -> None:
    """The gang has waited long enough to be protected: the next round looks for the first one."""
    own, waiting = app.gang, app.partition.waiting
    own.timers = tuple([each for each in own.timers if each.name != _GATHER_TIMER])
    if waiting.protected is None:
        if app.partition.gather_budget.spent(kernel.now, predictions.is_told(app.gang)):
            _refuse(kernel, app)
        else:
            waiting.protect_from = 0


def budget_regained(kernel: Kernel, partition: Partition) -> None:
    """The budget may allow a gang to be protected again: the next round looks for one."""
    partition.gather_budget.timer = None
    partition.waiting.protect_from = 0


def placeholder_lost(kernel: Kernel, app: Application) -> None:
    """A running gang has lost a placeholder that no member had replaced.

    The gang keeps what it holds until the member has a node. So the protected gang, which may wait for
    what this gang holds, is protected no longer, and none is before all members run.
    """
    if app.gang.admission != "atomic" or app.state not in application_fsm.COUNTED:
        return
    short_gangs.note(kernel, app)
    protected = app.partition.waiting.protected
    if protected is not None:
        why = _OTHERS_ARE_SHORT % app.app_id
        kernel.fire(GANG, protected.gang, gang_fsm.REQUEUE, reason=why)


def short_for_long(kernel: Kernel, app: Application) -> None:
    """A running gang has lacked members for long (Q6)."""
    short_gangs.help_first(kernel, app, precedes)


def _choose(kernel: Kernel, partition: Partition) -> None:
    """Protect the first gang that has waited long enough and can be planned (Q9). A gang that has given up comes
    after those that have done so less often."""
    waiting, now, budget = partition.waiting, kernel.now, partition.gather_budget
    waiting.protect_from = FOREVER
    due = [app for app in waiting.gangs if app.gang.may_gather_from <= now]
    spent = bool(due) and budget.spent(now)
    if spent:
        told = (
            set()
            if budget.spent(now, told=True)
            else {a for a in due if predictions.is_told(a.gang)}
        )
        for app in due:
            if app not in told:
                _refuse(kernel, app)
        due = [app for app in due if app in told]
    if due:
        waiting.protect_from = now + _LOOK_AGAIN
    if not due or short_gangs.is_any_short(partition):
        return
    for _ in range(min(_MOST_PLANS, planned_start.most_plans(partition))):
        first: Application | None = None
        for app in due:
            if first is None or _gathers_before(app, first):
                first = app if _is_candidate(app) and app.gang.may_gather_from <= now else first
        if first is None:
            return
        plan = planned_start.find(kernel, first)
        if plan is not None and spent and not plan.is_told:
            _refuse(kernel, first)
        elif plan is not None:
            _protect(kernel, first, plan)
            return
        _rest(kernel, first)


def _refuse(kernel: Kernel, app: Application) -> None:
    """The gang may not be protected because too much was kept idle (Q10, D365). It is counted once while it waits."""
    budget = app.partition.gather_budget
    if not app.gang.refused and _is_candidate(app):
        app.gang.refused = True
        budget.counts[REFUSED] += 1
    again = budget.again(kernel.now, predictions.is_told(app.gang))
    if budget.timer is None or budget.timer.when > again:
        if budget.timer is not None:
            budget.timer.cancel()
        left = again - kernel.now
        budget.timer = kernel.timers.start(kernel.now, left, _BUDGET_TIMER, app.partition)


def _protect(kernel: Kernel, app: Application, plan: PlannedStart) -> None:
    partition, own = app.partition, app.gang
    partition.waiting.protected = app
    own.refused = False
    partition.gather_budget.counts[BEGUN] += 1
    own.start_before = plan.start
    kernel.fire(GANG, own, gang_fsm.GATHER)
    planned_start.apply(kernel, partition, plan)
    partition.rm.observer.gang_gathers(app)
    partition.node_index.forget_wait(app)
    if plan.start <= kernel.now:
        retry(app)


def replan(kernel: Kernel, partition: Partition) -> None:
    """Plan the start of the protected gang again if something has changed or it has come, and try the gang then.
    Without a protected gang choose one."""
    waiting = partition.waiting
    app = waiting.protected
    if app is None:
        if waiting.protect_from <= kernel.now and waiting.gangs:
            _choose(kernel, partition)
        return
    if not planned_start.is_due(kernel, partition):
        return
    plan = planned_start.find(kernel, app)
    if plan is None or plan.start > kernel.now:
        plan = overruns.preempt(kernel, app) or plan
    if plan is None:
        kernel.fire(GANG, app.gang, gang_fsm.REQUEUE, reason=quota_plans.NO_PLAN)
        return
    planned_start.apply(kernel, partition, plan)
    if plan.start <= kernel.now and not plan.tried:
        plan.tried = True
        retry(app)


def _gathers_before(one: Application, other: Application) -> bool:
    if one.gang.given_up != other.gang.given_up:
        return one.gang.given_up < other.gang.given_up
    return precedes(one, other)


def precedes(one: Application, other: Application) -> bool:
    """Compare by queues from root down (5.4), and within a queue by submission."""
    if one.queue is not other.queue:
        paths = zip(reversed(one.queue.lineage), reversed(other.queue.lineage), strict=False)
        for left, right in paths:
            if left is not right:
                return goes_before(left, right)
    return one.seq < other.seq


def serve_reserving(kernel: Kernel, kept: Reservation) -> bool:
    """A node that is reserved for all members of the gang has changed: try the gang again."""
    app = kept.ask.app
    retries = app.partition.waiting.retries
    for each in list(retries.of(app)):  # one attempt is enough for all of them
        retries.discard(each)
    return serve_protected(kernel, app)


def serve_protected(kernel: Kernel, app: Application) -> bool:
    """Try the gang whose start is planned, or that had allocations preempted, before other asks."""
    if app.blocked or app.not_admitted:  # it may not start now, so it must not hold up others
        kernel.fire(GANG, app.gang, gang_fsm.REQUEUE, reason=_MAY_NOT_START)
        return False
    if app.gang.victims and gang_preemption.awaits_room(app):
        return False
    if not app.gang.lacks and app.gang.state not in gang_fsm.KEEPS_NODES:
        return False  # its turn comes in the queues
    _stop_waiting(app)
    return admit(kernel, app)


def nodes_freed(kernel: Kernel, app: Application, reason: str) -> None:
    """The gang is no longer protected: the next round looks for another one."""
    partition, own = app.partition, app.gang
    if reason:
        partition.rm.observer.gang_gave_back(app, reason)
        partition.gather_budget.counts[GIVEN_UP] += 1
    elif own.state in gang_fsm.HAS_PLACES:
        partition.gather_budget.counts[STARTED] += 1
    for timer in own.timers:
        timer.cancel()
    own.timers = ()
    if partition.waiting.protected is app:
        planned_start.apply(kernel, partition, None)
        partition.waiting.protected = None
        partition.waiting.protect_from = 0
        own.given_up += 1
        if own.waiting_since >= 0 and own.state in gang_fsm.WAITS:
            _rest(kernel, app)
            if own.lacks == NODES:
                retry(app)


def gave_up(kernel: Kernel, own: Gang) -> None:
    """The gathering gang has gained nothing in time, or may go on (Q3)."""
    replan(kernel, own.partition)
    if own.state in gang_fsm.KEEPS_NODES:
        spent = own.partition.gather_budget.spent(kernel.now, predictions.is_told(own))
        why = _SPENT if spent else quota_plans.NO_PROGRESS
        kernel.fire(GANG, own, gang_fsm.ABANDON, reason=why)
        plan = own.partition.node_index.planned
        if plan is not None:  # where it goes on, for the next time
            own.start_before = plan.start
