"""How good a schedule is: a few figures from what became of each job.

`quality` is a pure function. The simulator and the plain schedulers of ``bench`` give it the same
records, so their figures can be compared. docs/quality.md defines each figure.
"""

# Not compiled: it does not run for every message.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import fsum
from typing import Any, NamedTuple

from quadriga.base.times import SECOND
from quadriga.sim.fragmentation import Holding, fragmentation
from quadriga.sim.outcomes import Fate
from quadriga.sim.usage import resource_of
from quadriga.sim.workload.model import Workload

#: a shorter run counts as this long in a slowdown (ns)
_SHORTEST_RUN = 10 * SECOND


class JobRecord(NamedTuple):
    """What became of one job. Times are in ns of virtual time.

    `started` is when its last pod ran, and `ended` when it completed: both are -1 if it did not. A job
    that was preempted and ran again has the times of its last run. `amount` is what all its pods ask
    of the watched resource (`resource_of`).
    """

    job_id: str
    queue: str
    submitted: int
    started: int
    ended: int
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """Waits and the makespan are in s, utilisation, fairness and fragmentation are within 0 and 1.

    Figures about completed jobs are None if there are none.
    """

    total: int
    completed: int
    mean_wait: float | None
    median_wait: float | None
    p95_wait: float | None
    longest_wait: float | None
    slowdown: float | None
    makespan: float
    utilisation: float
    fairness: float | None
    preemptions: int
    fragmentation: float

    def data(self) -> dict[str, Any]:
        """The figures by name, ready for JSON."""
        return asdict(self)


def quality(
    workload: Workload,
    records: Sequence[JobRecord],
    holdings: Iterable[Holding],
    preemptions: int = 0,
) -> Quality:
    """The figures of a schedule of `workload`. `records` has every job of it, also those that never ran;
    `holdings` has the time and place of every allocation, placeholders included; `preemptions` is the
    number of preempted allocations. The order of both does not matter."""
    done = [record for record in records if record.ended >= 0]
    waits = distribution([record.started - record.submitted for record in done])
    queues: dict[str, list[float]] = {}
    for record in done:
        queues.setdefault(record.queue, []).append(bounded_slowdown(record))
    begin = min((record.submitted for record in records), default=0)
    makespan = max((record.ended - begin for record in done), default=0)
    work = sum(record.amount * (record.ended - record.started) for record in done)
    capacity = workload.capacity().get(resource_of(workload), 0)
    return Quality(
        total=len(records),
        completed=len(done),
        mean_wait=waits["mean"],
        median_wait=waits["p50"],
        p95_wait=waits["p95"],
        longest_wait=waits["max"],
        slowdown=_mean([slowdown for each in queues.values() for slowdown in each]),
        makespan=makespan / SECOND,
        utilisation=round(work / (capacity * makespan), 6) if capacity and makespan else 0.0,
        fairness=jain([fsum(each) / len(each) for each in queues.values()]),
        preemptions=preemptions,
        fragmentation=round(
            fragmentation(workload, holdings, [(r.submitted, r.started) for r in done]), 6
        ),
    )


def bounded_slowdown(record: JobRecord) -> float:
    """The time from submission to end, relative to the run, of a job that completed: at least 1, and
    runs below 10 s count as 10 s."""
    spent = record.ended - record.submitted
    return max(1.0, spent / max(record.ended - record.started, _SHORTEST_RUN))


def jain(values: Sequence[float]) -> float | None:
    """Jain's index: 1 if all values are equal, 1/n if one of n has everything. None without values."""
    squares = fsum(value * value for value in values)
    return round(fsum(values) ** 2 / (len(values) * squares), 6) if squares else None


def _mean(values: Sequence[float]) -> float | None:
    return round(fsum(values) / len(values), 3) if values else None


# -- statistics of waiting times -------------------------------------------------------------------


PERCENTILES = (50, 75, 90, 95, 99)

#: the classes of width, in pods and in percent of the cluster: the largest of each, the last has no bound
WIDTHS = (1, 4, 16, 64)
SHARES = (1, 5, 25, 50)

#: count, mean, p50 ... p99, max; in s, None if the count is 0
Distribution = dict[str, int | float | None]


def distribution(waits: Sequence[int]) -> Distribution:
    """Mean, percentiles by nearest rank, and maximum, in s rounded to ms; `waits` are in ns."""
    ordered = sorted(waits)
    count = len(ordered)
    figures: Distribution = {"count": count, "mean": _seconds(sum(ordered), count)}
    for percent in PERCENTILES:
        rank = -(-percent * count // 100)  # rounded up
        figures[f"p{percent}"] = _seconds(ordered[rank - 1]) if count else None
    figures["max"] = _seconds(ordered[-1]) if count else None
    return figures


def by_width(workload: Workload, fates: Iterable[Fate]) -> dict[str, dict[str, Distribution]]:
    """The waits of jobs that ran, by their pods (``1``, ``2-4``, ..., ``65+``) and by the largest percentage that
    they ask of a resource of the cluster (``0-1``, ``1-5``, ..., ``50+``)."""
    capacity = workload.capacity()
    ranges = [f"{low + 1}-{high}" for low, high in pairwise(WIDTHS)]
    pods = [f"{WIDTHS[0]}", *ranges, f"{WIDTHS[-1] + 1}+"]
    percent = [f"{low}-{high}" for low, high in pairwise((0, *SHARES))] + [f"{SHARES[-1]}+"]
    by_pods: list[list[int]] = [[] for _ in pods]
    by_percent: list[list[int]] = [[] for _ in percent]
    for fate in fates:
        asked = fate.job.total()
        share = max(
            (100 * n / capacity[kind] for kind, n in asked.items() if capacity.get(kind)), default=0
        )
        by_pods[sum(fate.job.pods > most for most in WIDTHS)].append(fate.wait)
        by_percent[sum(share > most for most in SHARES)].append(fate.wait)
    return {
        "pods": {name: distribution(waits) for name, waits in zip(pods, by_pods, strict=True)},
        "percent": {
            name: distribution(waits) for name, waits in zip(percent, by_percent, strict=True)
        },
    }


def by_user(fates: Iterable[Fate]) -> dict[str, Distribution]:
    """The waits of jobs that ran, by user."""
    users: dict[str, list[int]] = {}
    for fate in fates:
        users.setdefault(fate.job.user, []).append(fate.wait)
    return {user: distribution(users[user]) for user in sorted(users)}


def _seconds(ns: int, count: int = 1) -> float | None:
    """Integers until the last step, so the result does not depend on the order of summation."""
    return (ns + count * 500_000) // (count * 1_000_000) / 1000 if count else None
