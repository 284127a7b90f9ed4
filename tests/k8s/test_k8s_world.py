"""Whole stories in a deterministic cluster with the real core (T1 to T8)."""

from __future__ import annotations

from k8s_world import World, gang


def test_t1_a_job_of_100_pods_runs_to_its_end() -> None:
    world = World()
    for n in range(5):
        world.add_node(f"n{n}", cpu="8")
    pods = [world.add_pod(f"job-{n}", "job", duration=30) for n in range(100)]
    world.run(10)
    assert world.phases("job")["Running"] == 40
    world.check()
    world.run(200)
    assert world.phases("job") == {"Succeeded": 100}
    assert world.books() == {}
    assert world.app_state("job") == ""
    assert world.core_app("job") in ("", "Completed")
    assert {len(world.bound[pod.uid]) for pod in pods} == {1}


def test_t2_a_gang_of_two_groups_starts_together() -> None:
    world = World()
    for n in range(3):
        world.add_node(f"n{n}")
    groups = [gang("driver", 1), gang("workers", 3, "2")]
    world.add_pod("driver", "spark", group="driver", groups=groups, duration=60)
    for n in range(3):
        world.add_pod(f"worker-{n}", "spark", "2", group="workers", duration=50)
    world.run(5)
    assert world.phases("driver") == {"Running": 1}
    assert world.phases("worker") == {"Running": 3}
    assert world.placeholders == []
    world.check()
    world.run(200)
    assert world.books() == {}
    assert world.app_state("spark") == ""
