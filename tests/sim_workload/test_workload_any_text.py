"""Readers of arbitrary files: a workload that the scheduler can run, or one error; never more."""

import gzip
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quadriga.sim.workload import (
    Workload,
    WorkloadError,
    open_workload,
    parse_nodes,
    read_csv,
    read_sacct,
    read_swf,
)

NODES = parse_nodes(["2x8vcore,32Gi"])
SWF = "1 0 5 60 1 -1 -1 1 120 -1 1 7 1 1 1 1 -1 -1"
SACCT_HEAD = (
    "JobID|User|Partition|Submit|Start|ElapsedRaw|Timelimit|ReqCPUS|ReqMem|NNodes|ReqTRES|State"
)
SACCT = (
    "12_3|ann|main|2024-03-01T12:00:00|2024-03-01T12:00:10|60|01:00:00|4|16Gn|2|cpu=4,mem=1G|FAILED"
)
CSV_HEAD = "id,kind,at,run,cpu,mem,n,who"
CSV = "a,0,10,60.5,0.5,12,3,ann"
JOBS = """
job: {id: id, submit: at, runtime: run, vcore: cpu, memory: {column: mem, unit: Mi}, pods: n, user: who}
where: [{column: kind, max: 5}]
"""
EVENTS = """
job: {id: id, vcore: cpu, copies: n}
time: ms
events: {column: kind, time: at, submit: 0, start: 1, end: 2}
"""

PIECES = st.sampled_from(
    [
        *("", " ", "\r", "\ufeff", "\u0661", "9" * 30),
        *"-1 0 1 2 1e9 -0 0.5 nan inf 1e400 x 2024-03-01T12:00:00 0001-01-01T00:00:00+23:00".split(),
        *"1-00:00:00 4Gn 12.batch 3+1 cpu=1 gres/gpu:a=9 mem=? RUNNING é None".split(),
        *('"', '"1"'),
    ]
)


def lines_like(line: str, delimiter: str) -> st.SearchStrategy[str]:
    """Lines of the format of which some fields are replaced, and any other lines."""
    fields = line.split(delimiter)
    mutated = st.lists(st.tuples(st.integers(0, len(fields) - 1), PIECES), max_size=3).map(
        lambda changes: delimiter.join(dict(changes).get(i, f) for i, f in enumerate(fields))
    )
    other = st.lists(PIECES, max_size=20).map(delimiter.join) | st.text(max_size=40)
    return st.lists(mutated | mutated | other, max_size=8).map("\n".join)


def check(workload: Workload) -> None:
    """Everything fits the messages of the scheduler interface."""
    queues = {queue.name for queue in workload.queues}
    bad = [f"line {line.line}" for line in workload.bad_lines]
    assert [s.job_id for s in workload.skipped][len(workload.skipped) - len(bad) :] == bad
    for job in workload.jobs:
        assert 0 <= job.submit_s < workload.horizon_s
        assert 0 < job.runtime_s < 2**33
        assert job.queue in queues
        assert job.members
        assert all(0 < amount < 2**63 for amount in job.total().values())
        assert all(member.count > 0 for member in job.members)
        assert all(n > 0 for member in job.members for n in member.resources.values())
    submits = [job.submit_s for job in workload.jobs]
    assert submits == sorted(submits)


def mapped(name: str) -> Callable[..., Workload]:
    return lambda path, **more: read_csv(path, path.parent / name, nodes=NODES, **more)


#: a head, a line, what stands between its fields, and what reads it
READERS: dict[str, tuple[str, str, str, Callable[..., Workload]]] = {
    "swf": ("; MaxNodes: 2\n; MaxProcs: 4", SWF, " ", read_swf),
    "sacct": (SACCT_HEAD, SACCT, "|", partial(read_sacct, nodes=NODES)),
    "jobs": (CSV_HEAD, CSV, ",", mapped("jobs.yaml")),
    "events": (CSV_HEAD, CSV, ",", mapped("events.yaml")),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    (folder / "jobs.yaml").write_text(JOBS)
    (folder / "events.yaml").write_text(EVENTS)
    return folder


@pytest.mark.parametrize("name", READERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_lines_are_a_workload_or_one_error(folder: Path, name: str, data: Any) -> None:
    head, line, delimiter, read = READERS[name]
    text = data.draw(lines_like(line, delimiter))
    path = folder / name
    path.write_bytes(f"{head}\n{text}\n".encode("utf-8", "surrogatepass"))
    try:
        workload = read(path, bad_lines=1000)
    except WorkloadError as error:
        assert len(str(error).splitlines()) == 1
        return
    check(workload)
    if workload.bad_lines:
        with pytest.raises(WorkloadError, match=":"):
            read(path, bad_lines=0)
    else:
        assert read(path, bad_lines=0) == workload
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert read(path, bad_lines=1000) == workload


@given(content=st.binary(max_size=200) | st.binary(max_size=50).map(gzip.compress))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_a_workload_or_one_error(folder: Path, content: bytes) -> None:
    path = folder / "bytes"
    path.write_bytes(content)
    (folder / "any.yaml").write_bytes(content)
    for mapping in (None, folder / "jobs.yaml", folder / "any.yaml"):
        try:
            check(open_workload(path, nodes=NODES, mapping=mapping))
        except WorkloadError as error:
            assert len(str(error).splitlines()) == 1
