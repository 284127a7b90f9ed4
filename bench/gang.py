"""Gangs: 250 applications of 200 placeholders on 5,000 nodes, placed, then replaced and confirmed."""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from bench import Figure
from bench._support import sizes
from bench._support.cluster import (
    RM,
    TWO_QUEUES,
    add_apps,
    add_nodes,
    allocations_in,
    registered,
    released_in,
)
from bench._support.timing import Clock, Pace, service_memory
from quadriga import si
from quadriga.core import Options
from quadriga.sim.scripted.script import resource

MEMBER = {"vcore": 1000, "memory": 10**6}


def measure() -> list[Figure]:
    """Multiples of the floor for a placeholder that is placed, and for one that is replaced and confirmed."""
    nodes, apps, members = (5_000, 250, 200) if sizes.FULL else (1_000, 50, 200)
    costs = [run(nodes, apps, members) for _ in range(5)]
    placed_ns = median(cost.placed for cost in costs)
    replaced_ns = median(cost.replaced for cost in costs)
    placed = median(cost.placed / cost.floor for cost in costs)
    replaced = median(cost.replaced / cost.floor for cost in costs)
    size = f"{nodes:,} nodes, {apps} gangs of {members}"
    return [
        Figure(f"{size}: placeholders placed a second", 1e9 / placed_ns, "/s"),
        Figure(f"{size}: a placeholder placed", placed, "floors"),
        Figure(f"{size}: replaced and confirmed a second", 1e9 / replaced_ns, "/s"),
        Figure(f"{size}: replaced and confirmed", replaced, "floors"),
    ]


class _Cost(NamedTuple):
    """Times for a placeholder that is asked for and placed, and for one that is asked for, replaced and
    confirmed (ns), with the floor during the measurement."""

    placed: float
    replaced: float
    floor: float


def run(nodes: int, apps: int, members: int, options: Options | None = None) -> _Cost:
    """One life of all gangs."""
    pace = Pace()
    scheduler = registered(TWO_QUEUES.format(sort="fair"), options)
    add_nodes(scheduler, nodes)
    whole = resource({name: value * members for name, value in MEMBER.items()})
    queues = [f"root.{'ab'[at % 2]}" for at in range(apps)]
    add_apps(scheduler, queues, placeholderAsk=whole, gangSchedulingStyle="Hard")
    placing, replacing = Clock(), Clock()
    with service_memory():
        requests = _asks(apps, members, placeholder=True)
        with placing:
            for request in requests:
                scheduler.apply(request, 0)
            outputs = scheduler.schedule(0)
            for _, message in outputs:
                message.SerializeToString()
        assert allocations_in(outputs) == apps * members
        requests = _asks(apps, members, placeholder=False)
        pace.look()
        with replacing:
            for request in requests:
                scheduler.apply(request, 0)
            outputs = scheduler.schedule(0)
            for _, message in outputs:
                message.SerializeToString()
        confirmations = _confirmations(released_in(outputs))
        pace.look()
        with replacing:
            outputs = [o for request in confirmations for o in scheduler.apply(request, 0)]
            for _, message in outputs:
                message.SerializeToString()
        assert allocations_in(outputs) == apps * members
    pace.look()
    return _Cost(placing.spent / (apps * members), replacing.spent / (apps * members), pace.floor)


def _asks(apps: int, members: int, *, placeholder: bool) -> list[si.AllocationRequest]:
    size = resource(MEMBER)
    requests = []
    for at in range(apps):
        request = si.AllocationRequest(rmID=RM)
        for number in range(members):
            request.asks.add(
                allocationKey=f"{'placeholder' if placeholder else 'pod'}-{number}",
                applicationID=f"app-{at}",
                resourceAsk=size,
                maxAllocations=1,
                taskGroupName="workers",
                placeholder=placeholder,
            )
        requests.append(request)
    return requests


def _confirmations(releases: list[si.AllocationRelease]) -> list[si.AllocationRequest]:
    """One request for each hundred releases: a resource manager confirms many at once."""
    requests = []
    for first in range(0, len(releases), 100):
        request = si.AllocationRequest(rmID=RM)
        request.releases.allocationsToRelease.extend(releases[first : first + 100])
        requests.append(request)
    return requests
