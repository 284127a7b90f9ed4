"""The seven lifecycles: their pictures, the entities in each state, and the transitions taken."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from quadriga.base.times import HOUR, MINUTE, SECOND
from quadriga.core import Scheduler
from quadriga.core.runtime.journal import Journal
from quadriga.core.runtime.stepwise import Steps, chunks
from quadriga.fsm import (
    ALLOCATION,
    APPLICATION,
    ASK,
    GANG,
    LIFECYCLES,
    NODE,
    QUEUE,
    RESOURCE_MANAGER,
    Lifecycle,
)
from quadriga.fsm.table import Unbounded, Within


@lru_cache(maxsize=1)
def layouts() -> dict[str, Any]:
    """The committed coordinates, by the lifecycle's name. graphviz computed them at development time
    (``quadriga.web.pages.layout``), so a running server needs no graphviz."""
    text = files("quadriga.web.pages.data").joinpath("layouts.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)["lifecycles"]
    return found


def picture(lifecycle: Lifecycle) -> dict[str, Any]:
    """The lifecycle with the coordinates of its states, edges and labels.

    Raises ``KeyError`` for a lifecycle without a layout, and for a state without coordinates in it.
    """
    layout = layouts()[lifecycle.name]
    positions = {state["name"]: state["at"] for state in layout["states"]}
    return {
        "name": lifecycle.name,
        "initial": lifecycle.initial,
        "width": layout["width"],
        "height": layout["height"],
        "box": layout["box"],
        "states": [
            {
                "name": state,
                "x": positions[state][0],
                "y": positions[state][1],
                "final": state in lifecycle.final,
                "lasts": _lasts(lifecycle, state),
            }
            for state in lifecycle.states
        ],
        "edges": layout["edges"],
    }


def _lasts(lifecycle: Lifecycle, state: str) -> str:
    match lifecycle.lasts.get(state):
        case Within(ns, then):
            return f"at most {_duration(ns)}" + (f", then {then}" if then else "")
        case Unbounded(ends):
            return f"until {ends.replace('_', ' ')}"
    return "for good"


def _duration(ns: int) -> str:
    size, unit = next(
        (size, unit)
        for size, unit in ((HOUR, "h"), (MINUTE, "min"), (SECOND, "s"), (1, "ns"))
        if ns % size == 0
    )
    return f"{ns // size} {unit}"


class LifecycleSnapshot(NamedTuple):
    """The number of entities by state, for each lifecycle, and a copy of the journal."""

    states: dict[str, Counter[str]]
    journal: Journal


def pictures() -> dict[str, Any]:
    """How each lifecycle is drawn. This does not change while the program runs."""
    return {name: picture(lifecycle) for name, lifecycle in LIFECYCLES.items()}


def lifecycles(scheduler: Scheduler) -> Steps[LifecycleSnapshot]:
    """The entities of all partitions. An entity that is forgotten (an allocated ask, a removed node) is
    not counted in any state."""
    partitions = list(scheduler.partitions())
    states = {name: Counter[str]() for name in LIFECYCLES}

    def count(name: str, entities: Iterable[Any]) -> Iterator[None]:
        for some in chunks(entities):
            states[name].update([each.state for each in some])
            yield

    for each in partitions:
        yield from count(APPLICATION.name, each.ended)
        yield from count(NODE.name, each.nodes.values())
        yield from count(QUEUE.name, each.root.each())
        for app in list(each.applications.values()):
            states[APPLICATION.name][app.state] += 1
            if app.is_gang:
                states[GANG.name][app.gang.state] += 1
            planned = [ask.planned for ask in app.asks.values() if ask.planned is not None]
            yield from count(ASK.name, app.asks.values())
            yield from count(ALLOCATION.name, app.allocations.values())
            yield from count(ALLOCATION.name, [*app.placeholders.values(), *planned])
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
