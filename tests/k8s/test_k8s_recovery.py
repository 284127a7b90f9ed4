"""T9: the shim and the core are killed at every write and at every message, and start anew (K139 to K152)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from k8s_world import Killed, World, gang
from test_k8s_world import SOFT, WHOLE


def job() -> World:
    """T1, smaller: a Job of 12 pods on 2 nodes."""
    world = World()
    for n in range(2):
        world.add_node(f"n{n}", cpu="3")
    for n in range(12):
        world.add_pod(f"job-{n}", "job", duration=5)
    return world


def gang_of_two_groups() -> World:
    """T2."""
    world = World()
    for n in range(3):
        world.add_node(f"n{n}")
    groups = [gang("driver", 1), gang("workers", 3, "2")]
    world.add_pod("driver", "spark", group="driver", groups=groups, duration=40)
    for n in range(3):
        world.add_pod(f"worker-{n}", "spark", "2", group="workers", duration=30)
    return world


def soft_gang() -> World:
    """T3."""
    world = World(queues=WHOLE)
    world.add_node("n1", cpu="2")
    world.add_pod("driver", "spark", group="w", groups=[gang("w", 3)], policy=SOFT, duration=10)
    for n in range(2):
        world.add_pod(f"worker-{n}", "spark", group="w", duration=10)
    return world


def real(world: World) -> set[str]:
    return {uid for uid, pod in world.pods.items() if not pod.metadata.name.startswith("tg-")}


def run_to_the_end(world: World, seconds: float) -> None:
    world.run(seconds, until=lambda: all(world.pods[uid].ended for uid in real(world)))


STORIES: dict[str, tuple[Callable[[], World], int]] = {
    "job": (job, 0),
    "gang of two groups": (gang_of_two_groups, 4),
    "soft gang": (soft_gang, 3),
}


def length(story: Callable[[], World]) -> int:
    """How many steps it has when nothing is killed."""
    world = story()
    run_to_the_end(world, 400)
    world.run(60)
    return world.steps


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", STORIES)
def test_t9_a_kill_at_every_step_loses_and_doubles_nothing(name: str, after: bool) -> None:
    story, members = STORIES[name]
    steps = length(story)
    assert steps > 15
    for step in range(1, steps + 1):
        world = story()
        world.kill_at, world.kill_after = step, after
        pods = real(world)
        with pytest.raises(Killed):
            world.run(400)
        where = f"{name}, killed at step {step} of {steps}: {world.log[-1]}"
        world.restart()
        world.run(1)
        world.check()
        holding = [pod for pod in world.placeholders if not pod.terminating]
        placed = [uid for uid in pods if world.pods[uid].spec.node_name]
        if not all(world.pods[uid].ended for uid in placed):
            assert len(holding) + len(placed) <= members + 1 or not members, where
        run_to_the_end(world, 400)
        assert real(world) == pods, where
        assert {world.pods[uid].status.phase for uid in pods} == {"Succeeded"}, where
        assert all(len(world.bound[uid]) == 1 for uid in pods), where
        world.run(60)
        assert world.placeholders == [], where
        assert world.books() == {}, where
        assert world.shim.dump()["applications"] == [], where
