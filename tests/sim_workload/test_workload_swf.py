"""The Standard Workload Format, from samples small enough to read."""

import gzip
from pathlib import Path

import pytest

from quadriga.sim.workload import (
    MEMORY,
    VCORE,
    Member,
    NodeSpec,
    QueueSpec,
    Skipped,
    WorkloadError,
    open_workload,
    read_swf,
)
from quadriga.sim.workload import files as workload_files

HEADER = """\
; Version: 2.2
; Computer: a toy
; MaxNodes: 4 (all alike)
; MaxProcs: 16
; Queue: 1 Short Jobs
; Queue: 2 long.jobs
; Partition: 1 main
;
"""

#        id submit wait run used cpu mem  procs wall mem  st usr grp app q part
JOBS = """\
          1   0     5   60   1   -1  -1     1   120  -1   1   7   1   1  1   1  -1 -1
          2  10    -1   30   6   -1  100    6    -1  2048 1  -1   1   1  2   1  -1 -1

          3  10     0   30   4   -1  512   -1    -1  -1   1   8   1   1 -1  -1  -1 -1
          4  20     0    0   1   -1  -1     1    -1  -1   5   7   1   1  1   1  -1 -1
          5  20     0   -1   1   -1  -1     1    -1  -1   5   7   1   1  1   1  -1 -1
          6  20     0    9   0   -1  -1    -1    -1  -1   1   7   1   1  1   1  -1 -1
          7  20     0    9   1   -1  -1     1    -1  -1   3   7   1   1  1   1  -1 -1
          8   5.5   0    9.9 1   -1  -1     8    -1  -1   1   7   1   1  9   3  -1 -1
"""

ONE = "1 0 0 9 2 -1 -1 2 -1 -1 1 1 1 1 1 1 -1 -1\n"


def write(tmp_path: Path, text: str, name: str = "toy.swf") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_log_becomes_a_workload(tmp_path: Path) -> None:
    workload = read_swf(write(tmp_path, HEADER + JOBS))
    assert workload.name == "toy"
    assert workload.source == "toy.swf in the Standard Workload Format"
    assert workload.horizon_s == 11
    assert [job.job_id for job in workload.jobs] == ["1", "8", "2", "3"]  # by submission
    first, _, second, third = workload.jobs
    assert (first.submit_s, first.runtime_s, first.user) == (0, 60, "user-7")
    assert (first.walltime_s, first.recorded_wait_s, first.placement) == (120, 5, None)
    assert first.members == (Member(1, {VCORE: 1000}),)
    assert not first.gang
    assert (second.user, second.walltime_s, second.recorded_wait_s) == ("anonymous", None, None)
    assert third.recorded_wait_s == 0
    # What was used counts where what was wanted is not known.
    assert third.members == (Member(1, {VCORE: 4000, MEMORY: 4 * 512 * 1024}),)


def test_a_job_larger_than_a_node_is_a_gang_of_whole_nodes_and_a_rest(tmp_path: Path) -> None:
    workload = read_swf(write(tmp_path, HEADER + JOBS))
    jobs = {job.job_id: job for job in workload.jobs}
    assert jobs["2"].members == (
        Member(1, {VCORE: 4000, MEMORY: 8 * 1024**2}),
        Member(1, {VCORE: 2000, MEMORY: 4 * 1024**2}),
    )
    assert (jobs["2"].gang, jobs["2"].pods) == (True, 2)
    assert jobs["8"].members == (Member(2, {VCORE: 4000}),)


def test_what_cannot_run_is_skipped_with_a_reason_and_a_log_may_be_empty(tmp_path: Path) -> None:
    assert read_swf(write(tmp_path, HEADER + JOBS)).skipped == (
        Skipped("4", "its runtime is 0 s"),
        Skipped("5", "its runtime is -1 s"),
        Skipped("6", "it has no processors"),
        Skipped("7", "a part of a job (status 3)"),
    )
    cancelled = ONE.replace("1 0 0 9", "2 -1 -1 -1")
    workload = read_swf(write(tmp_path, HEADER + ONE + cancelled))
    assert workload.bad_lines == ()
    assert workload.skipped == (Skipped("2", "its runtime is -1 s"),)
    workload = read_swf(write(tmp_path, HEADER))
    assert (workload.jobs, workload.queues, workload.horizon_s) == ((), (), 0)
    assert workload.capacity() == {VCORE: 16000}


def test_queues_are_named_by_the_header(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + JOBS)
    workload = read_swf(path)
    named = {"default": "default", "short": "Short", "long-jobs": "long.jobs", "queue-9": "queue-9"}
    assert workload.queues == tuple(QueueSpec(name, original=o) for name, o in named.items())
    assert [job.queue for job in workload.jobs] == ["short", "queue-9", "long-jobs", "default"]
    by_partition = read_swf(path, queue_by="partition")
    assert [job.queue for job in by_partition.jobs] == ["main", "queue-3", "main", "default"]


def test_processors_and_memory_are_spread_over_the_nodes(tmp_path: Path) -> None:
    nodes = read_swf(write(tmp_path, "; MaxNodes: 3\n; MaxProcs: 8\n" + ONE)).nodes
    assert [(node.name, node.resources) for node in nodes] == [
        (f"node-{n}", {VCORE: size}) for n, size in ((1, 3000), (2, 3000), (3, 2000))
    ]
    # memory never runs out before processors: job 2 asks for most, 2048 KB a processor
    nodes = read_swf(write(tmp_path, HEADER + JOBS)).nodes
    assert {node.resources[MEMORY] for node in nodes} == {4 * 2048 * 1024}


@pytest.mark.parametrize("label", ["MaxNodes", "MaxProcs"])
def test_one_size_alone_means_nodes_of_one_processor(tmp_path: Path, label: str) -> None:
    workload = read_swf(write(tmp_path, f"; {label}: 10\n{ONE}"))
    assert [node.name for node in workload.nodes][::9] == ["node-01", "node-10"]
    assert workload.jobs[0].members == (Member(2, {VCORE: 1000}),)


def test_nodes_can_be_given_with_a_vcore(tmp_path: Path) -> None:
    nodes = (NodeSpec("small", {VCORE: 1500}), NodeSpec("large", {VCORE: 64000}))
    workload = read_swf(write(tmp_path, ONE), nodes=nodes)
    assert workload.nodes == nodes
    assert workload.jobs[0].members == (Member(1, {VCORE: 2000}),)
    path = write(tmp_path, ONE)
    with pytest.raises(WorkloadError, match="no node has a whole vcore"):
        read_swf(path, nodes=[NodeSpec("tiny", {VCORE: 500})])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("; MaxProcs: 4\n1 2 3\n", "toy.swf:2: 3 fields where the format has 18"),
        (ONE.replace("9", "soon"), "toy.swf:1: field 4 (runtime): 'soon' is not a number"),
        (ONE.replace("9", "1.5e999"), "toy.swf:1: field 4 (runtime): '1.5e999' is too large"),
        (ONE.replace("9", "9" * 5000), f"toy.swf:1: field 4 (runtime): '{'9' * 40}' is too large"),
        (ONE.replace("1 0 0", "1 -5 0"), "toy.swf:1: field 2 (submit time): -5 is less than 0"),
        (ONE, "toy.swf: the header has neither MaxProcs nor MaxNodes: give the nodes"),
        ("; MaxNodes: 8\n; MaxProcs: 4\n", "toy.swf: MaxNodes is 8, more than 4"),
        ("; MaxNodes: 99999999\n", "toy.swf: MaxNodes is 99999999, more than 1000000"),
        ("; a\0b\n", "toy.swf:1: not a text file (it contains a NUL byte)"),
        (";" * 70_000, "toy.swf:1: line longer than 65536 bytes"),
    ],
)
def test_an_error_is_a_line_that_names_the_place(tmp_path: Path, text: str, complaint: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(WorkloadError) as caught:
        read_swf(path)
    assert str(caught.value) == f"{tmp_path}/{complaint}"


def test_too_many_lines_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload_files, "MAX_LINES", 3)
    path = write(tmp_path, HEADER)
    with pytest.raises(WorkloadError, match=r"toy.swf:4: more than 3 lines"):
        read_swf(path)


def test_an_archive_is_read_and_a_broken_one_is_an_error_with_a_place(tmp_path: Path) -> None:
    path = tmp_path / "toy.swf.gz"
    packed = gzip.compress((HEADER + JOBS).encode())
    path.write_bytes(packed)
    assert open_workload(path).name == "toy"
    for broken in (packed[:-9], packed[:12] + b"\xff" * 30, packed[:5]):
        path.write_bytes(broken)
        with pytest.raises(WorkloadError, match=r"toy.swf.gz.*cannot be read: "):
            open_workload(path)


def test_optional_fields_are_read(tmp_path: Path) -> None:
    header = "; UnixStartTime: 1709294400\n; MaxProcs: 4\n; Group: 3 physics\n"
    workload = read_swf(
        write(
            tmp_path,
            header
            + "1 0 0 9 2 -1 -1 2 1 -1 5 7 3 1 1 1 -1 -1\n"
            + "2 1 0 9 2 -1 -1 2 -1 -1 0 7 -1 1 1 1 1 30\n"
            + "3 2 0 9 2 -1 -1 2 -1 -1 -1 0 0 1 1 1 2 -1\n",
        )
    )
    assert workload.start_unix_s == 1_709_294_400
    first, second, third = workload.jobs
    assert (first.group, first.status, first.walltime_s) == ("group-3", "cancelled", 1)
    assert (first.preceding, first.think_s) == (None, None)
    assert (second.group, second.status) == (None, "failed")
    assert (second.preceding, second.think_s) == ("1", 30)
    assert (third.status, third.preceding, third.think_s) == (None, "2", None)
    assert (third.user, third.group) == ("user-0", "group-0")


def test_groups_can_be_the_queues(tmp_path: Path) -> None:
    other = "2 0 0 9 2 -1 -1 2 -1 -1 1 1 2 1 1 1 -1 -1\n"
    path = write(tmp_path, "; MaxProcs: 4\n; Group: 1 physics\n" + ONE + other)
    workload = read_swf(path, queue_by="group")
    assert [queue.name for queue in workload.queues] == ["physics", "group-2"]
    with pytest.raises(WorkloadError, match="queues cannot be made of 'account', only of queue, "):
        read_swf(path, queue_by="account")


@pytest.mark.parametrize(
    ("old", "new", "column"),
    [
        ("1 0 0 9", "1 9000000000 0 9", "field 2 (submit time)"),
        ("1 0 0 9", "1 0 0 9000000000", "field 4 (runtime)"),
        ("-1 2 -1 -1", "-1 2000000 -1 -1", "field 8 (processors requested)"),
        ("-1 2 -1 -1", "-1 2 9000000000 -1", "field 9 (time requested)"),
        ("-1 2 -1 -1", "-1 2 -1 900000000000000000", "field 10 (memory requested)"),
    ],
)
def test_values_that_no_simulation_has(tmp_path: Path, old: str, new: str, column: str) -> None:
    (bad,) = read_swf(write(tmp_path, HEADER + ONE + ONE.replace(old, new))).bad_lines
    assert (bad.line, bad.column) == (10, column)


def test_members_fit_the_memory_of_given_nodes(tmp_path: Path) -> None:
    text = ONE.replace("-1 2 -1 -1", "-1 12 -1 1048576")  # 12 processors of 1 GiB
    path = write(tmp_path, text)
    gib = 1024**3

    def members(*nodes: dict[str, int]) -> list[tuple[int, int]]:
        specs = [NodeSpec(f"n{n}", resources) for n, resources in enumerate(nodes)]
        (job,) = read_swf(path, nodes=specs).jobs
        return [(member.count, member.resources[VCORE] // 1000) for member in job.members]

    assert members({VCORE: 8000, MEMORY: 16 * gib}) == [(1, 8), (1, 4)]
    mixed = {VCORE: 8000, MEMORY: 5 * gib}, {VCORE: 3000, MEMORY: 64 * gib}
    assert members(*mixed) == [(2, 5), (1, 2)]
    assert members({VCORE: 8000, MEMORY: 1}) == [(1, 8), (1, 4)], "it fits nowhere"
    (job,) = read_swf(path, nodes=[NodeSpec("n", {VCORE: 12000})]).jobs
    assert job.members == (Member(1, {VCORE: 12000}),)
