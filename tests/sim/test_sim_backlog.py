"""A long backlog of asks of many sizes: shortened walks and searches decide as the whole ones do."""

from __future__ import annotations

import random
from typing import Any

import pytest

from quadriga.core.model.shapes import Shape
from quadriga.core.ordering.fitting import Fitting
from quadriga.core.ordering.node_index import NodeIndex
from quadriga.core.scheduling import cycle, next_ask
from quadriga.sim import Simulation, SimulationOptions
from quadriga.sim.workload.model import GIB, MEMORY, VCORE, Job, Member, NodeSpec, QueueSpec
from quadriga.sim.workload.model import Workload as Work


def backlog(seed: int) -> Work:
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
    return Work(
        name="backlog",
        nodes=tuple(NodeSpec(f"node-{n}", {VCORE: 8000, MEMORY: 16 * GIB}) for n in range(4)),
        queues=(QueueSpec("small", max={VCORE: 12_000}), QueueSpec("large")),
        jobs=tuple(jobs),
        skipped=(),
        horizon_s=110,
        source="made up",
    )


def outcome(work: Work, options: SimulationOptions) -> tuple[str, list[Any]]:
    simulation = Simulation(work, options)
    report = simulation.run()
    return report.json(), [tuple(record) for record in simulation.scheduler.journal]


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
    assert passed_over > 50
    monkeypatch.setattr(Fitting, "add", lambda *_: False)
    passed_over = 0
    assert outcome(work, options) == known
    assert not passed_over
