"""Lists of applications, with filters, one page at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from quadriga.core import Scheduler
from quadriga.core.explain.asks import brief
from quadriga.core.model.application import Application, EndedApplication
from quadriga.core.model.partition import Partition
from quadriga.core.runtime.stepwise import Steps, chunks
from quadriga.core.views.quantities import amounts
from quadriga.fsm import APPLICATION
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.web.pages.data.ended import ended_queue, ended_row, in_words
from quadriga.web.pages.data.lookup import partition_of
from quadriga.web.pages.data.sorting import both_ways, page_in_order, share

Known = Application | EndedApplication

#: The choices of applications: those that want resources, those with preempted allocations, those in
#: one state, all living ones, all ended ones, or any.
CHOICES: Final = ("", "pending", "preempted", "living", "ended", *APPLICATION.states)

Key = Callable[[Known, int, "Mapping[int, int]"], Any]


def _age(app: Known, now: int) -> int:
    """The time since the submission, or from the submission to the end."""
    return (app.finished or now) - app.submitted


def _held(app: Known) -> int:
    """The number of allocations, placeholders included."""
    if isinstance(app, EndedApplication):
        return 0
    return len(app.allocations) + len(app.placeholders)


#: States in the order of the lifecycle.
_RANK: Final[dict[str, int]] = {state: index for index, state in enumerate(APPLICATION.states)}

#: The columns that the list can be sorted by; of equal ones the newest comes first.
_KEYS: Final[dict[str, Key]] = {
    "id": lambda app, now, whole: app.app_id,
    "state": lambda app, now, whole: _RANK[app.state],
    "since": lambda app, now, whole: now - _since(app),
    "queue": lambda app, now, whole: _queue_of(app),
    "user": lambda app, now, whole: app.user,
    "asks": lambda app, now, whole: len(app.asks) if isinstance(app, Application) else 0,
    "allocations": lambda app, now, whole: _held(app),
    "holds": lambda app, now, whole: share(app.allocated, whole),
    "age": lambda app, now, whole: _age(app, now),
}
SORTS: Final = ("", *both_ways(_KEYS))


def application_rows(
    scheduler: Scheduler,
    *,
    partition: str,
    queue: str,
    user: str,
    state: str,
    text: str,
    sort: str,
    offset: int,
    limit: int,
) -> Steps[dict[str, Any]]:
    """The applications that match every filter, newest first or by ``sort`` (with ``-`` the largest
    first): ``total`` and the rows of one page.

    ``queue`` is a path and includes the queues below it, or else a part of a path. ``user`` is a name,
    or a part of one if no user here has that name. ``text`` is a part of the id. Case matters only for
    the whole name of a user.
    """
    found = partition_of(scheduler, partition)
    page, chosen = slice(offset, offset + limit), list(_from_newest(found, state))
    for fits in _filters(found, queue, user, state, text):
        every, chosen = chosen, []
        for some in chunks(every):
            chosen += filter(fits, some)
            yield
    shown = chosen[page]
    if sort:
        whole = {index: size for index, size in enumerate(found.capacity) if size}
        shown = yield from page_in_order(
            chosen, sort, lambda key, app: _KEYS[key](app, scheduler.now, whole), page
        )
    rows = []
    for app in shown:
        rows.append(row(app, scheduler.now))
        yield
    return {
        "partition": found.key,
        "total": len(chosen),
        "offset": offset,
        "limit": limit,
        "rows": rows,
    }


def _from_newest(partition: Partition, state: str) -> Iterator[Known]:
    """Living applications, the last submitted first, then ended ones, the last ended first."""
    living: Iterable[Known] = reversed(partition.applications.values())
    ended: Iterable[Known] = reversed(partition.ended)
    return chain(
        () if state == "ended" or state in application_fsm.ENDED else living,
        () if state in ("living", "pending") else ended,
    )


def _filters(
    partition: Partition, queue: str, user: str, state: str, text: str
) -> Iterator[Callable[[Known], bool]]:
    if queue:
        path, below = queue.lower(), queue.lower() + "."
        if partition.queue(path) is not None:
            yield lambda app: (where := _queue_of(app)) == path or where.startswith(below)
        else:
            yield lambda app: path in _queue_of(app)
    if user:
        if user in partition.users:
            yield lambda app: app.user == user
        else:
            name = user.casefold()
            yield lambda app: name in app.user.casefold()
    if state in APPLICATION.states:
        yield lambda app: app.state == state
    elif state == "pending":
        yield is_pending
    elif state == "preempted":
        yield _was_preempted
    if text:
        piece = text.casefold()
        yield lambda app: piece in app.app_id.casefold()


def is_pending(app: Known) -> bool:
    """Whether the application wants resources: an ask of it waits for an allocation or a placeholder."""
    return isinstance(app, Application) and bool(app.asks)


def _was_preempted(app: Known) -> bool:
    """Whether an allocation of it was preempted, or its preemption is in progress."""
    return bool(app.preempted or (isinstance(app, Application) and app.preempting))


def _since(app: Known) -> int:
    """The time at which the application entered its state (ns)."""
    if isinstance(app, EndedApplication):
        return app.finished
    return app.history[-1][0]


def _reason(app: Application, now: int) -> str:
    """The reason of the application's last transition, or what its oldest ask waits for. The
    page of the application has the same, and every check of that ask besides."""
    if app.reason:
        return in_words(app.reason)
    if app.asks:
        return brief(min(app.asks.values(), key=lambda ask: ask.seq), now)
    return ""


def _queue_of(app: Known) -> str:
    """The queue of the application, or the queue that it asked for if it never had one."""
    return ended_queue(app) if isinstance(app, EndedApplication) else app.queue_path


def row(app: Known, now: int) -> dict[str, Any]:
    """One application in a list. ``since`` is the time at which it entered its state; only gangs have
    ``gang``."""
    if isinstance(app, EndedApplication):
        return ended_row(app)
    partition = app.partition
    found: dict[str, Any] = {
        "id": app.app_id,
        "queue": _queue_of(app),
        "user": app.user,
        "state": app.state,
        "since": _since(app),
        "reason": _reason(app, now),
        "preempting": app.preempting,
        "preempted": app.preempted,
        "submitted": app.submitted,
        "started": app.start_time,
        "finished": 0,
        "priority": app.priority,
        "asks": len(app.asks),
        "allocations": len(app.allocations),
        "placeholders": len(app.placeholders),
        "reservations": len(app.reservations),
        "allocated": amounts(partition, app.allocated),
        "pending": amounts(partition, app.pending),
        "message": "",
    }
    if app.is_gang:
        groups, real, waiting = app.gang.task_groups.values(), 0, 0
        if app.gang.without_placeholders:
            real, waiting = len(app.allocations), sum(ask.pending for ask in app.asks.values())
        found["gang"] = {
            "groups": len(groups),
            "count": sum(group.count for group in groups) + real + waiting,
            "pending": sum(group.pending for group in groups) + waiting,
            "placed": sum(group.allocated for group in groups),
            "replaced": sum(group.replaced for group in groups) + real,
            "givenUp": sum(group.timed_out for group in groups),
            "whole": app.started or app.has_its_gang,
        }
    return found
