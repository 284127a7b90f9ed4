"""Outputs of ``sacct -P``, from samples small enough to read."""

import gzip
from pathlib import Path

import pytest

from quadriga.sim.workload import (
    GPU,
    MEMORY,
    VCORE,
    Member,
    NodesNeeded,
    Skipped,
    Workload,
    WorkloadError,
    open_workload,
    parse_nodes,
    read_sacct,
)

GIB = 1024**3
MIB = 1024**2
NODES = parse_nodes(["4x16vcore,64Gi,2gpu"])

COLUMNS = (
    "JobID|User|Account|Partition|Submit|Start|ElapsedRaw|Timelimit|ReqCPUS|ReqMem|NNodes"
    "|ReqTRES|AllocTRES|State"
)


def line(job_id: str = "12", **fields: str) -> str:
    """A job of four processors with 16 GiB that waited 10 s and ran for 60 s."""
    usual = "ann|bio|main|2024-03-01T12:00:00|2024-03-01T12:00:10|60|01:00:00|4|16G|1|||COMPLETED"
    values = dict(zip(COLUMNS.split("|"), [job_id, *usual.split("|")], strict=True))
    return "|".join((values | fields).values())


def read(tmp_path: Path, *lines: str, header: str = COLUMNS, **options: object) -> Workload:
    path = tmp_path / "jobs.txt"
    path.write_text("\n".join((header, *lines)) + "\n", encoding="utf-8")
    return read_sacct(path, **{"nodes": NODES, **options})  # type: ignore[arg-type]


def test_an_output_becomes_a_workload(tmp_path: Path) -> None:
    workload = read(
        tmp_path,
        line("13", Submit="2024-03-01T12:00:10", User="bob", Account="chem", Partition="Big.Mem"),
        line("12"),
    )
    assert (workload.name, workload.source) == ("jobs", "jobs.txt, the output of sacct")
    assert workload.nodes == NODES
    assert [(each.name, each.original) for each in workload.queues] == [
        ("big-mem", "Big.Mem"), ("main", "main"),
    ]  # fmt: skip
    assert workload.horizon_s == 11
    assert workload.start_unix_s == 1_709_294_400  # 2024-03-01 12:00 UTC
    first, second = workload.jobs
    assert (first.job_id, first.submit_s, first.runtime_s) == ("12", 0, 60)
    assert (first.user, first.group, first.queue) == ("ann", "bio", "main")
    assert (first.walltime_s, first.recorded_wait_s, first.status) == (3600, 10, "completed")
    assert first.members == (Member(1, {VCORE: 4000, MEMORY: 16 * GIB}),)
    assert (second.job_id, second.submit_s, second.queue) == ("13", 10, "big-mem")
    assert second.recorded_wait_s == 0


def test_steps_are_ignored_tasks_of_arrays_are_jobs_in_a_known_format(tmp_path: Path) -> None:
    steps = ("12.batch", "12.extern", "12.0", "13_2.batch", "14+0.0")
    workload = read(tmp_path, line("12"), line("13_2"), *(line(step, State="") for step in steps))
    assert [job.job_id for job in workload.jobs] == ["12", "13_2"]
    assert workload.skipped == ()
    expected = read(tmp_path, line()).jobs
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(f"\ufeff{COLUMNS}\r\n{line()}\r\n".encode()))
    assert open_workload(packed, nodes=NODES).jobs == expected


def test_components_of_a_heterogeneous_job_are_one_gang(tmp_path: Path) -> None:
    workload = read(
        tmp_path,
        line("14+0"),
        line("9"),
        line("14+1", ReqCPUS="1", ReqMem="2G", ElapsedRaw="61"),
        line("9"),  # it was requeued
    )
    assert [job.job_id for job in workload.jobs] == ["14", "9", "9"]
    gang = workload.jobs[0]
    assert gang.members == (
        Member(1, {VCORE: 4000, MEMORY: 16 * GIB}),
        Member(1, {VCORE: 1000, MEMORY: 2 * GIB}),
    )
    assert gang.runtime_s == 61


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"State": "PENDING", "Start": "Unknown", "ElapsedRaw": "0"}, "has not ended (PENDING)"),
        ({"State": "RUNNING"}, "has not ended (RUNNING)"),
        ({"State": "CANCELLED by 7", "Start": "None", "ElapsedRaw": "0"}, "its runtime is 0 s"),
        ({"ElapsedRaw": ""}, "its runtime is 0 s"),
        ({"Submit": "Unknown"}, "its submission is not known"),
        ({"ReqCPUS": "0"}, "it has no processors"),
    ],
)
def test_what_cannot_run_is_skipped_with_the_reason(
    tmp_path: Path, fields: dict[str, str], reason: str
) -> None:
    workload = read(tmp_path, line("7_[1-3%2]", **fields), line("12"))
    (skipped,) = workload.skipped
    assert skipped.job_id == "7_[1-3%2]"
    assert reason in skipped.reason
    assert workload.bad_lines == ()


@pytest.mark.parametrize(
    "state", ["FAILED", "TIMEOUT", "NODE_FAIL", "CANCELLED by 1001", "OUT_OF_ME+"]
)
def test_jobs_that_ran_are_kept_however_they_ended(tmp_path: Path, state: str) -> None:
    (job,) = read(tmp_path, line(State=state)).jobs
    assert job.status == state.partition(" ")[0].rstrip("+").lower()


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        ("16G", 8 * GIB),  # of the job, on two nodes
        ("4Gn", 4 * GIB),
        ("4000Mc", 4 * 4000 * MIB),
        ("1.50T", 768 * GIB),
        ("500M", 250 * MIB),
        ("0n", 0),
        ("", 0),
    ],
)
def test_memory_in_all_its_forms(tmp_path: Path, memory: str, expected: int) -> None:
    (job,) = read(tmp_path, line(ReqCPUS="8", NNodes="2", ReqMem=memory)).jobs
    (member,) = job.members
    assert member.count == 2
    assert member.resources.get(MEMORY, 0) == expected


def test_requests_count_before_allocations(tmp_path: Path) -> None:
    workload = read(
        tmp_path,
        line("1", ReqTRES="billing=9,cpu=4,mem=8G,node=1,gres/gpu=2", AllocTRES="cpu=16,mem=64G"),
        line("2", ReqCPUS="", ReqMem="", NNodes="", AllocTRES="cpu=6,mem=6000M,node=2"),
        line("3", ReqMem="0n", AllocTRES="cpu=4,mem=1G,gres/gpu:a100=1,gres/gpu:v100=1"),
        line("4", ReqTRES="cpu=4,gres/gpu=3,gres/gpu:a100=3", NNodes="2"),
    )
    assert [job.members for job in workload.jobs] == [
        (Member(1, {VCORE: 4000, MEMORY: 8 * GIB, GPU: 2}),),
        (Member(2, {VCORE: 3000, MEMORY: 3000 * MIB}),),
        (Member(1, {VCORE: 4000, MEMORY: GIB, GPU: 2}),),
        (
            Member(1, {VCORE: 2000, MEMORY: 8 * GIB, GPU: 2}),
            Member(1, {VCORE: 2000, MEMORY: 8 * GIB, GPU: 1}),
        ),
    ]


def test_parts_of_a_job_are_as_equal_as_they_can_be_also_without_memory(tmp_path: Path) -> None:
    (job,) = read(tmp_path, line(ReqCPUS="11", NNodes="4", ReqMem="")).jobs
    assert job.members == (Member(3, {VCORE: 3000}), Member(1, {VCORE: 2000}))
    (small,) = read(tmp_path, line(ReqCPUS="2", NNodes="3", ReqMem="")).jobs
    assert small.members == (Member(2, {VCORE: 1000}),)
    (job,) = read(tmp_path, line(), nodes=parse_nodes(["1x4vcore"])).jobs
    assert job.members == (Member(1, {VCORE: 4000}),)


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        ("00:30:00", 1800),
        ("1-02:03:04", 93_784),
        ("277:46:40", 1_000_000),
        ("10:00", 600),
        ("UNLIMITED", None),
        ("Partition_Limit", None),
        ("", None),
    ],
)
def test_limits_are_estimates(tmp_path: Path, limit: str, seconds: int | None) -> None:
    (job,) = read(tmp_path, line(Timelimit=limit)).jobs
    assert job.walltime_s == seconds


def test_other_columns_with_the_same_meaning_and_a_bar_at_the_end(tmp_path: Path) -> None:
    header = "State|NCPUS|Elapsed|TimelimitRaw|JobIDRaw|Submit|JobName"
    (job,) = read(tmp_path, "COMPLETED|3|1-00:00:01|90|77|1709294400|a b", header=header).jobs
    assert (job.job_id, job.runtime_s, job.walltime_s) == ("77", 86_401, 5400)
    assert job.members == (Member(1, {VCORE: 3000}),)
    assert (job.queue, job.user) == ("default", "anonymous")
    assert (job.group, job.recorded_wait_s) == (None, None)
    (job,) = read(tmp_path, line() + "|", header=COLUMNS + "|").jobs  # sacct -p
    assert job.job_id == "12"


def test_queues_by_account_and_of_several_partitions(tmp_path: Path) -> None:
    workload = read(tmp_path, line(), queue_by="account")
    assert [queue.name for queue in workload.queues] == ["bio"]
    with pytest.raises(WorkloadError, match="the header lacks the column qos"):
        read(tmp_path, line(), queue_by="qos")
    with pytest.raises(WorkloadError, match="queues cannot be made of 'mood', only of partition, "):
        read(tmp_path, line(), queue_by="mood")
    (job,) = read(tmp_path, line(Partition="long,short")).jobs
    assert job.queue == "long"


@pytest.mark.parametrize(
    ("fields", "column", "reason"),
    [
        ({"JobID": "x12"}, "jobid", "'x12' is not the id of a job"),
        ({"Submit": "yesterday"}, "submit", "'yesterday' is not a time such as 2024-03-01T12:00"),
        ({"Start": "12:00"}, "start", "'12:00' is not a time"),
        ({"ElapsedRaw": "long"}, "elapsedraw", "'long' is not a number"),
        ({"ElapsedRaw": "9" * 30}, "elapsedraw", "is too large"),
        ({"Timelimit": "soon"}, "timelimit", "'soon' is not [days-]hours:minutes:seconds"),
        ({"ReqCPUS": "2.5"}, "reqcpus", "2.5 is not a whole number"),
        ({"ReqCPUS": "-2"}, "reqcpus", "-2 is not within 0 and 1000000"),
        ({"ReqMem": "16Q"}, "reqmem", "'16Q' is not an amount of memory such as 16G"),
        ({"ReqTRES": "cpu"}, "reqtres", "'cpu' is not name=value"),
        ({"AllocTRES": "gres/gpu:a=b"}, "alloctres", "gres/gpu:a: 'b' is not a number"),
        ({"State": "a|b"}, "", "15 fields where the header has 14"),
    ],
)
def test_a_bad_line_is_told_with_its_column(
    tmp_path: Path, fields: dict[str, str], column: str, reason: str
) -> None:
    workload = read(tmp_path, line("1"), line(**{"JobID": "2", **fields}))
    (bad,) = workload.bad_lines
    assert (bad.line, bad.column) == (3, column)
    assert reason in bad.reason
    assert [job.job_id for job in workload.jobs] == ["1"]
    told = f"{column}: {bad.reason}" if column else bad.reason
    assert workload.skipped == (Skipped("line 3", told),)
    assert str(bad) == f"{tmp_path / 'jobs.txt'}:3: {told}"


def test_the_header_is_checked_and_nodes_are_needed(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"jobs.txt:1: the header lacks the column Submit"):
        read(tmp_path, header="JobID|State")
    with pytest.raises(NodesNeeded, match="give the nodes"):
        read(tmp_path, line(), nodes=None)
