"""Metrics as data: a family has a name, a type, a help text, and samples.

Names and label values may come from configurations and resource managers; ``exposition`` escapes
them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import numpy as np

from quadriga.base.times import SECOND

#: with at least this many durations, numpy is faster than a loop
_MANY: Final = 32

Kind = Literal["counter", "gauge", "histogram"]

#: label names and values, in output order
Labels = tuple[tuple[str, str], ...]


class Distribution(NamedTuple):
    """The content of a histogram at one moment: bounds in s, counts for each bucket (not
    cumulative, the last one above all bounds), and the sum in s."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


class Histogram:
    """Counts durations in buckets. ``bounds`` are in ns, ascending and inclusive."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[int, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0

    def observe(self, ns: int, times: int = 1) -> None:
        """Count ``count`` durations of ``ns`` each."""
        self.counts[bisect_left(self.bounds, ns)] += times
        self.total += ns * times

    def observe_all(self, durations: Sequence[int]) -> None:
        """Count each of these durations."""
        if len(durations) < _MANY:
            for ns in durations:
                self.observe(ns)
            return
        places = np.searchsorted(self.bounds, durations)
        found = np.bincount(places, minlength=len(self.counts)).tolist()
        self.counts = [count + more for count, more in zip(self.counts, found, strict=True)]
        self.total += sum(durations)

    def read(self) -> Distribution:
        bounds = tuple(bound / SECOND for bound in self.bounds)
        return Distribution(bounds, tuple(self.counts), self.total / SECOND)


@dataclass(slots=True)
class Family:
    """All samples of one name. Samples of a histogram are distributions, all others numbers."""

    name: str
    kind: Kind
    help: str
    samples: list[tuple[Labels, int | float | Distribution]] = field(default_factory=list)

    def add(self, value: int | float | Distribution, **labels: str) -> None:
        """Add a sample; each combination of labels may occur once."""
        self.samples.append((tuple(labels.items()), value))

    def add_all(self, label: str, values: Mapping[str, int | float], **labels: str) -> None:
        """Add a sample for each value of one further label."""
        more = tuple(labels.items())
        self.samples.extend(((*more, (label, key)), value) for key, value in values.items())


def one(
    name: str, kind: Kind, help: str, value: int | float | Distribution, **labels: str
) -> Family:
    """A family with one sample."""
    family = Family(name, kind, help)
    family.add(value, **labels)
    return family
