"""Event producers of gangs that are placed in one step, and of the one that keeps nodes (Q8).

The records say which gang waits for what, which gang keeps which nodes, and when it has given them back.
Each is a record of the application, without a detail, because the protocol has none for gangs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from quadriga.base.times import spelled
from quadriga.core.events.records import APP, NONE, PLAIN, Record, Text
from quadriga.core.model import predictions
from quadriga.core.model.account import Ledger
from quadriga.core.model.gang import ASKS, LIMIT, NODES, QUOTA, some
from quadriga.core.resources.shapes import needed_by

if TYPE_CHECKING:
    from quadriga.core.events.system import EventLog
    from quadriga.core.model.account import QuotaPlan
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.queue import Queue
    from quadriga.core.resources.shapes import Shape

#: at most this number of reserved nodes is named in a record; it counts the others
_NAMED: Final = 5


def gang_gathers(log: EventLog, app: Application) -> None:
    """The start of the gang is planned."""
    own, plan = app.gang, app.partition.node_index.planned
    assert plan is not None
    parts = own.outstanding - plan.missing, own.outstanding, plan.words(log.kernel.now)
    form = "Gang starts to gather: %s of %s members fit now, %s, %s"
    left = app.partition.gather_budget.words(predictions.is_told(own))
    log.enter(_of_gang(log, app, (form, *parts, left)))


def gang_gave_back(log: EventLog, app: Application, reason: str) -> None:
    """The start of the gang is no longer planned, or it gives back nodes that were reserved for it."""
    plan = app.partition.node_index.planned
    nodes = plan.needs if plan is not None and plan.app is app else app.reservations
    form = "Gang gives its nodes back (%s): %s"
    log.enter(_of_gang(log, app, (form, len(nodes), reason)))


def quota_planned(log: EventLog, quota: Queue | Ledger, plan: QuotaPlan) -> None:
    """The start of what waits longest for a quota or a limit is planned there (Q12)."""
    assert quota.budget is not None
    left = spelled(max(0, plan.start - log.kernel.now))
    form = "Start is planned in %s, and until then %s is kept, %s"
    log.enter(_of_gang(log, plan.app, (form, left, _owner(quota), quota.budget.words())))


def quota_given_up(log: EventLog, quota: Queue | Ledger, plan: QuotaPlan, reason: str) -> None:
    """What waited has not started, and nothing is kept for it there any more."""
    form = "Nothing of %s is kept any more: %s"
    log.enter(_of_gang(log, plan.app, (form, _owner(quota), reason)))


def _owner(quota: Queue | Ledger) -> str:
    if isinstance(quota, Ledger):
        account = quota.account
        return f"the limit of {account.kind} '{account.name}' in queue '{quota.queue.path}'"
    return f"the quota of queue '{quota.path}'"


def gang_placed(log: EventLog, app: Application, number: int) -> None:
    """All outstanding members have a node."""
    app.gang.last_event = ()
    log.enter(_of_gang(log, app, ("Gang is placed: all %s outstanding members", number)))


def gang_preempts(log: EventLog, app: Application, victims: Sequence[Allocation]) -> None:
    """The gang preempts what overran on the nodes of its planned start."""
    form = "Gang preempts %s allocations that overran on the nodes of its planned start: %s"
    text = (form, len(victims), some([each.key for each in victims]))
    log.enter(_of_gang(log, app, text))


def gang_waits(log: EventLog, app: Application, lacks: Sequence[tuple[Shape, int]]) -> None:
    """The gang lacks something. There is one record until it lacks something else, not one for each
    attempt."""
    event, text = _WAITS.get(app.gang.lacks, _of_predicates)(app, lacks)
    if app.gang.last_event != event:
        app.gang.last_event = event
        log.enter(_of_gang(log, app, text))


#: what the gang lacks, and how the record says it
_Wait = tuple[tuple[object, ...], Text]


def _of_nodes(app: Application, lacks: Sequence[tuple[Shape, int]]) -> _Wait:
    own = app.gang
    event = (NODES, *(shape.requires for shape, _ in lacks))
    if own.last_event == event:
        return event, ""
    form = "Gang waits for nodes: %s of %s members could start now"
    parts: list[object] = [own.outstanding - own.missing, own.outstanding]
    for shape, number in lacks:
        form += ", no room for %s of %s"
        parts += [number, shape.vector]
    if own.local and own.shortage:
        form += ": %s"
        parts.append(own.shortage)
    reserved = _reserved_for_others(app, lacks)
    if reserved:
        form += "; nodes with room are reserved: %s"
        parts.append(reserved)
    return event, (form, *parts)


def _reserved_for_others(app: Application, lacks: Sequence[tuple[Shape, int]]) -> str:
    """The nodes that would have room for a member and are reserved for other applications."""
    shown: list[str] = []
    more = 0
    for each in app.partition.reservations:
        node, holder = each.node, each.ask.app
        if holder is app or node.reservation is not each or not node.open:
            continue
        if not any(shape.fits(node.available) for shape, _ in lacks):
            continue
        if len(shown) < _NAMED:
            shown.append(f"{node.node_id} for application {holder.app_id}")
        else:
            more += 1
    if more:
        shown.append(f"and {more} more")
    return ", ".join(shown)


def _of_asks(app: Application, lacks: Sequence[tuple[Shape, int]]) -> _Wait:
    form = "Gang waits for its asks: announced %s, asked for %s so far"
    return (ASKS,), (form, tuple(app.gang.size or ()), tuple(app.pending))


def _of_quota(app: Application, lacks: Sequence[tuple[Shape, int]]) -> _Wait:
    queue: Queue = next(each for each in app.queue.lineage if app in each.gated)
    form = "Gang does not fit in queue '%s' (requested %s, available %s)"
    return (QUOTA, queue.path), (form, queue.path, _requested(app), _left(queue))


def _left(queue: Queue) -> dict[int, int]:
    """What the quota leaves, without what is kept for gangs that have started."""
    return {
        at: max(0, limit - queue.allocated[at] - queue.reserved_headroom[at])
        for at, limit in queue.limits
    }


def _of_limit(app: Application, lacks: Sequence[tuple[Shape, int]]) -> _Wait:
    ledger: Ledger = next(each for each in app.limiting if app in each.gated)
    account, queue = ledger.account, ledger.queue.path
    left = {at: max(0, limit - ledger.usage[at]) for at, limit in ledger.resources}
    form = "Gang exceeds the available quota of %s '%s' in queue '%s' (requested %s, available %s)"
    parts = (account.kind, account.name, queue, _requested(app), left)
    return (LIMIT, account.kind, account.name, queue), (form, *parts)


def _requested(app: Application) -> dict[int, int]:
    """What the outstanding members ask for together."""
    return needed_by((group.shape, group.pending) for group in app.gang.members)


def _of_predicates(app: Application, lacks: Sequence[tuple[Shape, int]]) -> _Wait:
    text = "Gang waits for nodes: the predicates accept no node for one of its members"
    return (app.gang.lacks,), text


def _of_gang(log: EventLog, app: Application, text: Text) -> Record:
    held, registry = tuple(app.allocated), app.partition.registry
    return (log.kernel.now, APP, NONE, PLAIN, app.app_id, "", registry, held, text)


# fmt: off
#: by what the gang lacks
_WAITS: Final[dict[str, Any]] = {
    NODES: _of_nodes,
    ASKS:  _of_asks,
    QUOTA: _of_quota,
    LIMIT: _of_limit,
}
# fmt: on
