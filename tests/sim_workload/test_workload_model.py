"""The data model, queue names, and which reader understands a path."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from quadriga.sim.workload import (
    VCORE,
    Job,
    Member,
    NodeSpec,
    Workload,
    WorkloadError,
    open_workload,
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


def test_queue_names_are_valid_distinct_and_stable() -> None:
    originals = ["q_1d", "A.b", "a.B", "a-b", "", "é" * 70, "é" * 71, "A.b"]
    names = queue_names(originals)
    assert names["q_1d"] == "q_1d"
    assert [names["A.b"], names["a.B"], names["a-b"]] == ["a-b", "a-b-2", "a-b-3"]
    assert names[""] == "queue"
    assert len(set(names.values())) == len(names) == 7
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names.values())


def test_an_error_survives_pickling() -> None:
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
        assert "nodes.csv" in str(e.value)
        assert "virtual_clusters.csv" in str(e.value)
    with pytest.raises(WorkloadError, match="there is no such file or folder"):
        open_workload(tmp_path / "missing")
