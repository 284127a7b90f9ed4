"""Derive the figures of the embedded model from the CERIT log.

    python -m bench._support.fit FOLDER [--write FILE]

prints figures.py, or writes it. The figures contain only aggregates of the log: counts, and
quantiles of groups of at least `MIN_JOBS` jobs, with users numbered by activity.
docs/workload-model.md describes the method.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from quadriga.sim.workload.cerit import ACKNOWLEDGEMENT, CITATION, read_cerit
from quadriga.sim.workload.model import MEMORY, MIB, MILLI, VCORE, Job, Workload, WorkloadError
from quadriga.sim.workload.tables import POINTS, Kind, Queue, Shape

#: similar jobs within this many seconds of each other form a bag of tasks
BAG_GAP_S = 900
#: smaller groups of jobs are not described on their own: a table of them would reveal the jobs
MIN_JOBS = 30
#: the largest total of cores of each size class; gangs are a class of their own
SIZE_CLASSES = (1, 3, 7, 11, 19, 31, 47, 1_000_000)
#: jobs that request more memory per core, in MiB, form classes of their own: they run longer
HEAVY_MIB = 8192
#: The log's second 0 is Tuesday 2013-01-01 00:22:27 in Brno. The two jobs without an end show it:
#: their runtimes are minus their start in Unix time, less the log's own start.
LOG_START_S = 86_400 + 22 * 60 + 27

_DAY_S = 86_400
_MEMORY_STEPS = 20
_WALLTIME_SHARE = 0.02


def bags(jobs: Iterable[Job]) -> list[list[Job]]:
    """Group `jobs`, in order of submission, into bags of tasks, in order of their first job.

    A bag has one user, queue, walltime and shape, and no pause longer than `BAG_GAP_S`.
    """
    found: list[list[Job]] = []
    latest: dict[object, list[Job]] = {}
    for job in jobs:
        shape = tuple((m.count, *sorted(m.resources.items())) for m in job.members)
        key = (job.user, job.queue, job.walltime_s, shape)
        bag = latest.get(key)
        if bag is None or job.submit_s - bag[-1].submit_s > BAG_GAP_S:
            bag = latest[key] = []
            found.append(bag)
        bag.append(job)
    return found


def profile(seconds: Iterable[int], offset_s: int = 0) -> tuple[list[int], list[int]]:
    """Count `seconds` by hour of the day and by weekday, Monday first; second 0 is Monday 00:00
    plus `offset_s`."""
    hours, weekdays = [0] * 24, [0] * 7
    for second in seconds:
        hours[(second + offset_s) // 3600 % 24] += 1
        weekdays[(second + offset_s) // _DAY_S % 7] += 1
    return hours, weekdays


def quantiles(values: Iterable[int]) -> tuple[int, ...]:
    """The quantile table of `values`, to three digits.

    Its last point is not the maximum, which depends on a single job, but is chosen to give the last
    interval its mean: heavy tails keep their weight.
    """
    ordered = sorted(values)
    last = len(ordered) - 1
    table = [ordered[(last * point + 500) // 1000] for point in POINTS]
    tail = ordered[(last * POINTS[-2] + 500) // 1000 :]
    table[-1] = max(table[-2], 2 * sum(tail) // len(tail) - table[-2])
    return tuple(_three_digits(value) for value in table)


def fit(log: Workload) -> tuple[tuple[Queue, ...], dict[str, object]]:
    """The queues with their kinds of jobs, and the other figures by name."""
    by_queue = {
        spec.name: [job for job in log.jobs if job.queue == spec.name] for spec in log.queues
    }
    by_queue = {name: jobs for name, jobs in by_queue.items() if len(jobs) >= MIN_JOBS}
    jobs = [job for job in log.jobs if job.queue in by_queue]
    all_bags = bags(jobs)
    activity = Counter(job.user for job in jobs)
    users = {user: number for number, (user, _) in enumerate(activity.most_common(), 1)}
    queues = tuple(
        Queue(
            name,
            tuple((n, users[user]) for user, n in Counter(job.user for job in own).most_common()),
            _walltimes(own),
            tuple(_kinds([bag for bag in all_bags if bag[0].queue == name])),
        )
        for name, own in by_queue.items()
    )
    hours, weekdays = profile((bag[0].submit_s for bag in all_bags), LOG_START_S)
    gaps = [b.submit_s - a.submit_s for bag in all_bags for a, b in pairwise(bag)]
    nodes = Counter(
        (node.resources[VCORE] // MILLI, node.resources[MEMORY] // MIB) for node in log.nodes
    )
    return queues, {
        "NODES": tuple((count, *size) for size, count in nodes.items()),
        "LOG_S": log.horizon_s,
        "HOURS": tuple(hours),
        "WEEKDAYS": tuple(weekdays),
        "GAPS": quantiles(gaps),
        "LIKENESS": _likeness(all_bags),
        "CAMPAIGN": _campaign(all_bags),
    }


def _three_digits(value: int) -> int:
    unit: int = 10 ** max(len(str(value)) - 3, 0)
    return (value + unit // 2) // unit * unit


def _walltimes(jobs: Sequence[Job]) -> tuple[tuple[int, int], ...]:
    """The common walltimes; a rare one counts as the next longer one, or the longest."""
    counts = Counter(job.walltime_s or 0 for job in jobs)
    common = sorted(w for w, n in counts.items() if n >= _WALLTIME_SHARE * len(jobs) and w)
    shares = Counter[int]()
    for walltime, count in counts.items():
        shares[next((w for w in common if w >= walltime), common[-1])] += count
    return tuple((shares[walltime], walltime) for walltime in common)


def _shape(job: Job) -> Shape:
    return tuple((m.count, m.resources[VCORE] // MILLI) for m in job.members)


def _size_class(job: Job) -> tuple[bool, int]:
    """Whether a job has much memory per core, and its class of cores."""
    total = job.total()
    cores = total[VCORE] // MILLI
    heavy = total[MEMORY] > HEAVY_MIB * MIB * cores
    if job.gang:
        return heavy, len(SIZE_CLASSES)
    return heavy, next(index for index, most in enumerate(SIZE_CLASSES) if cores <= most)


def _kinds(own: Sequence[list[Job]]) -> Iterable[Kind]:
    """One kind per size class; classes of too few jobs are merged with the next one."""
    group: list[list[Job]] = []
    groups: list[list[list[Job]]] = []
    for size in sorted({_size_class(bag[0]) for bag in own}):
        group += [bag for bag in own if _size_class(bag[0]) == size]
        if sum(len(bag) for bag in group) >= MIN_JOBS:
            groups.append(group)
            group = []
    groups[-1].extend(group)
    for group in groups:
        jobs = [job for bag in group for job in bag]
        yield Kind(
            _sizes(len(bag) for bag in group),
            tuple((n, shape) for shape, n in Counter(map(_shape, jobs)).most_common()),
            _steps(job.members[0].resources[MEMORY] // MIB for job in jobs),
            quantiles(job.runtime_s for job in jobs),
        )


def _sizes(sizes: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Bags and jobs by doubling size: 1, 2 to 3, 4 to 7, ..."""
    classes: dict[int, tuple[int, int]] = {}
    for size in sorted(sizes):
        count, total = classes.get(size.bit_length(), (0, 0))
        classes[size.bit_length()] = count + 1, total + size
    return tuple(classes.values())


def _steps(values: Iterable[int]) -> tuple[int, ...]:
    """Middles of equal intervals, as values that occur; the last one is the mean, as it has the
    tail."""
    ordered = sorted(values)
    edges = [len(ordered) * step // _MEMORY_STEPS for step in range(_MEMORY_STEPS + 1)]
    steps = [ordered[(low + high) // 2] for low, high in pairwise(edges)]
    tail = ordered[edges[-2] :]
    return (*steps[:-1], _three_digits(sum(tail) // len(tail)))


def _likeness(all_bags: Sequence[list[Job]]) -> int:
    """How much a bag determines the rank of its jobs among the runtimes of their queue, in
    thousandths.

    With ranks ``a * bag + (1 - a) * own`` of independent uniform parts, the variance between bags
    is ``a**2 / (a**2 + (1 - a)**2)`` of the total; this is solved for ``a``.
    """
    within = whole = 0.0
    for queue in {bag[0].queue: None for bag in all_bags}:
        own = [bag for bag in all_bags if bag[0].queue == queue]
        ordered = sorted((job.runtime_s, job.job_id) for bag in own for job in bag)
        place = {job_id: rank / len(ordered) for rank, (_, job_id) in enumerate(ordered)}
        for bag in own:
            places = [place[job.job_id] for job in bag]
            mean = sum(places) / len(places)
            if len(places) > 1:
                within += sum((p - mean) ** 2 for p in places) * len(bag) / (len(bag) - 1)
                whole += len(places) / 12
    between = max(1 - within / whole, 0.0)
    ratio: float = (between / (1 - between)) ** 0.5 if between < 1 else 1e9
    return round(1000 * ratio / (1 + ratio))


def _campaign(all_bags: Sequence[list[Job]]) -> int:
    latest: dict[tuple[str, str], int] = {}
    soon = 0
    for bag in all_bags:
        key, begun_s = (bag[0].user, bag[0].queue), bag[0].submit_s
        soon += key in latest and begun_s - latest[key] <= _DAY_S
        latest[key] = begun_s
    return round(1000 * soon / len(all_bags))


def render(log: Workload) -> str:
    """The text of figures.py."""
    queues, figures = fit(log)
    out = [
        '"""Figures of the embedded workload: written by fit.py, do not edit.',
        "",
        *textwrap.wrap(
            f"Aggregates of the CERIT-SC log of 2013. {ACKNOWLEDGEMENT}. See {CITATION}."
            " docs/workload-model.md tells what the figures mean and how near they come.",
            width=96,
        ),
        '"""',
        "",
        "from quadriga.sim.workload.tables import Kind, Queue",
        "",
        "# fmt: off",
        "",
    ]
    notes = {
        "NODES": "(nodes, cores, memory in MiB)",
        "LOG_S": "how long the log is, in seconds",
        "HOURS": "bags of tasks by the hour of their first job",
        "WEEKDAYS": "and by weekday, Monday first",
        "GAPS": "quantiles of the seconds between two jobs of a bag",
        "CAMPAIGN": "bags begun within a day of one of the same user and queue, in thousandths",
        "LIKENESS": "how much a bag decides its jobs' runtimes, in thousandths",
    }
    for name, value in figures.items():
        out += [f"# {notes[name]}", *_wrapped(f"{name} = ", value, 0)]
    out += ["", "QUEUES = ("]
    for queue in queues:
        out.append("    Queue(")
        for field, value in zip(Queue._fields[:-1], queue[:-1], strict=True):
            out += _wrapped(f"{field}=", value, 8, ",")
        out.append("        kinds=(")
        for kind in queue.kinds:
            out += _wrapped("", kind, 12, ",")
        out += ["        ),", "    ),"]
    return "\n".join([*out, ")", ""])


def _wrapped(prefix: str, value: object, indent: int, end: str = "") -> list[str]:
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return textwrap.wrap(
        f"{prefix}{text}{end}",
        width=100,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 4),
        break_long_words=False,
        break_on_hyphens=False,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m bench._support.fit",
        description="Take the embedded workload model's figures from the CERIT log.",
    )
    parser.add_argument("path", type=Path, help="the folder of the CERIT log")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write figures.py there")
    options = parser.parse_args(arguments)
    try:
        text = render(read_cerit(options.path))
    except WorkloadError as error:
        print(error, file=sys.stderr)
        return 1
    if options.write is None:
        print(text, end="")
    else:
        options.write.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
