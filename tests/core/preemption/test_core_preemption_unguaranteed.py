"""Who loses allocations for a guarantee, and to whom: what is not guaranteed is not protected (5.9)."""

from typing import Any

import pytest
from preemption_side import (
    TWO_QUEUES,
    after,
    ask,
    explained,
    filled,
    news,
    preempted,
    reserved,
    victims,
)
from tree_side import below, most, tree

from quadriga.core import Options
from quadriga.sim.scripted.script import Script

LOW_HAS_NONE = TWO_QUEUES.replace("low, resources: {guaranteed: {vcore: 2m}}", "low")


def queues(*each: str) -> str:
    """A configuration with these queues below root, and a delay of one second everywhere."""
    return tree(*each, root="submitacl: '*', properties: {preemption.delay: 1s}")


def granted(vcore: int, limit: int = 0, more: str = "") -> str:
    """Resources of a queue, to follow its name; and properties."""
    own = f"max: {{vcore: {limit}m}}, " if limit else ""
    properties = f", properties: {{{more}}}" if more else ""
    return f", resources: {{{own}guaranteed: {{vcore: {vcore}m}}}}{properties}"


FENCE = "preemption.policy: fence"


class Jobs:
    """Jobs that keep as many tasks as they can: a task that is preempted comes back as a new one."""

    def __init__(self, config: str, *sizes: int, options: Options | None = None) -> None:
        self.script = Script(config, options=options)
        self.tasks = 0
        self.victims: list[str] = []
        for number, size in enumerate(sizes, 1):
            self.script.node(f"n{number}", vcore=size)

    def submit(self, app: str, queue: str, tasks: int, *, vcore: int = 1, **more: Any) -> None:
        if app not in self.script.scheduler.partition().applications:
            self.script.app(app, f"root.{queue}")
        for _ in range(tasks):
            self.tasks += 1
            ask(self.script, app, f"{app}-{self.tasks}", vcore=vcore, **more)
        self.script.schedule()

    def run(self, seconds: int = 120) -> dict[str, int]:
        """The number of running tasks of each application after this time."""
        for _ in range(seconds):
            gone = preempted(self.script.schedule())
            self.victims += gone
            if gone:
                self.script.confirm()
            for victim in gone:
                app = victim.partition("/")[0]
                self.tasks += 1
                ask(self.script, app, f"{app}-{self.tasks}", vcore=1)
            self.script.advance(1)
        apps = self.script.scheduler.partition().applications.values()
        return {app.app_id: len(app.allocations) for app in apps}


def test_5_9_such_a_queue_is_protected_up_to_its_quotas_for_what_is_asked_for() -> None:
    options = Options(journal_size=None, preempt_unguaranteed=False)
    jobs = Jobs(LOW_HAS_NONE, 4, options=options)
    jobs.submit("low", "low", 4)
    jobs.submit("high", "high", 4)
    assert jobs.run() == {"low": 4, "high": 0}
    script = filled(LOW_HAS_NONE.replace("{vcore: 4m}", "{memory: 4}"))
    assert victims(script, seconds=100) == []
    assert explained(script) == "nothing of what it asks for is guaranteed to root.high"


def test_5_9_asks_that_wait_for_their_victims_count_as_usage() -> None:
    """Otherwise each would find that the queue is still below its guarantee."""
    script = filled(LOW_HAS_NONE.replace("4m", "2m"), nodes=4)
    assert len(victims(script, *(f"h{n}" for n in range(4)))) == 2
    assert sorted(reserved(script).values()) == ["high/h0", "high/h1"]
    text = explained(script, "high", "h2")
    assert text.startswith("root.high would be 1m CPU above what is guaranteed to it, with what")
    script.confirm()
    assert len(news(script.schedule())) == 2
    assert after(script, 60) == []


INSIDE = queues(f"top{granted(4)}, {below('owner' + granted(2), 'guest')}", "other")


@pytest.mark.parametrize("size", [4, 6])
def test_5_9_a_queue_takes_its_guarantee_from_others_below_the_same_parent(size: int) -> None:
    """The guarantee of their parent protects neither from the other, also where it uses more."""
    jobs = Jobs(INSIDE, size)
    jobs.submit("guest", "top.guest", size)
    jobs.submit("owner", "top.owner", 4)
    assert jobs.run() == {"guest": size - 2, "owner": 2}


def test_5_9_tasks_that_come_back_preempt_nobody() -> None:
    config = queues("a" + granted(3), "b" + granted(2), "c", "d, resources: {guaranteed: {gpu: 1}}")
    jobs = Jobs(config, *[2] * 4)
    for name in "dcba":
        jobs.submit(name, name, 8)
    running = jobs.run(300)
    assert (running["a"], running["b"]) == (3, 2)
    assert len(jobs.victims) == 5


# -- the examples of YuniKorn's documentation ------------------------------------------------------

TENANTS = (
    "normal" + granted(3),
    "high" + granted(3, more="priority.offset: '1000'"),
    "low, properties: {priority.offset: '-1000'}",
)
EXAMPLE = queues(
    f"sandbox{most(10)}, "
    + below(
        f"tenants, properties: {{{FENCE}}}, {below(*TENANTS)}",
        "system, " + below("low, properties: {priority.offset: '-9999'}"),
    )
)


@pytest.mark.parametrize("nodes", [(20,), (1,) * 16], ids=str)
def test_5_9_priorities_with_a_fence_as_in_yunikorns_example(nodes: tuple[int, ...]) -> None:
    jobs = Jobs(EXAMPLE, *nodes)
    jobs.submit("outside", "sandbox.system.low", 5)
    jobs.submit("low", "sandbox.tenants.low", 5)
    jobs.submit("normal", "sandbox.tenants.normal", 10)
    assert jobs.run() == {"outside": 5, "low": 2, "normal": 3}
    jobs.script.remove_app("low")
    assert jobs.run() == {"outside": 5, "normal": 5}
    jobs.submit("high", "sandbox.tenants.high", 10)
    assert jobs.run() == {"outside": 5, "normal": 3, "high": 2}
    jobs.script.remove_app("normal")
    assert jobs.run() == {"outside": 5, "high": 5}
    jobs.submit("urgent", "sandbox.tenants.normal", 10, priority=9999)
    assert jobs.run() == {"outside": 5, "high": 3, "urgent": 2}


def test_5_9_yunikorns_table_of_fences() -> None:
    tenants = (
        f"ten-a{granted(5, 15, FENCE)}, "
        + below("one" + granted(2, 15), "two" + granted(2, 15, FENCE)),
        f"ten-b{granted(10, 15, FENCE)}, " + below("three" + granted(10, 15)),
        "sys" + granted(10, 15),
    )
    jobs = Jobs(queues(f"rt{most(30)}, properties: {{{FENCE}}}, {below(*tenants)}"), 30)
    jobs.submit("one", "rt.ten-a.one", 15)
    jobs.submit("two", "rt.ten-a.two", 15)
    jobs.submit("three", "rt.ten-b.three", 15)
    jobs.submit("sys", "rt.sys", 15)
    assert jobs.run(200) == {"one": 10, "two": 0, "three": 10, "sys": 10}
