"""Small workloads by hand: nodes and queues by name, jobs in a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quadriga.fsm.pytest_plugin import track
from quadriga.sim import SHIM_APPLICATION, SHIM_TASK, Report, Simulation, SimulationOptions
from quadriga.sim.workload import Job, Member, NodeSpec, QueueSpec, Workload

track(SHIM_APPLICATION)
track(SHIM_TASK)

GIB = 1024**3


def cores(vcores: int, memory: int = 1) -> dict[str, int]:
    """Cores and GiB in YuniKorn's units."""
    return {"vcore": vcores * 1000, "memory": memory * GIB}


@pytest.fixture
def job() -> Callable[..., Job]:
    """``job("a", 0, 100, (2, 3))``: submitted at 0 s, runs 100 s, two pods of three cores."""

    def make(
        name: str, submit_s: int, runtime_s: int, *groups: tuple[int, int], **more: Any
    ) -> Job:
        members = tuple(Member(count, cores(size)) for count, size in groups or ((1, 1),))
        return Job(name, submit_s, runtime_s, more.pop("user", "ann"), "q", members, **more)

    return make


@pytest.fixture
def workload() -> Callable[..., Workload]:
    """A cluster of nodes with these many cores (and 64 GiB) and the jobs."""

    def make(nodes: tuple[int, ...], *jobs: Job, queues: tuple[QueueSpec, ...] = ()) -> Workload:
        return Workload(
            name="by hand",
            nodes=tuple(NodeSpec(f"n{n}", cores(size, 64)) for n, size in enumerate(nodes, 1)),
            queues=queues or (QueueSpec("q"),),
            jobs=jobs,
            skipped=(),
            horizon_s=max((job.submit_s + 1 for job in jobs), default=0),
            source="a test",
        )

    return make


@pytest.fixture(params=["design", "k8shim"])
def order(request: pytest.FixtureRequest) -> str:
    """Both message orders of X8."""
    return str(request.param)


@pytest.fixture
def simulate() -> Callable[..., Report]:
    """Run it with every invariant checked at every step; every job must have its fate."""

    def run(workload: Workload, *, check: bool = True, **options: Any) -> Report:
        report = Simulation(workload, SimulationOptions(check=check, **options)).run()
        assert report.unaccounted == 0
        return report

    return run
