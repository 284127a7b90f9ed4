"""The incremental audit agrees with the full check, and finds violations made on purpose."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from core_steps import serve, submit
from core_world import queues
from everything_life import Life

from quadriga.core import Options, Scheduler
from quadriga.core.model.partition import Partition
from quadriga.sim.scripted.script import Script

CONFIG = queues(
    *("a.b", "a.c", "d"),
    a_b="limits: [{users: [ann, '*'], maxresources: {vcore: 90}}]",
    d="maxapplications: 3",
)


def middle(every: int = 1000) -> Script:
    """Halfway: running applications, a gang with a replacement in flight, asks that wait."""
    script = Script(CONFIG, check=False, options=Options(journal_size=None, audit_every=every))
    for name in ("n1", "n2"):
        script.node(name, vcore=8000, memory=80)
    for app, queue in (("one", "root.a.b"), ("two", "root.a.c"), ("three", "root.d")):
        submit(script, app, "x", "y", user="ann", queue=queue, vcore=1000, memory=1)
    script.app("gang", "root.a.b", user="bob", gang={"vcore": 4000})
    serve(script, "gang", "p", "q", group="g", placeholder=True, vcore=2000)
    script.ask("gang", "r", group="g", vcore=1000)
    serve(script, "two", "huge", vcore=90_000)
    assert script.outstanding
    assert script.scheduler.audit() == script.scheduler.check() == []
    return script


def app(partition: Partition, name: str) -> Any:
    return partition.applications[name]


def bump(book: list[int]) -> None:
    book[0] += 1


def lose(partition: Partition) -> None:
    allocation = app(partition, "one").allocations["x-0"]
    del allocation.node.allocations[allocation]


def another_node(partition: Partition) -> None:
    allocation = app(partition, "one").allocations["x-0"]
    allocation.node = next(n for n in partition.nodes.values() if n is not allocation.node)


def group_of(partition: Partition) -> Any:
    return app(partition, "gang").gang.task_groups["g"]


def change(thing: Any, name: str, value: Any) -> None:
    """To this value; a number grows by it."""
    now = getattr(thing, name)
    setattr(thing, name, now + value if isinstance(now, int) else value)


#: what is broken on purpose, and the application whose next step must show it
BROKEN: dict[str, tuple[str, Callable[[Partition], None]]] = {
    "leaf allocated": ("one", lambda p: bump(app(p, "one").queue.allocated)),
    "parent allocated": ("two", lambda p: bump(app(p, "one").queue.parent.allocated)),
    "root pending": ("three", lambda p: bump(p.root.pending)),
    "leaf promised": ("gang", lambda p: bump(app(p, "gang").queue.reserved_headroom)),
    "root preempting": ("three", lambda p: bump(p.root.preempting)),
    "parent running": ("two", lambda p: change(app(p, "one").queue.parent, "running", 1)),
    "application allocated": ("one", lambda p: bump(app(p, "one").allocated)),
    "application pending": ("two", lambda p: bump(app(p, "two").pending)),
    "placeholders": ("gang", lambda p: bump(app(p, "gang").allocated_placeholder)),
    "user": ("one", lambda p: bump(app(p, "one").ledgers[0].usage)),
    "user's applications": ("one", lambda p: app(p, "one").ledgers[0].running.clear()),
    "capacity": ("one", lambda p: bump(p.capacity)),
    "allocation on no node": ("one", lose),
    "allocation on the wrong node": ("one", another_node),
    "reason without a release": (
        "one",
        lambda p: change(app(p, "one").allocations["x-0"], "reason", "timeout"),
    ),
    "parked for nothing": ("gang", lambda p: change(app(p, "gang").asks["r"], "planned", None)),
    "task group pending": ("gang", lambda p: change(group_of(p), "pending", 1)),
    "task group count": ("gang", lambda p: change(group_of(p), "count", 1)),
    "application mask": (
        "two",
        lambda p: change(app(p, "two"), "demand_below", -app(p, "two").demand_below),
    ),
    "lane mask": ("two", lambda p: change(app(p, "two").above, "demand_below", 1 << 40)),
    "leaf mask": ("two", lambda p: change(app(p, "two").queue, "demand_below", 1 << 40)),
}


def touch(script: Script, name: str) -> None:
    """The application's next step, in which nothing that is broken gets right by chance."""
    script.ask(name, "more", vcore=95_000)


@pytest.mark.parametrize("what", BROKEN)
def test_a_violation_is_found_near_at_once_and_elsewhere_in_a_full_check(what: str) -> None:
    near, break_it = BROKEN[what]
    script = middle()
    break_it(script.scheduler.partition())
    touch(script, near)
    found = script.scheduler.audit()
    assert found
    assert set(script.scheduler.check()) <= set(found)
    script = middle(every=6)
    break_it(script.scheduler.partition())
    far = next(name for name in ("three", "two", "one") if name != near)
    for number in range(6):
        script.ask(far, f"more-{number}", vcore=95_000)
        if found := script.scheduler.audit():
            break
    assert set(found) == set(script.scheduler.check())


@pytest.mark.parametrize("book", ["available", "allocated"])
def test_a_node_is_checked_when_something_changes_on_it(book: str) -> None:
    script = middle()
    node = app(script.scheduler.partition(), "one").allocations["x-0"].node
    bump(getattr(node, book))
    script.release("one", "x-0")
    found = script.scheduler.audit()
    assert any("V2" in text and node.node_id in text for text in found)
    assert set(script.scheduler.check()) <= set(found)


def test_6_1_batches_of_decisions_cause_no_full_check() -> None:
    """Batches of placements, repeated asks and consecutive replacements fire many triggers at once."""
    script = Script(CONFIG, check=False, options=Options(audit_every=10_000))
    for at in range(20):
        script.node(f"n{at}", vcore=100_000)
    assert script.scheduler.audit() == []
    audit: Any = script.scheduler._audit
    walks = audit.walks
    script.app("one", "root.a.b", user="ann")
    script.app("gang", "root.a.c", user="bob", gang={"vcore": 300})
    script.ask("one", *(f"k{at}" for at in range(80)), vcore=1)
    script.ask("gang", *(f"p{at}" for at in range(300)), group="g", placeholder=True, vcore=1)
    assert script.scheduler.audit() == []
    while script.scheduler.unfinished or not script.scheduler.tally.rounds:
        script.schedule(100)
        assert script.scheduler.audit() == []
    serve(script, "gang", *(f"m{at}" for at in range(300)), group="g", vcore=1)
    assert script.scheduler.audit() == []
    script.confirm()
    assert script.scheduler.audit() == []
    assert len(script.scheduler.application("gang").allocations) == 300
    assert len(script.scheduler.application("one").allocations) == 80
    assert (audit.walks, audit.doubts) == (walks, 0)
    assert script.scheduler.check() == []


def test_v8_an_ended_application_is_checked_once_more() -> None:
    script = middle()
    ending = app(script.scheduler.partition(), "one")
    script.remove_app("one")
    bump(ending.allocated)
    assert any(text.startswith("[rm]default: V8") for text in script.scheduler.audit())


def test_a_change_without_a_trigger_causes_a_full_check_and_no_violation() -> None:
    script = middle()
    audit: Any = script.scheduler._audit
    before = audit.doubts
    partition = script.scheduler.partition()
    partition.registry.position("fpga")  # every book grows
    touch(script, "one")
    assert script.scheduler.audit() == []
    bump(partition.capacity)
    touch(script, "one")
    assert script.scheduler.audit()
    assert audit.doubts == before + 1


def test_without_an_audit_the_plain_kernel_is_used() -> None:
    plain = Scheduler()
    assert type(plain._kernel).__name__ == "Kernel"
    with pytest.raises(RuntimeError, match="audit_every"):
        plain.audit()


@pytest.mark.parametrize("seed", [302, 303, *range(362, 365)])
def test_the_audit_agrees_with_the_full_check_in_any_history(seed: int) -> None:
    """``Life`` asks for the audit after every message and for the full walk after every step."""
    life = Life(random.Random(seed), alone=True)
    for _ in range(120):
        life.step()
    audit: Any = life.scheduler._audit
    assert audit.walks >= 2
    assert audit.doubts <= 6  # configurations came, and wants changed without any trigger
