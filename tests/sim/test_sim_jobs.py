"""Ordinary jobs from submission to the end, and jobs that do not get there."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from quadriga.sim import ConfigurationRefused, Simulation, SimulationOptions, first
from quadriga.sim.workload import GPU, Job, Member, NodeSpec, QueueSpec, Workload
from tests.sim.by_hand import counts, job, simulate, workload


def test_one_job_from_submission_to_completion(order: str) -> None:
    report = simulate(workload((4,), job("a", 10, 100)), message_order=order)
    assert counts(report) == {"total": 1, "completed": 1}
    assert report.data["waits"]["simulated"]["max"] == 1  # the pod's start
    sent, received = report.data["messages"]["in"], report.data["messages"]["out"]
    assert sent["AllocationRequest.asks"] == sent["AllocationRequest.releases"] == 1
    assert received["AllocationResponse.new"] == 1
    for state in ("Accepted", "Running", "Waiting", "Completed"):
        assert received[f"ApplicationResponse.updated.{state}"] == 1
    # submitted at 10, starts at 11, ends at 111, known at 112
    assert report.data["utilisation"]["peak"] == 0.25
    assert report.data["utilisation"]["mean"] == round(102 * 0.25 / 112, 6)
    assert report.data["decisions"] == {"allocations": 1, "replacements": 0, "total": 1}


@pytest.mark.parametrize("latency", [0, 0.25, 7])
def test_start_latency_is_part_of_the_wait(latency: float) -> None:
    report = simulate(workload((4,), job("a", 0, 5)), start_s=latency)
    assert report.data["waits"]["simulated"]["mean"] == latency


def test_a_full_cluster_makes_jobs_wait() -> None:
    report = simulate(workload((4,), *(job(str(n), 0, 100, (1, 2)) for n in range(4))))
    assert counts(report) == {"total": 4, "completed": 4}
    # the third and fourth start when the end of the first is known: 1 + 100 + 1, and start
    assert [fate.started // 10**9 for fate in report.fates] == [1, 1, 103, 103]
    assert report.data["utilisation"]["peak"] == 1


def test_a_job_that_fits_no_node_is_told_with_the_reason() -> None:
    report = simulate(workload((4, 4), job("big", 0, 10, (1, 5)), job("small", 1, 10)))
    assert counts(report) == {"total": 2, "completed": 1, "unschedulable": 1}
    (told,) = report.data["unschedulable"]
    assert told["job"] == "big"
    assert "vcore" in " ".join(told["reasons"])


def test_without_jobs_or_without_nodes_a_simulation_ends() -> None:
    report = simulate(workload((4,)))
    assert counts(report) == {}
    assert report.data["utilisation"]["mean"] == 0
    report = simulate(workload((), job("a", 0, 10)), check=False)
    assert counts(report) == {"total": 1, "unschedulable": 1}


def test_a_configuration_that_does_not_hold() -> None:
    options = SimulationOptions(config="partitions: [{name: default, queues: [{name: ' '}]}]")
    with pytest.raises(ConfigurationRefused) as refused:
        Simulation(workload((4,), job("a", 0, 10)), options).run()
    assert "\n" not in str(refused.value)


def test_jobs_of_the_same_name() -> None:
    jobs = [job("a", 0, 10), job("a", 0, 10), job("a.2", 0, 10)]
    assert counts(simulate(workload((4,), *jobs))) == {"total": 3, "completed": 3}


def test_quotas_of_the_workload_are_kept() -> None:
    members = (Member(1, {GPU: 1}),)
    gpus = Workload(
        name="gpus",
        nodes=(NodeSpec("n1", {"vcore": 8000, GPU: 8}),),
        queues=(QueueSpec("a", {GPU: 1}, {GPU: 1}), QueueSpec("b", {GPU: 7}, {GPU: 7})),
        jobs=tuple(Job(str(n), 0, 100, "ann", queue, members) for n, queue in enumerate("aab")),
        skipped=(),
        horizon_s=1,
        source="a test",
    )
    report = simulate(gpus)
    assert [fate.started // 10**9 for fate in report.fates] == [1, 1, 103]
    assert report.data["utilisation"]["resource"] == GPU
    assert report.data["utilisation"]["capacity"] == 8


@pytest.mark.parametrize(
    ("policy", "node_sort", "reservations"),
    [
        *product(["fifo", "fair", "stateaware"], ["fair", "binpacking", "bestfit"], [True]),
        ("fifo", "fair", False),
    ],
)
def test_policies(policy: str, node_sort: str, reservations: bool) -> None:
    jobs = [job(str(n), n, 50, (1, 1 + n % 4)) for n in range(20)]
    options = {"policy": policy, "node_sort": node_sort, "reservations": reservations}
    report = simulate(workload((4, 4), *jobs), **options)
    assert counts(report) == {"total": 20, "completed": 20}


def test_the_beginning_of_a_workload() -> None:
    whole = workload((4,), job("a", 0, 1), job("b", 86_399, 1), job("c", 86_400, 1))
    assert first(whole) is whole
    assert [job.job_id for job in first(whole, days=1).jobs] == ["a", "b"]
    assert [job.job_id for job in first(whole, days=2, jobs=1).jobs] == ["a"]
    assert first(whole, jobs=1).horizon_s == 1
    with pytest.raises(ValueError, match="jobs is 0"):
        first(whole, jobs=0)


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        *(("policy", "random"), ("node_sort", "x"), ("gang_style", "soft"), ("message_order", "")),
        *(("start_s", -1), ("confirm_s", float("nan")), ("release_s", float("inf"))),
        *(("placeholder_timeout_s", float("nan")), ("lose", 1.5), ("repeat", -0.1)),
    ],
)
def test_options_that_make_no_sense(option: str, wrong: Any) -> None:
    with pytest.raises(ValueError, match=option):
        SimulationOptions(**{option: wrong})
