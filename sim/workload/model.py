"""The common form of all workloads.

A workload is a cluster (`NodeSpec`), its leaf queues (`QueueSpec`) and what users submit to it
(`Job`). Times are whole seconds from the start of the trace. Resources have YuniKorn's names and
units: ``vcore`` in milli, ``memory`` in bytes, ``nvidia.com/gpu`` in devices. All values are plain
data: workloads with equal content are equal. `repr` shows everything but the fields that only some
sources have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

VCORE = "vcore"
MEMORY = "memory"
GPU = "nvidia.com/gpu"

MILLI = 1000
KIB = 1024
MIB = 1024**2
GIB = 1024**3

#: user of a job whose source names none
ANONYMOUS = "anonymous"

_QUEUE_NAME_LENGTH = 64

Resources = dict[str, int]


class WorkloadError(ValueError):
    """A source cannot be read. The text is one line with the file, the line number, the column if
    one is to blame, and the reason.

    `line` counts from 1 and is 0 for the whole file or folder. `column` is the name of a column, a
    key of a mapping file, or empty.
    """

    def __init__(self, path: object, line: int, reason: str, column: str = "") -> None:
        super().__init__(path, line, reason, column)
        self.path = str(path)
        self.line = line
        self.reason = reason
        self.column = column

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return ": ".join(part for part in (where, self.column, self.reason) if part)


class NodesNeeded(WorkloadError):
    """The source lists no nodes, and the caller gave none."""


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A machine: its name, capacity and attributes."""

    name: str
    resources: Resources
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A leaf queue under root.

    `name` is a valid YuniKorn queue name; `original` is the name in the source. A quota of None is
    unknown, which means unlimited.
    """

    name: str
    guaranteed: Resources | None = None
    max: Resources | None = None
    original: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """`count` equal pods, each asking for `resources`: a task group in YuniKorn's terms."""

    count: int
    resources: Resources


@dataclass(frozen=True, slots=True)
class Job:
    """A job as submitted by a user: pods that start together and run for `runtime_s`.

    `walltime_s` is the time limit that the user requested, which is the only estimate of the
    runtime that a scheduler could know. A job may have exceeded it. `recorded_wait_s` is the wait
    under the scheduler of the log, and `placement` the node and share of each pod there, in the
    order of `members`. `group` is the user's group, or the account that is charged. `status` is the
    end of the job in the source's words. `preceding` is the `job_id` of a job after whose end the
    user waited for `think_s` before the submission. Everything from `walltime_s` on is None if the
    source does not have it. `tags` are those of its application, such as `topology.required`.
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
    group: str | None = field(default=None, repr=False)
    status: str | None = field(default=None, repr=False)
    preceding: str | None = field(default=None, repr=False)
    think_s: int | None = field(default=None, repr=False)
    tags: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def pods(self) -> int:
        """The number of pods of all members."""
        return sum(member.count for member in self.members)

    @property
    def gang(self) -> bool:
        """Whether more than one pod must start together."""
        return self.pods > 1

    def total(self) -> Resources:
        """The total request of all pods."""
        total: Resources = {}
        for member in self.members:
            for name, amount in member.resources.items():
                total[name] = total.get(name, 0) + member.count * amount
        return total


@dataclass(frozen=True, slots=True)
class Skipped:
    """A job of the source that is not in the workload, with the reason."""

    job_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line of the source that does not have the format. `column` is empty if the line as a whole
    is wrong."""

    path: str
    line: int
    column: str
    reason: str

    def __str__(self) -> str:
        return str(WorkloadError(self.path, self.line, self.reason, self.column))


@dataclass(frozen=True, slots=True)
class Workload:
    """A cluster and its jobs, in order of (`submit_s`, order in the source).

    `horizon_s` is the duration of the submissions in seconds: every `submit_s` is below it.
    `source` describes the origin of the workload, with the acknowledgement that it requires. Each
    of the `bad_lines` is also in `skipped`. `start_unix_s` is the Unix time of second 0, None if
    the source does not tell. The `shared` resources are devices of which a pod may take a share; their
    amounts are in milli of a device.
    """

    name: str
    nodes: tuple[NodeSpec, ...]
    queues: tuple[QueueSpec, ...]
    jobs: tuple[Job, ...]
    skipped: tuple[Skipped, ...]
    horizon_s: int
    source: str
    bad_lines: tuple[BadLine, ...] = field(default=(), repr=False)
    start_unix_s: int | None = field(default=None, repr=False)
    shared: tuple[str, ...] = ()

    def capacity(self) -> Resources:
        """The total capacity of all nodes."""
        total: Resources = {}
        for node in self.nodes:
            for name, amount in node.resources.items():
                total[name] = total.get(name, 0) + amount
        return total

    def offered(self, resource: str) -> int:
        """The total of `resource` times seconds that all jobs request."""
        return sum(
            member.count * member.resources.get(resource, 0) * job.runtime_s
            for job in self.jobs
            for member in job.members
        )


def in_order(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Sort `jobs` by submission; jobs of the same second keep their order."""
    return tuple(sorted(jobs, key=lambda job: job.submit_s))


def horizon(jobs: Iterable[Job]) -> int:
    """The end of the second of the last submission; 0 without jobs."""
    return max((job.submit_s + 1 for job in jobs), default=0)


def queue_names(originals: Iterable[str]) -> dict[str, str]:
    """Map each of a source's queue names to a valid and distinct YuniKorn queue name.

    Names become lower-case, anything but ``a-z0-9_-`` becomes ``-``, and 64 characters are kept. If
    two names become equal, the later one gets a number: ``a.b``, ``A.B`` become ``a-b``, ``a-b-2``.
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
    """Split a job of `units` times `unit` into members of at most `largest` units each.

    As many members as possible are full, and one has the rest: 12 GPUs on nodes of 8 become a
    member of 8 and one of 4.
    """
    whole, rest = divmod(units, largest)
    return tuple(
        Member(count, {name: size * amount for name, amount in unit.items()})
        for count, size in ((whole, largest), (1 if rest else 0, rest))
        if count
    )
