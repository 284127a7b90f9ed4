"""Plain schedulers beside ours: the same jobs, nodes, queues' limits and latencies, and simple rules.

docs/quality.md describes each. They see the whole cluster at once and need no messages, so they show
what a schedule could be like, not how it comes about.
"""

from __future__ import annotations

from collections.abc import Callable

from bench._references.easy import Easy
from bench._references.loop import Latencies, Progress, Rule, Schedule
from bench._references.rules import FirstFit, Gathering, Reserving, Strict
from quadriga.sim import SimulationOptions
from quadriga.sim.fragmentation import Holding
from quadriga.sim.reports.quality import JobRecord, Quality, quality
from quadriga.sim.workload import Workload

__all__ = ["REFERENCES", "run", "schedule"]

_RULES: dict[str, tuple[str, Callable[[Schedule, bool], Rule]]] = {
    "a": ("first come first served", Strict),
    "b": ("first fit", FirstFit),
    "c": ("EASY backfill", Easy),
    "d": ("first fit, one gang gathers", Gathering),
    "e": ("first fit, one job reserves", Reserving),
}

#: name -> description; with a q the queue with the least share is next
REFERENCES = {
    name + suffix: f"({name}){suffix} {title}"
    for name, (title, _) in _RULES.items()
    for suffix in ("", "q")
}


def schedule(
    workload: Workload,
    name: str,
    options: SimulationOptions | None = None,
    progress: Progress | None = None,
) -> tuple[list[Holding], list[JobRecord]]:
    """What a reference does with the workload, with the latencies of `options`."""
    _, rule = _RULES[name[0]]
    latencies = Latencies.of(options or SimulationOptions())
    run = Schedule(workload, lambda schedule: rule(schedule, name.endswith("q")), latencies)
    records = run.run(progress)
    return run.holdings, records


def run(workload: Workload, name: str, progress: Progress | None = None) -> Quality:
    """The figures of a reference."""
    holdings, records = schedule(workload, name, progress=progress)
    return quality(workload, records, holdings)
