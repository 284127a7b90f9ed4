"""The Standard Workload Format of the Parallel Workloads Archive.

Header comments (``; MaxNodes: 128``), then 18 numbers a line, -1 for what is not known:

    1 job     4 runtime            7 used KB a processor      10 wanted KB a processor  15 queue
    2 submit  5 processors used    8 processors wanted        11 status                 16 partition
    3 wait    6 CPU time used      9 walltime                 12 user ... 14 program    17, 18 chain

The format does not list the nodes: unless they are given, the header's MaxProcs processors are
spread over MaxNodes nodes, with memory enough that only processors run out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from quadriga.sim.workload.files import lines
from quadriga.sim.workload.model import (
    ANONYMOUS,
    KIB,
    MEMORY,
    MILLI,
    VCORE,
    Job,
    NodeSpec,
    QueueSpec,
    Resources,
    Skipped,
    Workload,
    WorkloadError,
    horizon,
    in_order,
    queue_names,
    split,
)

FIELDS = 18
_MAX_NODES = 1_000_000

_LABEL = re.compile(r";\s*(\w+)\s*:\s*(.*)")
_NUMBER = re.compile(r"\d{1,9}")
_PLAIN = re.compile(r"[+-]?\d{1,18}(\.\d*)?")
_NAMED = re.compile(r"(\d{1,9})[\s,:]+([^\s,]+)")

# statuses of lines for parts of a job whose summary has a line of its own
_PARTIAL = (2, 3, 4)


class _Header:
    """Values from the comments: sizes by label, and names of queues and partitions by number."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.names: dict[str, dict[int, str]] = {"queue": {}, "partition": {}}

    def read(self, text: str) -> None:
        """Read a comment; one that is not ``label: value`` is ignored."""
        if match := _LABEL.match(text):
            label, value = match[1].lower(), match[2]
            if label in self.names and (named := _NAMED.match(value)):
                self.names[label].setdefault(int(named[1]), named[2])
            elif label in ("maxnodes", "maxprocs") and (number := _NUMBER.match(value)):
                self.sizes.setdefault(label, int(number[0]))


def read_swf(
    path: Path | str,
    *,
    nodes: Sequence[NodeSpec] | None = None,
    queue_by: Literal["queue", "partition"] = "queue",
) -> Workload:
    """Read a log. Raises `WorkloadError` naming the file, the line and the reason.

    `nodes` replaces the cluster of the header. Queues are the log's queues or its partitions. A job
    has as many processors of one vcore each as it requested (or used, if only that is known). A job
    larger than the largest node is a gang of whole nodes and a rest. Jobs without a positive
    runtime or processors, and lines for parts of jobs, are skipped.
    """
    path = Path(path)
    header = _Header()
    found: list[tuple[int, list[int]]] = []
    for number, line in lines(path):
        text = line.strip()
        if text.startswith(";"):
            header.read(text)
        elif text:
            found.append((number, _fields(path, number, text)))
    usable: list[list[int]] = []
    skipped: list[Skipped] = []
    for number, fields in found:
        if reason := _unusable(fields):
            skipped.append(Skipped(str(fields[0]), reason))
        elif fields[1] < 0:
            raise WorkloadError(path, number, f"the submit time is {fields[1]}")
        else:
            usable.append(fields)
    if nodes is None:
        nodes = _cluster(path, header, max((_memory(fields) for fields in usable), default=0))
    largest = max((node.resources.get(VCORE, 0) // MILLI for node in nodes), default=0)
    if largest < 1:
        raise WorkloadError(path, 0, "no node has a whole vcore")
    column = 14 if queue_by == "queue" else 15
    originals = {n: _queue(n, header.names[queue_by]) for n in sorted({f[column] for f in usable})}
    names = queue_names(originals.values())
    jobs = [_job(fields, largest, names[originals[fields[column]]]) for fields in usable]
    return Workload(
        name=path.name.removesuffix(".gz").removesuffix(".swf"),
        nodes=tuple(nodes),
        queues=tuple(QueueSpec(name, original=original) for original, name in names.items()),
        jobs=in_order(jobs),
        skipped=tuple(skipped),
        horizon_s=horizon(jobs),
        source=f"{path.name} in the Standard Workload Format",
    )


def _fields(path: Path, number: int, text: str) -> list[int]:
    words = text.split()
    if len(words) != FIELDS:
        raise WorkloadError(path, number, f"{len(words)} fields where the format has {FIELDS}")
    try:
        # some logs have seconds with decimals
        return [int(word) if "." not in word else int(float(word)) for word in words]
    except (ValueError, OverflowError):
        bad = next((word for word in words if not _PLAIN.fullmatch(word)), text)
        raise WorkloadError(path, number, f"{bad[:40]!r} is not a number") from None


def _unusable(fields: list[int]) -> str:
    if fields[10] in _PARTIAL:
        return f"a part of a job (status {fields[10]})"
    if fields[3] <= 0:
        return f"its runtime is {fields[3]} s"
    if _processors(fields) <= 0:
        return "it has no processors"
    return ""


def _processors(fields: list[int]) -> int:
    return fields[7] if fields[7] > 0 else fields[4]


def _memory(fields: list[int]) -> int:
    """Bytes per processor, 0 if the log has none."""
    return KIB * max(fields[9] if fields[9] > 0 else fields[6], 0)


def _queue(number: int, names: dict[int, str]) -> str:
    return names.get(number, "default" if number < 0 else f"queue-{number}")


def _job(fields: list[int], largest: int, queue: str) -> Job:
    unit: Resources = {VCORE: MILLI}
    if memory := _memory(fields):
        unit[MEMORY] = memory
    return Job(
        job_id=str(fields[0]),
        submit_s=fields[1],
        runtime_s=fields[3],
        user=f"user-{fields[11]}" if fields[11] >= 0 else ANONYMOUS,
        queue=queue,
        members=split(_processors(fields), largest, unit),
        walltime_s=fields[8] if fields[8] > 0 else None,
        recorded_wait_s=fields[2] if fields[2] >= 0 else None,
    )


def _cluster(path: Path, header: _Header, memory: int) -> tuple[NodeSpec, ...]:
    """Spread MaxProcs over MaxNodes; the first nodes get one more if it does not divide evenly.

    If only one of the two is known, a node has one processor, as the format defines.
    """
    processors = header.sizes.get("maxprocs") or header.sizes.get("maxnodes")
    if not processors:
        reason = "the header has neither MaxProcs nor MaxNodes: give the nodes"
        raise WorkloadError(path, 0, reason)
    count = header.sizes.get("maxnodes") or processors
    if count > _MAX_NODES or count > processors:
        limit = min(processors, _MAX_NODES)
        raise WorkloadError(path, 0, f"MaxNodes is {count}, more than {limit}")
    size, larger = divmod(processors, count)
    return tuple(
        NodeSpec(
            f"node-{number:0{len(str(count))}d}",
            {
                VCORE: (size + (number <= larger)) * MILLI,
                **({MEMORY: (size + (number <= larger)) * memory} if memory else {}),
            },
        )
        for number in range(1, count + 1)
    )
