"""The Philly log of 2017: a folder of virtual_clusters.csv and jobs.csv, compressed or not.

Its deep-learning jobs request only GPUs and start together. A virtual cluster becomes a queue whose
guarantee and limit are its GPUs.
"""

from __future__ import annotations

from pathlib import Path

from quadriga.sim.workload.files import Row, fingerprint, read_jobs, required, rows
from quadriga.sim.workload.model import (
    ANONYMOUS,
    GIB,
    GPU,
    MEMORY,
    MILLI,
    VCORE,
    Job,
    NodeSpec,
    QueueSpec,
    Skipped,
    Workload,
    horizon,
    in_order,
    queue_names,
    split,
)

# The log has neither. Jobs request only GPUs, so these values need only resemble a GPU machine.
_VCORE_PER_GPU = 8 * MILLI
_MEMORY_PER_GPU = 64 * GIB

_CLUSTERS = ("vc", "nodes", "gpus_per_node")
_JOBS = ("job_id", "submit_s", "duration_s", "vc", "num_gpus")
_MAX_NODES = 100_000

#: identifies the log by the sizes of its virtual clusters, even if only a part of its jobs is
#: present
_FINGERPRINT = "e88f2e0d23839d19ee6259960aed4f7e891a7629fea2762fd3c428a06709175d"


def read_philly(path: Path | str, *, bad_lines: int = 0) -> Workload:
    """Read the folder `path`. Raises `WorkloadError` naming the file, the line and the reason.

    At most `bad_lines` lines of jobs.csv are skipped because they do not have the format. Jobs of a
    virtual cluster without a recorded size, and jobs without a positive duration, are skipped. A
    job with more GPUs than a node has becomes whole nodes and a rest. Nodes are shared by all
    virtual clusters, as in the real cluster; the quotas separate them.
    """
    folder = Path(path)
    clusters: dict[str, tuple[int, int]] = {}
    for row in rows(required(folder, "virtual_clusters.csv"), _CLUSTERS):
        name = row.text("vc")
        if name in clusters:
            raise row.error(f"the virtual cluster {name} is listed twice")
        clusters[name] = row.whole("nodes", 1), row.whole("gpus_per_node", 1)
        if sum(nodes for nodes, _ in clusters.values()) > _MAX_NODES:
            raise row.error(f"more than {_MAX_NODES} nodes")
    names = queue_names(clusters)
    jobs, skipped, found = read_jobs(
        folder, "jobs.csv", _JOBS, bad_lines, lambda row: _job(row, clusters, names)
    )
    sizes = [gpus for count, gpus in clusters.values() for _ in range(count)]
    return Workload(
        name=folder.resolve().name,
        nodes=tuple(_node(number, gpus) for number, gpus in enumerate(sizes, 1)),
        queues=tuple(
            QueueSpec(names[vc], {GPU: count * gpus}, {GPU: count * gpus}, vc)
            for vc, (count, gpus) in clusters.items()
        ),
        jobs=in_order(jobs),
        skipped=skipped,
        horizon_s=horizon(jobs),
        source=_source(clusters),
        bad_lines=found,
    )


def _source(clusters: dict[str, tuple[int, int]]) -> str:
    """The source of the data; only the known log is named."""
    if fingerprint((name, *sizes) for name, sizes in clusters.items()) == _FINGERPRINT:
        return (
            "Philly log, msr-fiddle/philly-traces (CC-BY-4.0);"
            " virtual cluster sizes from S-Lab-System-Group/HeliosArtifact (MIT)"
        )
    return "files in the form of the Philly log"


def _node(number: int, gpus: int) -> NodeSpec:
    return NodeSpec(
        f"gpu-{number:04d}",
        {VCORE: gpus * _VCORE_PER_GPU, MEMORY: gpus * _MEMORY_PER_GPU, GPU: gpus},
    )


def _job(row: Row, clusters: dict[str, tuple[int, int]], names: dict[str, str]) -> Job | Skipped:
    job_id = row.text("job_id")
    vc = row.text("vc")
    if vc not in clusters:
        return Skipped(job_id, f"virtual cluster {vc} has no recorded size")
    if (runtime_s := row.whole("duration_s")) <= 0:
        return Skipped(job_id, f"its duration is {runtime_s} s")
    return Job(
        job_id=job_id,
        submit_s=row.whole("submit_s", 0),
        runtime_s=runtime_s,
        user=ANONYMOUS,
        queue=names[vc],
        members=split(row.whole("num_gpus", 1), clusters[vc][1], {GPU: 1}),
    )
