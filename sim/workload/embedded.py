"""A workload that needs no file: distributions of the CERIT log, applied with a seed.

Nodes are the log's two classes, queues its walltime classes. Users submit bags of tasks: similar
jobs, close together, with similar runtimes. Bags begin at random times that follow the log's rhythm
of hours and weekdays; second 0 is a Monday, 00:00. docs/workload-model.md tells how close this
comes to the log.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heapify, heapreplace
from itertools import accumulate
from random import Random

from quadriga.sim.workload import figures
from quadriga.sim.workload.cerit import ACKNOWLEDGEMENT, CITATION
from quadriga.sim.workload.model import (
    MEMORY,
    MIB,
    MILLI,
    VCORE,
    Job,
    Member,
    NodeSpec,
    QueueSpec,
    Workload,
)
from quadriga.sim.workload.tables import (
    Kind,
    Queue,
    Shape,
    apportion,
    deal,
    deal_by,
    order,
    pick,
    quantile,
    whole,
)

_HOUR_S = 3600
_DAY_S = 86_400
_MAX_DAYS = 36_500


class _Bag:
    """Similar jobs of one user: their number, their requests, and the start and runtime of each."""

    __slots__ = ("memory", "runtimes", "shape", "submits", "tasks", "user", "walltime_s")

    def __init__(self, tasks: int, shape: Shape, memory: int) -> None:
        self.tasks = tasks
        self.shape = shape
        self.memory = memory
        self.runtimes: list[int] = []
        self.submits: list[int] = []
        self.user = 0
        self.walltime_s = 0


def embedded(days: int = 90, seed: int = 1, scale: float = 1.0, cluster: float = 1.0) -> Workload:
    """Return `days` days of about 200 jobs, the same for the same arguments on every Python.

    `scale` multiplies the number of bags of tasks and thereby the load; `cluster` multiplies the
    number of nodes of each class (at least one). Raises `ValueError` for days outside 1 to 36,500,
    and for a factor that is not above 0 or is above 1000.
    """
    if not 1 <= days <= _MAX_DAYS:
        raise ValueError(f"days is {days}, not 1 to {_MAX_DAYS}")
    for name, factor in (("scale", scale), ("cluster", cluster)):
        if not 0 < factor <= 1000:
            raise ValueError(f"{name} is {factor}, not above 0 and at most 1000")
    rng = Random(seed)
    horizon_s = days * _DAY_S
    share = horizon_s * scale / figures.LOG_S
    kinds = [(queue, kind) for queue in figures.QUEUES for kind in queue.kinds]
    counts = apportion(rng, [kind.bags * share for _, kind in kinds])
    found: list[tuple[int, str, _Bag, int]] = []
    for queue in figures.QUEUES:
        bags = [
            bag
            for (owner, kind), count in zip(kinds, counts, strict=True)
            if owner is queue
            for bag in _bags(rng, kind, count)
        ]
        _walltimes(rng, queue, bags)
        _users(rng, queue, bags)
        _submits(rng, bags, days)
        found += [
            (submit_s % horizon_s, queue.name, bag, runtime_s)
            for bag in bags
            for submit_s, runtime_s in zip(bag.submits, bag.runtimes, strict=True)
        ]
    found.sort(key=lambda entry: entry[0])
    return Workload(
        name="embedded",
        nodes=_nodes(cluster),
        queues=tuple(QueueSpec(queue.name, original=queue.name) for queue in figures.QUEUES),
        jobs=tuple(_job(number, *entry) for number, entry in enumerate(found, 1)),
        skipped=(),
        horizon_s=horizon_s,
        source=(
            f"embedded model, seed {seed}, fitted to the CERIT-SC log."
            f" {ACKNOWLEDGEMENT} ({CITATION})"
        ),
    )


def _nodes(cluster: float) -> tuple[NodeSpec, ...]:
    nodes = []
    for count, cores, memory in figures.NODES:
        for number in range(1, max(int(count * cluster + 0.5), 1) + 1):
            nodes.append(
                NodeSpec(
                    f"c{cores}-{number:03d}",
                    {VCORE: cores * MILLI, MEMORY: memory * MIB},
                    {"cluster": f"c{cores}"},
                )
            )
    return tuple(nodes)


def _bags(rng: Random, kind: Kind, count: int) -> list[_Bag]:
    """Generate `count` bags of a kind: first tasks per bag, then shapes and memory by task, then
    runtimes."""
    counts = [bags for bags, _ in kind.sizes]
    sizes = [_tasks(rng, *kind.sizes[pick(counts, share)]) for share in deal(rng, count)]
    weights = [jobs for jobs, _ in kind.shapes]
    bags = [
        _Bag(tasks, kind.shapes[pick(weights, by_shape)][1], _at(kind.memory, by_memory))
        for tasks, by_shape, by_memory in zip(
            sizes, deal_by(rng, sizes), deal_by(rng, sizes), strict=True
        )
    ]
    # The rank of a job among the runtimes depends partly on its bag, partly on itself.
    places: list[tuple[float, _Bag]] = []
    for bag, by_bag in zip(bags, deal(rng, count), strict=True):
        for _ in range(bag.tasks):
            place = figures.LIKENESS * by_bag + (1000 - figures.LIKENESS) * rng.random()
            places.append((place, bag))
    places.sort(key=lambda entry: entry[0])
    for rank, (_, bag) in enumerate(places):
        runtime_s = quantile(kind.runtimes, (rank + rng.random()) / len(places))
        bag.runtimes.append(max(runtime_s, 1))
    for bag in bags:
        bag.runtimes = [bag.runtimes[index] for index in order(rng, bag.tasks)]
    return bags


def _tasks(rng: Random, bags: int, jobs: int) -> int:
    """The number of jobs for a size class: its mean, varied by a quarter if that is several
    jobs."""
    mean = jobs / bags
    return whole(rng, mean * (0.75 + rng.random() / 2) if mean >= 4 else mean)


def _at(values: tuple[int, ...], share: float) -> int:
    return values[int(share * len(values))]


def _walltimes(rng: Random, queue: Queue, bags: list[_Bag]) -> None:
    """Assign the queue's walltimes; a bag that runs longer asks for more, and ends at the limit."""
    weights = [jobs for jobs, _ in queue.walltimes]
    walltimes = [walltime_s for _, walltime_s in queue.walltimes]
    for bag, share in zip(bags, deal_by(rng, [bag.tasks for bag in bags]), strict=True):
        longest = max(bag.runtimes)
        enough = next((w for w in walltimes if w >= longest), walltimes[-1])
        bag.walltime_s = max(walltimes[pick(weights, share)], enough)
        bag.runtimes = [min(runtime_s, bag.walltime_s) for runtime_s in bag.runtimes]


def _users(rng: Random, queue: Queue, bags: list[_Bag]) -> None:
    """Assign each bag, largest first, to the user who is furthest below their share of the jobs."""
    jobs, total = sum(bag.tasks for bag in bags), sum(weight for weight, _ in queue.users)
    lacking = [(-weight * jobs, rng.random(), user) for weight, user in queue.users]
    heapify(lacking)
    for bag in sorted(bags, key=lambda bag: -bag.tasks):
        owed, _, bag.user = lacking[0]
        heapreplace(lacking, (owed + bag.tasks * total, rng.random(), bag.user))


def _submits(rng: Random, bags: list[_Bag], days: int) -> None:
    """Begin each bag at a time of the week's rhythm; its jobs follow at the log's gaps.

    Users work in campaigns: many a bag begins within a day of the user's last one. Jobs beyond the
    end of the trace wrap around to its start.
    """
    hours = [figures.WEEKDAYS[day % 7] * hour for day in range(days) for hour in figures.HOURS]
    reached = [0, *accumulate(hours)]
    total = reached[-1]
    latest: dict[int, float] = {}
    for bag in bags:
        # In units of the rhythm's work, of which a weekend has little: a day after Friday is mostly
        # Monday.
        if bag.user in latest and rng.random() * 1000 < figures.CAMPAIGN:
            place = (latest[bag.user] + rng.random() * total / days) % total
        else:
            place = rng.random() * total
        latest[bag.user] = place
        hour = min(bisect_right(reached, place), len(hours)) - 1
        submit_s = hour * _HOUR_S + int((place - reached[hour]) / hours[hour] * _HOUR_S)
        for _ in range(bag.tasks):
            bag.submits.append(submit_s)
            submit_s += quantile(figures.GAPS, rng.random())


def _job(number: int, submit_s: int, queue: str, bag: _Bag, runtime_s: int) -> Job:
    return Job(
        job_id=f"job-{number:06d}",
        submit_s=submit_s,
        runtime_s=runtime_s,
        user=f"user-{bag.user:02d}",
        queue=queue,
        members=tuple(
            Member(count, {VCORE: cores * MILLI, MEMORY: bag.memory * MIB})
            for count, cores in bag.shape
        ),
        walltime_s=bag.walltime_s,
    )
