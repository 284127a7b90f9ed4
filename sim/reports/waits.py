"""Statistics of waiting times."""

# Not compiled: it does not run for every message.

from __future__ import annotations

from collections.abc import Sequence

PERCENTILES = (50, 75, 90, 95, 99)

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


def _seconds(ns: int, count: int = 1) -> float | None:
    """Integers until the last step, so the result does not depend on the order of summation."""
    return (ns + count * 500_000) // (count * 1_000_000) / 1000 if count else None
