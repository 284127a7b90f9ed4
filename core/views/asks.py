"""Asks as data, with what holds them up at present."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from quadriga.core.model.resources import Vector
from quadriga.core.model.shapes import Shape
from quadriga.core.scheduling import gang, limits
from quadriga.core.scheduling.scale_up import looked_at
from quadriga.core.views.quantities import amounts

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.views.objects import AskLogEntry, AskObject

__all__ = ["AskSeen", "ask_objects", "obstacle", "see_asks"]


#: the ask; its tags, its resources, its priority, when it arrived; how many are pending; what is in its
#: way; whether others had to go for it, whether it was tried, whether it was hinted at
AskSeen = tuple["Ask", dict[str, str], Vector, int, int, int, Sequence[str], bool, bool, bool]


def see_asks(app: Application, now: int) -> tuple[AskSeen, ...]:
    """What the application still asks for, as it is now. A parked ask (G29) is one of them, with nothing
    pending."""
    aside = app.partition.waiting.deferred_asks
    # Asks that wait together meet the same obstacles.
    known: dict[object, list[str]] = {}
    found: list[AskSeen] = []
    for ask in app.asks.values():
        planned = ask.planned is not None
        alike = ask.group, ask.placeholder, planned, ask in aside
        obstacles = known.get(alike) if ask.group is not None else None
        if obstacles is None:
            obstacles = known[alike] = list(_obstacles(ask, now))
        found.append(
            (
                ask,
                ask.terms.tags,
                ask.vector,
                ask.priority,
                ask.created,
                ask.pending - planned,
                obstacles,
                ask.preempted,
                _was_tried(ask),
                ask.hinted,
            )
        )
    return tuple(found)


def ask_objects(seen: Iterable[AskSeen], now: int) -> list[AskObject]:
    """What was seen at ``now``, in order of arrival."""
    return [_ask_object(each, now) for each in sorted(seen, key=lambda one: one[0].seq)]


def _ask_object(seen: AskSeen, now: int) -> AskObject:
    ask, tags, vector, priority, created, pending, obstacles, preempted, tried, hinted = seen
    app = ask.app
    return {
        "allocationKey": ask.ask_key,
        "allocationTags": dict(sorted(tags.items())),
        "requestTime": created,
        "resource": amounts(app.partition, vector),
        "pendingCount": pending,
        "priority": str(priority),
        "requiredNodeId": ask.required_node,
        "applicationId": app.app_id,
        "partition": app.partition.name,
        "placeholder": ask.placeholder,
        "placeholderTimeout": ask.terms.run_limit,
        "taskGroupName": ask.task_group,
        "allocationLog": [_entry(text, now) for text in obstacles],
        "triggeredPreemption": preempted,
        "originator": ask.terms.originator,
        "schedulingAttempted": tried,
        "triggeredScaleUp": hinted,
    }


def _entry(message: str, now: int) -> AskLogEntry:
    """What is in the way is looked up when it is read, so it was last seen now, once."""
    return {"message": message, "lastOccurrence": now, "count": 1}


def obstacle(ask: Ask, now: int) -> str:
    """The first of what is in its way, as the scheduler remembers it; empty if nothing is known."""
    return next(_obstacles(ask, now), "")


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
    if group is None or not group.demand:
        return False
    return not group.shape.allocate & app.partition.node_index.feasible or any(
        group.shape in queue.short_of for queue in app.queue.lineage
    )


def _obstacles(ask: Ask, now: int) -> Iterator[str]:
    """Why it is not allocated, from what the scheduler remembers; the numbers are ``explain``'s."""
    app = ask.app
    partition = app.partition
    if ask.planned is not None:
        if ask.planned.partner is None:
            yield "Waiting for a node: the placeholder is gone and its node drains"
        else:
            yield "Waiting for the placeholder to be released"
        return
    if not ask.placeholder and app.holding:
        yield "Held until the gang is complete"
        return
    group = app.task_groups.get(ask.task_group)
    outgrown = ask.group is not None and ask.group.outgrown
    if not ask.placeholder and group is not None and group.can_replace and not outgrown:
        yield "Waiting for a placeholder of its task group"
        return
    if ask.placeholder and gang.gate(app) is not None:
        yield "Not enough queue quota for the whole gang"
        return
    waits = ask.group
    shape = waits.shape if waits is not None else Shape(0, ask.vector, ask.required_node)
    if limits.full(app) is not None:
        yield "Too many applications of the user or group are running"
    elif app.shut_out:
        yield "Too many applications of the queue are running"
    if limits.short(app, shape) is not None:
        yield "Not enough user quota"
    if any(queue.limits and not queue.has_room(shape) for queue in app.queue.lineage):
        yield "Not enough queue quota"
    elif ask in partition.waiting.deferred_asks:
        yield "Predicate failed on every node"
    elif waits is not None and not shape.allocate & partition.node_index.feasible:
        yield "No node has room"
    if app.backoff_until > now:
        yield "Application is left alone after too many asks that could not be placed"
