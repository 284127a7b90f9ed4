"""A gang that waits as data: what it lacks, and when and where its start is planned (Q8, Q9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.core.model.gang import NODES
from quadriga.core.model.run_times import LIMIT, NOTHING, TOLD
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import gang as gang_fsm

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.gang import PlannedStart
    from quadriga.core.views.objects import PlannedStartObject, WaitingGangObject

#: at most this many nodes, and applications, of a planned start are listed
_LISTED: Final = 100


def waiting_gang(app: Application, now: int) -> WaitingGangObject | None:
    """The gang of the application at ``now`` (ns); ``None`` unless its members wait for places."""
    own, partition = app.gang, app.partition
    if (
        not app.is_gang
        or own.state not in gang_fsm.WAITS
        or app.state not in application_fsm.SERVED
    ):
        return None
    plan = partition.node_index.planned
    protected = plan is not None and plan.app is app
    left, waits = partition.gather_budget.left(own.is_told), own.waiting_since >= 0
    due = waits and own.lacks in (NODES, "") and own.may_gather_from <= now
    found: WaitingGangObject = {
        "style": own.style,
        "lacks": own.lacks,
        "members": own.outstanding,
        "missing": own.missing,
        "mayGather": protected or (due and left > 0),
        "budgetLeft": left,
    }
    if waits:
        found["waitingSince"], found["mayGatherFrom"] = own.waiting_since, own.may_gather_from
    if own.timed_since >= 0:
        found["timesOut"] = own.timed_since + own.timeout
    if plan is not None and protected:
        found["plannedStart"] = _planned_start(plan, now)
    return found


def _planned_start(plan: PlannedStart, now: int) -> PlannedStartObject:
    users, estimates = plan.users, dict.fromkeys((TOLD, LIMIT, "predicted", NOTHING), 0)
    for source, number in plan.sources.items():
        estimates[source if source in estimates else "predicted"] += number
    return {
        "start": plan.start,
        "promised": plan.promised,
        "nodes": plan.nodes[:_LISTED],
        "nodeCount": len(plan.needs),
        "users": users[:_LISTED],
        "userCount": len(users),
        "estimates": estimates,
        "overran": len(plan.app.partition.gather_budget.overran(now)),
    }
