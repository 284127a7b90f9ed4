"""Preemption of what overran on the nodes of a planned start (``gang.gather.preempt: overrun``, Q9).

An allocation that is placed on such a node because it is expected to end before the start is lent it, which the budget
remembers (``gang.Lent``). If it runs for a minute longer than expected, it is preempted as soon as a new plan
shows that the gang could start without it. The rules are those of preemption for a gang, except that the gang needs no
guarantee and that its own queue may lose allocations as well. No queue falls below its guarantee. See D355.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.core.gangs import planned_start
from quadriga.core.gangs import preemption as gang_preemption
from quadriga.core.model.gather_budget import PREEMPTED
from quadriga.core.preemption import for_gang
from quadriga.core.preemption.candidates import candidates_among
from quadriga.core.preemption.queue_snapshot import Snapshots
from quadriga.core.preemption.shortfall import Evicted, add_to

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.gang import PlannedStart
    from quadriga.core.preemption.candidates import Candidate
    from quadriga.core.runtime.kernel import Kernel

#: at most this many plans are made, each without what guarantees kept from being evicted for the one before
_MOST_PLANS: Final = 4

_OUTCOME: Final = "preempted what overran on the nodes of its planned start"


def preempt(kernel: Kernel, app: Application) -> PlannedStart | None:
    """Preempt what overran if the protected gang could start without, and return the plan for when it has gone. A gang
    preempts once."""
    partition, own, members = app.partition, app.gang, app.gang.members
    if not app.queue.properties.gang_gather_preempt or own.preempted or not members:
        return None
    late = partition.lent.overran(kernel.now)
    if not late or not partition.config.preemption_enabled:
        return None
    if not all(ask.terms.allow_preempt_other for group in members for ask in group.asks.values()):
        return None
    snapshots = Snapshots(app.queue)
    needs = for_gang.needs_of(app, members)
    priority = min(group.priority for group in members)
    left = candidates_among(late, app.queue, priority, needs, snapshots)
    left.sort(key=lambda each: each.willing_first)
    for _ in range(_MOST_PLANS):
        if not left:
            return None
        plan = planned_start.find(kernel, app, {each.allocation for each in left})
        if plan is None or plan.start > kernel.now:
            return None
        evicted = Evicted()
        victims = _needed(plan, left)
        kept = [each for each in victims if not evicted.add(each)]
        if not kept:
            return plan if _carry_out(kernel, app, plan, victims) else None
        left = [each for each in left if each not in kept]
    return None


def _needed(plan: PlannedStart, candidates: list[Candidate]) -> list[Candidate]:
    """Those of the candidates that have to go for the plan. The last ones are spared first."""
    chosen: list[Candidate] = []
    for node, need in plan.needs.items():
        here = [each for each in candidates if each.allocation.node is node]
        free = list(node.available)
        for each in here:
            add_to(free, each.allocation.on_node)
        for each in reversed(here):
            add_to(free, each.allocation.on_node, -1)
            if any(map(int.__lt__, free, need)):
                add_to(free, each.allocation.on_node)
                chosen.append(each)
    return sorted(chosen, key=lambda each: each.willing_first)


def _carry_out(
    kernel: Kernel, app: Application, plan: PlannedStart, victims: list[Candidate]
) -> bool:
    """Evict the victims, and reserve the nodes, if quotas, limits and predicates would let all members start then."""
    if not victims:
        return False
    found = for_gang.room_without(kernel, app, app.gang.members, victims, list(plan.needs))
    if isinstance(found, str):
        return False
    app.partition.gather_budget.counts[PREEMPTED] += len(victims)
    app.partition.rm.observer.gang_preempts(app, found.victims)
    gang_preemption.carry_out(kernel, app, app.gang.members, found, _OUTCOME)
    plan.tried = True
    return True
