"""Whole real traces through the scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quadriga.sim import Simulation, first
from quadriga.sim.workload import embedded, open_workload


@pytest.mark.slow
def test_all_89_days_of_cerit_twice(shared: Path) -> None:
    workload = open_workload(shared / "data" / "traces" / "cerit-sc-2013")
    report, again = (Simulation(workload).run() for _ in range(2))
    assert report.json() == again.json()
    assert report.unaccounted == 0
    jobs = report.data["jobs"]
    assert (jobs["total"], jobs["skipped"], jobs["unschedulable"]) == (17_900, 2, 1)
    assert jobs["completed"] == 17_897
    (stuck,) = report.data["unschedulable"]
    assert stuck["job"] == "8687"
    assert stuck["reasons"]
    assert {skipped["job"] for skipped in report.data["skipped"]} == {"4185", "4199"}
    gangs = report.data["gangs"]
    assert (gangs["total"], gangs["completed"]) == (334, 334)
    assert report.data["waits"]["recorded"]["p50"] == pytest.approx(370, abs=2)


def test_the_first_days_of_cerit_checked_at_every_step(shared: Path, simulate: Any) -> None:
    workload = open_workload(shared / "data" / "traces" / "cerit-sc-2013")
    report = simulate(first(workload, jobs=300))
    assert report.data["jobs"]["completed"] == 300


def test_the_first_days_of_philly_checked_at_every_step(shared: Path, simulate: Any) -> None:
    workload = open_workload(shared / "data" / "traces" / "philly-2017")
    report = simulate(first(workload, jobs=300))
    jobs = report.data["jobs"]
    assert jobs["completed"] == 300
    assert report.data["utilisation"]["resource"] == "nvidia.com/gpu"


@pytest.mark.slow
def test_all_90_days_of_the_model() -> None:
    report = Simulation(embedded()).run()
    assert report.unaccounted == 0
    jobs = report.data["jobs"]
    assert jobs["completed"] == jobs["total"] > 15_000
