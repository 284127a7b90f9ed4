"""The event loop of all references: submissions, decisions, and room that comes back.

Times and latencies are those of the simulated resource manager. A pod runs `start_s` after its
allocation. A gang runs when its last placeholder ran, was stopped, confirmed and replaced. The room of
a job comes back `confirm_s` after its end.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from bench._references.cluster import Cluster, Groups, Piece
from quadriga.sim import SimulationOptions
from quadriga.sim.fragmentation import Holding
from quadriga.sim.reports.quality import JobRecord
from quadriga.sim.usage import resource_of
from quadriga.sim.workload import Job, Workload

SECOND = 1_000_000_000

#: called from time to time with (ended jobs, all jobs)
Progress = Callable[[int, int], None]

_TELL_EVERY = 500


@dataclass(slots=True, eq=False)
class Task:
    """A job that fits the empty cluster. `number` is its place in the order of submission, `estimate`
    the runtime that its user told, or the actual one (ns)."""

    number: int
    job: Job
    queue: int
    groups: Groups
    pods: int
    submitted: int
    runtime: int
    estimate: int


class Held(NamedTuple):
    """Pods of a task on a node, since a time (ns)."""

    piece: Piece
    since: int


class Latencies(NamedTuple):
    """Delays in ns: from the allocation of a single pod until it runs, from that of a gang's last
    placeholder until the gang runs, and from the end of a job until its room is free."""

    single: int
    gang: int
    confirm: int

    @classmethod
    def of(cls, options: SimulationOptions) -> Latencies:
        """Those of the simulated resource manager."""
        start, release, confirm = (
            round(seconds * SECOND)
            for seconds in (options.start_s, options.release_s, options.confirm_s)
        )
        return cls(start, start + release + confirm + start, confirm)


class Rule(Protocol):
    """Decides which of the waiting tasks start."""

    def submitted(self, task: Task) -> None:
        """A task arrives."""

    def ended(self, task: Task, pieces: Sequence[Piece]) -> None:
        """The room of a task is free again."""

    def decide(self) -> None:
        """Start tasks. Called once at each instant, after everything else that happens then."""


class Schedule:
    """A run of `workload` under the rule that `make` returns. Jobs that do not fit the empty cluster,
    or exceed the limit of their queue, never run."""

    def __init__(
        self, workload: Workload, make: Callable[[Schedule], Rule], latencies: Latencies
    ) -> None:
        self.workload = workload
        self.cluster = Cluster(workload)
        self.latencies = latencies
        self.now = 0
        self.holdings: list[Holding] = []
        self._started: dict[int, int] = {}  # task number -> ns
        self._ends: list[tuple[int, int, Task, Sequence[Held]]] = []
        self._rule = make(self)

    def run(self, progress: Progress | None = None) -> list[JobRecord]:
        """Run to the end and return the records of all jobs, in their order."""
        tasks = list(self._tasks())
        at, ends, rule = 0, self._ends, self._rule
        while at < len(tasks) or ends:
            self.now = min(
                [tasks[at].submitted for _ in (0,) if at < len(tasks)]
                + [end for end, *_ in ends[:1]]
            )
            while ends and ends[0][0] == self.now:
                _, _, task, held = heapq.heappop(ends)
                self._end(task, held)
            while at < len(tasks) and tasks[at].submitted == self.now:
                rule.submitted(tasks[at])
                at += 1
                if progress and at % _TELL_EVERY == 0:
                    progress(at, len(tasks))
            rule.decide()
        return self._records()

    def start(self, task: Task, held: Iterable[Held]) -> None:
        """The task has everything, the last part from now on. `held` is already taken."""
        delay = self.latencies.gang if task.pods > 1 else self.latencies.single
        begin = self._started[task.number] = self.now + delay
        free = begin + task.runtime + self.latencies.confirm
        heapq.heappush(self._ends, (free, task.number, task, tuple(held)))

    def ends_at(self, task: Task) -> int:
        """When the room of the task would be free if it started now and ran as long as estimated."""
        delay = self.latencies.gang if task.pods > 1 else self.latencies.single
        return self.now + delay + task.estimate + self.latencies.confirm

    def _end(self, task: Task, held: Sequence[Held]) -> None:
        names, needs = self.cluster.nodes, task.groups.needs
        for (node, group, count), since in held:
            resources = {
                name: count * amount
                for name, amount in zip(self.cluster.names, needs[group], strict=True)
            }
            self.holdings.append(Holding(names[node], resources, since, self.now))
        pieces = [each.piece for each in held]
        self.cluster.give_back(task.queue, task.groups, pieces)
        self._rule.ended(task, pieces)

    def _tasks(self) -> Iterable[Task]:
        cluster = self.cluster
        for number, job in enumerate(self.workload.jobs):
            groups, queue = cluster.groups(job), cluster.queues[job.queue]
            if groups is None or not cluster.allows(queue, groups):
                continue
            if cluster.fit(groups, cluster.capacity) is None:
                continue
            estimate = job.runtime_s if job.walltime_s is None else job.walltime_s
            yield Task(
                number=number,
                job=job,
                queue=queue,
                groups=groups,
                pods=job.pods,
                submitted=job.submit_s * SECOND,
                runtime=job.runtime_s * SECOND,
                estimate=estimate * SECOND,
            )

    def _records(self) -> list[JobRecord]:
        watched = resource_of(self.workload)
        records = []
        for number, job in enumerate(self.workload.jobs):
            started = self._started.get(number, -1)
            records.append(
                JobRecord(
                    job_id=job.job_id,
                    queue=job.queue,
                    submitted=job.submit_s * SECOND,
                    started=started,
                    ended=started + job.runtime_s * SECOND if started >= 0 else -1,
                    amount=job.total().get(watched, 0),
                )
            )
        return records
