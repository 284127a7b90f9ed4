"""The model of Lublin and Feitelson, beside a log of it that others made."""

from itertools import pairwise
from pathlib import Path

import pytest

from quadriga.sim.workload import Job, Workload, lublin, open_workload


@pytest.fixture(scope="module")
def log(shared: Path) -> Workload:
    return open_workload(shared / "data" / "traces" / "lublin-256" / "jobs.swf.gz")


def quantiles(values: list[int]) -> list[int]:
    ordered = sorted(values)
    return [ordered[len(ordered) * percent // 100] for percent in (25, 50, 75, 90, 95)]


def kinds(jobs: tuple[Job, ...]) -> list[float]:
    """The shares of jobs of one node, of a power of two, of more than 32 nodes and long ones of these, of all nodes."""
    tests = [
        (
            job.pods == 1,
            job.pods & (job.pods - 1) == 0,
            job.pods > 32,
            job.pods > 32 and job.runtime_s > 3600,
            job.pods == 256,
        )
        for job in jobs
    ]
    return [sum(each) / len(jobs) for each in zip(*tests, strict=True)]


def quarters(jobs: tuple[Job, ...]) -> list[float]:
    """The shares of the quarters of a day. Chance moves them: there are some hundred days, and busy ones have most."""
    begun = [job.submit_s // 21_600 % 4 for job in jobs]
    return [begun.count(quarter) / len(jobs) for quarter in range(4)]


def test_its_marginals_are_those_of_the_log(log: Workload) -> None:
    ours = lublin(10_000, 256)
    assert kinds(ours.jobs) == pytest.approx(kinds(log.jobs), abs=0.012)
    assert quarters(ours.jobs) == pytest.approx(quarters(log.jobs), abs=0.06)
    assert quantiles([job.runtime_s for job in ours.jobs]) == pytest.approx(
        quantiles([job.runtime_s for job in log.jobs]), rel=0.1
    )
    gaps = [quantiles([t.submit_s - o.submit_s for o, t in pairwise(e.jobs)]) for e in (ours, log)]
    assert gaps[0] == pytest.approx(gaps[1], rel=0.1)


@pytest.mark.parametrize("load", [0.6, 0.9])
def test_it_has_the_load_that_is_asked_for(load: float) -> None:
    workload = lublin(2000, 64, seed=3, load=load)
    work = sum(job.pods * job.runtime_s for job in workload.jobs)
    assert work / (64 * workload.horizon_s) == pytest.approx(load, rel=0.03)
    assert max(job.pods for job in workload.jobs) <= 64
    assert workload == lublin(2000, 64, seed=3, load=load) != lublin(2000, 64, seed=4, load=load)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"jobs": 0}, "jobs is 0, not 1 to"),
        ({"jobs": 1, "nodes": 7}, "nodes is 7, not 8 to"),
        ({"jobs": 1, "load": 0}, "load is 0, not above 0"),
    ],
)
def test_what_it_cannot_make_is_refused(told: dict[str, int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        lublin(**told)
