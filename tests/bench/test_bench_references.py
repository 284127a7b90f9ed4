"""The references: each beside a twin without shortcuts, and one example of what makes it differ."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench._references import REFERENCES, schedule
from quadriga.sim import Simulation
from quadriga.sim.workload import Job, Member, NodeSpec, QueueSpec, Workload
from tests.bench.reference_twin import Twin

SECOND = 1_000_000_000


def cores(vcores: int, memory: int = 0) -> dict[str, int]:
    return {"vcore": vcores, "memory": memory}


def workload(nodes: list[Any], queues: list[QueueSpec], jobs: list[Job]) -> Workload:
    specs = tuple(NodeSpec(f"n{number}", size) for number, size in enumerate(nodes, 1))
    ordered = tuple(sorted(jobs, key=lambda job: job.submit_s))
    return Workload("by hand", specs, tuple(queues), ordered, (), 1, "a test")


def starts(cluster: Workload, name: str) -> list[int]:
    """When each job started, in s; -1: never."""
    _, records = schedule(cluster, name)
    return [r.started // SECOND if r.started >= 0 else -1 for r in records]


sizes = st.builds(cores, st.integers(0, 4), st.integers(0, 4))
members = st.builds(Member, st.integers(1, 4), sizes)
amounts = st.none() | st.builds(cores, st.integers(1, 12), st.integers(1, 12))


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    nodes = draw(
        st.lists(st.builds(cores, st.integers(1, 8), st.integers(1, 8)), min_size=1, max_size=4)
    )
    queues = [
        QueueSpec(f"q{number}", draw(amounts), draw(amounts))
        for number in range(draw(st.integers(1, 3)))
    ]
    jobs = [
        Job(
            str(number),
            draw(st.integers(0, 20)),
            draw(st.integers(1, 40)),
            "ann",
            draw(st.sampled_from(queues)).name,
            tuple(draw(st.lists(members, min_size=1, max_size=2))),
            walltime_s=draw(st.none() | st.integers(1, 60)),
        )
        for number in range(draw(st.integers(1, 14)))
    ]
    return workload(nodes, queues, jobs)


@pytest.mark.parametrize("name", REFERENCES)
@given(cluster=workloads())
def test_a_reference_starts_jobs_when_its_twin_does(name: str, cluster: Workload) -> None:
    """Every job ends that fits the empty cluster, and no node is too full."""
    holdings, records = schedule(cluster, name)
    started = Twin(cluster, name).run()
    assert [record.started for record in records] == started
    assert [record.ended >= 0 for record in records] == [start >= 0 for start in started]
    for node in cluster.nodes:
        held = [holding for holding in holdings if holding.node == node.name]
        for resource, capacity in node.resources.items():
            for now in {holding.since for holding in held}:
                used = sum(h.resources.get(resource, 0) for h in held if h.since <= now < h.until)
                assert used <= capacity


def test_they_start_pods_and_gangs_when_the_simulated_resource_manager_does() -> None:
    """On an empty cluster the whole difference is in the latencies."""
    jobs = [
        Job("one", 0, 10, "ann", "q", (Member(1, cores(1000, 1)),)),
        Job("gang", 5, 10, "ann", "q", (Member(2, cores(1000, 1)),)),
        Job("next", 6, 10, "ann", "q", (Member(1, cores(4000, 1)),)),
    ]
    cluster = workload([cores(4000, 64)], [QueueSpec("q")], jobs)
    fates = {fate.job.job_id: fate.started // SECOND for fate in Simulation(cluster).run().fates}
    assert starts(cluster, "b") == [fates["one"], fates["gang"], fates["next"]] == [1, 9, 21]


# four cores, all busy until 101: the first two jobs of every example
BUSY = [Job(f"busy-{n}", 0, 100, "ann", "q", (Member(1, cores(2)),)) for n in range(2)]
TWO_NODES = [cores(3), cores(3)]
LATE = 1 + 100 + 1  # a start, the run, the confirmation


def job(name: str, submit: int, run: int, *groups: tuple[int, int], **more: Any) -> Job:
    members = tuple(Member(count, cores(size)) for count, size in groups)
    return Job(name, submit, run, "ann", more.pop("queue", "q"), members, **more)


@pytest.mark.parametrize(
    ("name", "first", "small"),
    [
        ("a", LATE + 1, LATE + 1),
        ("b", 11, 12),
        ("c", 11, 12),
        ("d", 11, 12),
        ("e", 11, LATE + 1),
    ],
)
def test_who_passes_a_job_that_does_not_fit(name: str, first: int, small: int) -> None:
    """`wide` needs a whole node; one core is free on each."""
    jobs = [
        *BUSY,
        job("wide", 10, 50, (1, 3)),
        job("first", 10, 300, (1, 1), walltime_s=300),
        job("small", 11, 50, (1, 1), walltime_s=50),
    ]
    cluster = workload(TWO_NODES, [QueueSpec("q")], jobs)
    found = dict(zip([each.job_id for each in cluster.jobs], starts(cluster, name), strict=True))
    assert (found["first"], found["small"], found["wide"]) == (first, small, LATE + 1)


def test_a_gathering_gang_keeps_what_it_has() -> None:
    """(b) gives the free core to every small job; (d) gives it to the gang that waits for a second."""
    jobs = [job("busy", 0, 100, (1, 1)), job("gang", 1, 10, (2, 1))]
    jobs += [job(f"small-{n}", 2 + n, 300, (1, 1)) for n in range(2)]
    cluster = workload([cores(2)], [QueueSpec("q")], jobs)
    assert starts(cluster, "b")[1:3] == [402 + 2 + 4, 3]
    assert starts(cluster, "d")[1:3] == [LATE + 4, LATE + 4 + 10 + 1 + 1]


def test_with_q_the_queue_with_the_least_share_is_next() -> None:
    jobs = [
        job("busy", 0, 100, (1, 2)),
        job("a", 1, 10, (1, 2)),
        job("b", 2, 10, (1, 2), queue="r"),
    ]
    jobs.insert(0, job("more", 0, 400, (1, 1)))
    cluster = workload([cores(3)], [QueueSpec("q"), QueueSpec("r")], jobs)
    assert starts(cluster, "b")[2:] == [LATE + 1, LATE + 1 + 10 + 1 + 1]
    assert starts(cluster, "bq")[2:] == [LATE + 1 + 10 + 1 + 1, LATE + 1]
