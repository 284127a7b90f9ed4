"""Selects the beginning of a workload."""

# Not compiled: it does not run for every message.

from __future__ import annotations

from dataclasses import replace

from quadriga.sim.workload.model import Workload, horizon

_DAY_S = 86_400


def first(workload: Workload, days: int | None = None, jobs: int | None = None) -> Workload:
    """The jobs of the first `days`, and of these the first `jobs`; None means all.

    Skipped jobs stay, as some sources do not tell when they were submitted. Raises `ValueError` for
    less than one.
    """
    for name, number in (("days", days), ("jobs", jobs)):
        if number is not None and number < 1:
            raise ValueError(f"{name} is {number}, less than 1")
    if days is None and jobs is None:
        return workload
    chosen = workload.jobs
    if days is not None:
        chosen = tuple(job for job in chosen if job.submit_s < days * _DAY_S)
    chosen = chosen[:jobs]
    return replace(workload, jobs=chosen, horizon_s=min(workload.horizon_s, horizon(chosen)))
