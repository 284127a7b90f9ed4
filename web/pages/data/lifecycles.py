"""The seven lifecycles: their pictures, the entities in each state, and the transitions taken."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from quadriga.core.runtime.journal import Journal
from quadriga.fsm import (
    ALLOCATION,
    APPLICATION,
    ASK,
    GANG,
    LIFECYCLES,
    NODE,
    QUEUE,
    RESOURCE_MANAGER,
)
from quadriga.web.pages.pictures import picture

if TYPE_CHECKING:
    from quadriga.core import Scheduler


class LifecycleSnapshot(NamedTuple):
    """The number of entities by state, for each lifecycle, and a copy of the journal."""

    states: dict[str, Counter[str]]
    journal: Journal


def pictures() -> dict[str, Any]:
    """How each lifecycle is drawn. This does not change while the program runs."""
    return {name: picture(lifecycle) for name, lifecycle in LIFECYCLES.items()}


def lifecycles(scheduler: Scheduler) -> LifecycleSnapshot:
    """The entities of all partitions. An entity that is forgotten (an allocated ask, a removed node) is
    not counted in any state."""
    partitions = list(scheduler.partitions())
    apps = [app for each in partitions for app in each.applications.values()]
    states = {name: Counter[str]() for name in LIFECYCLES}
    for each in partitions:
        states[APPLICATION.name].update(app.state for app in each.applications.values())
        states[APPLICATION.name].update(app.state for app in each.ended)
        states[NODE.name].update(node.state for node in each.nodes.values())
        states[QUEUE.name].update(queue.state for queue in each.queues())
    states[GANG.name].update(app.gang.state for app in apps if app.is_gang)
    asks = [ask for app in apps for ask in app.asks.values()]
    states[ASK.name].update(ask.state for ask in asks)
    held = states[ALLOCATION.name]
    held.update(each.state for app in apps for each in app.allocations.values())
    held.update(each.state for app in apps for each in app.placeholders.values())
    held.update(ask.planned.state for ask in asks if ask.planned is not None)
    states[RESOURCE_MANAGER.name].update(rm.state for rm in scheduler.resource_managers())
    return LifecycleSnapshot(states, scheduler.journal.copy())


def finish_lifecycles(taken: LifecycleSnapshot) -> dict[str, Any]:
    """``taken`` counts the ``remembered`` latest transitions by their states and trigger. A row that does
    not change the state has the same state at both ends."""
    edges: dict[str, list[dict[str, Any]]] = {name: [] for name in LIFECYCLES}
    for (name, source, trigger, target), count in sorted(taken.journal.edges().items()):
        edges[name].append({"source": source, "trigger": trigger, "target": target, "count": count})
    return {
        "since": taken.journal.since,
        "remembered": len(taken.journal),
        "lifecycles": {
            name: {"states": dict(sorted(taken.states[name].items())), "taken": edges[name]}
            for name in LIFECYCLES
        },
    }
