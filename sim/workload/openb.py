"""Alibaba's GPU cluster of 2023 (openb): a folder of nodes.csv and pods.csv, compressed or not.

A pod takes a share of one GPU, or whole GPUs. So GPUs are shared devices, and their amounts in milli.
"""

from __future__ import annotations

from pathlib import Path

from quadriga.sim.workload.files import Row, read_jobs, required, rows
from quadriga.sim.workload.model import (
    ANONYMOUS,
    GPU,
    MEMORY,
    MILLI,
    VCORE,
    Job,
    Member,
    NodeSpec,
    QueueSpec,
    Resources,
    Skipped,
    Workload,
    horizon,
    in_order,
)

_MIB = 1 << 20
_QUEUE = "openb"
_NODES = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_PODS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
_MAX_NODES = 100_000


def read_openb(path: Path | str, *, bad_lines: int = 0) -> Workload:
    """Read the folder `path`. Raises `WorkloadError` naming the file, the line and the reason.

    A pod runs for as long as it ran in the log, from the time when it was scheduled there. Pods that never
    were, or without a positive runtime, are skipped, as are at most `bad_lines` lines of pods.csv that do
    not have the format. What a pod says of GPU models is not read.
    """
    folder = Path(path)
    nodes: dict[str, NodeSpec] = {}
    for row in rows(required(folder, "nodes.csv"), _NODES):
        name = row.text("sn")
        if name in nodes:
            raise row.error(f"the node {name} is listed twice")
        if len(nodes) == _MAX_NODES:
            raise row.error(f"more than {_MAX_NODES} nodes")
        amounts = _amounts(row, row.whole("gpu", 0) * MILLI)
        nodes[name] = NodeSpec(name, amounts, {"model": row.text("model")})
    jobs, skipped, found = read_jobs(folder, "pods.csv", _PODS, bad_lines, _job)
    return Workload(
        name=folder.resolve().name,
        nodes=tuple(nodes.values()),
        queues=(QueueSpec(_QUEUE),),
        jobs=in_order(jobs),
        skipped=skipped,
        horizon_s=horizon(jobs),
        source="files in the form of openb, alibaba/clusterdata (cluster-trace-gpu-v2023)",
        bad_lines=found,
        shared=(GPU,),
    )


def _amounts(row: Row, gpu: int) -> Resources:
    amounts = {
        VCORE: row.whole("cpu_milli", 0),
        MEMORY: row.whole("memory_mib", 0) * _MIB,
        GPU: gpu,
    }
    return {name: amount for name, amount in amounts.items() if amount}


def _job(row: Row) -> Job | Skipped:
    name = row.text("name")
    if not row.has("scheduled_time"):
        return Skipped(name, "it was never scheduled")
    runtime_s = row.whole("deletion_time", 0) - row.whole("scheduled_time", 0)
    if runtime_s <= 0:
        return Skipped(name, f"its runtime is {runtime_s} s")
    gpus = row.whole("num_gpu", 0)
    share = row.whole("gpu_milli", 0) if gpus == 1 else MILLI
    if not 0 < share <= MILLI:
        raise row.error(f"its share of a GPU is {share}, not within 1 and {MILLI}")
    return Job(
        job_id=name,
        submit_s=row.whole("creation_time", 0),
        runtime_s=runtime_s,
        user=ANONYMOUS,
        queue=_QUEUE,
        members=(Member(1, _amounts(row, gpus * share)),),
    )
