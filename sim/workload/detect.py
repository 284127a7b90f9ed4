"""Detects the format of a workload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from quadriga.sim.workload.cerit import read_cerit
from quadriga.sim.workload.files import MAX_BAD_LINES, lines, table
from quadriga.sim.workload.mapped import read_csv
from quadriga.sim.workload.mapping import TraceMapping
from quadriga.sim.workload.model import MILLI, NodeSpec, Workload, WorkloadError
from quadriga.sim.workload.openb import read_openb
from quadriga.sim.workload.philly import read_philly
from quadriga.sim.workload.slurm import looks_like_sacct, read_sacct
from quadriga.sim.workload.swf import FIELDS, read_swf

UNDERSTOOD = (
    "a Standard Workload Format file (.swf, .swf.gz), the output of sacct -P,"
    " a CERIT folder (nodes.csv, queues.csv, jobs.csv),"
    " a Philly folder (virtual_clusters.csv, jobs.csv),"
    " an openb folder (nodes.csv, pods.csv)"
    " or a CSV file with a mapping"
)

_CERIT = ("nodes.csv", "queues.csv", "jobs.csv")
_PHILLY = ("virtual_clusters.csv", "jobs.csv")
_OPENB = ("nodes.csv", "pods.csv")


def open_workload(
    path: Path | str,
    *,
    nodes: Sequence[NodeSpec] | None = None,
    queue_by: str | None = None,
    mapping: TraceMapping | Path | str | None = None,
    bad_lines: int = MAX_BAD_LINES,
) -> Workload:
    """Read the workload at `path`, a file or a folder of a known format, compressed or not.

    `nodes` replaces the nodes of the source, and is needed if it has none. `queue_by` names what
    queues are made of, where the format has a choice. With a `mapping` the file is CSV. At most
    `bad_lines` lines that do not have the format are skipped. Raises `WorkloadError`, which lists
    the formats if none matches.
    """
    path = Path(path)
    if not path.exists():
        raise WorkloadError(path, 0, "there is no such file or folder")
    if mapping is not None:
        _no_choice(path, queue_by, "a mapping")
        return read_csv(path, mapping, nodes=nodes, bad_lines=bad_lines)
    if path.is_dir():
        _no_choice(path, queue_by, "a folder")
        workload = _open_folder(path, bad_lines)
        if nodes is None:
            return workload
        jobs = tuple(replace(job, placement=None) for job in workload.jobs)
        return replace(workload, nodes=tuple(_shared(nodes, workload.shared)), jobs=jobs)
    first = _first_line(path)
    if looks_like_sacct(first):
        queue_by = queue_by or "partition"
        return read_sacct(path, nodes=nodes, queue_by=queue_by, bad_lines=bad_lines)
    if path.name.endswith((".swf", ".swf.gz")) or _looks_like_swf(first):
        return read_swf(path, nodes=nodes, queue_by=queue_by or "queue", bad_lines=bad_lines)
    raise WorkloadError(path, 0, f"not a workload: understood are {UNDERSTOOD}")


def _open_folder(path: Path, bad_lines: int) -> Workload:
    if all(table(path, name) for name in _CERIT):
        return read_cerit(path, bad_lines=bad_lines)
    if all(table(path, name) for name in _PHILLY):
        return read_philly(path, bad_lines=bad_lines)
    if all(table(path, name) for name in _OPENB):
        return read_openb(path, bad_lines=bad_lines)
    raise WorkloadError(path, 0, f"not a workload: understood are {UNDERSTOOD}")


def _shared(nodes: Sequence[NodeSpec], names: Sequence[str]) -> Iterator[NodeSpec]:
    """The nodes with the amounts of shared devices in milli."""
    for node in nodes:
        milli = {name: amount * MILLI for name, amount in node.resources.items() if name in names}
        yield replace(node, resources={**node.resources, **milli})


def _no_choice(path: Path, queue_by: str | None, form: str) -> None:
    if queue_by is not None:
        raise WorkloadError(path, 0, f"{form} already says what the queues are")


def _first_line(path: Path) -> str:
    """The first line that is not blank; empty if the file cannot be read."""
    try:
        return next((text for _, text in islice(lines(path), 100) if text.strip()), "")
    except WorkloadError:
        return ""


def _looks_like_swf(first_line: str) -> bool:
    return first_line.lstrip().startswith(";") or len(first_line.split()) == FIELDS
