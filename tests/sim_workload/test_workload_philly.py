"""The reader of the Philly folder: hand-made tables, then the log itself."""

from collections.abc import Callable
from pathlib import Path

import pytest

from quadriga.sim.workload import (
    GPU,
    Member,
    QueueSpec,
    Skipped,
    Workload,
    WorkloadError,
    open_workload,
    parse_nodes,
    read_philly,
)

Folder = Callable[..., Path]

CLUSTERS = "vc,nodes,gpus_per_node\naa,2,8\nbb,1,4\n"
HEAD = "job_id,submit_s,duration_s,vc,num_gpus\n"


def test_virtual_clusters_become_queues_with_a_quota(folder: Folder) -> None:
    workload = read_philly(folder(virtual_clusters=CLUSTERS, jobs=HEAD + "1,7,60,aa,1\n"))
    assert workload.queues == (
        QueueSpec("aa", {GPU: 16}, {GPU: 16}, "aa"),
        QueueSpec("bb", {GPU: 4}, {GPU: 4}, "bb"),
    )
    assert [node.resources[GPU] for node in workload.nodes] == [8, 8, 4]
    assert workload.source == "files in the form of the Philly log"
    assert workload.capacity()[GPU] == 20
    assert workload.horizon_s == 8
    (job,) = workload.jobs
    assert (job.user, job.walltime_s, job.recorded_wait_s) == ("anonymous", None, None)
    assert job.members == (Member(1, {GPU: 1}),)


@pytest.mark.parametrize(
    ("vc", "gpus", "members"),
    [
        ("aa", 8, (Member(1, {GPU: 8}),)),
        ("aa", 12, (Member(1, {GPU: 8}), Member(1, {GPU: 4}))),
        ("aa", 32, (Member(4, {GPU: 8}),)),
        ("bb", 6, (Member(1, {GPU: 4}), Member(1, {GPU: 2}))),
    ],
)
def test_a_job_larger_than_a_node_is_a_gang(
    folder: Folder, vc: str, gpus: int, members: tuple[Member, ...]
) -> None:
    workload = read_philly(folder(virtual_clusters=CLUSTERS, jobs=f"{HEAD}1,7,60,{vc},{gpus}\n"))
    assert workload.jobs[0].members == members
    assert workload.jobs[0].gang == (gpus > 8 or vc == "bb")


def test_other_nodes_can_be_given(folder: Folder) -> None:
    path = folder(virtual_clusters=CLUSTERS, jobs=HEAD + "1,7,60,aa,12\n")
    nodes = parse_nodes(["3x8vcore,8gpu"])
    workload = open_workload(path, nodes=nodes)
    assert workload.nodes == nodes
    assert workload.jobs[0].total() == {GPU: 12}
    with pytest.raises(WorkloadError, match="a folder already says what the queues are"):
        open_workload(path, queue_by="partition")


def test_jobs_that_cannot_be_placed_in_a_queue_or_time_are_skipped(folder: Folder) -> None:
    jobs = HEAD + "1,0,60,zz,1\n2,0,0,aa,1\n"
    assert read_philly(folder(virtual_clusters=CLUSTERS, jobs=jobs)).skipped == (
        Skipped("1", "virtual cluster zz has no recorded size"),
        Skipped("2", "its duration is 0 s"),
    )


@pytest.mark.parametrize(
    ("clusters", "jobs", "complaint"),
    [
        (CLUSTERS, HEAD + "1,0,60,aa,0\n", "jobs.csv:2: num_gpus is 0, less than 1"),
        (CLUSTERS + "aa,1,1\n", HEAD, "clusters.csv:4: the virtual cluster aa is listed twice"),
        (CLUSTERS + "cc,99999999,1\n", HEAD, "clusters.csv:4: more than 100000 nodes"),
    ],
)
def test_errors_name_the_line(folder: Folder, clusters: str, jobs: str, complaint: str) -> None:
    path = folder(virtual_clusters=clusters, jobs=jobs)
    with pytest.raises(WorkloadError, match=complaint):
        read_philly(path)


def test_the_log_is_counted_right(philly: Workload) -> None:
    assert philly.name == "philly-2017"
    assert len(philly.jobs) + len(philly.skipped) == 82_247
    assert len(philly.skipped) == 18
    assert all("has no recorded size" in skipped.reason for skipped in philly.skipped)
    gpus = [job.total()[GPU] for job in philly.jobs]
    unsized = 82_247 - len(gpus)
    assert 5620 - unsized <= sum(count > 1 for count in gpus) <= 5620
    assert sum(count > 8 for count in gpus) == sum(job.gang for job in philly.jobs) == 289
    assert max(gpus) == 128
    twelve = [job.members for job in philly.jobs if job.total()[GPU] == 12]
    assert twelve == [(Member(1, {GPU: 8}), Member(1, {GPU: 4}))] * 7
    assert len(philly.nodes) == 352
    assert {node.resources[GPU] for node in philly.nodes} == {8}
    assert "msr-fiddle/philly-traces (CC-BY-4.0)" in philly.source
    assert len(philly.queues) == 11
    assert sum((queue.max or {})[GPU] for queue in philly.queues) == 352 * 8
