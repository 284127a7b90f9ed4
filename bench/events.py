"""Event records: the cost of one, and what they add to the cost of asks and decisions."""

from __future__ import annotations

from bench import Figure
from bench._support.cluster import RM
from bench._support.timing import Clock, floor, per_call, service_memory
from bench.scheduling import Case, prepared
from quadriga.core import Scheduler
from quadriga.core.events import message_of
from quadriga.si import UpdateConfigurationRequest

ROUNDS = 7


def measure() -> list[Figure]:
    """Times for the records of one allocation and for a message made of one record (ns), and the ratio of a
    pod with records to one without. Both are measured in turns, and the least of each counts."""
    base = floor()
    scheduler = _scheduled(tracking=True, case=Case("u50", 10, 100))[1]
    allocation = next(iter(next(iter(scheduler.partition().nodes.values())).allocations))
    observer = allocation.node.partition.rm.observer
    record = scheduler.events.batch(scheduler.events.created - 1).records[0]
    figures = [
        Figure("floor", base, "ns"),
        Figure(
            "the three of an allocation",
            per_call(lambda: observer.allocated((allocation,))),
            "ns",
        ),
        Figure("a message made of one", per_call(lambda: message_of(record)), "ns"),
    ]
    for shape in ("u50", "repeat"):
        costs: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(ROUNDS):
            for tracking, found in costs.items():
                found.append(_scheduled(tracking=tracking, case=Case(shape))[0])
        ratio = min(costs[True]) / min(costs[False])
        figures.append(Figure(f"{shape}: a pod with events, to one without", ratio, "x", 1.1))
    return figures


def _scheduled(*, tracking: bool, case: Case) -> tuple[float, Scheduler]:
    """Time for one pod, from its ask to its allocation (ns), and the scheduler."""
    scheduler, requests = prepared(case)
    extra = {"event.trackingEnabled": str(tracking).lower()}
    scheduler.apply(UpdateConfigurationRequest(rmID=RM, extraConfig=extra), 0)
    with service_memory(), Clock() as clock:
        for request in requests:
            scheduler.apply(request, 0)
        scheduler.schedule(0)
    return clock.spent / case.pods, scheduler
