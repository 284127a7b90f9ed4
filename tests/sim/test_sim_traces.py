"""Whole real traces through the scheduler."""

import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from quadriga import si
from quadriga.core.ordering.fitting import Fitting
from quadriga.core.ordering.node_index import NodeIndex
from quadriga.core.resources.shapes import Shape
from quadriga.core.scheduling import cycle
from quadriga.core.steps import next_ask
from quadriga.sim import Simulation, SimulationOptions, first, queue_configuration
from quadriga.sim.scripted.script import Script, resource
from quadriga.sim.workload import Workload, open_workload
from quadriga.sim.workload.model import GIB, MEMORY, VCORE, Job, Member, NodeSpec, QueueSpec
from tests.sim.by_hand import simulate


@cache
def trace(shared: Path, name: str) -> Workload:
    return open_workload(shared / "data" / "traces" / name)


@pytest.mark.slow
def test_all_89_days_of_cerit_and_a_part_twice(shared: Path) -> None:
    workload = trace(shared, "cerit-sc-2013")
    part = first(workload, days=5)
    assert Simulation(part).run().json() == Simulation(part).run().json()
    report = Simulation(workload).run()
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


def test_the_first_days_of_cerit_checked_at_every_step(shared: Path) -> None:
    report = simulate(first(trace(shared, "cerit-sc-2013"), jobs=150))
    assert report.data["jobs"]["completed"] == 150


def test_the_first_days_of_philly_checked_at_every_step(shared: Path) -> None:
    report = simulate(first(trace(shared, "philly-2017"), jobs=150))
    assert report.data["jobs"]["completed"] == 150
    assert report.data["utilisation"]["resource"] == "nvidia.com/gpu"


@pytest.mark.slow
def test_a_sixteenth_of_philly_checked_at_every_step(shared: Path) -> None:
    """``python -m bench quality`` plays all of it."""
    workload = first(trace(shared, "philly-2017"), jobs=5_000)
    assert all(m.resources["nvidia.com/gpu"] <= 8 for job in workload.jobs for m in job.members)
    report = simulate(workload)
    jobs = report.data["jobs"]
    assert (jobs["total"], jobs["completed"], jobs["skipped"]) == (5_018, 5_000, 18)
    queues = report.data["waits"]["queues"]
    assert len(queues) == len(workload.queues)
    assert sum(waits["simulated"]["count"] for waits in queues.values()) == jobs["completed"]
    assert (
        sum(waits["gangs"]["simulated"]["count"] for waits in queues.values())
        == (report.data["gangs"]["total"])
    )


@pytest.mark.parametrize("day", range(3, 89, 17))
def test_the_recorded_placement_as_existing_allocations(shared: Path, day: int) -> None:
    workload = trace(shared, "cerit-sc-2013")
    now_s = day * 86_400
    running = [
        job
        for job in workload.jobs
        if 0 <= now_s - job.submit_s - (job.recorded_wait_s or 0) < job.runtime_s
    ]
    script = Script(queue_configuration(workload, policy="fifo", node_sort="fair"))
    for job in running:
        script.app(job.job_id, queue=f"root.{job.queue}", user=job.user)
    for node in workload.nodes:
        existing = [
            si.Allocation(
                allocationKey=f"{job.job_id}-{number}",
                UUID=f"{job.job_id}-{number}-0",
                applicationID=job.job_id,
                nodeID=node.name,
                partitionName="default",
                resourcePerAlloc=resource(share),
            )
            for job in running
            for number, (place, share) in enumerate(job.placement or ())
            if place == node.name
        ]
        told = script.node(node.name, existing=existing, **node.resources)
        assert f"accepted node {node.name}" in told
    partition = script.scheduler.partition()
    vcore = partition.registry.position("vcore")
    assert all(node.available[vcore] >= 0 for node in partition.nodes.values())
    assert partition.root.allocated[vcore] == sum(job.total()["vcore"] for job in running) > 0
    assert script.scheduler.check() == []


# -- a long backlog of asks of many sizes: shortened walks decide as the whole ones do ---------------


def backlog(seed: int) -> Workload:
    """Far more than four nodes can run at once, most jobs with a size of their own."""
    chance = random.Random(seed)
    jobs = []
    for number in range(110):
        size = {VCORE: chance.randint(1, 16) * 500, MEMORY: chance.randint(1, 400) * GIB // 50}
        pods = 2 if chance.random() < 0.1 else 1
        queue = chance.choice(("small", "large", "large"))
        member = Member(pods, size)
        runtime = chance.randint(5, 200)
        jobs.append(Job(f"job-{number}", number, runtime, "user", queue, (member,)))
    return Workload(
        name="backlog",
        nodes=tuple(NodeSpec(f"node-{n}", {VCORE: 8000, MEMORY: 16 * GIB}) for n in range(4)),
        queues=(QueueSpec("small", max={VCORE: 12_000}), QueueSpec("large")),
        jobs=tuple(jobs),
        skipped=(),
        horizon_s=110,
        source="made up",
    )


def outcome(work: Workload, options: SimulationOptions) -> tuple[str, list[Any]]:
    simulation = Simulation(work, options)
    return simulation.run().json(), [tuple(record) for record in simulation.scheduler.journal]


@pytest.mark.interpreted
@pytest.mark.parametrize("reservations", [True, False])
@pytest.mark.parametrize("policy", ["fifo", "fair"])
def test_the_rest_of_a_lane_is_what_a_walk_from_root_finds(
    monkeypatch: pytest.MonkeyPatch, policy: str, reservations: bool
) -> None:
    work = backlog(seed=7)
    options = SimulationOptions(policy=policy, reservations=reservations, journal=True)
    steps = 0
    whole = next_ask.NextInLane.next

    def counted(rest: Any, feasible: int) -> Any:
        nonlocal steps
        found = whole(rest, feasible)
        steps += found is not None
        return found

    monkeypatch.setattr(next_ask.NextInLane, "next", counted)
    short = outcome(work, options)
    assert steps > 50
    monkeypatch.setattr(cycle, "rest_of_lane", lambda *_: None)
    assert outcome(work, options) == short


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", [7, 8])
@pytest.mark.parametrize("admission", ["atomic", "whole"])
def test_decisions_do_not_depend_on_what_is_known_of_room(
    monkeypatch: pytest.MonkeyPatch, admission: str, seed: int
) -> None:
    work = backlog(seed)
    options = SimulationOptions(gang_admission=admission, journal=True)
    passed_over = 0
    lacks = NodeIndex.lacks

    def counted(node_index: NodeIndex, shape: Shape) -> None:
        nonlocal passed_over
        passed_over += bool(node_index.full() & shape.allocate)
        lacks(node_index, shape)

    monkeypatch.setattr(NodeIndex, "lacks", counted)
    known = outcome(work, options)
    assert passed_over > 30
    monkeypatch.setattr(Fitting, "add", lambda *_: False)
    passed_over = 0
    assert outcome(work, options) == known
    assert not passed_over
