"""The planned start of the protected gang (Q9 to Q11), in small clusters where the test ends what runs."""

from collections.abc import Iterator
from random import Random

import pytest
from core_world import news, queues, scripted
from hypothesis import given, settings
from hypothesis import strategies as st

from quadriga.core import Options
from quadriga.core.gangs import planned_start
from quadriga.core.model import predictions
from quadriga.core.model.gang import PlannedStart
from quadriga.sim.scripted.script import Script

SECOND = 1_000_000_000
AFTER = 60
YEAR = 365 * 86_400


class World:
    """Nodes of four vcores. Each job ends when it has run for as long as it does, and tells ``told``."""

    def __init__(self, nodes: int = 4, **properties: str) -> None:
        both = {"gang.gather.after": f"{AFTER}s", **properties}
        root = ", ".join(f"{name}: '{value}'" for name, value in both.items())
        names = tuple(f"n{at}" for at in range(nodes))
        self.script: Script = scripted(
            queues("default", root=f"properties: {{{root}}}"),
            nodes=names,
            options=Options(journal_size=None, gang_admission="atomic"),
            vcore=4,
        )
        self.script.check = False
        self.now = 0
        self.runs: dict[str, int] = {}
        self.waits: dict[str, int] = {}
        self.started: dict[str, int] = {}
        self._ends: list[tuple[int, str, str]] = []

    def submit(self, name: str, pods: int, vcore: int, runs: int, told: int | None) -> None:
        """A job; one of several pods is a gang of real asks."""
        tags = {"expected.runtime": f"{told}"} if told is not None else {}
        if pods > 1:
            tags["gang.placeholders"] = "none"
        gang = {"vcore": pods * vcore} if pods > 1 else None
        self.script.app(name, gang=gang, tags=tags)
        self.script.ask(name, *(f"p{at}" for at in range(pods)), vcore=vcore)
        self.runs[name], self.waits[name] = runs, pods

    def decide(self) -> list[str]:
        """Make all decisions; return the jobs that have started."""
        began = []
        for line in news(self.script.schedule()):
            name, uuid = line.split()[0].split("/")
            self._ends.append((self.now + self.runs[name], name, uuid))
            if name not in self.started:
                self.started[name] = self.now
                began.append(name)
            self.waits[name] -= 1
        return began

    def step(self, seconds: int) -> list[str]:
        """Let this time pass: what is due ends first."""
        self.now += seconds
        self.script.advance(seconds)
        for each in sorted(self._ends):
            if each[0] <= self.now:
                self._ends.remove(each)
                self.script.release(each[1], each[2])
        return self.decide()

    @property
    def plan(self) -> PlannedStart | None:
        return self.script.scheduler.partition().node_index.planned

    def overbooked(self) -> Iterator[str]:
        """The nodes of the plan that have too little at its start, by what is expected of all that runs."""
        plan = self.plan
        if plan is None:
            return
        for node, need in plan.needs.items():
            left = list(node.total)
            for each in node.allocations:
                expected = predictions.expected_end(each, self.now * SECOND)
                if expected is None or expected.time > plan.start:
                    left = [had - used for had, used in zip(left, each.vector, strict=False)]
            if any(had < asked for had, asked in zip(left, need, strict=False)):
                yield f"{node.node_id} at {plan.start // SECOND}: {left} for {need}"


def test_q9_what_ends_before_the_start_or_fits_beside_uses_the_nodes() -> None:
    world = World(2)
    world.submit("long", 1, 4, 1000, 1000)
    world.submit("short", 1, 2, 500, 500)
    world.decide()
    world.submit("wide", 2, 3, 10, 10)
    world.decide()
    world.step(AFTER)
    assert world.plan is not None
    assert (world.plan.start // SECOND, len(world.plan.needs)) == (1000, 2)
    world.submit("late", 1, 2, 941, 941)  # a second too long
    world.submit("beside", 1, 1, YEAR, None)
    world.submit("punctual", 1, 1, 896, 896)
    assert world.step(0) == ["beside", "punctual"]
    assert world.step(440) == []
    assert world.step(500) == ["wide"]
    assert world.plan is None


def test_q16_a_plan_looks_at_a_bounded_number_of_allocations_and_rests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten of twenty nodes are examined, those with the most room now, and a plan is made again after a rest."""
    monkeypatch.setattr(planned_start, "_MOST_EXAMINED", 20)
    monkeypatch.setattr(planned_start, "_FEW_EXAMINED", 0)
    monkeypatch.setattr(planned_start, "_REST_FOR_EACH", SECOND)
    world = World(20)
    for at in range(20):  # the later, the more room, and the longer it runs
        world.submit(f"job-{at:02}", 1, 4 if at < 10 else 3, 1000 + at, 1000 + at)
        world.decide()
    world.submit("wide", 2, 4, 10, 10)
    world.decide()
    world.step(AFTER)
    first = world.plan
    assert first is not None
    assert first.start // SECOND == 1011
    assert (len(first.ends), first.again) == (10, (AFTER + 20) * SECOND)
    world.submit("brief", 1, 1, 5, 5)
    world.step(1)
    world.step(5)  # room came back
    assert world.plan is first
    assert first.stale
    world.step(14)  # without any other event
    assert world.plan is not first
    assert world.step(960) == ["wide"]


def test_q9_explain_and_the_gang_itself_say_when_and_where_it_starts() -> None:
    world = World(2)
    world.submit("one", 1, 4, 1000, 1000)
    world.decide()
    world.submit("wide", 2, 4, 10, 10)
    world.decide()
    world.step(AFTER)
    said = world.script.scheduler.explain("wide", "p0").verdict
    assert (
        "its start is planned in 940 s on n0, n1, which one use until then (expected ends: 1 told)"
        in said
    )
    world.submit("late", 1, 1, 10, 10_000)
    world.decide()
    said = world.script.scheduler.explain("late", "p0").verdict
    assert said.startswith(
        "Each node with room for it is kept for the gang wide, whose start is planned in 940 s"
    )


def random_jobs(random: Random, world: World, number: int, told: object) -> None:
    """Jobs of one pod, and gangs that fit the cluster, over some minutes."""
    for at in range(number):
        runs = 10 * random.randint(1, 30)
        pods, vcore = random.choice(
            ((1, 1), (1, 2), (1, 4), (2, 4), (4, 3), (3, 4), (8, 2), (6, 1))
        )
        wrong = {
            "right": runs,
            "nothing": None,
            "wrong": random.choice((1, YEAR, runs * 100, -(-runs // 100))),
        }
        world.submit(f"j{at:03}", pods, vcore, runs, wrong[str(told)])
        world.step(random.choice((0, 0, 10, 20)))


@given(st.integers(min_value=0, max_value=2**32))
@settings(max_examples=max(3, settings.default.max_examples // 20), deadline=None)
def test_q9_with_right_estimates_no_plan_overbooks_and_no_start_is_late(seed: int) -> None:
    random = Random(seed)
    world = World()
    promised: dict[str, int] = {}
    random_jobs(random, world, 20, "right")
    while any(world.waits.values()):
        for name in world.step(10):
            assert world.now <= promised.get(name, world.now), name
        assert not list(world.overbooked())
        if (plan := world.plan) is not None:
            promised.setdefault(plan.app.app_id, plan.promised // SECOND)
        assert world.now < 20_000
    assert promised


@pytest.mark.parametrize("told", ["nothing", "wrong"])
def test_q9_every_job_ends_whatever_is_told(told: str) -> None:
    """Nothing, a second, a year, a hundredth or a hundred times of what is true."""

    @given(st.integers(min_value=0, max_value=2**32))
    @settings(max_examples=max(3, settings.default.max_examples // 20), deadline=None)
    def check(seed: int) -> None:
        world = World()
        random_jobs(Random(seed), world, 20, told)
        while any(world.waits.values()):
            world.step(60)
            assert world.now < 200_000
        assert not world.script.scheduler.check()

    check()
