"""What waits longest for a quota or a limit has a planned start there (Q12)."""

from collections.abc import Callable

import pytest
from core_world import news, queues, scripted
from event_lines import RecordReader

from quadriga.core import Options
from quadriga.core.model.account import QuotaPlan
from quadriga.core.model.gather_budget import GATHERINGS
from quadriga.core.model.queue import Queue
from quadriga.core.resources.locality import REQUIRED
from quadriga.sim.scripted.script import Script

QUOTA = "resources: {max: {vcore: 10m}}"
LIMIT = "limits: [{limit: x, users: ['*'], maxresources: {vcore: 10m}}]"


class World:
    """A queue or a user may use ten vcores of a hundred. Jobs of one vcore come each minute and use all ten."""

    def __init__(
        self, bound: str = QUOTA, told: int | None = None, vcore: int = 50, **properties: str
    ) -> None:
        both = {"gang.gather.after": "1h", **properties}
        words = ", ".join(f"{name}: '{value}'" for name, value in both.items())
        config = queues("a", "b", root=f"properties: {{{words}}}", a=bound)
        options = Options(journal_size=None, gang_admission="atomic")
        self.script: Script = scripted(config, nodes=("n1", "n2"), options=options, vcore=vcore)
        self.script.check = False
        self.told = told
        self.others = 0
        self.now = 0
        self.started: list[str] = []
        self._ends: dict[int, list[tuple[str, str]]] = {}

    def submit(
        self,
        name: str,
        pods: int,
        vcore: int,
        told: int | None = None,
        priority: int = 0,
        queue: str = "a",
        **tags: str,
    ) -> None:
        """A job; one of several pods is a gang of real asks."""
        if told:
            tags["expected.runtime"] = f"{told}"
        gang = None
        if pods > 1:
            tags["gang.placeholders"], gang = "none", {"vcore": pods * vcore}
        self.script.app(name, f"root.{queue}", gang=gang, tags=tags)
        keys = [f"p{at}" for at in range(pods)]
        self.script.ask(name, *keys, priority=priority, vcore=vcore)

    def run(self, minutes: int, until: str = "-", runs: int = 10) -> int:
        """Let a job come each minute, which ends after ``runs``; return the minute at which the job ``until``
        starts, or the last one."""
        for _ in range(minutes):
            self.submit(f"j{self.now}", 1, 1, self.told)
            for at in range(self.others):
                self.submit(f"jb{at}-{self.now}", 1, 1, queue="b")
            for line in news(self.script.schedule()):
                name, uuid = line.split()[0].split("/")
                self.started.append(name)
                if name[0] == "j":
                    self._ends.setdefault(self.now + runs, []).append((name, uuid))
            if until in self.started:
                break
            self.now += 1
            self.script.advance(60)
            for name, uuid in self._ends.pop(self.now, ()):
                self.script.release(name, uuid)
        return self.now

    @property
    def queue(self) -> Queue:
        return self.script.scheduler.partition().root.children["a"]

    @property
    def plan(self) -> QuotaPlan | None:
        return self.queue.plan


def gang(world: World) -> None:
    world.submit("wide", 8, 1)


def single(world: World) -> None:
    world.submit("wide", 1, 8, priority=9)


@pytest.mark.parametrize("bound", [QUOTA, LIMIT])
@pytest.mark.parametrize("submit", [gang, single])
def test_q12_what_waits_longest_for_its_quota_or_limit_is_not_passed_for_ever(
    bound: str, submit: Callable[[World], None]
) -> None:
    """After an hour nothing that ends too late is placed before it: it starts when seven of nine jobs have ended."""
    world = World(bound)
    world.run(20)
    submit(world)
    assert world.run(90, "wide") == 20 + 60 + 7
    world.run(10)
    assert world.started[-1] != "wide"  # the others go on behind it


def test_q12_asks_that_fit_on_no_node_keep_nobody_from_a_plan() -> None:
    """A search tries eight waiters, and those that it tried in vain rest."""
    world = World()
    world.run(20)
    for at in range(20):
        world.script.app(f"never{at}", "root.a")
        world.script.ask(f"never{at}", "p0", priority=99, vcore=10, memory=1 << 40)
    single(world)
    assert world.run(90, "wide") == 20 + 60 + 7 + 2  # the third search finds it


def test_q12_what_ends_before_the_planned_start_uses_the_quota_meanwhile() -> None:
    """Jobs that tell that they end in a minute go on. Those that run are told to end in ten, and so they do."""
    world = World(told=600)
    world.run(20)
    gang(world)
    world.run(60)
    assert world.plan is None
    world.told = 60
    assert world.run(30, "wide", runs=1) == 20 + 60 + 7
    assert {f"j{at}" for at in range(80, 86)} < set(world.started)


def test_q12_what_fits_beside_the_planned_start_is_placed_and_explain_tells_of_both() -> None:
    """Of the four that are free, two are left when the gang has its eight at the end of the first job."""
    world = World()
    world.submit("long", 1, 6, told=7200)
    assert news(world.script.schedule())
    gang(world)
    world.script.schedule()
    world.script.advance(3700)
    world.submit("small", 1, 2)
    world.submit("late", 1, 1)
    assert news(world.script.schedule()) == ["small/p0-0 on n1"]
    explain = world.script.scheduler.explain
    said = "start is planned in 3500 s"
    assert f"queue root.a is kept for application wide, whose {said}" in str(explain("wide", "p0"))
    verdict = f"Queue root.a is kept for application wide, whose {said}, and it may run until then."
    assert explain("late", "p0").verdict == verdict


def test_q12_no_quota_is_kept_longer_than_the_budget_and_the_patience_allow() -> None:
    """Half of what runs does not end as was told: ten minutes after its planned start the gang rests."""
    world = World(told=600, **{"gang.gather.patience": "10m", "gang.gather.budget": "0.001%"})
    records = RecordReader(world.script)
    world.run(20)
    gang(world)
    world.run(55)
    world.run(20, runs=1000)
    assert world.plan is not None
    kept = "the quota of queue 'root.a'"
    budget = "and the budget for idle capacity has 0.00 hours of the whole quota left"
    assert records.new_lines("APP NONE wide (Start", "APP NONE wide (Nothing") == [
        f"APP NONE wide (Start is planned in 420 s, and until then {kept} is kept, {budget})"
    ]
    world.run(5, runs=1000)
    assert world.plan is None
    why = "its planned start came no nearer in all its patience"
    said = f"APP NONE wide (Nothing of {kept} is kept any more: {why})"
    assert said in records.new_lines("APP NONE wide")
    assert world.queue.budget is not None
    assert world.queue.budget.spent(60 * world.now * 1_000_000_000)
    world.run(60)
    assert world.plan is None
    counts = world.script.scheduler.partition().waiting.quota_counts
    assert [counts[e] for e in GATHERINGS] == [1, 0, 1, 2]  # the gang, and a job after an hour


def test_q12_a_gang_without_nodes_at_its_planned_start_keeps_the_quota_for_its_start() -> None:
    """Jobs of another queue fill the nodes. Quota and nodes are free for the gang one after the other, within twenty
    minutes."""
    world = World(vcore=8, **{"gang.gather.budget": "10%", "gang.gather.patience": "2m"})
    world.others = 2
    world.run(20)
    world.submit("wide", 2, 5)
    assert world.run(150, "wide") < 20 + 60 + 25


def test_q12_a_gang_that_starts_one_by_one_and_ends_before_its_plan_passes_the_gate() -> None:
    """Seven of ten are in use for two hours, and the single ask needs all: a gang of three for a minute may run."""
    world = World(**{"gang.admission": "whole"})
    world.submit("long", 1, 7, told=7200)
    assert news(world.script.schedule())
    world.submit("wide", 1, 10)
    world.script.schedule()
    world.script.advance(3700)
    world.script.schedule()
    assert world.plan is not None
    for name, told in (("late", "7200"), ("short", "60")):
        world.script.app(name, "root.a", gang={"vcore": 3}, tags={"expected.runtime": told})
        world.script.ask(name, *"xyz", group="g", placeholder=True, vcore=1)
    assert len(news(world.script.schedule())) == 3
    assert len(world.script.scheduler.application("short").placeholders) == 3


def test_q13_no_quota_is_kept_for_a_gang_that_fits_the_cluster_and_no_domain() -> None:
    """The gang requires a level that no node has."""
    world = World()
    world.run(20)
    world.submit("wide", 2, 4, **{REQUIRED: "rack"})
    world.run(70)
    assert world.plan is None
