"""The one shape every workload has, wherever it comes from.

A workload is a cluster (`NodeSpec`), its leaf queues (`QueueSpec`) and what users submit to it
(`Job`). Times are whole seconds from the start of the trace. Resources are YuniKorn's names and
units: ``vcore`` in milli, ``memory`` in bytes, ``nvidia.com/gpu`` in devices. All values are plain
data: two workloads are equal when their contents are, and `repr` says everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

VCORE = "vcore"
MEMORY = "memory"
GPU = "nvidia.com/gpu"

MILLI = 1000
KIB = 1024
MIB = 1024**2
GIB = 1024**3

#: The user of a job whose source does not name one.
ANONYMOUS = "anonymous"

_QUEUE_NAME_LENGTH = 64

Resources = dict[str, int]


class WorkloadError(ValueError):
    """A source cannot be read: one line that names the file, the line in it, and the reason.

    `line` counts from 1 and is 0 where the whole file or folder is meant.
    """

    def __init__(self, path: object, line: int, reason: str) -> None:
        super().__init__(path, line, reason)
        self.path = str(path)
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A machine: its name, capacity and attributes."""

    name: str
    resources: Resources
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A leaf queue under root.

    `name` is valid as a YuniKorn queue name; `original` is what the source calls it. A quota that
    is None is not known, which means unlimited.
    """

    name: str
    guaranteed: Resources | None = None
    max: Resources | None = None
    original: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """`count` pods alike, each asking for `resources`: what YuniKorn calls a task group."""

    count: int
    resources: Resources


@dataclass(frozen=True, slots=True)
class Job:
    """What a user submitted: pods that start together and run for `runtime_s`.

    `walltime_s` is the limit the user promised to keep, `recorded_wait_s` the wait under the
    scheduler the log was taken from, and `placement` the node and share of each pod there, in the
    order of `members`. The three are None where the source does not tell. A job may have run past
    its limit.
    """

    job_id: str
    submit_s: int
    runtime_s: int
    user: str
    queue: str
    members: tuple[Member, ...]
    walltime_s: int | None = None
    recorded_wait_s: int | None = None
    placement: tuple[tuple[str, Resources], ...] | None = None

    @property
    def pods(self) -> int:
        """How many pods the job has over all its members."""
        return sum(member.count for member in self.members)

    @property
    def gang(self) -> bool:
        """Whether more than one pod must start together."""
        return self.pods > 1

    def total(self) -> Resources:
        """What all pods ask for together."""
        total: Resources = {}
        for member in self.members:
            for name, amount in member.resources.items():
                total[name] = total.get(name, 0) + member.count * amount
        return total


@dataclass(frozen=True, slots=True)
class Skipped:
    """A job of the source that is not in the workload, and why."""

    job_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Workload:
    """A cluster and what is submitted to it, jobs in order of (`submit_s`, order in the source).

    `horizon_s` is how many seconds of submissions there are: every `submit_s` is below it.
    `source` says in words where the workload comes from, with the acknowledgement it asks for.
    """

    name: str
    nodes: tuple[NodeSpec, ...]
    queues: tuple[QueueSpec, ...]
    jobs: tuple[Job, ...]
    skipped: tuple[Skipped, ...]
    horizon_s: int
    source: str

    def capacity(self) -> Resources:
        """What all nodes have together."""
        total: Resources = {}
        for node in self.nodes:
            for name, amount in node.resources.items():
                total[name] = total.get(name, 0) + amount
        return total

    def offered(self, resource: str) -> int:
        """How much of `resource` times seconds all jobs ask for."""
        return sum(
            member.count * member.resources.get(resource, 0) * job.runtime_s
            for job in self.jobs
            for member in job.members
        )


def in_order(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Sort `jobs` by submission; jobs of the same second keep their order."""
    return tuple(sorted(jobs, key=lambda job: job.submit_s))


def horizon(jobs: Iterable[Job]) -> int:
    """Return the end of the second of the last submission, 0 without jobs."""
    return max((job.submit_s + 1 for job in jobs), default=0)


def queue_names(originals: Iterable[str]) -> dict[str, str]:
    """Map each of a source's queue names to a valid and distinct YuniKorn queue name.

    Names become lower-case, anything but ``a-z0-9_-`` becomes ``-`` and 64 characters are kept.
    Where two names become one, the later gets a number: ``a.b``, ``A.B`` give ``a-b``, ``a-b-2``.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for original in originals:
        if original in names:
            continue
        stem = re.sub(r"[^a-z0-9_-]", "-", original.lower())[:_QUEUE_NAME_LENGTH] or "queue"
        name, number = stem, 1
        while name in taken:
            number += 1
            suffix = f"-{number}"
            name = stem[: _QUEUE_NAME_LENGTH - len(suffix)] + suffix
        taken.add(name)
        names[original] = name
    return names


def split(units: int, largest: int, unit: Resources) -> tuple[Member, ...]:
    """Cut a job of `units` times `unit` into members of at most `largest` units each.

    As many members as possible are whole and one has the rest: 12 GPUs on nodes of 8 become a
    member of 8 and one of 4.
    """
    whole, rest = divmod(units, largest)
    return tuple(
        Member(count, {name: size * amount for name, amount in unit.items()})
        for count, size in ((whole, largest), (1 if rest else 0, rest))
        if count
    )
