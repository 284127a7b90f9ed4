"""The results of a simulation as data: the same run gives the same bytes.

Values that depend on the machine (wall time, memory) are kept separately in ``measured``.
"""

from __future__ import annotations

import csv
import json
import resource
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any, Final

from quadriga.base.times import SECOND
from quadriga.core.model.gather_budget import GATHERINGS, LENDING
from quadriga.core.model.partition import Partition
from quadriga.core.model.run_times import VERDICTS
from quadriga.sim.fragmentation import Holding
from quadriga.sim.holders import Holder
from quadriga.sim.options import SimulationOptions
from quadriga.sim.outcomes import (
    COMPLETED,
    FAILED,
    NEVER_STARTED,
    OUTCOMES,
    REJECTED,
    UNSCHEDULABLE,
    Fate,
    HeldBy,
    ReservedNode,
)
from quadriga.sim.reports.quality import JobRecord, by_user, by_width, distribution, quality
from quadriga.sim.usage import DAY, Usage
from quadriga.sim.workload.model import Workload

#: a job that never started names at most this number of holders of a kind, and has the number of all
_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The raw observations of a simulation. `ended` is in ns of virtual time. `holders` and
    `reservations` are those of its end."""

    workload: Workload
    options: SimulationOptions
    #: the node ordering policy in force
    node_sort: str
    fates: list[Fate]
    usage: Usage
    holdings: list[Holding]
    sent: Counter[str]
    received: Counter[str]
    gangs: Counter[str]
    restarts: int
    holders: list[Holder]
    reservations: list[ReservedNode]
    #: as it is at the end; None if the scheduler is in another process
    partition: Partition | None
    ended: int
    steps: int
    wall_s: float
    #: when invariants were checked, in words
    checked: str


class Report:
    """`data` is the deterministic part and `measured` the rest; both are ready for JSON.

    Times in `data` are in s, resources in YuniKorn's units, shares within 0 and 1.
    """

    def __init__(self, facts: Facts) -> None:
        self.fates = facts.fates
        self.data: dict[str, Any] = {
            "workload": _workload(facts.workload),
            "options": _options(facts),
            "jobs": _jobs(facts),
            "gangs": _gangs(facts),
            "scheduler": _inside(facts.partition),
            "preemption": {
                "allocations": facts.received["AllocationResponse.released.PREEMPTED_BY_SCHEDULER"],
                "restarts": facts.restarts,
            },
            "quality": _quality(facts),
            "waits": _waits(facts),
            "utilisation": _utilisation(facts),
            "messages": {"in": _sorted(facts.sent), "out": _sorted(facts.received)},
            "decisions": _decisions(facts),
            "virtual": {"ended_s": facts.ended / SECOND, "steps": facts.steps},
            **{name: _reasons(facts, name) for name in (UNSCHEDULABLE, REJECTED, FAILED)},
            NEVER_STARTED: _never_started(facts),
            "held_at_end": {
                "applications": [each._asdict() for each in facts.holders],
                "reservations": [each._asdict() for each in facts.reservations],
            },
            "skipped": [
                {"job": skipped.job_id, "reasons": [skipped.reason]}
                for skipped in facts.workload.skipped
            ],
        }
        decisions = self.data["decisions"]["total"]
        self.measured: dict[str, Any] = {
            "wall_s": round(facts.wall_s, 3),
            "decisions_per_s": round(decisions / facts.wall_s) if facts.wall_s > 0 else None,
            "peak_memory_bytes": peak_memory_bytes(),
            "invariants_checked": facts.checked,
        }

    @property
    def unaccounted(self) -> int:
        """The number of jobs without a result. Anything but 0 is a bug in the simulation."""
        jobs = self.data["jobs"]
        return int(jobs["total"] - sum(jobs[outcome] for outcome in (*OUTCOMES, "skipped")))

    def json(self, *, measure: bool = False) -> str:
        """One JSON object, sorted and indented, with a newline at the end."""
        data = {**self.data, "measured": self.measured} if measure else self.data
        return json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def peak_memory_bytes() -> int:
    """The largest resident size that this process ever had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _workload(workload: Workload) -> dict[str, Any]:
    return {
        "name": workload.name,
        "source": workload.source,
        "nodes": len(workload.nodes),
        "capacity": _sorted(workload.capacity()),
        **({"shared": list(workload.shared)} if workload.shared else {}),
        "queues": len(workload.queues),
        "users": len({job.user for job in workload.jobs}),
        "days": round(workload.horizon_s / 86_400, 3),
    }


def _options(facts: Facts) -> dict[str, Any]:
    """The options in force. A given configuration decides for each queue what `policy` and
    `gang_admission` say for all queues otherwise."""
    options = facts.options
    told = asdict(options)
    told["node_sort"] = facts.node_sort
    for name in ("queue_map", "user_map"):
        told[name] = dict(told[name])
    told["placeholder_timeout_s"] = options.placeholder_timeout_in_force_s
    told["config"] = "of the workload's queues" if options.config is None else "given"
    if options.config is not None:
        told["policy"] = told["gang_admission"] = None
    # options that do not change the result
    for name in ("journal", "check"):
        del told[name]
    if not options.expected_runtime:
        del told["expected_runtime"]
    return told


def _jobs(facts: Facts) -> dict[str, int]:
    outcomes = Counter(fate.outcome for fate in facts.fates)
    skipped = len(facts.workload.skipped)
    return {
        "total": len(facts.workload.jobs) + skipped,
        **{name: outcomes[name] for name in OUTCOMES},
        "skipped": skipped,
    }


def _gangs(facts: Facts) -> dict[str, int]:
    gangs = [fate for fate in facts.fates if fate.job.gang]
    names = ("placed", "replaced", "soft_timeouts", "hard_timeouts")
    faults = ("confirmations_lost", "confirmations_repeated")
    return {
        "total": len(gangs),
        "members": sum(fate.job.pods for fate in gangs),
        "completed": sum(fate.outcome == COMPLETED for fate in gangs),
        **{name: facts.gangs[name] for name in names},
        **{name: facts.gangs[name] for name in faults if facts.gangs[name]},
    }


def _inside(partition: Partition | None) -> dict[str, Any] | None:
    """What only a scheduler in this process tells: for how many s of the whole cluster nodes were kept idle for
    gangs, how often gangs did what, and the ended allocations by where their expected run time came from and by
    what it was."""
    if partition is None:
        return None
    budget, estimates = partition.gather_budget, dict[str, dict[str, int]]()
    for (source, verdict), number in sorted(partition.run_times.verdicts.items()):
        estimates.setdefault(source, dict.fromkeys(VERDICTS, 0))[verdict] = number
    return {
        "kept_idle_s": budget.kept_idle // SECOND,
        "gatherings": {name: budget.counts[name] for name in GATHERINGS},
        "lending": {name: budget.counts[name] for name in LENDING},
        "estimates": estimates,
    }


def _quality(facts: Facts) -> dict[str, Any]:
    """The figures of docs/quality.md, over all jobs but the skipped ones."""
    resource = facts.usage.resource
    records = []
    for fate in facts.fates:
        job, started, ended = fate.job, -1, -1
        if fate.outcome == COMPLETED:
            started, ended = fate.started, fate.started + job.runtime_s * SECOND
        queue, submitted = fate.queue or job.queue, job.submit_s * SECOND
        amount = job.total().get(resource, 0)
        records.append(JobRecord(job.job_id, queue, submitted, started, ended, amount))
    preempted = facts.received["AllocationResponse.released.PREEMPTED_BY_SCHEDULER"]
    return quality(facts.workload, records, facts.holdings, preempted).data()


def _waits(facts: Facts) -> dict[str, Any]:
    """Waiting times of the jobs that ran, next to those in the log for the same jobs."""
    ran = [fate for fate in facts.fates if fate.started >= 0]
    queues: dict[str, list[Fate]] = {queue.name: [] for queue in facts.workload.queues}
    if facts.options.config is not None:  # the queues where they were placed
        queues = {path: [] for path in sorted({fate.queue for fate in ran})}
    for fate in ran:
        queues.setdefault(fate.queue or fate.job.queue, []).append(fate)
    return {
        **_with_gangs(ran),
        "queues": {name: _with_gangs(fates) for name, fates in queues.items()},
        "widths": by_width(facts.workload, ran),
        "users": by_user(ran),
    }


def _with_gangs(fates: list[Fate]) -> dict[str, Any]:
    """The waiting times of these jobs, and separately of the gangs among them."""
    return {**_beside(fates), "gangs": _beside([fate for fate in fates if fate.job.gang])}


def _beside(fates: list[Fate]) -> dict[str, Any]:
    recorded = [fate.job.recorded_wait_s for fate in fates]
    known = [wait * SECOND for wait in recorded if wait is not None]
    return {
        "simulated": distribution([fate.wait for fate in fates]),
        "recorded": distribution(known) if known else None,
    }


def _utilisation(facts: Facts) -> dict[str, Any]:
    usage = facts.usage
    capacity = facts.workload.capacity().get(usage.resource, 0)
    whole, rest = divmod(facts.ended, DAY)
    lengths = [DAY] * whole + ([rest] if rest else [])
    areas = usage.days + [0] * (len(lengths) - len(usage.days))
    return {
        "resource": usage.resource,
        "capacity": capacity,
        "mean": _share(usage.area, capacity * facts.ended),
        "peak": _share(usage.peak, capacity),
        "placeholders": _share(usage.held_area, capacity * facts.ended),
        "days": [
            _share(area, capacity * length) for area, length in zip(areas, lengths, strict=True)
        ],
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


def _decisions(facts: Facts) -> dict[str, int]:
    """A member that replaces its placeholder is reported as new only after the replacement
    (G33)."""
    replacements = facts.gangs["replaced"]
    total = max(facts.received["AllocationResponse.new"], replacements)
    return {"allocations": total - replacements, "replacements": replacements, "total": total}


def _reasons(facts: Facts, outcome: str) -> list[dict[str, Any]]:
    return [
        {"job": fate.job.job_id, "queue": fate.job.queue, "reasons": list(fate.reasons)}
        for fate in facts.fates
        if fate.outcome == outcome
    ]


def _never_started(facts: Facts) -> list[dict[str, Any]]:
    """The jobs that others kept from starting, each with who holds what it needs."""
    told = _reasons(facts, NEVER_STARTED)
    fates = [fate for fate in facts.fates if fate.outcome == NEVER_STARTED]
    for job, fate in zip(told, fates, strict=True):
        held_by = fate.held_by or HeldBy()
        job["held_by"] = {
            "gathering": _first(held_by.gathering),
            "running": _first(held_by.running),
            "reservations": _first([each._asdict() for each in held_by.reservations]),
            "quotas": list(held_by.quotas),
        }
    return told


def _first(holders: Sequence[object]) -> dict[str, Any]:
    return {"count": len(holders), "first": list(holders[:_NAMED])}


def _sorted(counts: dict[str, int]) -> dict[str, int]:
    return {name: counts[name] for name in sorted(counts) if counts[name]}


#: times are in s of virtual time, empty if there is none; nodes are those of its pods, by name
COLUMNS: Final = (
    "job",
    "user",
    "queue",
    "pods",
    "submitted_s",
    "started_s",
    "ended_s",
    "outcome",
    "nodes",
    "waited_for",
)


def write_jobs(file: IO[str], fates: Iterable[Fate]) -> None:
    """Write the jobs in the order of their submission, after a line of column names."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for fate in sorted(fates, key=lambda each: (each.job.submit_s, each.job.job_id)):
        job = fate.job
        told = (job.job_id, job.user, fate.queue or job.queue, job.pods, job.submit_s)
        times = (_seconds(fate.started), _seconds(fate.ended))
        writer.writerow((*told, *times, fate.outcome, " ".join(fate.nodes), fate.waited_for))


def _seconds(ns: int) -> str:
    return f"{ns / SECOND:.9g}" if ns >= 0 else ""
