"""Either side starts again at any moment: nothing is lost and nothing double (I7, I8, X32)."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quadriga.sim import (
    LOSE_NODE,
    RESTART_MANAGER,
    RESTART_SCHEDULER,
    Fault,
    SimulationError,
    SimulationOptions,
    World,
)
from quadriga.sim.outcomes import NEVER_STARTED, UNSCHEDULABLE
from quadriga.sim.workload import QueueSpec, Workload
from tests.sim.by_hand import job, queues_below_root, workload

RESTARTS = (RESTART_SCHEDULER, RESTART_MANAGER)


def outcomes(
    workload: Workload,
    faults: Mapping[int, Fault] | None = None,
    *,
    by_request: bool = False,
    **options: Any,
) -> tuple[World, dict[str, str]]:
    """Run to the end, with all that must hold checked at every step. What became of the jobs."""
    world = World(workload, SimulationOptions(check=True, **options), faults, by_request=by_request)
    assert world.run().unaccounted == 0
    found = {fate.job.job_id: fate.outcome for fate in world.manager.fates}
    living = world.scheduler.partition().applications
    assert sorted(living) == sorted(
        job for job in found if found[job] in (NEVER_STARTED, UNSCHEDULABLE)
    ), {app.app_id: app.state for app in living.values()}
    return world, found


def at_every_step(
    workload: Workload,
    expected: dict[str, str] | None = None,
    *,
    preempted: str = "",
    **options: Any,
) -> None:
    """Restart either side after each step of the undisturbed run.

    With every second restart the answers of that step are lost. Where one message order loses them, the other
    does not.
    """
    calm, undisturbed = outcomes(workload, **options)
    if expected is not None:
        assert undisturbed == expected
    first = options.get("message_order") == "design"
    for step in range(3, calm.steps + 1):
        for number, kind in enumerate(RESTARTS, first + step):
            fault = Fault(kind, unheard=number % 2 == 1)
            try:
                world, found = outcomes(workload, {step: fault}, **options)
            except (SimulationError, AssertionError) as error:
                error.add_note(f"at step {step}: {fault}")
                raise
            assert world.happened == {step: fault} or not world.happened
            if kind == RESTART_MANAGER and found.get(preempted) == "failed":
                found[preempted] = undisturbed[preempted]
            assert found == undisturbed, f"at step {step}: {fault}"


# -- the flows of the design document, at every step -----------------------------------------------


def crowded(busy_s: int = 100) -> Workload:
    """The gang finds room for two of its three pods, and for all of them later."""
    return workload((3,), job("a", 0, busy_s, (1, 1)), job("g", 1, 50, (3, 1)))


GANG = workload((3,), job("g", 0, 100, (3, 1)))
SEVERAL = job("g", 0, 60, (1, 2), (2, 1)), job("h", 1, 60, (2, 2)), job("a", 2, 30, (1, 1))
TIMES_OUT = {"gang_admission": "incremental", "placeholder_timeout_s": 30}
KEYS_ONLY = {**TIMES_OUT, "ask_form": "allocation"}
# fmt: off
FLOWS: dict[str, tuple[Workload, dict[str, str] | None, dict[str, Any]]] = {
    "an ordinary job": (workload((4,), job("a", 0, 100, (3, 1)), job("b", 5, 50, (2, 1))),
        {"a": "completed", "b": "completed"}, {}),
    "a gang starts and ends": (GANG, {"g": "completed"}, {}),
    "a gang by request": (GANG, {"g": "completed"}, {"by_request": True}),
    "a gang times out softly": (crowded(), {"a": "completed", "g": "completed"}, TIMES_OUT),
    # it may be killed later than without the restart, as the new scheduler waits from the start
    "a gang times out hard": (crowded(1000), {"a": "completed", "g": "failed"}, {**TIMES_OUT, "gang_style": "Hard"}),
    # a manager that asks and reports with allocations, and names none of them by its UUID
    "nothing but keys, soft": (crowded(), None, KEYS_ONLY),
    "nothing but keys, hard": (crowded(), None, {**KEYS_ONLY, "gang_style": "Hard"}),
}
# fmt: on


@pytest.mark.parametrize("flow", FLOWS)
def test_g45_x45_i7_i8_a_restart_at_every_step_of(order: str, flow: str) -> None:
    jobs, expected, options = FLOWS[flow]
    at_every_step(jobs, expected, message_order=order, **options)


@pytest.mark.parametrize(
    ("jobs", "options"),
    [(workload((2, 2), *SEVERAL), {}), (GANG, {"lose": 0.4, "repeat": 0.4, "seed": 3})],
    ids=["gangs with several groups wait for one another", "confirmations get lost or come twice"],
)
def test_s4_i7_i8_a_restart_at_every_step_while(jobs: Workload, options: dict[str, Any]) -> None:
    at_every_step(jobs, {each.job_id: "completed" for each in jobs.jobs}, **options)


@pytest.mark.parametrize("pods", [1, 4])
def test_i7_i8_restarts_around_preemption(pods: int) -> None:
    """What was asked back is asked back again, or its pod is gone and its place free (X32)."""
    jobs = job("long", 0, 300, (pods, 4 // pods)), job("short", 50, 20, (1, 4), queue="mine")
    mine = "{name: mine, resources: {guaranteed: {vcore: 4, memory: 4Gi}}, %s}"
    config = queues_below_root(f"[{{name: q}}, {mine % 'properties: {preemption.delay: 1s}'}]")
    expected = {"long": "completed", "short": "completed"}
    at_every_step(workload((4,), *jobs), expected, preempted="long", config=config)


@pytest.mark.parametrize("first", RESTARTS)
@pytest.mark.parametrize("second", RESTARTS)
def test_i8_a_restart_in_the_middle_of_a_restart(first: str, second: str) -> None:
    """Each step of the resynchronisation is a step as well."""
    jobs = workload((3,), job("g", 0, 100, (2, 1)), job("a", 0, 50, (1, 1)))
    calm, undisturbed = outcomes(jobs)
    for step in range(3, calm.steps + 1, 2):
        for later in (1, 2, 3, 4, 5):
            faults = {step: Fault(first), step + later: Fault(second, unheard=True)}
            _, found = outcomes(jobs, faults)
            assert found == undisturbed, faults


# -- nodes that vanish -----------------------------------------------------------------------------


def test_i32_a_lost_node_takes_its_pods_and_a_gathering_gang_gets_another_placeholder() -> None:
    jobs = workload((2, 2), job("a", 0, 100, (1, 2)), job("b", 1, 100, (1, 2)))
    calm, _ = outcomes(jobs)
    world, found = outcomes(jobs, {calm.steps // 2: Fault(LOSE_NODE, node="n1")})
    assert sorted(found.values()) == ["completed", "failed"]
    assert list(world.nodes) == ["n2"]
    # A lost placeholder is no lost work: the resource manager makes a new one.
    jobs = workload((2, 2), job("g", 0, 60, (4, 1)))
    for step in range(4, 8):
        world, found = outcomes(jobs, {step: Fault(LOSE_NODE, node="n1", back_s=10)})
        assert found == {"g": "completed"}, step
        assert sorted(world.nodes) == ["n1", "n2"]


def test_a_node_that_is_not_there_cannot_be_lost() -> None:
    _, found = outcomes(workload((2,), job("a", 0, 10)), {4: Fault(LOSE_NODE, node="n9")})
    assert found == {"a": "completed"}


# -- anything --------------------------------------------------------------------------------------


def arbitrary(rng: random.Random) -> Workload:
    """A small cluster and a few jobs, each of which fits into it by itself."""
    size = rng.randint(1, 2)
    nodes = tuple(size * rng.randint(1, 3) for _ in range(rng.randint(1, 3)))
    room = sum(nodes) // size
    jobs = []
    for at in range(rng.randint(1, 6)):
        pods = rng.randint(1, room)
        counts = (pods - 1, 1) if pods > 1 and rng.random() < 0.4 else (pods,)
        groups = [(count, size) for count in counts]
        jobs.append(job(f"j{at}", rng.randint(0, 60), rng.randint(0, 90), *groups))
    jobs.sort(key=lambda each: each.submit_s)
    queue = QueueSpec("q", max={"vcore": 1000 * size * room})
    return workload(nodes, *jobs, queues=(queue,))


def restarts_of(rng: random.Random, steps: int) -> dict[int, Fault]:
    return {
        rng.randint(3, steps + 10): Fault(rng.choice(RESTARTS), rng.random() < 0.5)
        for _ in range(rng.randint(1, 4))
    }


def options_of(rng: random.Random) -> dict[str, Any]:
    return {
        "by_request": rng.random() < 0.5,
        "message_order": rng.choice(("design", "k8shim")),
        "node_sort": rng.choice(("fair", "binpacking")),
        "policy": rng.choice(("fifo", "stateaware")),
        "lose": rng.choice((0.0, 0.0, 0.3)),
        "repeat": rng.choice((0.0, 0.0, 0.3)),
        "seed": rng.randint(1, 1000),
    }


def live_through(rng: random.Random) -> None:
    """Any restarts: every job ends as it would have ended without them."""
    jobs, options = arbitrary(rng), options_of(rng)
    calm, undisturbed = outcomes(jobs, **options)
    assert set(undisturbed.values()) == {"completed"}
    faults = restarts_of(rng, calm.steps)
    _, found = outcomes(jobs, faults, **options)
    assert found == undisturbed, faults


def live_through_losses(rng: random.Random) -> None:
    """Nodes vanish and come back as well: every job has its end, and nothing is left of any."""
    jobs, options = arbitrary(rng), options_of(rng)
    calm, _ = outcomes(jobs, **options)
    faults = restarts_of(rng, calm.steps)
    for _ in range(rng.randint(1, 3)):
        name = rng.choice(jobs.nodes).name
        faults[rng.randint(3, calm.steps)] = Fault(LOSE_NODE, node=name, back_s=rng.randint(1, 40))
    outcomes(jobs, faults, **options)


EXAMPLES = settings(settings.default, max_examples=min(settings.default.max_examples, 40))


@EXAMPLES
@given(rng=st.randoms(use_true_random=False))
@pytest.mark.parametrize("live", [live_through, live_through_losses])
def test_i7_i8_any_restarts(live: Callable[[random.Random], None], rng: random.Random) -> None:
    live(rng)


@pytest.mark.slow
@settings(settings.default, suppress_health_check=[HealthCheck.too_slow])
@given(rng=st.randoms(use_true_random=False))
def test_i7_i8_as_many_as_the_profile_wants(rng: random.Random) -> None:
    live_through(rng)
    live_through_losses(rng)


#: these take every branch of core, sim and fsm that any of 0 to 19 and of 100 to 499 takes
KNOWN = (*range(20), 137, 230, 270, 278, 306, 311, 319, 344, 378, 404, 414, 496)


@pytest.mark.parametrize("seed", KNOWN)
def test_i7_i8_known_restarts(seed: int) -> None:
    live_through(random.Random(seed))
    live_through_losses(random.Random(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_030))
def test_i7_i8_many_restarts(seed: int) -> None:
    live_through(random.Random(seed))
    live_through_losses(random.Random(seed))
