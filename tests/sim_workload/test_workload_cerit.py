"""The reader of the CERIT folder: hand-made tables, then the log itself."""

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from quadriga.sim.workload import (
    MEMORY,
    VCORE,
    Job,
    Member,
    NodeSpec,
    QueueSpec,
    Skipped,
    Workload,
    WorkloadError,
    read_cerit,
)
from quadriga.sim.workload.cerit import member_sizes

MIB = 1024**2
Folder = Callable[..., Path]

NODES = """\
node_id,cluster,vcores,memory_mib
a,big,80,1000
b,small,12,500
c,small,12,500
"""
QUEUES = "queue,jobs,users\nq_1d,3,2\nQ.2h,1,1\n"
HEAD = (
    "job_id,submit_s,wait_s,runtime_s,user,queue,gang_members,vcores_per_member,"
    "memory_mib_per_member,walltime_limit_s,pbs_node_spec,spec_matches_placement,"
    "placement_node_cores\n"
)
SINGLE = "1,10,3,60,u,q_1d,1,4.0,100,120,1:ppn=4:x86_64:cl_zewura#excl,1,a:4\n"
UNEQUAL = "2,5,0,60,v,Q.2h,3,1.667,50,0,1+2:ppn=2,0,a:2;b:1;c:2\n"


def test_the_tables_become_a_workload(folder: Folder) -> None:
    path = folder(nodes=NODES, queues=QUEUES, jobs=HEAD + SINGLE + UNEQUAL)
    workload = read_cerit(path)
    assert workload.name == path.name
    assert workload.nodes[0] == NodeSpec(
        "a", {VCORE: 80_000, MEMORY: 1000 * MIB}, {"cluster": "big"}
    )
    assert workload.queues == (
        QueueSpec("q_1d", original="q_1d"),
        QueueSpec("q-2h", original="Q.2h"),
    )
    assert workload.horizon_s == 11
    assert workload.source == "files in the form of the CERIT-SC log"
    unequal, single = workload.jobs
    assert single == Job(
        "1",
        submit_s=10,
        runtime_s=60,
        user="u",
        queue="q_1d",
        members=(Member(1, {VCORE: 4000, MEMORY: 100 * MIB}),),
        walltime_s=120,
        recorded_wait_s=3,
        placement=(("a", {VCORE: 4000, MEMORY: 100 * MIB}),),
    )
    assert (unequal.queue, unequal.walltime_s, unequal.gang) == ("q-2h", None, True)


def test_unequal_members_are_taken_from_the_node_specification(folder: Folder) -> None:
    (job,) = read_cerit(folder(nodes=NODES, queues=QUEUES, jobs=HEAD + UNEQUAL)).jobs
    one, two = {VCORE: 1000, MEMORY: 50 * MIB}, {VCORE: 2000, MEMORY: 50 * MIB}
    assert job.members == (Member(1, one), Member(2, two))
    assert job.placement == (("b", one), ("a", two), ("c", two))  # in the order of the members


def test_jobs_without_a_runtime_are_skipped(folder: Folder) -> None:
    jobs = HEAD + SINGLE.replace(",60,", ",0,") + UNEQUAL.replace(",60,", ",-1359980917,")
    workload = read_cerit(folder(nodes=NODES, queues=QUEUES, jobs=jobs))
    assert (workload.jobs, workload.horizon_s) == ((), 0)
    assert workload.skipped == (
        Skipped("1", "its runtime is 0 s"),
        Skipped("2", "its runtime is -1359980917 s"),
    )


def test_tables_may_be_compressed_and_fields_quoted(folder: Folder) -> None:
    path = folder(nodes=NODES, queues=QUEUES)
    quoted = SINGLE.replace(",u,", ',"u, the first",')
    (path / "jobs.csv.gz").write_bytes(gzip.compress((HEAD + quoted + "\n").encode()))
    assert [job.user for job in read_cerit(path).jobs] == ["u, the first"]


@pytest.mark.parametrize(
    ("spec", "sizes"),
    [
        ("1", ((1, 1),)),
        ("2:infiniband", ((2, 1),)),
        ("8:ppn=8:x86_64:cl_zegox", ((8, 8),)),
        ("1:ppn=64:x86_64:cl_zewura#excl", ((1, 64),)),
        ("1:ppn=1.5:brno", ((1, 1),)),
        ("1:mem=2gb:ppn=3", ((1, 3),)),
        ("some.host:ppn=12:brno", ((1, 12),)),
        ("1:^host:^other:ppn=24", ((1, 24),)),
        ("1:ppn=1+3:ppn=2", ((1, 1), (3, 2))),
        ("1+2:ppn=2", ((1, 1), (2, 2))),
        ("1+2+1:ppn=4", ((3, 1), (1, 4))),
    ],
)
def test_node_specifications(spec: str, sizes: tuple[tuple[int, int], ...]) -> None:
    assert member_sizes(spec) == sizes


@pytest.mark.parametrize("spec", ["", "0:ppn=2", "1:ppn=0", "1+", ":ppn=2", "1:ppn=1:ppn=2"])
def test_node_specifications_without_a_size(spec: str) -> None:
    with pytest.raises(ValueError, match="has no size in"):
        member_sizes(spec)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("q_1d", "q_9z", "the queue q_9z is not in queues.csv"),
        (",10,3", ",ten,3", "submit_s is 'ten', not a whole number"),
        (",10,3", ",-1,3", "submit_s is -1, less than 0"),
        (",u,", ",,", "user is empty"),
        ("4.0", "four", "vcores_per_member is 'four', not a number"),
        ("4.0", "inf", "vcores_per_member is 'inf', not a number"),
        ("ppn=4", "ppn=0", "has no size in '1:ppn=0:x86_64:cl_zewura'"),
        ("ppn=4", "ppn=5", "asks for 5 cores on 1 nodes, the columns for 1 members of 4"),
        ("1:ppn=4", "2:ppn=2", "asks for 4 cores on 2 nodes, the columns for 1 members of 4"),
        ("a:4", "z:4", "the placement 'z:4' names a node that is not in nodes.csv"),
        ("a:4", "a:x", "the placement 'a:x' is not node:cores"),
        ("a:4", "a:0", "the placement 'a:0' is not node:cores"),
        ("a:4", "a:3", "the placement is not one node for each member"),
        ("a:4", "a:4;b:4", "the placement is not one node for each member"),
        (",1,a:4", ",a:4", "12 fields where the header has 13"),
    ],
)
def test_errors_name_the_line(folder: Folder, old: str, new: str, complaint: str) -> None:
    path = folder(nodes=NODES, queues=QUEUES, jobs=HEAD + UNEQUAL + SINGLE.replace(old, new))
    with pytest.raises(WorkloadError) as caught:
        read_cerit(path)
    assert str(caught.value).startswith(f"{path / 'jobs.csv'}:3: ")
    assert complaint in caught.value.reason
    assert "\n" not in str(caught.value)


def test_a_missing_table_or_column_is_an_error(folder: Folder) -> None:
    path = folder(nodes=NODES, queues=QUEUES)
    with pytest.raises(WorkloadError, match=r"there is neither jobs.csv nor jobs.csv.gz"):
        read_cerit(path)
    folder(jobs="job_id,submit_s\n")
    with pytest.raises(WorkloadError, match=r"jobs.csv:1: the header lacks the column wait_s, "):
        read_cerit(path)
    folder(jobs="")
    with pytest.raises(WorkloadError, match=r"jobs.csv: the header lacks the column job_id, "):
        read_cerit(path)


def test_the_log_is_counted_right(cerit: Workload) -> None:
    assert cerit.name == "cerit-sc-2013"
    assert len(cerit.jobs) + len(cerit.skipped) == 17_900
    assert [skipped.job_id for skipped in cerit.skipped] == ["4185", "4199"]
    assert sum(job.gang for job in cerit.jobs) == 334
    assert sum(len(job.members) > 1 for job in cerit.jobs) == 12
    assert {job.pods for job in cerit.jobs if job.gang} == {2, 3, 4, 6, 8, 10}
    assert Counter(node.resources[VCORE] for node in cerit.nodes) == {80_000: 18, 12_000: 26}
    assert "graciously provided by the CERIT-SC" in cerit.source
    assert len(cerit.queues) == 11
    assert len({job.user for job in cerit.jobs}) == 75
    late = sum(job.runtime_s > job.walltime_s for job in cerit.jobs if job.walltime_s is not None)
    assert late == 702
    assert all(job.placement and len(job.placement) == job.pods for job in cerit.jobs)
    sizes = [node.resources for node in cerit.nodes]
    assert [  # the job that fits no node is kept
        job.job_id
        for job in cerit.jobs
        for member in job.members
        if not any(all(size[n] >= v for n, v in member.resources.items()) for size in sizes)
    ] == ["8687"]


def test_the_recorded_placement_never_overcommits_a_node(cerit: Workload) -> None:
    ends, starts = 0, 1  # at one instant what ends makes room for what starts
    changes = [
        (job.submit_s + (job.recorded_wait_s or 0) + later, change, index)
        for index, job in enumerate(cerit.jobs)
        for later, change in ((0, starts), (job.runtime_s, ends))
    ]
    free = {node.name: node.resources[VCORE] for node in cerit.nodes}
    for _, change, index in sorted(changes):
        for node, share in cerit.jobs[index].placement or ():
            free[node] += share[VCORE] if change == ends else -share[VCORE]
            assert free[node] >= 0, (node, cerit.jobs[index].job_id)
    assert free == {node.name: node.resources[VCORE] for node in cerit.nodes}
