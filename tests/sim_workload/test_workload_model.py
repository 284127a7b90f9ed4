"""The data model, queue names, and which reader understands a path."""

import pickle
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadriga.sim.workload import (
    GPU,
    MEMORY,
    VCORE,
    Job,
    Member,
    NodeSpec,
    Workload,
    WorkloadError,
    open_workload,
    parse_nodes,
)
from quadriga.sim.workload.amounts import (
    MAX_S,
    amount,
    clock,
    count,
    number,
    timestamp,
    whole_seconds,
)
from quadriga.sim.workload.model import in_order, queue_names, split

Folder = Callable[..., Path]


def job(job_id: str, submit_s: int, *members: Member, runtime_s: int = 10) -> Job:
    return Job(job_id, submit_s, runtime_s, "u", "q", members)


def test_totals_count_every_pod_and_capacity_every_node() -> None:
    gang = job("1", 0, Member(2, {VCORE: 500, "x": 1}), Member(1, {VCORE: 1000}))
    assert gang.pods == 3
    assert gang.gang
    assert gang.total() == {VCORE: 2000, "x": 2}
    assert not job("2", 0, Member(1, {VCORE: 1})).gang
    nodes = (NodeSpec("a", {VCORE: 4000}), NodeSpec("b", {VCORE: 2000, "x": 1}))
    jobs = (job("1", 0, Member(2, {VCORE: 500})), job("2", 0, Member(1, {"x": 1}), runtime_s=7))
    workload = Workload("w", nodes, (), jobs, (), 1, "a test")
    assert workload.capacity() == {VCORE: 6000, "x": 1}
    assert (workload.offered(VCORE), workload.offered("x")) == (10_000, 7)


def test_jobs_of_one_second_keep_their_order_and_split_gives_whole_members() -> None:
    jobs = [job("c", 5), job("b", 0), job("a", 5)]
    assert [each.job_id for each in in_order(jobs)] == ["b", "c", "a"]
    assert split(3, 8, {"x": 2}) == (Member(1, {"x": 6}),)
    assert split(17, 8, {"x": 2}) == (Member(2, {"x": 16}), Member(1, {"x": 2}))


def test_queue_names_are_distinct_and_an_error_survives_pickling() -> None:
    names = queue_names(["q_1d", "A.b", "a.B", "a-b", "", "é" * 70, "é" * 71, "A.b"])
    assert names["q_1d"] == "q_1d"
    assert [names["A.b"], names["a.B"], names["a-b"]] == ["a-b", "a-b-2", "a-b-3"]
    assert names[""] == "queue"
    assert len(set(names.values())) == len(names) == 7
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names.values())
    error = pickle.loads(pickle.dumps(WorkloadError("a/b", 3, "it is wrong")))
    assert str(error) == "a/b:3: it is wrong"
    assert (error.path, error.line, error.reason) == ("a/b", 3, "it is wrong")
    assert str(WorkloadError("a", 0, "it is wrong")) == "a: it is wrong"


SWF = "; MaxProcs: 4\n" + "1 0 0 9 2 -1 -1 2 -1 -1 1 1 1 1 1 1 -1 -1\n"


@pytest.mark.parametrize("name", ["log.swf", "log.txt"])
def test_swf_is_recognised_by_name_or_first_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("\n" + SWF)
    assert len(open_workload(str(path)).jobs) == 1


def test_folders_are_recognised_by_their_tables(folder: Folder) -> None:
    path = folder(virtual_clusters="vc,nodes,gpus_per_node\naa,2,8\n")
    (path / "jobs.csv").write_text("job_id,submit_s,duration_s,vc,num_gpus\n")
    assert open_workload(path).queues[0].name == "aa"
    folder(
        nodes="node_id,cluster,vcores,memory_mib\n",
        queues="queue\nq_1d\n",
        jobs="job_id,submit_s,wait_s,runtime_s,user,queue,gang_members,vcores_per_member,"
        "memory_mib_per_member,walltime_limit_s,pbs_node_spec,placement_node_cores\n",
    )
    assert open_workload(path).queues[0].name == "q_1d"


def test_what_is_not_understood_is_told_what_would_be(tmp_path: Path) -> None:
    text, binary = tmp_path / "a.txt", tmp_path / "b.bin"
    text.write_text("hello\n")
    binary.write_bytes(b"\0\1\2")
    for path in (tmp_path, text, binary):
        with pytest.raises(WorkloadError, match="not a workload: understood are a Standard") as e:
            open_workload(path)
        assert "nodes.csv" in str(e.value) and "virtual_clusters.csv" in str(e.value)
    with pytest.raises(WorkloadError, match="there is no such file or folder"):
        open_workload(tmp_path / "missing")


# -- amounts -----------------------------------------------------------------------------------------


GIB = 1024**3


def test_groups_of_nodes() -> None:
    nodes = parse_nodes(["9x64vcore,256Gi", "1x1500m,1.5G,8gpu,2example.com/fpga"])
    assert [node.name for node in nodes][::9] == ["node-01", "node-10"]
    assert nodes[0] == NodeSpec("node-01", {VCORE: 64_000, MEMORY: 256 * GIB})
    assert nodes[9].resources == {VCORE: 1500, MEMORY: 1_500_000_000, GPU: 8, "example.com/fpga": 2}
    assert parse_nodes([]) == ()


@pytest.mark.parametrize(
    ("group", "complaint"),
    [
        ("64vcore", "'64vcore' is not a group of nodes such as 100x64vcore,256Gi"),
        ("0x64vcore", "'0x64vcore' is not a group of nodes"),
        ("2x", "'2x' is not a group of nodes"),
        ("2x64", "'2x64': '64' is not an amount such as 64vcore"),
        ("2x64vcore,", "'2x64vcore,': '' is not an amount"),
        ("2x64cores", "'2x64cores': there is no unit 'cores'; known are vcore, m, B, Ki, "),
        ("2x64vcore,1m", "vcore is given twice"),
        ("2x1vcore,99999999P", "is more than 10000000000000000"),
        ("9999999x1vcore", "more than 1000000 nodes"),
    ],
)
def test_a_wrong_group_is_one_line(group: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r"^.+$") as caught:
        parse_nodes([group])
    assert complaint in str(caught.value)


def test_seconds_clocks_and_timestamps() -> None:
    assert whole_seconds(Decimal("-0.5")) == -1
    assert whole_seconds(Decimal("1.9")) == 1
    assert whole_seconds(Decimal("0.001"), up=True) == 1
    assert amount(Decimal("0.001")) == 1
    assert count(Decimal("3.0")) == 3
    assert clock("90:00") == 5400
    assert clock("1-00:00:01.5") == Decimal("86401.5")
    assert timestamp("1970-01-01T00:00:01.250000") == Decimal("1.25")
    assert timestamp("1969-12-31T23:59:59Z") == -1
    assert timestamp("02.01.1970", "%d.%m.%Y") == 86_400


FUNCTIONS: list[Callable[[str], object]] = [
    number,
    clock,
    timestamp,
    lambda text: timestamp(text, "%Y-%m-%d %H:%M:%S.%f %z"),
    lambda text: amount(number(text)),
    lambda text: count(number(text)),
    lambda text: whole_seconds(number(text), up=True),
    lambda text: parse_nodes([text]) and None,
]


@given(st.text() | st.from_regex(r"-?\d{1,30}(\.\d{1,30})?([eE][+-]?\d{1,7})?", fullmatch=True))
def test_any_text_has_a_value_or_a_short_reason(text: str) -> None:
    for function in FUNCTIONS:
        try:
            value = function(text)
        except ValueError as error:
            assert len(str(error)) < 300
        else:
            if isinstance(value, int):
                assert abs(value) <= max(MAX_S, 10**16)
