"""One application: its details, its asks and allocations, and why an ask of it is pending."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from itertools import islice
from typing import Any, Final

from quadriga.core import Scheduler
from quadriga.core.model.allocation import Allocation
from quadriga.core.model.application import Application, EndedApplication
from quadriga.core.model.ask import Ask
from quadriga.core.model.partition import Partition
from quadriga.core.runtime.stepwise import Steps
from quadriga.core.views import NotFound
from quadriga.core.views.applications import waiting_gang
from quadriga.core.views.quantities import amounts
from quadriga.web.pages.data.applications import row
from quadriga.web.pages.data.ended import ended_application
from quadriga.web.pages.data.lookup import application_of
from quadriga.web.pages.data.sorting import both_ways, in_order, share

#: The most kinds of asks, and the most allocations, in one answer.
_KINDS: Final = 50
_ALLOCATIONS: Final = 200

#: The columns that allocations can be sorted by; of equal ones the newest comes first.
_KEYS: Final[dict[str, Callable[[Allocation, Mapping[int, int]], Any]]] = {
    "application": lambda each, whole: each.ask.app.app_id,
    "key": lambda each, whole: each.uuid,
    "state": lambda each, whole: each.state,
    "node": lambda each, whole: each.node.node_id,
    "holds": lambda each, whole: share(each.vector, whole),
    "group": lambda each, whole: each.ask.task_group,
    "since": lambda each, whole: -each.created,
}
SORTS: Final = ("", *both_ways(_KEYS))


def application(
    scheduler: Scheduler, partition: str, app_id: str, sort: str = ""
) -> dict[str, Any]:
    """Everything about an application except its story. ``history`` has every state that it entered,
    with the time.

    Asks that a decision cannot tell apart are one row. The allocations are the newest ones, or the
    first ones of a ``sort``; ``allocations`` and ``placeholders`` of ``row`` have the whole numbers.
    """
    app = application_of(scheduler, partition, app_id)
    if isinstance(app, EndedApplication):
        return ended_application(app)
    kinds = _kinds(app)
    held = [*app.placeholders.values(), *app.allocations.values()]
    return {
        "partition": app.partition.key,
        "row": row(app, scheduler.now),
        "born": app.submitted,
        "history": [[when, state] for when, state in app.history],
        "groups": list(app.groups_of_user),
        "queueAsked": app.queue_asked,
        "placedBy": app.placed_by,
        "tags": dict(sorted(app.tags.items())),
        "released": app.released,
        "backoffUntil": app.backoff_until,
        "style": app.gang.style if app.is_gang else "",
        "placeholderTimeout": app.gang.timeout if app.is_gang else 0,
        "waiting": waiting_gang(app, scheduler.now),
        "placeholderAsk": amounts(app.partition, app.gang.size or ()),
        "taskGroups": [
            {
                "name": name,
                "count": group.count,
                "pending": group.pending,
                "placed": group.allocated,
                "replaced": group.replaced,
                "givenUp": group.timed_out,
                "resource": amounts(app.partition, group.min_resource),
            }
            for name, group in islice(sorted(app.gang.task_groups.items()), _KINDS)
        ],
        "asks": [_kind(asks) for asks in kinds[:_KINDS]],
        "kindsOfAsks": len(kinds),
        "held": allocation_rows(app.partition, held, _ALLOCATIONS, sort),
        "limits": _limits(app),
    }


def _kinds(app: Application) -> list[list[Ask]]:
    """The asks in order of arrival; asks that a decision cannot tell apart are one kind."""
    found: dict[object, list[Ask]] = {}
    for ask in app.asks.values():
        look = (
            ask.state,
            ask.vector,
            ask.priority,
            ask.placeholder,
            ask.task_group,
            ask.required_node,
        )
        found.setdefault(look, []).append(ask)
    return list(found.values())


def _kind(asks: list[Ask]) -> dict[str, Any]:
    first = asks[0]
    reserved = {each.node.node_id for each in first.app.reservations if each.ask in asks}
    return {
        "key": first.ask_key,
        "keys": [ask.ask_key for ask in asks[:5]],
        "alike": len(asks),
        "pending": sum(ask.pending for ask in asks),
        "state": first.state,
        "since": first.created,
        "priority": first.priority,
        "placeholder": first.placeholder,
        "taskGroup": first.task_group,
        "requiredNode": first.required_node,
        "resource": amounts(first.app.partition, first.vector),
        "reservations": sorted(reserved)[:10],
    }


def allocation_rows(
    partition: Partition, allocations: Iterable[Allocation], most: int, sort: str
) -> list[dict[str, Any]]:
    """The newest ``most`` allocations, or the first of a ``sort``."""
    newest = sorted(allocations, key=lambda each: (-each.created, each.key))
    if sort:
        whole = {index: size for index, size in enumerate(partition.capacity) if size}
        newest = in_order(newest, sort, lambda key, each: _KEYS[key](each, whole))
    return [
        {
            "application": each.ask.app.app_id,
            "uuid": each.uuid,
            "key": each.ask.ask_key,
            "node": each.node.node_id,
            "state": each.state,
            "since": each.created,
            "placeholder": each.placeholder,
            "taskGroup": each.ask.task_group,
            "priority": each.ask.priority,
            "resource": amounts(each.ask.app.partition, each.vector),
            "reason": str(each.reason or ""),
            "message": each.message,
            "partner": each.partner.uuid if each.partner is not None else "",
        }
        for each in newest[:most]
    ]


def _limits(app: Application) -> list[dict[str, Any]]:
    """The limits of the application's user and group, with their usage."""
    names = app.partition.registry.names
    return [
        {
            "kind": ledger.account.kind,
            "name": ledger.account.name,
            "shared": ledger.wildcard,
            "queue": ledger.queue.path,
            "used": {names[at]: ledger.usage[at] for at, _ in ledger.resources},
            "max": {names[at]: limit for at, limit in ledger.resources},
            "running": len(ledger.running),
            "maxRunning": ledger.max_applications,
        }
        for ledger in app.limiting
    ]


def waits(scheduler: Scheduler, partition: str, app_id: str, key: str) -> Steps[dict[str, Any]]:
    """Why one ask is pending: a sentence (``verdict``), and every check of a decision, in order, with
    its numbers. ``holders`` hold what the ask lacks, and ``held`` is their number.

    Without ``key`` the ask is the oldest one of the application. The predicates of the resource
    manager are not called. ``ask`` is empty if the application has no ask.
    """
    app = application_of(scheduler, partition, app_id)
    if isinstance(app, EndedApplication) or not app.asks:
        return {"application": app_id, "ask": "", "checks": []}
    ask = app.asks.get(key) if key else min(app.asks.values(), key=lambda each: each.seq)
    if ask is None:
        raise NotFound("Ask not found")
    home = app.partition
    try:
        found = yield from scheduler.explain_in_steps(
            app.app_id, ask.ask_key, home.name, home.rm.rm_id, predicates=False
        )
    except KeyError:
        raise NotFound("Ask not found") from None
    return {
        "application": app.app_id,
        "ask": ask.ask_key,
        "state": ask.state,
        "since": ask.created,
        "resource": amounts(home, ask.vector),
        "hopeless": found.hopeless,
        "verdict": found.verdict,
        "checks": [
            {
                "about": check.about,
                "passed": check.passed,
                "text": check.text,
                "remedy": check.remedy,
                "subject": check.subject,
                "type": check.type,
                "numbers": dict(check.numbers),
                "node": check.node,
                "holders": [asdict(each) for each in check.holders],
                "held": check.held,
            }
            for check in found.checks
        ],
    }
