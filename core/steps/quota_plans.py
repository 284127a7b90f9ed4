"""Quotas and limits that are kept for what has waited longest for them (Q12).

What is larger than what is free of a queue's quota or a user's limit is passed by smaller asks for ever. So of the
gangs and single asks that have waited for ``gang.gather.after`` the first one has a planned start: when enough comes
free by what is expected of the allocations below. Until then others have of it what they give back in time, or what
fits beside (``QuotaPlan``). What is kept idle is charged to a budget of the queue (Q10). See D298.

Waiters are looked for at most once a minute, in slices, and only where something was short of quota.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from quadriga.base.times import SECOND
from quadriga.core.config.properties import WHOLE
from quadriga.core.model import predictions
from quadriga.core.model.account import Ledger, QuotaPlan
from quadriga.core.model.gang import REST
from quadriga.core.model.gather_budget import BEGUN, GIVEN_UP, REFUSED, STARTED, GatherBudget
from quadriga.core.model.queue import LeafQueue, Queue
from quadriga.core.ordering.room import fits_empty
from quadriga.core.resources.shapes import needed_by
from quadriga.core.topology.domains import fits_empty_cluster
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import gang as gang_fsm

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.runtime.kernel import Kernel

Quota = Queue | Ledger

#: the timer that fires at a planned start
_TIMER: Final = "partition.planned_start"
# Why a quota is kept no longer, as event records say it.
_WAITS_NO_LONGER: Final = "it waits for it no longer"
NO_PROGRESS: Final = "its planned start came no nearer in all its patience"
NO_PLAN: Final = "what is not expected to end is in its way"
#: waiters are looked for this often (ns) at most
_LOOK_AGAIN: Final = 60 * SECOND
#: a round looks at this many applications at most, and goes on later after it has looked at as many nodes
_MOST_LOOKED_AT: Final = 1_000
#: a search tries this many waiters of a quota
_MOST_TRIED: Final = 8
#: a plan takes at most this many allocations into account, and rests for this time (ns) for each above a thousand
_MOST_EXAMINED: Final = 20_000
_FEW_EXAMINED: Final = 1_000
_REST_FOR_EACH: Final = SECOND // 10_000


def delays(quota: Quota, app: Application, members: list[AskGroup]) -> bool:
    """Whether members that are placed together would delay the plan of the quota."""
    plan, now = quota.plan, app.partition.node_index.now
    if plan is None or plan.app is app or all(plan.lends(each.shape, now) for each in members):
        return False
    return not plan.leaves(needed_by((each.shape, each.pending) for each in members).items())


def took(app: Application, shape: Shape | None = None, number: int = 0) -> None:
    """So many asks of the shape were placed, and charged; without a shape, all members of the gang."""
    now = app.partition.node_index.now
    for quota in quotas_of(app):
        if (plan := quota.plan) is None:
            continue
        if plan.app is app and (plan.like(shape) if shape else plan.group is None):
            app.partition.waiting.quota_counts[STARTED] += 1
            _drop(quota, plan)
        elif shape is not None and not plan.lends(shape, now):
            for at, value in shape.need:
                if at in plan.beside:
                    plan.beside[at] -= value * number


def waits_since(app: Application, now: int) -> int:
    """Since when (ns) a gang has waited that begins to wait for nodes, perhaps after a planned start at a quota."""
    plans = [quota.plan for quota in quotas_of(app) if quota.plan is not None]
    return min([plan.order[1] for plan in plans if plan.app is app], default=now)


def renew(kernel: Kernel, partition: Partition) -> None:
    """Make plans again if something has changed, drop those that gain nothing, and look for new waiters."""
    waiting, now = partition.waiting, kernel.now
    nodes = partition.node_index.planned
    for quota, plan in list(waiting.quota_plans.items()):
        if nodes is not None and nodes.app is plan.app and nodes.start > plan.start:
            plan.start, plan.promised = nodes.start, max(plan.promised, nodes.start)
            quota.regained()
        start, left = plan.start, plan.beside
        overran = start <= now and _is_short(quota, plan.need)
        if quota not in quotas_of(plan.app) or not _waits(plan):
            _give_up(quota, plan, _WAITS_NO_LONGER)
        elif now >= plan.promised + plan.app.gang.patience:
            plan.app.gang.rest(now)
            _give_up(quota, plan, NO_PROGRESS)
        elif (plan.stale or overran) and plan.again <= now:
            if not _find_start(kernel, quota, plan):
                plan.app.gang.rest(now)
                _give_up(quota, plan, NO_PLAN)
            elif plan.start > start or plan.beside != left:  # others may use more
                quota.regained()
                plan.stale = False
        else:
            _charge(kernel, quota, plan)
    if waiting.short_quotas and waiting.look_at_quotas <= now:
        waiting.quota_look = waiting.quota_look or _look(kernel, partition)
        if (
            all(islice(waiting.quota_look, _MOST_LOOKED_AT))
            and next(waiting.quota_look, None) is None
        ):
            waiting.quota_look, waiting.look_at_quotas = None, now + _LOOK_AGAIN


def _look(kernel: Kernel, partition: Partition) -> Iterator[bool]:
    """Plan the start of the first waiter of each quota that was short. Yield after each application, and False after
    a look at many nodes: a later round goes on from there."""
    waiting = partition.waiting
    for quota in list(waiting.short_quotas):
        due = []
        free = quota.plan is None and quota is not partition.root
        for app in list(_apps_of(quota)) if free else ():
            yield True
            now, after = kernel.now, app.queue.properties.gang_gather_after
            for plan in _waiting(app):
                is_due = max(plan.order[1] + after, app.gang.rests_until) <= now
                if is_due and _is_short(quota, plan.need):
                    due.append(plan)
        # What was tried in vain lets others have their turn (Q10).
        due.sort(key=lambda plan: (plan.app.gang.rests_until, plan.order))
        for plan in due[:_MOST_TRIED]:
            if not _waits(plan) or not _is_short(quota, plan.need):
                continue
            if quota not in quotas_of(plan.app) or quota.plan is not None:
                break
            counts = waiting.quota_counts
            quota.budget = quota.budget or GatherBudget(partition, counts)
            if quota.budget.spent(kernel.now):
                counts[REFUSED] += quota.budget.refused != plan.app.app_id
                quota.budget.refused = plan.app.app_id
                break
            if _fits_empty(quota, plan):
                quota.plan = waiting.quota_plans[quota] = plan
                if _find_start(kernel, quota, plan):
                    counts[BEGUN] += 1
                    quota.budget.refused = ""
                    partition.rm.observer.quota_planned(quota, plan)
                else:
                    plan.app.gang.rest(kernel.now)
                    _drop(quota, plan)
                break
            plan.app.gang.rests_until = kernel.now + REST
            yield len(partition.nodes) < _MOST_LOOKED_AT
        if not (quota.plan or quota.short_of or quota.gated):
            waiting.short_quotas.pop(quota, None)


def _waiting(app: Application) -> Iterator[QuotaPlan]:
    """The gang of the application, or its single asks, as far as they may be served: plans without a start."""
    own = app.gang
    if not app.groups or app.state not in application_fsm.SERVED or app.blocked or app.not_admitted:
        return
    if own.state in gang_fsm.WAITS and own.has_all_asks and (members := own.members):
        need = needed_by((group.shape, group.pending) for group in members)
        since = max(group.head.created for group in members)
        yield QuotaPlan(app, None, need, (-max(g.priority for g in members), since, app.seq))
    for group in app.groups.values():
        if group.demand & group.shape.allocate and not (
            group.kind.placeholder and not own.started and own.admission == "whole"
        ):
            order = (-group.priority, group.head.created, app.seq)
            yield QuotaPlan(app, group, dict(group.shape.need), order)


def _waits(plan: QuotaPlan) -> bool:
    """Whether the plan is still that of something that waits."""
    app = plan.app
    if app.state not in application_fsm.SERVED or app.blocked or app.not_admitted:
        return False
    if plan.group is not None:
        return bool(plan.group.demand)
    return app.gang.state in gang_fsm.WAITS and plan.pending == tuple(app.pending)


def _fits_empty(quota: Quota, plan: QuotaPlan) -> bool:
    """Whether the quota and the nodes could hold it if nothing ran."""
    if any(plan.need.get(at, 0) > limit for at, limit in _amounts(quota)[0]):
        return False
    partition, group = plan.app.partition, plan.group
    if group is not None:
        return fits_empty(partition.node_index.nodes, group.shape, 1)
    return fits_empty_cluster(partition, plan.app.gang.members)


def _find_start(kernel: Kernel, quota: Quota, plan: QuotaPlan) -> bool:
    """Plan the earliest start; return False if what has no expected end is in the way, or a gang that has started and
    lacks members."""
    if isinstance(quota, Queue) and any(quota.reserved_headroom):
        return False
    now, partition, need = kernel.now, plan.app.partition, plan.need
    limits, used = _amounts(quota)
    free = {at: limit - used[at] for at, limit in limits if need.get(at)}
    held = ((*app.allocations.values(), *app.placeholders.values()) for app in _apps_of(quota))
    ends = []
    for allocation in islice(chain.from_iterable(held), _MOST_EXAMINED):
        if (expected := predictions.planned_end(allocation, now)) is not None:
            ends.append((expected.time, allocation.vector))
    plan.start, plan.stale = now, False
    for time, vector in sorted(ends, key=itemgetter(0)):
        if time > plan.start and all(room >= need[at] for at, room in free.items()):
            break
        plan.start = time
        for at in free:
            free[at] += vector[at] if at < len(vector) else 0
    plan.beside = {at: room - need[at] for at, room in free.items()}
    plan.promised = plan.promised or plan.start
    plan.again = now + max(0, len(ends) - _FEW_EXAMINED) * _REST_FOR_EACH
    _charge(kernel, quota, plan)
    if plan.timer is not None:
        plan.timer.cancel()
    due = plan.start if plan.start > now else plan.promised + plan.app.gang.patience
    plan.timer = kernel.timers.start(now, max(0, due - now), _TIMER, partition)
    return min(plan.beside.values(), default=0) >= 0


def _give_up(quota: Quota, plan: QuotaPlan, reason: str) -> None:
    """The quota is kept no longer, although what waited has not started."""
    waiting = plan.app.partition.waiting
    waiting.quota_counts[GIVEN_UP] += 1
    plan.app.partition.rm.observer.quota_given_up(quota, plan, reason)
    _drop(quota, plan)


def _drop(quota: Quota, plan: QuotaPlan) -> None:
    """Nothing is kept of the quota any more."""
    quota.plan = None
    del plan.app.partition.waiting.quota_plans[quota]
    if plan.timer is not None:
        plan.timer.cancel()
    if quota.budget is not None:
        quota.budget.keep_share(0)
    quota.regained()


def _charge(kernel: Kernel, quota: Quota, plan: QuotaPlan) -> None:
    """Charge the largest share of the quota that is free and kept."""
    limits, used = _amounts(quota)
    kept = ((min(plan.need.get(at, 0), limit - used[at]), limit) for at, limit in limits)
    if quota.budget is not None:
        share = max((idle * WHOLE // limit for idle, limit in kept if idle > 0), default=0)
        quota.budget.keep_share(share, kernel)


def quotas_of(app: Application) -> tuple[Quota, ...]:
    return *app.queue.lineage, *app.limiting


def _amounts(quota: Quota) -> tuple[tuple[tuple[int, int], ...], list[int]]:
    """The limits by type, and what is used."""
    if isinstance(quota, Queue):
        return quota.limits, quota.allocated
    return quota.resources, quota.usage


def _is_short(quota: Quota, need: dict[int, int]) -> bool:
    limits, used = _amounts(quota)
    return any(need.get(at, 0) > max(0, limit - used[at]) for at, limit in limits)


def _apps_of(quota: Quota) -> Iterable[Application]:
    """The applications that charge the quota."""
    if isinstance(quota, Queue):
        leaves = (each for each in quota.walk() if isinstance(each, LeafQueue))
        return (app for leaf in leaves for app in leaf.apps.values())
    return (app for app in quota.account.applications if quota in app.limiting)
