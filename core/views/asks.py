"""Asks as data, with the reasons why they wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from quadriga.core.resources.shapes import shape_of
from quadriga.core.resources.vectors import Vector
from quadriga.core.runtime.stepwise import STEP, Steps
from quadriga.core.scheduling.scale_up import was_tried
from quadriga.core.steps import gang, limits
from quadriga.core.views.quantities import amounts

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.views.objects import AskLogEntry, AskObject

#: the ask; its tags, resources, priority and creation time; the number pending; why it waits; whether it
#: has preempted, whether it was tried, whether the scale-up hint was sent
AskSnapshot = tuple["Ask", dict[str, str], Vector, int, int, int, Sequence[str], bool, bool, bool]


def asks_in_steps(app: Application, now: int) -> Steps[tuple[AskSnapshot, ...]]:
    """Snapshots of the application's pending asks, in steps if they are many. A parked ask (G29) is one of
    them, with nothing pending."""
    aside = app.partition.waiting.deferred_asks
    # Asks of one group wait for the same reasons.
    known: dict[object, list[str]] = {}
    found: list[AskSnapshot] = []
    for number, ask in enumerate(list(app.asks.values()), 1):
        if number % STEP == 0:
            yield
        if app.asks.get(ask.ask_key) is not ask:
            continue  # it has been served meanwhile
        planned = ask.planned is not None
        same = ask.group, ask.placeholder, planned, ask in aside
        obstacles = known.get(same) if ask.group is not None else None
        if obstacles is None:
            obstacles = known[same] = list(_obstacles(ask, now))
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


def ask_objects(snapshots: Iterable[AskSnapshot], now: int) -> list[AskObject]:
    """The snapshots taken at ``now`` as objects, in order of arrival."""
    return [_ask_object(each, now) for each in sorted(snapshots, key=lambda one: one[0].seq)]


def _ask_object(snapshot: AskSnapshot, now: int) -> AskObject:
    ask, tags, vector, priority, created, pending, obstacles, preempted, tried, hinted = snapshot
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
    """The reason is looked up when it is read, so its last occurrence is now, and its count 1."""
    return {"message": message, "lastOccurrence": now, "count": 1}


def _was_tried(ask: Ask) -> bool:
    """Whether some round found no node for the ask, or for an ask of the same shape. An ask that a
    user's limit stops was not tried (5.6)."""
    app, group = ask.app, ask.group
    if ask.planned is not None:
        return True
    if group is not None and limits.short(app, group.shape) is not None:
        return False
    if was_tried(app.partition, ask):
        return True
    if group is None or not group.demand:
        return False
    return not group.shape.allocate & app.partition.node_index.feasible or any(
        group.shape in queue.short_of for queue in app.queue.lineage
    )


def _obstacles(ask: Ask, now: int) -> Iterator[str]:
    """Why the ask is not allocated, from what the scheduler knows; ``explain`` gives the numbers."""
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
    group = app.gang.task_groups.get(ask.task_group)
    too_large_to_replace = ask.group is not None and ask.group.too_large_to_replace
    if not ask.placeholder and group is not None and group.can_replace and not too_large_to_replace:
        yield "Waiting for a placeholder of its task group"
        return
    if ask.placeholder and gang.gate(app) is not None:
        yield "Not enough queue quota for the whole gang"
        return
    waits = ask.group
    shape = waits.shape if waits is not None else shape_of(0, ask.kind.requires)
    if limits.full(app) is not None:
        yield "Too many applications of the user or group are running"
    elif app.not_admitted:
        yield "Too many applications of the queue are running"
    if limits.short(app, shape) is not None:
        yield "Not enough user quota"
    *queues, root = app.queue.lineage
    if any(queue.limits and not queue.has_room(shape) for queue in queues):
        yield "Not enough queue quota"
    elif root.limits and not root.has_room(shape):  # its quota is what all nodes have
        yield "The cluster is full"
    elif ask in partition.waiting.deferred_asks:
        yield "Predicate failed on every node"
    elif waits is not None and not shape.allocate & partition.node_index.feasible:
        yield "No node has room"
    if app.backoff_until > now:
        yield "Application is left alone after too many asks that could not be placed"
