"""Q10: a log with many gangs does not collapse beside first fit."""

from random import Random

import pytest

from bench._references import run
from bench._support.settings import Setting
from quadriga.sim.workload import Job, Member, NodeSpec, QueueSpec, Workload, lublin


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
