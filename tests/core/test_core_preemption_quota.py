"""Preemption for a lowered quota (2.8, +1.8)."""

from __future__ import annotations

import pytest

from quadriga.core.preemption.quota import part_of
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.script import Script

from .preemption_side import ENFORCED, PREEMPTED, ask, cluster, news, preempted, preempting
from .tree_side import below, most, tree

DELAY = "properties: {preemption.quota.delay: 10s}"


def config(most: int, guaranteed: int = 0) -> str:
    said = f", guaranteed: {{vcore: {guaranteed}m}}" if guaranteed else ""
    return tree(
        f"a, {DELAY}, resources: {{max: {{vcore: {most}m}}{said}}}", "b", partition=ENFORCED
    )


def using(text: str, **queues: int) -> Script:
    """A cluster of sixteen vcores; an application in each queue holds this number of single vcores."""
    script = cluster(text, 16)
    for name, number in queues.items():
        script.ask(name, *(f"{name}{n}" for n in range(number)), vcore=1)
        script.schedule()
    return script


def test_2_8_the_excess_over_the_new_max_is_evicted_after_the_delay() -> None:
    script = using(config(8), a=6)
    script.configure(config(4))
    assert script.advance(9.9) == []
    assert preempted(script.advance(0.1)) == ["a/a5-0", "a/a4-0"]
    text = "preempting allocations to enforce new max quota for queue : root.a"
    assert {r.message for r in script.messages[-1].message.released} == {text}
    assert preempting(script, "root.a") == {"vcore": 2}
    script.confirm(PREEMPTED)
    assert sum(script.scheduler.partition().root.allocated) == 4
    assert preempting(script, "root.a") == {}
    assert script.advance(100) == []


@pytest.mark.parametrize(
    "text",
    [
        config(4).replace("quotapreemptionenabled: true", "quotapreemptionenabled: false"),
        config(4).replace("delay: 10s", "delay: 0s"),
    ],
)
def test_2_8_only_if_partition_and_queue_enable_it(text: str) -> None:
    script = using(config(8), a=6)
    script.configure(text)
    assert script.advance(100) == []


def test_2_8_a_max_raised_again_before_the_delay_ends() -> None:
    script = using(config(8), a=6)
    script.configure(config(4))
    script.advance(5)
    script.configure(config(6))
    assert script.advance(100) == []


def test_2_8_resources_released_meanwhile_are_not_evicted() -> None:
    script = using(config(8), a=6)
    script.configure(config(4))
    script.release("a", "a0-0")
    assert preempted(script.advance(10)) == ["a/a5-0"]


def test_2_8_a_queue_still_above_its_max_is_checked_again() -> None:
    """All allocations require their node: none may be evicted."""
    script = using(config(8))
    script.ask("a", "d1", "d2", tags={TAG_REQUIRED_NODE: "n1"}, vcore=2)
    script.schedule()
    script.configure(config(2))
    assert script.advance(10) == []
    script.release("a", "d1-0")
    script.ask("a", "more", vcore=1)
    assert news(script.schedule()) == []
    assert script.advance(30) == []


def test_2_8_victims_by_kind() -> None:
    script = using(config(8))
    ask(script, "a", "driver", originator=True, vcore=1)
    ask(script, "a", "opted", itself=False, vcore=1)
    ask(script, "a", "urgent", priority=5, vcore=1)
    ask(script, "a", "plain", vcore=1)
    script.schedule()
    script.configure(config(1))
    assert preempted(script.advance(10)) == ["a/plain-0", "a/urgent-0", "a/opted-0"]


def test_2_8_no_queue_falls_below_its_guarantee() -> None:
    script = using(config(8))
    for key, vcore in (("one", 1), ("big", 4), ("big2", 3)):
        script.ask("a", key, vcore=vcore)
    script.schedule()
    script.configure(config(5, guaranteed=5))
    assert preempted(script.advance(10)) == ["a/big2-0"]


def parent(limit: int, y: int = 0) -> str:
    """``x`` and ``z`` have guarantees; ``y`` may have a max of its own."""
    leaves = (
        "x, resources: {guaranteed: {vcore: 2m}}",
        f"y, {DELAY}{most(y)}",
        "z, resources: {guaranteed: {vcore: 2m}}",
    )
    return tree(f"p, {DELAY}{most(limit)}, {below(*leaves)}", partition=ENFORCED)


def test_2_8_a_parent_divides_the_excess_by_usage_above_the_guarantee() -> None:
    script = using(parent(16), x=6, y=4, z=2)
    script.configure(parent(8))
    # x and y are four above what is guaranteed to them, z is at its guarantee
    assert preempted(script.advance(10)) == ["x/x5-0", "x/x4-0", "y/y3-0", "y/y2-0"]


def test_2_8_the_rest_left_by_rounding_is_evicted_too() -> None:
    script = using(parent(16), x=3, y=1, z=3)
    script.configure(parent(6))
    assert len(preempted(script.advance(10))) == 1


def test_2_8_the_parent_is_enforced_before_its_children() -> None:
    script = using(parent(16, 8), x=2, y=6, z=2)
    script.configure(parent(8, 3))
    assert preempted(script.advance(10)) == ["y/y5-0", "y/y4-0", "y/y3-0"]
    released = [r for _, message in script.messages for r in getattr(message, "released", ())]
    texts = [release.message.rpartition(" ")[2] for release in released]
    assert texts == ["root.p", "root.p", "root.p.y"]


@pytest.mark.parametrize(
    ("amount", "share", "whole", "part"),
    [(1, 1, 2, 0), (3, 1, 2, 2), (5, 1, 2, 2), (7, 1, 2, 4), (10, 1, 3, 3), (10, 2, 3, 7)],
)
def test_2_8_shares_are_rounded_half_to_even(
    amount: int, share: int, whole: int, part: int
) -> None:
    assert part_of(amount, share, whole) == part
