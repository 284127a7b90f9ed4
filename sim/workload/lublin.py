"""The workload model of U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the
characteristics of rigid jobs" (Journal of Parallel and Distributed Computing 63 (11), 2003).

The parameters are those of the authors' program for all jobs together. docs/workload-model.md compares its jobs
with a log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from math import exp, log2
from random import Random
from typing import Final

from quadriga.sim.workload.model import ANONYMOUS, MILLI, VCORE, Job, Member, QueueSpec, Workload
from quadriga.sim.workload.nodes import parse_nodes

#: the shares of jobs of one node, and of several whose number is a power of two
_SERIAL: Final = 0.244
_POWER_OF_TWO: Final = 0.576
#: log2 of the number of nodes is uniform above and below a bend: its least, how far the bend is below that of
#: all nodes, and the share below the bend
_LEAST: Final = 0.8
_BEND: Final = 2.5
_NARROW: Final = 0.86
#: logarithms of short and of long runtimes have gamma distributions (shape, scale); the share of short ones
#: falls with the number of nodes
_SHORT: Final = (4.2, 0.94)
_LONG: Final = (312.0, 0.03)
_FALLS, _SHARE = -0.0054, 0.78
#: the same of gaps between submissions, which pass fast in busy half hours, and of the half hours of a day
_GAP: Final = (10.2303 * 1.0225, 0.4871)
_DAY: Final = (8.1737, 3.9631)
#: larger logarithms of runtimes and of gaps are drawn again
_LONGEST: Final = 12
_LONGEST_GAP: Final = 13

_HALF_HOUR_S: Final = 1800
_HALF_HOURS: Final = 48
#: the half hour, counted from one, with which the day of the distribution begins
_MORNING: Final = 11
_MOST: Final = 1_000_000


def lublin(jobs: int, nodes: int = 256, seed: int = 1, load: float | None = None) -> Workload:
    """Return this number of jobs for nodes of one vcore each; a job of several nodes is a gang.

    ``load`` is what the jobs ask for until the last one is submitted, as a share of the nodes: all gaps are made
    longer or shorter by one factor. Second 0 is midnight. Raises `ValueError` for a number outside 1 to 1,000,000,
    fewer than 8 nodes, or a load that is not above 0.
    """
    for name, number, least in (("jobs", jobs, 1), ("nodes", nodes, 8)):
        if not least <= number <= _MOST:
            raise ValueError(f"{name} is {number}, not {least} to {_MOST}")
    if load is not None and not 0 < load < 1000:
        raise ValueError(f"load is {load}, not above 0 and below 1000")
    rng = Random(seed)
    gaps, drawn = [], []
    for _ in range(jobs):
        gaps.append(exp(_gamma(rng, _GAP, _LONGEST_GAP)))
        size = min(_size(rng, log2(nodes)), nodes)
        short = rng.random() <= _FALLS * size + _SHARE
        drawn.append((size, int(exp(_gamma(rng, _SHORT if short else _LONG, _LONGEST)))))
    if load is not None:
        work = sum(size * runtime for size, runtime in drawn)
        factor = work / (nodes * load * sum(gaps))
        gaps = [gap * factor for gap in gaps]
    submitted = _submissions(gaps)
    rows = enumerate(zip(submitted, drawn, strict=True), 1)
    return Workload(
        name="lublin",
        nodes=parse_nodes([f"{nodes}x1vcore"]),
        queues=(QueueSpec("default"),),
        jobs=tuple(
            Job(str(at), submit, runtime, ANONYMOUS, "default", (Member(size, {VCORE: MILLI}),))
            for at, (submit, (size, runtime)) in rows
        ),
        skipped=(),
        horizon_s=submitted[-1] + 1,
        source=f"model of Lublin and Feitelson (2003), seed {seed}",
    )


def _gamma(rng: Random, distribution: tuple[float, float], most: float) -> float:
    while (value := rng.gammavariate(*distribution)) > most:
        pass
    return value


def _size(rng: Random, largest: float) -> int:
    """The number of nodes of a job; ``largest`` is log2 of that of all nodes."""
    kind = rng.random()
    if kind <= _SERIAL:
        return 1
    bend = max(_LEAST, largest - _BEND)
    low, high = (_LEAST, bend) if rng.random() <= _NARROW else (bend, largest)
    power = rng.uniform(low, high)
    if kind <= _SERIAL + _POWER_OF_TWO:
        power = int(power + 0.5)
    return int(2**power + 0.5)


def _submissions(gaps: Iterable[float]) -> list[int]:
    """The seconds at which the gaps end, if a gap passes as fast as its half hour is busy."""
    shape, scale = _DAY
    busy = [
        0.0
    ] * _HALF_HOURS  # how many jobs arrive in each from midnight on, relative to the mean
    for at in range(_MORNING, _MORNING + _HALF_HOURS):
        places = [at - 0.5 + (each + 0.5) / 16 for each in range(16)]  # the integral of the density
        busy[(at - 1) % _HALF_HOURS] = sum(x ** (shape - 1) * exp(-x / scale) for x in places)
    reached = [0.0, *accumulate(each * _HALF_HOURS / sum(busy) for each in busy)]
    found = []
    for end in accumulate(gaps):
        days, rest = divmod(end / _HALF_HOUR_S, _HALF_HOURS)
        at = max(0, bisect_left(reached, rest, hi=_HALF_HOURS) - 1)
        part = (rest - reached[at]) / (reached[at + 1] - reached[at])
        found.append(int((days * _HALF_HOURS + at + part) * _HALF_HOUR_S))
    return found
