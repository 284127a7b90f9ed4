"""CSV traces of any layout, with a mapping file that says which columns are which fields of a job.

A line is a job, or an event in the life of one. docs/traces.md describes mapping files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from typing import NamedTuple

from quadriga.sim.workload.amounts import MAX_COUNT, quoted, shown, whole_seconds
from quadriga.sim.workload.columns import Columns, Line
from quadriga.sim.workload.files import MAX_BAD_LINES, MAX_LINES, BadLines, as_skipped, records
from quadriga.sim.workload.mapping import TOPOLOGY, Events, MappedNodes, TraceMapping, load
from quadriga.sim.workload.model import (
    ANONYMOUS,
    Job,
    Member,
    NodesNeeded,
    NodeSpec,
    QueueSpec,
    Skipped,
    Workload,
    WorkloadError,
    horizon,
    in_order,
    queue_names,
)
from quadriga.sim.workload.nodes import numbered, without_unknown_memory

#: the total of a resource over all pods of a job fits 64 bits
_MAX_TOTAL = 10**18


class _Running(NamedTuple):
    """A job whose end was not read yet: the line of its submission, and times in s. Without events
    for starts, `start` is the time of submission and `started` is False."""

    line: Line
    submit: Decimal
    start: Decimal | None
    started: bool = False


class _Draft(NamedTuple):
    """A job of a line before it is known which second is the first. There are `copies` of it."""

    line: int
    submit: Decimal
    job: Job
    copies: int


def read_csv(
    path: Path | str,
    mapping: TraceMapping | Path | str,
    *,
    nodes: Sequence[NodeSpec] | None = None,
    bad_lines: int = MAX_BAD_LINES,
) -> Workload:
    """Read a CSV file. Raises `WorkloadError` naming the file, the line, the column and the reason.

    `nodes` replaces those of the mapping. The first submission is second 0. Jobs whose times are
    not known are skipped, and so are at most `bad_lines` lines that do not have the format. Lines
    that the mapping's conditions exclude do not count at all.
    """
    path = Path(path)
    if not isinstance(mapping, TraceMapping):
        mapping = load(mapping)
    if nodes is None:
        nodes = _nodes(path, mapping)
    bad = BadLines(path, bad_lines)
    table = _Table(path, mapping, bad)
    drafts: list[_Draft] = []
    skipped: list[Skipped] = []
    total = 0
    for read in table.from_events(mapping.events) if mapping.events else table.from_lines():
        if isinstance(read, Skipped):
            skipped.append(read)
        else:
            drafts.append(read)
            total += read.copies
            if total > MAX_LINES:
                raise WorkloadError(path, read.line, f"more than {MAX_LINES} jobs")
    first = min((draft.submit for draft in drafts), default=Decimal(0))
    start = int(first.to_integral_value(ROUND_FLOOR))
    jobs = list(_jobs(path, drafts, start, bad))
    found = bad.finish(table.good)
    names = queue_names(sorted({job.queue for job in jobs}))
    jobs = [replace(job, queue=names[job.queue]) for job in jobs]
    submit = mapping.events.time if mapping.events else mapping.job.get("submit")
    dated = (submit or mapping.job["start"]).form
    return Workload(
        name=Path(path.name.removesuffix(".gz")).stem,
        nodes=tuple(nodes),
        queues=tuple(QueueSpec(name, original=original) for original, name in names.items()),
        jobs=in_order(without_unknown_memory(jobs, nodes)),
        skipped=(*skipped, *as_skipped(found)),
        horizon_s=horizon(jobs),
        source=f"{path.name}, read with {mapping.path.name}",
        bad_lines=found,
        start_unix_s=start if drafts and dated else None,
    )


def _jobs(path: Path, drafts: list[_Draft], start: int, bad: BadLines) -> Iterator[Job]:
    """The jobs with their submission in seconds after `start`."""
    for draft in drafts:
        try:
            job = replace(draft.job, submit_s=whole_seconds(draft.submit - start))
        except ValueError as error:
            reason = f"{error} after the first submission"
            bad.add(WorkloadError(path, draft.line, reason, "the time of submission"))
            continue
        if draft.copies == 1:
            yield job
        else:
            for copy in range(1, draft.copies + 1):
                yield replace(job, job_id=f"{job.job_id}-{copy}")


class _Table:
    """The jobs of one file. `good` counts the lines that have the format."""

    def __init__(self, path: Path, mapping: TraceMapping, bad: BadLines) -> None:
        self.good = 0
        self._bad = bad
        self._has_submit = "submit" in mapping.job
        names, self._records = records(
            path, bad, names=mapping.columns, delimiter=mapping.delimiter
        )
        fields = dict(mapping.job)
        if mapping.events:
            fields["time"] = mapping.events.time
        self._columns = Columns(
            path,
            names,
            fields,
            mapping.resources,
            mapping=mapping.path,
            empty=mapping.empty,
            where=mapping.where,
        )

    def from_lines(self) -> Iterator[_Draft | Skipped]:
        """The job of every line, or the reason why there is none."""
        for line, _ in self._lines():
            try:
                runtime = line.number("runtime")
                start, end = line.number("start"), line.number("end")
                if runtime is None and start is not None and end is not None:
                    runtime = end - start
                if self._has_submit:
                    yield self._job(line, line.number("submit"), start, runtime)
                else:
                    yield self._job(line, start, None, runtime)
            except WorkloadError as error:
                self.good -= 1
                self._bad.add(error)

    def from_events(self, events: Events) -> Iterator[_Draft | Skipped]:
        """The job of every submission with the first end of its id that follows. If an id is
        submitted again after that, it is another job."""
        kind = self._columns.position(events.column, "events.column")
        running: dict[str, _Running] = {}
        for line, fields in self._lines():
            event = fields[kind].strip()
            try:
                job_id, time = line.text("id"), line.number("time")
                if not job_id or time is None:
                    raise line.error("time" if job_id else "id", "it is empty")
                if event in events.submit:
                    if job_id in running:
                        reason = f"it is submitted again in line {line.at} before its end"
                        yield Skipped(job_id, reason)
                    running[job_id] = _Running(line, time, None if events.start else time)
                elif event in events.start and job_id in running:
                    running[job_id] = running[job_id]._replace(start=time, started=True)
                elif event in events.end and job_id in running:
                    job = running.pop(job_id)
                    runtime = None if job.start is None else time - job.start
                    yield self._job(
                        job.line, job.submit, job.start if job.started else None, runtime
                    )
                elif event in events.end:
                    yield Skipped(job_id, f"its end in line {line.at} follows no submission")
            except WorkloadError as error:
                self.good -= 1
                self._bad.add(error)
        for job_id in running:
            yield Skipped(job_id, "its end is not in the file")

    def _lines(self) -> Iterator[tuple[Line, list[str]]]:
        """The lines that meet the conditions."""
        for at, fields in self._records:
            try:
                line = self._columns.line(at, fields)
            except WorkloadError as error:
                self._bad.add(error)
                continue
            self.good += 1
            if line is not None:
                yield line, fields

    def _job(
        self, line: Line, submit: Decimal | None, start: Decimal | None, runtime: Decimal | None
    ) -> _Draft | Skipped:
        job_id = line.text("id") or f"line-{line.at}"
        if submit is None or runtime is None:
            missing = "submission" if submit is None else "runtime"
            return Skipped(job_id, f"its {missing} is not known")
        if runtime <= 0:
            return Skipped(job_id, f"its runtime is {shown(runtime)} s")
        resources = line.resources()
        pods, copies = line.count("pods"), line.count("copies")
        if not (resources and pods and copies):
            return Skipped(job_id, "it has no pods" if resources else "it asks for nothing")
        if max(resources.values()) * pods > _MAX_TOTAL:
            raise line.error("pods", f"{pods} pods ask for more than any cluster has")
        wait = None if start is None or start < submit else start - submit
        job = Job(
            job_id=job_id,
            submit_s=0,
            runtime_s=line.duration("runtime", runtime) or 0,
            user=line.text("user") or ANONYMOUS,
            queue=line.text("queue") or "default",
            members=(Member(pods, resources),),
            walltime_s=line.duration("estimate") or None,
            recorded_wait_s=None if wait is None else line.duration("start", wait),
            group=line.text("group") or None,
            status=line.text("status") or None,
            tags={key.replace("_", "."): said for key in TOPOLOGY if (said := line.text(key))},
        )
        return _Draft(line.at, submit, job, copies)


def _nodes(path: Path, mapping: TraceMapping) -> tuple[NodeSpec, ...]:
    if mapping.nodes is None:
        raise NodesNeeded(path, 0, f"{mapping.path.name} does not tell the nodes: give the nodes")
    if isinstance(mapping.nodes, tuple):
        return mapping.nodes
    return _node_table(path.parent / mapping.nodes.file, mapping.nodes, mapping)


def _node_table(path: Path, table: MappedNodes, mapping: TraceMapping) -> tuple[NodeSpec, ...]:
    """The nodes of a file; none of its lines may be bad."""
    names, found = records(
        path, BadLines(path, 0), names=table.columns, delimiter=mapping.delimiter
    )
    fields = {f"label {name}": each for name, each in table.labels.items()}
    fields |= {"name": table.name} if table.name else {}
    columns = Columns(
        path, names, fields, table.resources, mapping=mapping.path, empty=mapping.empty
    )
    nodes: dict[str, NodeSpec] = {}
    for at, values in found:
        line = columns.line(at, values)
        assert line is not None, "there are no conditions for nodes"
        name, resources = line.text("name"), line.resources()
        if table.name and (not name or name in nodes):
            raise line.error("name", f"{quoted(name)} is " + ("listed twice" if name else "empty"))
        if len(nodes) == MAX_COUNT:
            raise line.error("name", f"more than {MAX_COUNT} nodes")
        labels = {name: said for name in table.labels if (said := line.text(f"label {name}"))}
        nodes[name or str(at)] = NodeSpec(name, resources, labels)
    return tuple(nodes.values()) if table.name else numbered(nodes.values())
