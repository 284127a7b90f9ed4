"""Distributions as short tables, and sampling from them.

The embedded model deals values out rather than drawing them: a table is distributed evenly over the
jobs, like a deck of cards, and chance only decides which job gets which value. Ninety days thus
have the log's load for every seed, not only on average over many seeds.

Only `random.Random.random` is used, since its sequence for a seed is the same in every Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import NamedTuple

#: points of a quantile table, in thousandths of the jobs
POINTS = (0, 10, 50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 950, 980, 990, 1000)

#: the parts of a shape: (members, cores of each)
Shape = tuple[tuple[int, int], ...]


class Kind(NamedTuple):
    """Jobs of one queue and of about one size, with either much or little memory per core.

    `sizes` are (bags of tasks, jobs in all of them) by classes of about that many jobs per bag, as
    counted in the log. `shapes` are (jobs, shape). `memory` has equally likely values, in MiB per
    member. `runtimes` are seconds at each of `POINTS`.
    """

    sizes: tuple[tuple[int, int], ...]
    shapes: tuple[tuple[int, Shape], ...]
    memory: tuple[int, ...]
    runtimes: tuple[int, ...]

    @property
    def bags(self) -> int:
        """The number of bags of tasks of this kind in the log."""
        return sum(bags for bags, _ in self.sizes)


class Queue(NamedTuple):
    """A walltime class: (jobs, user), (jobs, walltime in seconds) by walltime, and its kinds."""

    name: str
    users: tuple[tuple[int, int], ...]
    walltimes: tuple[tuple[int, int], ...]
    kinds: tuple[Kind, ...]


def quantile(table: Sequence[int], share: float) -> int:
    """The value below which `share` (0 to 1) lies, interpolated between the points of `table`."""
    place = share * 1000
    for index in range(1, len(POINTS)):
        if place < POINTS[index] or index == len(POINTS) - 1:
            low, high = POINTS[index - 1], POINTS[index]
            below, above = table[index - 1], table[index]
            return below + int((above - below) * (place - low) / (high - low))
    raise ValueError("a quantile table has two points at least")


def pick(weights: Sequence[int], share: float) -> int:
    """The index at which `share` of the sum of `weights` is reached."""
    place = share * sum(weights)
    for index, reached in enumerate(accumulate(weights)):
        if place < reached:
            return index
    return len(weights) - 1


def whole(rng: Random, amount: float) -> int:
    """Round `amount` up or down at random, so that it is right on average."""
    return int(amount + rng.random())


def order(rng: Random, count: int) -> list[int]:
    """0 to `count` - 1, shuffled."""
    return sorted(range(count), key=lambda _: rng.random())


def deal(rng: Random, count: int) -> list[float]:
    """`count` shares (0 to 1), one from each of as many equal intervals, shuffled."""
    return [(place + rng.random()) / count for place in order(rng, count)]


def deal_by(rng: Random, weights: Sequence[int]) -> list[float]:
    """A share for each of `weights`: the middle of its interval when all are laid out in random
    order. A bag of a hundred jobs gets an interval a hundred times that of a single job."""
    shares = [0.0] * len(weights)
    total, reached = sum(weights), 0
    for index in order(rng, len(weights)):
        shares[index] = (reached + weights[index] / 2) / total
        reached += weights[index]
    return shares


def apportion(rng: Random, amounts: Sequence[float]) -> list[int]:
    """Round `amounts` to integers that are right on average, as is their sum."""
    counts = []
    reached = rng.random()
    for amount in amounts:
        start, reached = int(reached), reached + amount
        counts.append(int(reached) - start)
    return counts
