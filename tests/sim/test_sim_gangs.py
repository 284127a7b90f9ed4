"""Gangs: placeholders, replacement, timeouts, lost confirmations, in both message orders."""

from random import Random
from typing import Any

import pytest

from bench._references import run
from bench._support.settings import Setting
from quadriga.sim import ConfigurationRefused, Report, Simulation, SimulationOptions, first
from quadriga.sim.workload import GPU, Job, Member, NodeSpec, QueueSpec, Workload, lublin
from tests.sim.by_hand import counts, job, simulate, workload

REPLACED = "AllocationResponse.released.PLACEHOLDER_REPLACED"
TIMEOUT = "AllocationResponse.released.TIMEOUT"


def test_g1_a_gang_on_several_nodes(order: str) -> None:
    report = simulate(workload((4, 4, 4, 4), job("g", 0, 100, (4, 3))), message_order=order)
    assert counts(report) == {"total": 1, "completed": 1}
    gangs, out = report.data["gangs"], report.data["messages"]["out"]
    assert (gangs["placed"], gangs["replaced"], gangs["members"]) == (1, 4, 4)
    assert (out["AllocationResponse.new"], out[REPLACED]) == (8, 4)
    assert report.data["decisions"] == {"allocations": 4, "replacements": 4, "total": 8}
    # the placeholders start, stop, are confirmed gone, and the members start: a second each
    assert report.data["waits"]["simulated"]["max"] == 4
    assert report.data["utilisation"]["placeholders"] > 0
    assert report.data["utilisation"]["peak"] == 0.75


def test_without_latencies_a_gang_starts_at_once() -> None:
    gang = job("g", 5, 100, (2, 3))
    report = simulate(workload((4, 4), gang), start_s=0, release_s=0, confirm_s=0)
    assert report.data["waits"]["simulated"]["max"] == 0
    assert report.data["utilisation"]["placeholders"] == 0


def held_up(**options: Any) -> Report:
    """A gang of three for which two nodes are free, and an ordinary job after it."""
    jobs = job("long", 0, 1000, (1, 4)), job("g", 5, 50, (3, 4)), job("late", 500, 10)
    return simulate(workload((4, 4, 4), *jobs), **options)


def test_g45_soft_timeout_goes_on_without_placeholders(order: str) -> None:
    report = held_up(placeholder_timeout_s=60, message_order=order, gang_admission="incremental")
    assert counts(report) == {"total": 3, "completed": 3}
    gangs, out = report.data["gangs"], report.data["messages"]["out"]
    assert (gangs["soft_timeouts"], gangs["hard_timeouts"]) == (1, 0)
    assert (gangs["placed"], gangs["replaced"]) == (0, 0)
    assert (out[TIMEOUT], out["AllocationResponse.releasedAsks.TIMEOUT"]) == (2, 1)
    assert out["ApplicationResponse.updated.Resuming"] == 1
    (gang,) = [fate for fate in report.fates if fate.job.job_id == "g"]
    # all members run only when the long job is gone
    assert gang.started > 1000 * 10**9


def test_g45_hard_timeout_kills(order: str) -> None:
    report = held_up(
        placeholder_timeout_s=60,
        gang_style="Hard",
        message_order=order,
        gang_admission="incremental",
    )
    assert counts(report) == {"total": 3, "completed": 2, "failed": 1}
    assert report.data["gangs"]["hard_timeouts"] == 1
    (failed,) = report.data["failed"]
    assert failed["job"] == "g"
    assert "ResourceReservationTimeout" in failed["reasons"][0]
    assert report.data["messages"]["out"]["ApplicationResponse.updated.Killed"] == 1


def test_s4_a_manager_that_never_confirms(order: str) -> None:
    work = workload((4, 4), job("g", 0, 10, (2, 3)), job("a", 5, 10))
    report = simulate(work, message_order=order, lose=1, check=False)
    assert counts(report)["completed"] == 1  # the ordinary job
    assert report.data["decisions"]["total"] == 3


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_x45_both_forms_of_asks_lead_to_the_same_decisions(order: str, style: str) -> None:
    """Gangs that wait for one another, that time out, and that lose confirmations."""
    jobs = (
        job("a", 0, 100, (3, 4)),
        job("b", 0, 100, (3, 4)),
        job("big", 5, 10, (4, 4)),
        job("late", 900, 50, (1, 2), (2, 1)),
        job("single", 20, 30, (2, 1)),
    )
    told = []
    for form in ("ask", "allocation"):
        options = SimulationOptions(
            gang_admission="incremental",
            check=True,
            journal=True,
            message_order=order,
            placeholder_timeout_s=60,
            gang_style=style,
            lose=0.3,
            repeat=0.3,
            ask_form=form,
        )
        simulation = Simulation(workload((4, 4, 4), *jobs), options)
        data = simulation.run().data
        journal = [record[:-1] for record in simulation.scheduler.journal]  # which part said it
        told.append((data["jobs"], data["gangs"], data["decisions"], journal))
    assert told[0] == told[1]
    for what in (f"{style.lower()}_timeouts", "confirmations_lost", "confirmations_repeated"):
        assert told[0][1][what] > 0


@pytest.mark.parametrize("latency", [0, 0.25, 7])
def test_start_latency_is_part_of_the_wait(latency: float) -> None:
    report = simulate(workload((4,), job("a", 0, 5)), start_s=latency)
    assert report.data["waits"]["simulated"]["mean"] == latency


def test_a_job_that_fits_no_node_is_told_and_without_jobs_or_nodes_a_simulation_ends() -> None:
    report = simulate(workload((4, 4), job("big", 0, 10, (1, 5)), job("small", 1, 10)))
    assert counts(report) == {"total": 2, "completed": 1, "unschedulable": 1}
    (told,) = report.data["unschedulable"]
    assert told["job"] == "big"
    assert "vcore" in " ".join(told["reasons"])
    report = simulate(workload((4,)))
    assert counts(report) == {}
    assert report.data["utilisation"]["mean"] == 0
    report = simulate(workload((), job("a", 0, 10)), check=False)
    assert counts(report) == {"total": 1, "unschedulable": 1}


def test_a_configuration_that_does_not_hold_and_jobs_of_the_same_name() -> None:
    options = SimulationOptions(config="partitions: [{name: default, queues: [{name: ' '}]}]")
    with pytest.raises(ConfigurationRefused) as refused:
        Simulation(workload((4,), job("a", 0, 10)), options).run()
    assert "\n" not in str(refused.value)
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


def crowded(days: int = 12) -> Workload:
    """Twenty nodes at a load of about 0.8, of which gangs of two to sixteen nodes are three quarters."""
    random = Random(10)
    jobs, at = [], 0.0
    while at < days * 86_400:
        at += random.expovariate(1 / 2_900)
        wide = random.random() < 0.67
        jobs.append(
            Job(
                job_id=str(len(jobs)),
                submit_s=int(at),
                runtime_s=60 + int(random.expovariate(1 / 8_000)),
                user="u",
                queue="q",
                members=(Member(random.choice((2, 4, 8, 16)) if wide else 1, {"vcore": 1_000}),),
            )
        )
    nodes = tuple(NodeSpec(f"n{number}", {"vcore": 1_000}) for number in range(20))
    return Workload(
        "crowded", nodes, (QueueSpec("q"),), tuple(jobs), (), int(at) + 1, "made for this test"
    )


@pytest.mark.parametrize("after", ["0s", "6h"])
def test_q10_many_gangs_wait_hardly_longer_than_under_first_fit(after: str) -> None:
    workload = crowded()
    ours = Setting({}, {"gang.gather.after": after}).simulate(workload).data["quality"]
    first_fit = run(workload, "b")
    assert ours["completed"] == len(workload.jobs)
    assert first_fit.mean_wait is not None
    assert ours["mean_wait"] < 1.7 * first_fit.mean_wait


@pytest.mark.slow
@pytest.mark.parametrize("load", [0.6, 0.9])
def test_q10_jobs_of_lublins_model_wait_hardly_longer_than_under_first_fit(load: float) -> None:
    workload = lublin(2000, 64, load=load)
    ours = Setting().simulate(workload).data["quality"]
    first_fit = run(workload, "b")
    assert ours["completed"] == len(workload.jobs)
    assert first_fit.mean_wait is not None
    assert first_fit.longest_wait is not None
    assert ours["mean_wait"] < 1.15 * first_fit.mean_wait
    assert ours["longest_wait"] <= 1.01 * first_fit.longest_wait
