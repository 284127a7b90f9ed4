"""Asks as data, with what holds them up at present."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quadriga.core import gang, limits
from quadriga.core.order.shapes import Shape
from quadriga.core.scale_up import looked_at
from quadriga.core.views.quantities import amounts

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.views.objects import AskLogEntry, AskObject

__all__ = ["ask_objects"]


def ask_objects(app: Application, now: int) -> list[AskObject]:
    """What the application still asks for, in order of arrival. A parked ask (G29) is one of them,
    with nothing pending."""
    return [_ask_object(ask, now) for ask in sorted(app.asks.values(), key=lambda a: a.seq)]


def _ask_object(ask: Ask, now: int) -> AskObject:
    app = ask.app
    return {
        "allocationKey": ask.ask_key,
        "allocationTags": dict(sorted(ask.tags.items())),
        "requestTime": ask.created,
        "resource": amounts(app.partition, ask.vector),
        "pendingCount": ask.pending - (ask.planned is not None),
        "priority": str(ask.priority),
        "requiredNodeId": ask.required_node,
        "applicationId": app.app_id,
        "partition": app.partition.name,
        "placeholder": ask.placeholder,
        "placeholderTimeout": ask.run_limit,
        "taskGroupName": ask.task_group,
        "allocationLog": [_entry(text, now) for text in _obstacles(ask, now)],
        "triggeredPreemption": ask.preempted,
        "originator": ask.originator,
        "schedulingAttempted": _was_tried(ask),
        "triggeredScaleUp": ask.hinted,
    }


def _entry(message: str, now: int) -> AskLogEntry:
    """What is in the way is looked up when it is read, so it was last seen now, once."""
    return {"message": message, "lastOccurrence": now, "count": 1}


def _was_tried(ask: Ask) -> bool:
    """Whether some round has looked for a place for it, or for one of the same shape, in vain; a
    user's limit comes before that (5.6)."""
    app, group = ask.app, ask.group
    if ask.planned is not None:
        return True
    if group is not None and limits.short(app, group.shape) is not None:
        return False
    if looked_at(app.partition, ask):
        return True
    if group is None or not group.bits:
        return False
    return not group.shape.place & app.partition.board.able or any(
        group.shape in queue.short_of for queue in app.queue.lineage
    )


def _obstacles(ask: Ask, now: int) -> Iterator[str]:
    """Why it is not allocated, from what the scheduler remembers; the numbers are ``explain``'s."""
    app = ask.app
    partition = app.partition
    if ask.planned is not None:
        yield "Waiting for the placeholder to be released"
        return
    if not ask.placeholder and app.holding:
        yield "Held until the gang is complete"
        return
    group = app.task_groups.get(ask.task_group)
    if not ask.placeholder and group is not None and group.can_replace:
        yield "Waiting for a placeholder of its task group"
        return
    if ask.placeholder and gang.gate(app) is not None:
        yield "Not enough queue quota for the whole gang"
        return
    waits = ask.group
    shape = waits.shape if waits is not None else Shape(0, ask.vector, ask.required_node)
    if limits.full(app) is not None:
        yield "Too many applications of the user or group are running"
    if limits.short(app, shape) is not None:
        yield "Not enough user quota"
    if any(queue.limits and not queue.has_room(shape) for queue in app.queue.lineage):
        yield "Not enough queue quota"
    elif ask in partition.aside:
        yield "Predicate failed on every node"
    elif waits is not None and not shape.place & partition.board.able:
        yield "No node has room"
    if app.backoff_until > now:
        yield "Application is left alone after too many asks that could not be placed"
