"""The output of Slurm's ``sacct -P``: fields between ``|``, named by the first line.

    sacct -P -a -X -S 2024-01-01 -o JobID,User,Account,Partition,Submit,Start,ElapsedRaw,\
Timelimit,ReqCPUS,ReqMem,NNodes,ReqTRES,AllocTRES,State

Columns may be in any order, and there may be more of them. Lines of job steps (``12.batch``) are
ignored, since their job has a line of its own. The tasks of an array (``12_3``) are jobs. The
components of a heterogeneous job (``12+0``) start together, so they are one gang.

A request counts before what was allocated: ReqCPUS and ReqTRES before AllocCPUS and AllocTRES. The
output does not list the nodes; they have to be given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from quadriga.sim.workload.amounts import (
    amount,
    clock,
    count,
    number,
    quoted,
    timestamp,
    whole_seconds,
)
from quadriga.sim.workload.files import MAX_BAD_LINES, BadLines, as_skipped, records
from quadriga.sim.workload.model import (
    ANONYMOUS,
    GIB,
    GPU,
    KIB,
    MEMORY,
    MIB,
    MILLI,
    VCORE,
    Job,
    Member,
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
)
from quadriga.sim.workload.nodes import without_unknown_memory

#: what is a queue: the name that the caller uses, and the column
QUEUE_COLUMNS = {"partition": "partition", "account": "account", "qos": "qos", "user": "user"}

_ID = re.compile(r"(\d+)(_\d+|_\[[^\]]*\]|\+\d+)?(\..+)?")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)([nc]?)")
_MEMORY_FACTORS = {"": MIB, "K": KIB, "M": MIB, "G": GIB, "T": KIB * GIB, "P": MIB * GIB}
_TYPED_GPU = "gres/gpu:"

#: what Slurm writes for a time or a limit that there is not
_NO_TIME = frozenset(("", "unknown", "none", "invalid"))
_NO_LIMIT = frozenset(("", "unlimited", "partition_limit", "invalid", "none", "unknown"))

#: states of jobs that have not ended: their runtime is not known yet
_UNFINISHED = ("PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "REQUEUED", "COMPLETING")


class _Draft(NamedTuple):
    """A job before it is known which second is the first. `key` is shared by the components of a
    heterogeneous job."""

    job: Job
    key: str
    submit: Decimal


class _Tres(NamedTuple):
    """Trackable resources of a job: counts by name, all GPUs, and the memory as it is written."""

    counts: dict[str, int]
    gpus: int
    memory: str


class _Record:
    """A line, with its fields by column name in lower case."""

    __slots__ = ("_columns", "_fields", "_line", "_path")

    def __init__(self, path: Path, line: int, columns: dict[str, int], fields: list[str]) -> None:
        self._path = path
        self._line = line
        self._columns = columns
        self._fields = fields

    def text(self, column: str) -> str:
        """The field, empty if the column does not exist."""
        index = self._columns.get(column)
        return "" if index is None else self._fields[index].strip()

    def first(self, *columns: str) -> tuple[str, str]:
        """The first of these columns that is not empty, with its text; otherwise empty texts."""
        for column in columns:
            if value := self.text(column):
                return column, value
        return "", ""

    def error(self, column: str, reason: object) -> WorkloadError:
        """The error `reason` for a field of this line."""
        return WorkloadError(self._path, self._line, str(reason), column)


def looks_like_sacct(first_line: str) -> bool:
    """Whether a file that begins with this line is an output of ``sacct -P``."""
    names = {name.strip().lower() for name in first_line.removeprefix("\ufeff").split("|")}
    return len(names) > 1 and not names.isdisjoint(("jobid", "jobidraw"))


def read_sacct(
    path: Path | str,
    *,
    nodes: Sequence[NodeSpec] | None = None,
    queue_by: str = "partition",
    bad_lines: int = MAX_BAD_LINES,
) -> Workload:
    """Read the output. Raises `WorkloadError` naming the file, the line, the column and the reason.

    Queues are partitions, accounts, QOS or users (`queue_by`). The first submission is second 0. A
    job on several nodes is a gang with one pod for each, of equal parts as far as they divide.
    Jobs that never started or have not ended are skipped, and so are at most `bad_lines` lines that
    do not have the format.
    """
    path = Path(path)
    if queue_by not in QUEUE_COLUMNS:
        known = ", ".join(QUEUE_COLUMNS)
        reason = f"queues cannot be made of {quoted(queue_by)}, only of {known}"
        raise WorkloadError(path, 0, reason)
    if nodes is None:
        raise NodesNeeded(path, 0, "the output of sacct does not list the nodes: give the nodes")
    bad = BadLines(path, bad_lines)
    drafts: list[_Draft] = []
    skipped: list[Skipped] = []
    good = 0
    for record in _records(path, bad, QUEUE_COLUMNS[queue_by]):
        try:
            read = _read(record, QUEUE_COLUMNS[queue_by])
        except WorkloadError as error:
            bad.add(error)
            continue
        good += 1
        if isinstance(read, Skipped):
            skipped.append(read)
        elif read is not None:
            drafts.append(read)
    found = bad.finish(good)
    drafts = _merged(drafts)
    start = whole_seconds(min((draft.submit for draft in drafts), default=Decimal(0)))
    names = queue_names(sorted({draft.job.queue for draft in drafts}))
    jobs = [
        replace(
            draft.job, submit_s=whole_seconds(draft.submit) - start, queue=names[draft.job.queue]
        )
        for draft in drafts
    ]
    return Workload(
        name=Path(path.name.removesuffix(".gz")).stem,
        nodes=tuple(nodes),
        queues=tuple(QueueSpec(name, original=original) for original, name in names.items()),
        jobs=in_order(without_unknown_memory(jobs, nodes)),
        skipped=(*skipped, *as_skipped(found)),
        horizon_s=horizon(jobs),
        source=f"{path.name}, the output of sacct",
        bad_lines=found,
        start_unix_s=start if drafts else None,
    )


def _records(path: Path, bad: BadLines, queue: str) -> Iterator[_Record]:
    names, found = records(path, bad, delimiter="|", quotes=False)
    columns: dict[str, int] = {}
    for index, name in enumerate(names):
        columns.setdefault(name.strip().lower(), index)
    for needed in (
        ("JobID", "JobIDRaw"),
        ("Submit",),
        ("ElapsedRaw", "Elapsed"),
        ("ReqCPUS", "AllocCPUS", "NCPUS", "ReqTRES", "AllocTRES"),
    ):
        if not any(name.lower() in columns for name in needed):
            raise WorkloadError(path, 1, f"the header lacks the column {' or '.join(needed)}")
    if queue not in columns and queue != "partition":
        raise WorkloadError(path, 1, f"the header lacks the column {queue}")
    for line, fields in found:
        yield _Record(path, line, columns, fields)


def _read(record: _Record, queue: str) -> _Draft | Skipped | None:
    """The job of a line, the reason why there is none, or None for a job step."""
    column, job_id = record.first("jobid", "jobidraw")
    match = _ID.fullmatch(job_id)
    if match is None:
        raise record.error(column or "jobid", f"{quoted(job_id)} is not the id of a job")
    base, part, step = match.groups()
    if step:
        return None
    # "CANCELLED by 1001" names the user
    status = record.text("state").partition(" ")[0].rstrip("+").upper()
    submit = _time(record, "submit")
    start = _time(record, "start")
    if submit is None:
        return Skipped(job_id, "its submission is not known")
    elapsed = _elapsed(record)
    if status in _UNFINISHED:
        return Skipped(job_id, f"it has not ended ({status})")
    if elapsed <= 0:
        return Skipped(job_id, f"its runtime is {elapsed} s")
    members = _members(record)
    if not members:
        return Skipped(job_id, "it has no processors")
    wait = None if start is None else whole_seconds(start) - whole_seconds(submit)
    job = Job(
        job_id=job_id,
        submit_s=0,
        runtime_s=elapsed,
        user=record.text("user") or ANONYMOUS,
        # a job that may run in several partitions names all of them until it starts
        queue=record.text(queue).partition(",")[0] or "default",
        members=members,
        walltime_s=_limit(record),
        recorded_wait_s=wait if wait is not None and wait >= 0 else None,
        group=record.first("account", "group")[1] or None,
        status=status.lower() or None,
    )
    return _Draft(job, base if part and part.startswith("+") else job_id, submit)


def _merged(drafts: list[_Draft]) -> list[_Draft]:
    """The components of a heterogeneous job as one gang, in the place of the first of them."""
    merged: dict[str, _Draft] = {}
    result: list[str] = []
    for index, draft in enumerate(drafts):
        key = draft.key
        if key == draft.job.job_id:
            key = f"{key} {index}"  # a requeued job has a line for each run
        known = merged.get(key)
        if known is None:
            merged[key] = draft._replace(job=replace(draft.job, job_id=draft.key))
            result.append(key)
            continue
        job = replace(
            known.job,
            members=known.job.members + draft.job.members,
            runtime_s=max(known.job.runtime_s, draft.job.runtime_s),
        )
        merged[key] = known._replace(job=job, submit=min(known.submit, draft.submit))
    return [merged[key] for key in result]


def _time(record: _Record, column: str) -> Decimal | None:
    """A time as Unix seconds. Slurm writes them in local time without a zone; a log of a zone with
    summer time has an hour twice a year that this does not know."""
    text = record.text(column)
    if text.lower() in _NO_TIME:
        return None
    try:
        seconds = number(text) if text.isdecimal() else timestamp(text)
        whole_seconds(seconds)
    except ValueError as error:
        raise record.error(column, error) from None
    return seconds


def _elapsed(record: _Record) -> int:
    column, text = record.first("elapsedraw", "elapsed")
    try:
        if not text:
            return 0
        return whole_seconds(number(text) if column == "elapsedraw" else clock(text), up=True)
    except ValueError as error:
        raise record.error(column, error) from None


def _limit(record: _Record) -> int | None:
    column, text = record.first("timelimitraw", "timelimit")
    if text.lower() in _NO_LIMIT:
        return None
    try:
        # the raw form is in minutes
        seconds = number(text) * 60 if column == "timelimitraw" else clock(text)
        return whole_seconds(seconds, up=True) or None
    except ValueError as error:
        raise record.error(column, error) from None


def _members(record: _Record) -> tuple[Member, ...]:
    """A pod for each node, as equal as they can be; empty without processors."""
    requested, allocated = _tres(record, "reqtres"), _tres(record, "alloctres")
    processors = (
        _count(record, "reqcpus")
        or requested.counts.get("cpu")
        or _count(record, "alloccpus")
        or _count(record, "ncpus")
        or allocated.counts.get("cpu", 0)
    )
    if not processors:
        return ()
    nodes = (
        _count(record, "nnodes")
        or _count(record, "reqnodes")
        or requested.counts.get("node")
        or _count(record, "allocnodes")
        or allocated.counts.get("node", 1)
    )
    pods = min(max(nodes, 1), processors)
    memory = _memory(record, requested, allocated, processors, pods)
    return _spread(processors, -(-memory // pods), requested.gpus or allocated.gpus, pods)


def _spread(processors: int, memory: int, gpus: int, pods: int) -> tuple[Member, ...]:
    """The first pods get one processor or GPU more if they do not divide evenly."""
    members = []
    bounds = sorted({0, processors % pods, gpus % pods, pods})
    for first, end in pairwise(bounds):
        resources: Resources = {
            VCORE: (processors // pods + (first < processors % pods)) * MILLI,
            MEMORY: memory,
            GPU: gpus // pods + (first < gpus % pods),
        }
        members.append(Member(end - first, {name: n for name, n in resources.items() if n}))
    return tuple(members)


def _count(record: _Record, column: str) -> int:
    try:
        return count(number(record.text(column) or "0"))
    except ValueError as error:
        raise record.error(column, error) from None


def _tres(record: _Record, column: str) -> _Tres:
    """Trackable resources: ``cpu=4,mem=16G,node=1,gres/gpu=2``. GPUs may also be counted by type
    (``gres/gpu:a100=2``)."""
    counts: dict[str, int] = {}
    typed, memory = 0, ""
    for part in filter(None, record.text(column).split(",")):
        name, given, value = part.partition("=")
        if not given:
            raise record.error(column, f"{quoted(part)} is not name=value")
        try:
            if name == "mem":
                memory = value
            elif name in ("cpu", "node", "gres/gpu"):
                counts[name] = count(number(value))
            elif name.startswith(_TYPED_GPU):
                typed += count(number(value))
        except ValueError as error:
            raise record.error(column, f"{name}: {error}") from None
    return _Tres(counts, counts.get("gres/gpu", typed), memory)


def _memory(record: _Record, requested: _Tres, allocated: _Tres, processors: int, pods: int) -> int:
    """Bytes of the whole job; 0 if it asked for none, or for all that its nodes have.

    TRES have the sum over the job. So has ReqMem since Slurm 21.08; before, its last letter says
    whether it is for a processor (c) or a node (n).
    """
    for column, text in (
        ("reqtres", requested.memory),
        ("reqmem", record.text("reqmem")),
        ("alloctres", allocated.memory),
    ):
        if not text or text == "?":
            continue
        match = _MEMORY.fullmatch(text)
        if match is None:
            reason = f"{quoted(text)} is not an amount of memory such as 16G, 4Gn or 4000Mc"
            raise record.error(column, reason)
        times = {"": 1, "c": processors, "n": pods}[match[3]]
        try:
            if found := amount(number(match[1]) * _MEMORY_FACTORS[match[2]] * times):
                return found
        except ValueError as error:
            raise record.error(column, error) from None
    return 0
