"""A queue without room under its max is a fence for preemption (2.21), and strict opting out (X40)."""

from __future__ import annotations

import pytest

from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.script import Script

from .preemption_side import ask, filled, news, preempted, reserved

FENCE = """\
partitions:
  - name: default
    preemption: {quotapreemptionenabled: true}
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: low
            resources: {guaranteed: {vcore: 1m}}
          - name: top
            parent: true
            resources: {TOPMAX}
            queues:
              - name: mid
                parent: true
                resources: {MIDMAX}
                queues:
                  - name: high
                    properties: {preemption.delay: 1s}
                    resources: {guaranteed: {vcore: 2m}}
                  - name: near
                    resources: {guaranteed: {vcore: 1m}}
              - name: side
                resources: {guaranteed: {vcore: 1m}}
"""


def fenced(*, top: str = "", mid: str = "") -> str:
    text = FENCE
    for word, most in (("TOPMAX", top), ("MIDMAX", mid)):
        text = text.replace(word, f"max: {{{most}}}" if most else "")
    return text


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


def victims(script: Script, **quantities: int) -> list[str]:
    ask(script, "high", "h", **(quantities or {"vcore": 1, "memory": 1}))
    script.advance(1)
    return preempted(script.schedule())


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
def test_2_21_a_queue_without_room_for_the_ask_under_its_max_is_a_fence(
    config: str, chosen: list[str]
) -> None:
    """Without the fence an allocation outside would be evicted too, for nothing: the newest are there."""
    script = cluster(config)
    assert victims(script) == chosen
    script.confirm()
    assert news(script.schedule()) == ["high/h-0 on n1"]


def test_2_21_a_queue_with_some_room_is_a_fence_for_a_larger_ask() -> None:
    script = cluster(fenced(top="vcore: 6m"))
    assert victims(script, vcore=2) == ["side/side2-0", "near/near3-0"]


def test_2_21_a_queue_above_its_max_is_a_fence() -> None:
    script = cluster(fenced(top="vcore: 7m"))
    script.configure(fenced(top="vcore: 4m"))
    assert victims(script, vcore=1) == ["side/side2-0", "near/near3-0"]


def test_2_21_a_type_above_its_max_that_is_not_asked_for_makes_a_fence() -> None:
    script = cluster(fenced(mid="memory: 3"))
    script.configure(fenced(mid="memory: 2"))
    assert victims(script, vcore=1) == ["near/near3-0"]


LEAF = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: low
            resources: {guaranteed: {vcore: 1m}}
          - name: high
            properties: {preemption.delay: 1s}
            resources: {guaranteed: {vcore: 4m}, max: {vcore: 9m, memory: MEMORY}}
"""


def leaf(memory: int) -> Script:
    script = filled(LEAF.replace("MEMORY", "2"))
    script.node("n2", memory=4)
    script.ask("high", "kept1", "kept2", memory=1)
    script.schedule()
    script.configure(LEAF.replace("MEMORY", str(memory)))
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    return script


def test_2_21_no_victims_if_the_leaf_is_the_fence() -> None:
    """It uses more memory than its max; evicting vcores elsewhere cannot change that."""
    script = leaf(memory=1)
    assert preempted(script.schedule()) == []
    assert reserved(script) == {}
    (check,) = [c for c in script.scheduler.explain("high", "h").checks if c.about == "preemption"]
    assert not check.passed
    assert "max" in check.text


def test_2_21_a_leaf_with_room_again_may_preempt_again() -> None:
    script = leaf(memory=1)
    script.schedule()
    script.release("high", "kept1-0")
    script.advance(15)
    assert preempted(script.schedule()) == ["low/n1-3-0"]
    assert preempted(leaf(memory=2).schedule()) == ["low/n1-3-0"]


# -- opting out ------------------------------------------------------------------------------------

STRICT = """\
partitions:
  - name: default
    preemption: {quotapreemptionenabled: true}
    queues:
      - name: root
        submitacl: '*'
        properties: {ROOT}
        queues:
          - name: low
            properties: {quota.preemption.delay: 10sLOW}
            resources: {guaranteed: {vcore: 1m}, MAX}
          - name: high
            properties: {preemption.delay: 1s}
            resources: {guaranteed: {vcore: 4m}}
"""


def opted_out(*, low: str = "", root: str = "") -> Script:
    """``low`` holds a whole node with one regular allocation and three that opted out."""
    low = low and f", preemption.optout: {low}"
    root = root and f"preemption.optout: {root}"
    text = STRICT.replace("LOW", low).replace("ROOT", root)
    script = Script(text.replace("MAX", "max: {vcore: 8m}"))
    script.node("n1", vcore=4)
    script.app("low", "root.low")
    ask(script, "low", "agrees", vcore=1)
    ask(script, "low", "out1", "out2", "out3", itself=False, vcore=1)
    script.schedule()
    script.app("high", "root.high")
    script.text = text
    return script


CASES = pytest.mark.parametrize(
    ("low", "root", "strict"),
    [
        ("", "", False),
        ("default", "", False),
        ("strict", "", True),
        ("", "strict", True),
        ("default", "strict", False),
        ("sometimes", "", False),
    ],
)


@CASES
def test_x40_an_opted_out_allocation_is_evicted_last_for_a_guarantee_or_never(
    low: str, root: str, strict: bool
) -> None:
    script = opted_out(low=low, root=root)
    ask(script, "high", "large", vcore=2)
    script.advance(1)
    assert preempted(script.schedule()) == ([] if strict else ["low/agrees-0", "low/out3-0"])
    ask(script, "high", "small", vcore=1)
    script.advance(1)
    assert preempted(script.schedule()) == (["low/agrees-0"] if strict else [])


@CASES
def test_x40_an_opted_out_allocation_is_evicted_last_for_a_required_node_or_never(
    low: str, root: str, strict: bool
) -> None:
    script = opted_out(low=low, root=root)
    script.node("n2", vcore=9)
    ask(script, "high", "daemon", tags={TAG_REQUIRED_NODE: "n1"}, vcore=2)
    assert preempted(script.schedule()) == ([] if strict else ["low/agrees-0", "low/out3-0"])


@CASES
def test_x40_an_opted_out_allocation_is_evicted_last_for_a_quota_or_never(
    low: str, root: str, strict: bool
) -> None:
    script = opted_out(low=low, root=root)
    script.configure(script.text.replace("MAX", "max: {vcore: 2m}"))
    heard = script.advance(10)
    assert preempted(heard) == (["low/agrees-0"] if strict else ["low/agrees-0", "low/out3-0"])


def test_x40_an_opted_out_gang_member_is_not_evicted() -> None:
    script = opted_out(low="strict")
    script.configure(script.text.replace("MAX", "max: {vcore: 8m}"))
    script.node("n2", vcore=2)
    script.app("gang", "root.low", gang={"vcore": 2})
    ask(script, "gang", "p1", itself=False, group="g", placeholder=True, vcore=1)
    ask(script, "gang", "p2", group="g", placeholder=True, vcore=1)
    script.schedule()
    ask(script, "high", "h1", "h2", "h3", vcore=1)
    script.advance(1)
    heard = [line for _ in range(3) for line in script.schedule()]
    assert sorted(preempted(heard)) == ["gang/p2-0", "low/agrees-0"]
