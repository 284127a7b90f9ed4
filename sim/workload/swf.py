"""The Standard Workload Format of the Parallel Workloads Archive.

Header comments (``; MaxNodes: 128``), then 18 numbers a line, -1 for what is not known:

    1 job     4 runtime            7 used KB a processor      10 wanted KB a processor  15 queue
    2 submit  5 processors used    8 processors wanted        11 status                 16 partition
    3 wait    6 CPU time used      9 walltime                 12 user ... 14 program    17, 18 chain

The format does not list the nodes: unless they are given, the header's MaxProcs processors are
spread over MaxNodes nodes, with memory enough that only processors run out. See D138.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from quadriga.sim.workload.amounts import MAX_COUNT, MAX_S, number, quoted
from quadriga.sim.workload.files import MAX_BAD_LINES, BadLines, as_skipped, lines
from quadriga.sim.workload.model import (
    ANONYMOUS,
    KIB,
    MEMORY,
    MILLI,
    VCORE,
    Job,
    NodesNeeded,
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
from quadriga.sim.workload.nodes import without_unknown_memory

FIELDS = 18

#: what errors call the fields
NAMES = (
    *("job number", "submit time", "wait time", "runtime", "processors used", "CPU time used"),
    *("memory used", "processors requested", "time requested", "memory requested", "status"),
    *("user", "group", "program", "queue", "partition", "preceding job", "think time"),
)

_LABEL = re.compile(r";\s*(\w+)\s*:\s*(.*)")
_NUMBER = re.compile(r"\d{1,9}")
_SECONDS = re.compile(r"\d{1,10}")
_NAMED = re.compile(r"(\d{1,9})[\s,:]+([^\s,]+)")

#: the largest values of times and counts
_MOST = {1: MAX_S, 3: MAX_S, 4: MAX_COUNT, 7: MAX_COUNT, 8: MAX_S, 17: MAX_S}
#: the memory of a job and of a node, in bytes, fits 64 bits
_MAX_MEMORY = 10**18

# statuses of lines for parts of a job whose summary has a line of its own
_PARTIAL = (2, 3, 4)
_STATUSES = {0: "failed", 1: "completed", 5: "cancelled"}

#: which field is the queue
_COLUMNS = {"queue": 14, "partition": 15, "group": 12}


class _Header:
    """Values from the comments: numbers by label, and names of queues and partitions by number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.names: dict[str, dict[int, str]] = {"queue": {}, "partition": {}, "group": {}}

    def read(self, text: str) -> None:
        """Read a comment; one that is not ``label: value`` is ignored."""
        if match := _LABEL.match(text):
            label, value = match[1].lower(), match[2]
            if label in self.names and (named := _NAMED.match(value)):
                self.names[label].setdefault(int(named[1]), named[2])
            elif label in ("maxnodes", "maxprocs"):
                if digits := _NUMBER.match(value):
                    self.numbers.setdefault(label, int(digits[0]))
            elif label == "unixstarttime" and (digits := _SECONDS.match(value)):
                self.numbers.setdefault(label, int(digits[0]))


def read_swf(
    path: Path | str,
    *,
    nodes: Sequence[NodeSpec] | None = None,
    queue_by: str = "queue",
    bad_lines: int = MAX_BAD_LINES,
) -> Workload:
    """Read a log. Raises `WorkloadError` naming the file, the line and the reason.

    `nodes` replaces the cluster of the header. Queues are the log's queues, its partitions or its
    groups (`queue_by`). A job has as many processors of one vcore each as it requested (or used, if
    only that is known). A job larger than the largest node is a gang of whole nodes and a rest.
    Jobs without a positive runtime or processors, and lines for parts of jobs, are skipped, and so
    are at most `bad_lines` lines that do not have the format.
    """
    path = Path(path)
    if queue_by not in _COLUMNS:
        known = ", ".join(_COLUMNS)
        reason = f"queues cannot be made of {quoted(queue_by)}, only of {known}"
        raise WorkloadError(path, 0, reason)
    header, bad = _Header(), BadLines(path, bad_lines)
    usable: list[list[int]] = []
    skipped: list[Skipped] = []
    for at, line in lines(path):
        text = line.strip()
        if text.startswith(";"):
            header.read(text)
        elif text:
            try:
                fields = _fields(path, at, text)
            except WorkloadError as error:
                bad.add(error)
                continue
            if reason := _unusable(fields):
                skipped.append(Skipped(str(fields[0]), reason))
            elif fields[1] < 0:
                bad.add(WorkloadError(path, at, f"{fields[1]} is less than 0", _column(1)))
            else:
                usable.append(fields)
    found = bad.finish(len(usable) + len(skipped))
    if nodes is None:
        nodes = _cluster(path, header, max((_memory(fields) for fields in usable), default=0))
    largest = _Largest(path, nodes)
    column = _COLUMNS[queue_by]
    originals = {
        n: _queue(n, queue_by, header.names[queue_by]) for n in sorted({f[column] for f in usable})
    }
    names = queue_names(originals.values())
    jobs = [_job(fields, largest, names[originals[fields[column]]]) for fields in usable]
    return Workload(
        name=path.name.removesuffix(".gz").removesuffix(".swf"),
        nodes=tuple(nodes),
        queues=tuple(QueueSpec(name, original=original) for original, name in names.items()),
        jobs=in_order(without_unknown_memory(jobs, nodes)),
        skipped=(*skipped, *as_skipped(found)),
        horizon_s=horizon(jobs),
        source=f"{path.name} in the Standard Workload Format",
        bad_lines=found,
        start_unix_s=header.numbers.get("unixstarttime"),
    )


def _fields(path: Path, line: int, text: str) -> list[int]:
    words = text.split()
    if len(words) != FIELDS:
        raise WorkloadError(path, line, f"{len(words)} fields where the format has {FIELDS}")
    try:
        fields = [int(word) for word in words]
    except ValueError:
        # some logs have seconds with decimals
        fields = [_field(path, line, index, word) for index, word in enumerate(words)]
    for index, most in _MOST.items():
        if fields[index] > most:
            raise WorkloadError(path, line, f"{fields[index]} is more than {most}", _column(index))
    if _memory(fields) * _processors(fields) > _MAX_MEMORY:
        reason = f"{fields[9]} KB for each processor is more memory than any cluster has"
        raise WorkloadError(path, line, reason, _column(9))
    return fields


def _field(path: Path, line: int, index: int, word: str) -> int:
    try:
        return int(number(word))
    except ValueError as error:
        raise WorkloadError(path, line, str(error), _column(index)) from None


def _column(index: int) -> str:
    return f"field {index + 1} ({NAMES[index]})"


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


def _queue(number: int, kind: str, names: dict[int, str]) -> str:
    prefix = "group" if kind == "group" else "queue"
    return names.get(number, "default" if number < 0 else f"{prefix}-{number}")


class _Largest:
    """The number of processors of a job that fit one node, by the memory of a processor."""

    def __init__(self, path: Path, nodes: Sequence[NodeSpec]) -> None:
        self._sizes = [
            (node.resources.get(VCORE, 0) // MILLI, node.resources.get(MEMORY, 0)) for node in nodes
        ]
        self._known: dict[int, int] = {}
        self._most = max((vcores for vcores, _ in self._sizes), default=0)
        if self._most < 1:
            raise WorkloadError(path, 0, "no node has a whole vcore")

    def __call__(self, memory: int) -> int:
        """The most processors with `memory` bytes each. If no node has the memory of one, only
        vcores count: the scheduler says then why the job does not fit."""
        largest = self._known.get(memory)
        if largest is None:
            fitting = (min(vcores, size // memory) for vcores, size in self._sizes if memory)
            largest = self._known[memory] = max(fitting, default=0) or self._most
        return largest


def _job(fields: list[int], largest: _Largest, queue: str) -> Job:
    unit: Resources = {VCORE: MILLI}
    if memory := _memory(fields):
        unit[MEMORY] = memory
    return Job(
        job_id=str(fields[0]),
        submit_s=fields[1],
        runtime_s=fields[3],
        user=f"user-{fields[11]}" if fields[11] >= 0 else ANONYMOUS,
        queue=queue,
        members=split(_processors(fields), largest(memory), unit),
        walltime_s=fields[8] if fields[8] > 0 else None,
        recorded_wait_s=fields[2] if fields[2] >= 0 else None,
        group=f"group-{fields[12]}" if fields[12] >= 0 else None,
        status=_STATUSES.get(fields[10]),
        preceding=str(fields[16]) if fields[16] > 0 else None,
        think_s=fields[17] if fields[16] > 0 and fields[17] >= 0 else None,
    )


def _cluster(path: Path, header: _Header, memory: int) -> tuple[NodeSpec, ...]:
    """Spread MaxProcs over MaxNodes; the first nodes get one more if it does not divide evenly.

    If only one of the two is known, a node has one processor, as the format defines.
    """
    processors = header.numbers.get("maxprocs") or header.numbers.get("maxnodes")
    if not processors:
        reason = "the header has neither MaxProcs nor MaxNodes: give the nodes"
        raise NodesNeeded(path, 0, reason)
    count = header.numbers.get("maxnodes") or processors
    if count > MAX_COUNT or count > processors:
        limit = min(processors, MAX_COUNT)
        raise WorkloadError(path, 0, f"MaxNodes is {count}, more than {limit}")
    size, larger = divmod(processors, count)
    return tuple(
        NodeSpec(
            f"node-{number:0{len(str(count))}d}",
            {
                VCORE: (size + (number <= larger)) * MILLI,
                **(
                    {MEMORY: min((size + (number <= larger)) * memory, _MAX_MEMORY)}
                    if memory
                    else {}
                ),
            },
        )
        for number in range(1, count + 1)
    )
