"""Every job of a simulation as a line of CSV."""

# Not compiled: it does not run for every message.

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import IO, Final

from quadriga.base.times import SECOND
from quadriga.sim.outcomes import Fate

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
