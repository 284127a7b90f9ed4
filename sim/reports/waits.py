"""Statistics of waiting times."""

# Not compiled: it does not run for every message.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from quadriga.sim.outcomes import Fate
from quadriga.sim.workload.model import Workload

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
