"""Quotas and limits that are kept for what has waited longest for them (Q12).

What a queue's quota or a user's limit has too little room for is passed by smaller asks for ever, as they take
what comes free. So the gang or single ask that comes first, of those that have waited for ``gang.gather.after``, has a
planned start: when enough of the quota comes free by what is expected of the allocations below. Until then others
have of it what they give back in time, or what fits beside (``QuotaPlan``). What is kept idle is charged to a
budget of the queue (Q10). See D298.

Waiters are looked for at most once a minute, and only where something was short of quota. A plan is made again
when something came back, or its start has come. Both rest in proportion to what they have examined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from quadriga.base.times import SECOND
from quadriga.core.model.account import Ledger, QuotaPlan
from quadriga.core.model.gather_budget import GatherBudget, scarcest
from quadriga.core.model.queue import LeafQueue, Queue
from quadriga.core.model.run_times import NOTHING, Expected
from quadriga.core.resources.demand import EVERY_BIT
from quadriga.core.resources.shapes import needed_by
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import gang as gang_fsm

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.runtime.kernel import Kernel

#: the timer that fires at a planned start
_TIMER: Final = "partition.planned_start"
#: what nothing is known of is expected to last this long (ns) at least
_SHORTEST: Final = 60 * SECOND
#: waiters are looked for this often (ns) at most, and what gave up rests this long at least
_LOOK_AGAIN: Final = 60 * SECOND
_REST: Final = 600 * SECOND
#: a plan takes at most this many allocations into account
_MOST_EXAMINED: Final = 20_000
#: a plan for which more than a thousand were examined is made again after this time (ns) for each of them
_FEW_EXAMINED: Final = 1_000
_REST_FOR_EACH: Final = SECOND // 10_000


class _Waiter(NamedTuple):
    """A gang, or an ask of this shape, that a quota has too little room for."""

    order: tuple[int, int, int]
    app: Application
    shape: Shape | None
    need: dict[int, int]


# -- decisions -------------------------------------------------------------------------------------


def is_kept(app: Application) -> bool:
    """Whether a plan bounds what the application may have of its quotas and limits."""
    return any(quota.plan is not None for quota in _quotas_of(app))


def delays(quota: Queue | Ledger, app: Application, members: list[AskGroup]) -> bool:
    """Whether members that are placed together would delay the plan of the quota."""
    plan, now = quota.plan, app.partition.node_index.now
    if plan is None or plan.app is app or all(plan.lends(each.shape, now) for each in members):
        return False
    return not plan.leaves(needed_by((each.shape, each.pending) for each in members).items())


def took(app: Application, shape: Shape, number: int) -> None:
    """So many asks of the shape were placed, and their quotas and limits are charged."""
    now = app.partition.node_index.now
    for quota in _quotas_of(app):
        plan = quota.plan
        if plan is None or (plan.app is app and plan.shape is None):
            continue
        if plan.app is app and plan.shape is shape:
            _drop(quota)
        elif not plan.lends(shape, now):
            for at, value in shape.need:
                if at in plan.beside:
                    plan.beside[at] -= value * number


def placed(app: Application) -> None:
    """All members of the gang were placed."""
    for quota in _quotas_of(app):
        if quota.plan is not None and quota.plan.app is app:
            _drop(quota)


def renew(kernel: Kernel, partition: Partition) -> None:
    """Make plans again if something has changed, drop those that gain nothing, and look for new waiters."""
    waiting, now = partition.waiting, kernel.now
    for quota, plan in list(waiting.quota_plans.items()):
        if not _waits(quota, plan):
            _drop(quota)
            continue
        _charge(kernel, quota, plan)
        comes = plan.start <= now and _is_short(quota, plan.need)  # something overran
        if (plan.stale or comes) and plan.again <= now:
            start, left = plan.start, plan.beside
            _apply(kernel, quota, plan, _plan_again(quota, plan, now))
            more = plan.start > start or any(plan.beside[at] > left[at] for at in left)
            if quota.plan is plan and more:
                quota.regained()
                plan.stale = False
        if quota.plan is plan and plan.check <= now:
            _go_on(kernel, quota, plan)
    if waiting.short_quotas and waiting.look_at_quotas <= now:
        examined = sum([_look(kernel, quota) for quota in list(waiting.short_quotas)])
        waiting.look_at_quotas = now + max(_LOOK_AGAIN, examined * _REST_FOR_EACH)


def end_of(partition: Partition, allocation: Allocation, now: int) -> Expected | None:
    """When the allocation is expected to end; ``None``: never. One of which nothing is known is expected to last
    as long again as it has run."""
    if partition.gather_budget.is_endless(allocation, now):
        return None
    expected = partition.run_times.end_of(allocation, now)
    if expected is None:
        return Expected(now + max(now - allocation.created, _SHORTEST), NOTHING)
    return expected


# -- who waits -------------------------------------------------------------------------------------


def _look(kernel: Kernel, quota: Queue | Ledger) -> int:
    """Plan the start of the first waiter of the quota, if it has none; return the number of applications and
    allocations examined."""
    waiting, now = _partition(quota).waiting, kernel.now
    first, found, examined = None, False, 0
    if (
        quota.plan is None
        and _is_live(quota)
        and not (isinstance(quota, Queue) and not quota.parent)
    ):
        for app in _apps_of(quota):
            examined += 1
            for waiter in _waiters(quota, app, now):
                found = True
                if _due(waiter, app) <= now and (first is None or waiter.order < first.order):
                    first = waiter
    if first is not None:
        budget = quota.budget
        if budget is None:
            queue = quota if isinstance(quota, Queue) else quota.queue
            budget = quota.budget = GatherBudget(queue.partition, queue)
        if not budget.spent(now):
            plan = QuotaPlan(first.app, first.shape, first.need)
            planned = _plan_again(quota, plan, now)
            plan.start_before, plan.check = plan.start, now + first.app.gang.patience
            _apply(kernel, quota, plan, planned)
            examined += len(first.app.partition.applications)
    if quota.plan is None and not found and not quota.short_of and not quota.gated:
        del waiting.short_quotas[quota]
    return examined


def _due(waiter: _Waiter, app: Application) -> int:
    return max(waiter.order[1] + app.queue.properties.gang_gather_after, app.gang.rests_until)


def _waiters(quota: Queue | Ledger, app: Application, now: int) -> Iterator[_Waiter]:
    """What waits for the quota, of this application. What is larger than the quota waits in vain."""
    if not app.groups or app.state not in application_fsm.SERVED or app.blocked or app.not_admitted:
        return
    if any(queue.blocked == EVERY_BIT for queue in app.queue.lineage):
        return
    own, index = app.gang, app.partition.node_index
    limits = dict(_amounts(quota)[0])
    if own.has_all_asks and own.state in gang_fsm.WAITS and (members := own.members):
        need = needed_by((group.shape, group.pending) for group in members)
        fits = all(g.pending <= index.room_when_empty(g.shape) for g in members)
        if (
            fits
            and _is_short(quota, need)
            and all(n <= limits.get(at, n) for at, n in need.items())
        ):
            priority = max(group.priority for group in members)
            since = max(group.head.created for group in members)
            yield _Waiter((-priority, since, app.seq), app, None, need)
    for group in app.groups.values():
        shape = group.shape
        if (
            not own.starts_whole(group)
            and group.demand & shape.allocate
            and not (group.kind.placeholder and not own.started and own.admission == "whole")
            and not shape.stays_within(*_amounts(quota))
            and all(value <= limits.get(at, value) for at, value in shape.need)
            and index.room_when_empty(shape)
        ):
            order = (-group.priority, group.head.created, app.seq)
            yield _Waiter(order, app, shape, dict(shape.need))


def _waits(quota: Queue | Ledger, plan: QuotaPlan) -> bool:
    """Whether the plan is still that of something that waits."""
    app = plan.app
    if app.state not in application_fsm.SERVED or app.blocked or quota not in _quotas_of(app):
        return False
    if plan.shape is None:
        need = needed_by((group.shape, group.pending) for group in app.gang.members)
        return app.gang.state in gang_fsm.WAITS and need == plan.need
    return any(each.shape is plan.shape and each.demand for each in app.groups.values())


# -- plans -----------------------------------------------------------------------------------------


def _plan_again(quota: Queue | Ledger, plan: QuotaPlan, now: int) -> bool:
    """Find the earliest start; return False if what has no expected end is in the way, or a gang that has started and
    lacks members."""
    if isinstance(quota, Queue) and any(quota.reserved_headroom):
        return False
    limits, used = _amounts(quota)
    need, partition = plan.need, _partition(quota)
    free = {at: limit - used[at] for at, limit in limits if need.get(at)}
    held = (
        allocation
        for app in _apps_of(quota)
        for each in (app.allocations, app.placeholders)
        for allocation in each.values()
    )
    ends = []
    for allocation in islice(held, _MOST_EXAMINED):
        if (expected := end_of(partition, allocation, now)) is not None:
            ends.append((expected.time, allocation.vector))
    start = now
    for time, vector in sorted(ends, key=itemgetter(0)):
        if time > start and all(free[at] >= need[at] for at in free):
            break
        start = time
        for at in free:
            free[at] += vector[at] if at < len(vector) else 0
    plan.start, plan.stale = start, False
    plan.beside = {at: room - need[at] for at, room in free.items()}
    plan.again = now + (len(ends) * _REST_FOR_EACH if len(ends) > _FEW_EXAMINED else 0)
    return min(plan.beside.values(), default=0) >= 0


def _apply(kernel: Kernel, quota: Queue | Ledger, plan: QuotaPlan, planned: bool) -> None:
    """The plan is in force from now on; or, if there is none, the waiter rests."""
    if not planned:
        _give_up(kernel, quota, plan)
        return
    quota.plan = _partition(quota).waiting.quota_plans[quota] = plan
    _charge(kernel, quota, plan)
    _start_timer(kernel, quota, plan)


def _start_timer(kernel: Kernel, quota: Queue | Ledger, plan: QuotaPlan) -> None:
    if plan.timer is not None:
        plan.timer.cancel()
    due = min([each for each in (plan.start, plan.check) if each > kernel.now] or [kernel.now])
    partition = _partition(quota)
    plan.timer = kernel.timers.start(kernel.now, due - kernel.now, _TIMER, partition)


def _go_on(kernel: Kernel, quota: Queue | Ledger, plan: QuotaPlan) -> None:
    """The patience has ended: go on if the start came nearer, else give up (Q10, D331)."""
    start, own = max(plan.start, kernel.now), plan.app.gang
    gained = start < plan.start_before + own.patience
    bounded = plan.app.queue.properties.gang_gather_patience
    if gained or not (bounded or (quota.budget and quota.budget.spent(kernel.now))):
        plan.start_before, plan.check = start, kernel.now + own.patience
        _start_timer(kernel, quota, plan)
    else:
        _give_up(kernel, quota, plan)


def _give_up(kernel: Kernel, quota: Queue | Ledger, plan: QuotaPlan) -> None:
    plan.app.gang.rests_until = kernel.now + max(_REST, plan.app.gang.patience)
    if quota.plan is plan:
        _drop(quota)


def _drop(quota: Queue | Ledger) -> None:
    """Nothing is kept of the quota any more."""
    plan, quota.plan = quota.plan, None
    del _partition(quota).waiting.quota_plans[quota]
    if plan is not None and plan.timer is not None:
        plan.timer.cancel()
    if quota.budget is not None:
        quota.budget.keep_share(0)
    if _is_live(quota):
        quota.regained()


def _charge(kernel: Kernel, quota: Queue | Ledger, plan: QuotaPlan) -> None:
    """Charge what is free of what the waiter needs."""
    limits, used = _amounts(quota)
    assert quota.budget is not None
    idle = (
        (min(plan.need[at], max(0, limit - used[at])), used[at], limit)
        for at, limit in limits
        if plan.need.get(at)
    )
    quota.budget.keep_share(scarcest(idle), kernel)


# -- quotas and limits -----------------------------------------------------------------------------


def _quotas_of(app: Application) -> tuple[Queue | Ledger, ...]:
    return *app.queue.lineage, *app.limiting


def _partition(quota: Queue | Ledger) -> Partition:
    return quota.partition if isinstance(quota, Queue) else quota.queue.partition


def _amounts(quota: Queue | Ledger) -> tuple[tuple[tuple[int, int], ...], list[int]]:
    """The limits by type, and what is used."""
    if isinstance(quota, Queue):
        return quota.limits, quota.allocated
    return quota.resources, quota.usage


def _is_short(quota: Queue | Ledger, need: dict[int, int]) -> bool:
    limits, used = _amounts(quota)
    return any(need.get(at, 0) > max(0, limit - used[at]) for at, limit in limits)


def _is_live(quota: Queue | Ledger) -> bool:
    """Whether it is in use: after a change of limits others take the place of all ledgers."""
    if isinstance(quota, Queue):
        return True
    return quota.account.ledgers.get(quota.queue.path) is quota


def _apps_of(quota: Queue | Ledger) -> Iterable[Application]:
    """The applications that charge the quota."""
    if isinstance(quota, Queue):
        leaves = (each for each in quota.walk() if isinstance(each, LeafQueue))
        return (app for leaf in leaves for app in leaf.apps.values())
    return (app for app in quota.account.applications if quota in app.limiting)
