"""A queue without room under its max is a fence for preemption (2.21), and strict opting out (X40)."""

from collections.abc import Callable

import pytest
from preemption_side import ENFORCED, after, ask, news, preempted, reserved, victims
from tree_side import below, tree

from quadriga.core import Options
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.scripted.script import Script


def fenced(*, top: str = "", mid: str = "") -> str:
    """A max of ``root.top``, and of ``root.top.mid``."""
    leaves = (
        "high, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 2m}}",
        "near, resources: {guaranteed: {vcore: 1m}}",
    )
    inside = (
        f"mid, resources: {{max: {{{mid}}}}}, {below(*leaves)}",
        "side, resources: {guaranteed: {vcore: 1m}}",
    )
    text = tree(
        "low, resources: {guaranteed: {vcore: 1m}}",
        f"top, resources: {{max: {{{top}}}}}, {below(*inside)}",
        partition=ENFORCED,
    )
    return text.replace("max: {}", "")


def cluster(config: str) -> Script:
    """One full node: three single vcores in ``near``, then two in ``side``, then two in ``low``."""
    script = Script(config)
    script.node("n1", vcore=7, memory=70)
    for name, path, number in (
        ("near", "root.top.mid.near", 3),
        ("side", "root.top.side", 2),
        ("low", "root.low", 2),
    ):
        script.app(name, path)
        script.ask(name, *(f"{name}{n}" for n in range(1, number + 1)), vcore=1, memory=1)
        script.schedule()
    script.app("high", "root.top.mid.high")
    return script


@pytest.mark.parametrize(
    ("config", "chosen"),
    [
        (fenced(), ["low/low2-0"]),
        # exactly at its max: room can only come from below it
        (fenced(top="vcore: 5m"), ["side/side2-0"]),
        (fenced(mid="vcore: 3m"), ["near/near3-0"]),
        # of several the lowest counts
        (fenced(top="vcore: 5m", mid="vcore: 3m"), ["near/near3-0"]),
        # one full type is enough
        (fenced(top="vcore: 40m, memory: 5"), ["side/side2-0"]),
        # with room for the ask it is none
        (fenced(top="vcore: 40m, memory: 6"), ["low/low2-0"]),
    ],
)
def test_2_21_a_queue_without_room_for_the_ask_is_a_fence(config: str, chosen: list[str]) -> None:
    """Without the fence an allocation outside would be evicted too, for nothing: the newest are there."""
    script = cluster(config)
    assert victims(script, memory=1) == chosen
    script.confirm()
    assert news(script.schedule()) == ["high/h-0 on n1"]


@pytest.mark.parametrize(
    ("before", "now", "vcore", "chosen"),
    [
        # some room is not enough for a larger ask
        (fenced(top="vcore: 6m"), "", 2, ["side/side2-0", "near/near3-0"]),
        # above its max
        (fenced(top="vcore: 7m"), fenced(top="vcore: 4m"), 1, ["side/side2-0", "near/near3-0"]),
        # a type that is not asked for
        (fenced(mid="memory: 3"), fenced(mid="memory: 2"), 1, ["near/near3-0"]),
    ],
)
def test_2_21_so_is_a_queue_with_some_room_and_one_above_its_max(
    before: str, now: str, vcore: int, chosen: list[str]
) -> None:
    script = cluster(before)
    script.configure(now)
    assert victims(script, vcore=vcore) == chosen


def leaf(memory: int, ours: bool) -> Script:
    """``high`` uses two of memory, and this is its max; its ask has waited for the delay."""

    def config(memory: int) -> str:
        resources = f"guaranteed: {{vcore: 4m}}, max: {{vcore: 9m, memory: {memory}}}"
        return tree(
            "low, resources: {guaranteed: {vcore: 1m}}",
            f"high, properties: {{preemption.delay: 1s}}, resources: {{{resources}}}",
        )

    options = Options(journal_size=None, preempt_unguaranteed=ours)
    script = Script(config(2), options=options)
    script.node("n1", vcore=4)
    for name in ("low", "high"):
        script.app(name, f"root.{name}")
    script.ask("low", *(f"n1-{n}" for n in range(4)), vcore=1)
    script.schedule()
    script.node("n2", memory=4)
    script.ask("high", "kept1", "kept2", memory=1)
    script.schedule()
    script.configure(config(memory))
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    return script


@pytest.mark.parametrize("ours", [True, False], ids=["by default", "as YuniKorn 1.5"])
def test_2_21_no_victims_while_the_leaf_is_the_fence(ours: bool) -> None:
    """It uses more memory than its max; evicting vcores elsewhere cannot change that."""
    assert preempted(leaf(memory=2, ours=ours).schedule()) == ["low/n1-3-0"]
    script = leaf(memory=1, ours=ours)
    assert preempted(script.schedule()) == []
    assert reserved(script) == {}
    (check,) = [c for c in script.scheduler.explain("high", "h").checks if c.about == "preemption"]
    assert not check.passed
    assert "max" in check.text
    script.release("high", "kept1-0")
    assert after(script, 15) == ["low/n1-3-0"]


def opted_out(*, low: str = "", root: str = "", most: int = 8) -> str:
    low = low and f", preemption.optout: {low}"
    root = root and f"preemption.optout: {root}"
    return tree(
        f"low, properties: {{quota.preemption.delay: 10s{low}}},"
        f" resources: {{guaranteed: {{vcore: 1m}}, max: {{vcore: {most}m}}}}",
        "high, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 4m}}",
        root=f"submitacl: '*', properties: {{{root}}}",
        partition=ENFORCED,
    )


def with_opted_out(**said: str) -> Script:
    """``low`` holds a whole node with one regular allocation and three that opted out."""
    script = Script(opted_out(**said))
    script.node("n1", vcore=4)
    script.app("low", "root.low")
    ask(script, "low", "agrees", vcore=1)
    ask(script, "low", "out1", "out2", "out3", itself=False, vcore=1)
    script.schedule()
    script.app("high", "root.high")
    return script


def for_a_guarantee(script: Script, said: dict[str, str]) -> list[str]:
    return victims(script, vcore=2)


def for_a_required_node(script: Script, said: dict[str, str]) -> list[str]:
    script.node("n2", vcore=9)
    return victims(script, tags={TAG_REQUIRED_NODE: "n1"}, vcore=2, seconds=0)


def for_a_quota(script: Script, said: dict[str, str]) -> list[str]:
    script.configure(opted_out(**said, most=2))
    return preempted(script.advance(10))


@pytest.mark.parametrize(
    ("said", "strict"),
    [
        ({}, False),
        ({"low": "default"}, False),
        ({"low": "strict"}, True),
        ({"root": "strict"}, True),
        ({"low": "default", "root": "strict"}, False),
        ({"low": "sometimes"}, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("two", [for_a_guarantee, for_a_required_node, for_a_quota])
def test_x40_an_opted_out_allocation_is_evicted_last_or_never(
    said: dict[str, str], strict: bool, two: Callable[[Script, dict[str, str]], list[str]]
) -> None:
    """Only a quota is enforced in part where two vcores cannot be freed."""
    script = with_opted_out(**said)
    alone = ["low/agrees-0"]
    in_part = alone if two is for_a_quota else []
    assert two(script, said) == (in_part if strict else [*alone, "low/out3-0"])
    if two is for_a_guarantee:
        assert victims(script, "small") == (alone if strict else [])
