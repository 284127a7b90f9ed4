"""Detects the format of a workload."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from quadriga.sim.workload.cerit import read_cerit
from quadriga.sim.workload.files import lines, table
from quadriga.sim.workload.model import Workload, WorkloadError
from quadriga.sim.workload.philly import read_philly
from quadriga.sim.workload.swf import FIELDS, read_swf

UNDERSTOOD = (
    "a Standard Workload Format file (.swf, .swf.gz),"
    " a CERIT folder (nodes.csv, queues.csv, jobs.csv)"
    " or a Philly folder (virtual_clusters.csv, jobs.csv)"
)

_CERIT = ("nodes.csv", "queues.csv", "jobs.csv")
_PHILLY = ("virtual_clusters.csv", "jobs.csv")


def open_workload(path: Path | str) -> Workload:
    """Read the workload at `path`, a file or a folder of a known format.

    Raises `WorkloadError`, which lists the formats, if none matches.
    """
    path = Path(path)
    if path.is_dir():
        if all(table(path, name) for name in _CERIT):
            return read_cerit(path)
        if all(table(path, name) for name in _PHILLY):
            return read_philly(path)
    elif not path.exists():
        raise WorkloadError(path, 0, "there is no such file or folder")
    elif path.name.endswith((".swf", ".swf.gz")) or _looks_like_swf(path):
        return read_swf(path)
    raise WorkloadError(path, 0, f"not a workload: understood are {UNDERSTOOD}")


def _looks_like_swf(path: Path) -> bool:
    try:
        first = next((text for _, text in islice(lines(path), 100) if text.strip()), "")
    except WorkloadError:
        return False
    return first.lstrip().startswith(";") or len(first.split()) == FIELDS
