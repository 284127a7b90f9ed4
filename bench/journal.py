"""The journal: the cost of a record, and what it adds to the cost of a decision."""

from __future__ import annotations

from bench import Figure
from bench._support.timing import Clock, floor, median_of, per_call, service_memory
from bench.scheduling import Case, prepared
from quadriga.core import Options
from quadriga.core.runtime.journal import Journal
from quadriga.fsm.table import Edge


class _Entity:
    key = "app-1"
    state = "Running"


def measure() -> list[Figure]:
    """Time of one record (ns); a decision with a ring, with a complete journal, and without a journal."""
    base = floor()
    journal = Journal(100_000)
    entity, edge = _Entity(), Edge("application", "Accepted", "run", "Running")
    record = per_call(
        lambda: journal.add(1, entity, edge, "schedule"),
        20_000,
    )
    costs = {size: median_of(lambda s=size: _decision(s)) for size in (0, 100_000, None)}  # type: ignore[misc]
    return [
        Figure("floor", base, "ns"),
        Figure("a record", record, "ns"),
        Figure("a record", record / base, "floors"),
        Figure("a decision with a ring, to one without", costs[100_000] / costs[0], "x", 1.2),
        Figure("a decision with all kept, to one without", costs[None] / costs[0], "x", 1.3),
    ]


def _decision(size: int | None) -> float:
    case = Case("u50")
    scheduler, requests = prepared(case, Options(journal_size=size))
    for request in requests:
        scheduler.apply(request, 0)
    with service_memory(), Clock() as clock:
        scheduler.schedule(0)
    return clock.spent / case.pods
