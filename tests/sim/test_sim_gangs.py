"""Gangs: placeholders, replacement, timeouts, lost confirmations, in both message orders."""

from __future__ import annotations

from typing import Any

import pytest

from quadriga.sim import Report, Simulation, SimulationOptions
from quadriga.sim.workload import QueueSpec
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


def test_g23_task_groups_of_different_sizes(order: str) -> None:
    report = simulate(workload((4, 2, 2), job("g", 0, 60, (1, 4), (2, 2))), message_order=order)
    assert counts(report) == {"total": 1, "completed": 1}
    assert report.data["gangs"]["replaced"] == 3
    assert report.data["utilisation"]["peak"] == 1


def test_two_gangs_that_need_the_same_nodes(order: str) -> None:
    jobs = job("a", 0, 100, (3, 4)), job("b", 0, 100, (3, 4))
    report = simulate(workload((4, 4, 4), *jobs), message_order=order)
    assert counts(report) == {"total": 2, "completed": 2}
    first, second = sorted(fate.started for fate in report.fates)
    assert second - first >= 100 * 10**9
    assert report.data["gangs"]["soft_timeouts"] == 0


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
    assert out[TIMEOUT] == 2
    assert out["AllocationResponse.releasedAsks.TIMEOUT"] == 1
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


def test_x17_a_timeout_below_zero_is_never() -> None:
    report = held_up(placeholder_timeout_s=-1)
    assert counts(report)["completed"] == 3
    assert report.data["gangs"]["replaced"] == 3


@pytest.mark.parametrize("seed", range(5))
def test_s4_lost_confirmations_are_asked_for_again(order: str, seed: int) -> None:
    jobs = [job(str(n), n * 20, 300, (1 + n % 3, 2)) for n in range(12)]
    options = {"message_order": order, "seed": seed, "placeholder_timeout_s": 200}
    report = simulate(workload((4, 4, 4), *jobs), **options, lose=0.4, repeat=0.3)
    assert counts(report) == {"total": 12, "completed": 12}
    assert report.data["gangs"]["confirmations_lost"] > 0
    assert report.data["gangs"]["confirmations_repeated"] > 0


def test_s4_a_manager_that_never_confirms(order: str) -> None:
    work = workload((4, 4), job("g", 0, 10, (2, 3)), job("a", 5, 10))
    report = simulate(work, message_order=order, lose=1, check=False)
    assert counts(report)["completed"] == 1  # the ordinary job
    assert report.data["decisions"]["total"] == 3


def test_g7_gangs_need_a_queue_that_is_not_fair() -> None:
    report = simulate(workload((4, 4), job("g", 0, 10, (2, 3)), job("a", 5, 10)), policy="fair")
    assert counts(report) == {"total": 2, "completed": 1, "rejected": 1}
    assert "unsupported sort type" in report.data["rejected"][0]["reasons"][0]


def test_g6_a_gang_larger_than_its_queue() -> None:
    queues = (QueueSpec("q", max={"vcore": 5000}),)
    report = simulate(workload((4, 4), job("g", 0, 10, (2, 3)), queues=queues))
    assert counts(report) == {"total": 1, "rejected": 1}


def test_stateaware_gangs(order: str) -> None:
    jobs = [job(str(n), n, 50, (2, 2)) for n in range(4)]
    report = simulate(workload((4, 4), *jobs), policy="stateaware", message_order=order)
    assert counts(report) == {"total": 4, "completed": 4}


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
    assert told[0][1][f"{style.lower()}_timeouts"] > 0
