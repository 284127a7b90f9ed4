"""A full cluster with as much demand again: the cost of a round that places nothing, and of a release.

5,000 nodes are full and 25,000 more asks wait, in 160 and in 3,200 applications. The cost of a round
that places nothing must not depend on the number of waiting asks. A release lets exactly one ask in.
"""

from __future__ import annotations

from bench import Figure
from bench._support import sizes
from bench._support.cluster import RM, TWO_QUEUES, add_apps, add_nodes, allocations_in, registered
from bench._support.timing import Clock, floor, per_call, service_memory
from quadriga import si
from quadriga.core import Scheduler
from quadriga.sim.scripted.script import resource

RELEASES = 2_000


def measure() -> list[Figure]:
    """Multiples of the floor for a round that places nothing, and for a release with its replacement."""
    nodes = 5_000 if sizes.FULL else 1_000
    figures = []
    vain: list[float] = []
    for apps in (160, 3_200):
        for waiting in (nodes, 5 * nodes):
            scheduler, held = _full(nodes, apps, waiting)
            cost = per_call(lambda s=scheduler: s.schedule(s.now, 1))  # type: ignore[misc]
            base = floor()
            vain.append(cost / base)
            size = f"{nodes:,} nodes, {waiting:,} asks wait in {apps:,} applications"
            figures.append(Figure(f"{size}: a vain round", cost / base, "floors"))
        base = floor()
        pair = _release_and_replace(scheduler, held)
        figures.append(Figure(f"{size}: a release and its replacement", pair / base, "floors"))
        figures.append(Figure(f"{size}: releases a second", 1e9 / pair, "/s"))
    figures.append(Figure("vain rounds: dearest to cheapest", max(vain) / min(vain), "x", 2))
    return figures


def _full(nodes: int, apps: int, waiting: int) -> tuple[Scheduler, list[si.Allocation]]:
    """A cluster without room, with this number of waiting asks, and its allocations."""
    scheduler = registered(TWO_QUEUES.format(sort="fair"))
    add_nodes(scheduler, nodes, vcore=5_000, memory=10**9)
    add_apps(scheduler, [f"root.{'ab'[at % 2]}" for at in range(apps)])
    size = resource({"vcore": 1000, "memory": 10**6})
    request = si.AllocationRequest(rmID=RM)
    for number in range(5 * nodes + waiting):
        request.asks.add(
            allocationKey=f"pod-{number}",
            applicationID=f"app-{number % apps}",
            resourceAsk=size,
            maxAllocations=1,
        )
    scheduler.apply(request, 0)
    outputs = scheduler.schedule(0)
    assert allocations_in(outputs) == 5 * nodes
    return scheduler, [a for _, m in outputs if isinstance(m, si.AllocationResponse) for a in m.new]


def _release_and_replace(scheduler: Scheduler, held: list[si.Allocation]) -> float:
    requests = []
    for allocation in held[:: max(1, len(held) // RELEASES)][:RELEASES]:
        request = si.AllocationRequest(rmID=RM)
        request.releases.allocationsToRelease.add(
            applicationID=allocation.applicationID,
            UUID=allocation.UUID,
            terminationType=si.TerminationType.STOPPED_BY_RM,
        )
        requests.append(request)
    placed = 0
    with service_memory(), Clock() as clock:
        for request in requests:
            scheduler.apply(request, scheduler.now)
            placed += allocations_in(scheduler.schedule(scheduler.now))
    assert placed == len(requests)
    return clock.spent / len(requests)
