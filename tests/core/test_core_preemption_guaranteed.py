"""Preemption for guarantees (5.9): when, which victims in which order, and what follows."""

from __future__ import annotations

import pytest

from quadriga.si import NodeInfo
from quadriga.si.constants import TAG_ALLOW_PREEMPTION, TAG_REQUIRED_NODE
from quadriga.sim.script import Script

from .preemption_side import (
    NEVER,
    PREEMPTED,
    QUOTA,
    TWO_QUEUES,
    after,
    ask,
    cluster,
    explained,
    filled,
    news,
    preempted,
    preempting,
    reserved,
    victims,
)
from .tree_side import below, tree

OFF = TWO_QUEUES.replace("name: default", f"name: default, {NEVER}")
LOW_ONE = TWO_QUEUES.replace("vcore: 2m", "vcore: 1m")


def one_victim() -> Script:
    """The ask ``h`` has one victim, whose release is not confirmed."""
    script = filled()
    assert victims(script) == ["low/n1-3-0"]
    return script


def test_5_9_a_queue_below_its_guarantee_preempts_in_one_above() -> None:
    script = filled()
    ask(script, "high", "h", vcore=1)
    assert script.schedule() == []
    assert explained(script) == "may preempt in 1 s"
    script.advance(0.999)
    assert script.schedule() == []
    script.advance(0.001)
    assert explained(script) == "may preempt in the next round"
    assert preempted(script.schedule()) == ["low/n1-3-0"]
    message = script.messages[-1].message.released[0]
    assert message.message == "preempting allocations to free up resources to run ask: h"
    assert reserved(script) == {"n1": "high/h"}
    assert explained(script) == "preempted, to run on node n1: waits for the confirmations"
    assert preempting(script, "root.low") == preempting(script, "root") == {"vcore": 1}
    for _ in range(5):
        assert after(script, 20) == []  # once for each ask
    root = script.scheduler.partition().root
    assert sum(root.allocated) == 4  # nothing is free before it is gone
    script.ask("low", "more", priority=100, vcore=1)
    script.confirm(PREEMPTED)
    assert preempting(script, "root") == {}
    assert news(script.schedule()) == ["high/h-0 on n1"]  # before who is more urgent
    assert reserved(script) == {}
    script.release("high", "h-0")  # the application of the victim goes on
    assert news(script.schedule()) == ["low/more-0 on n1"]


def test_r5_a_lost_confirmation_is_requested_again_without_another_victim() -> None:
    script = one_victim()
    script.outstanding.clear()
    assert preempted(script.advance(60)) == ["low/n1-3-0"]
    assert preempted(script.schedule()) == []
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["high/h-0 on n1"]


def test_x32_a_victim_that_stops_by_itself_frees_the_same_room() -> None:
    script = one_victim()
    script.release("low", "n1-3-0")
    assert preempting(script, "root.low") == {}
    assert news(script.schedule()) == ["high/h-0 on n1"]


def test_m7_a_victim_on_a_removed_node_is_no_longer_counted() -> None:
    script = one_victim()
    script.node("n1", NodeInfo.DECOMISSION)
    assert preempting(script, "root.low") == {}
    assert reserved(script) == {}


def test_5_9_a_timer_tells_the_driver_when_the_ask_may_preempt() -> None:
    script = filled()
    ask(script, "high", "h", vcore=1)
    script.schedule()
    deadline = script.scheduler.next_deadline()
    assert deadline is not None and deadline - script.now <= 10**9
    while not preempted(script.log):
        deadline = script.scheduler.next_deadline()
        assert deadline is not None
        script.advance((deadline - script.now) / 1e9)
        script.schedule()
    assert script.now == 10**9


def test_2_10_the_default_delay_is_thirty_seconds() -> None:
    script = filled(TWO_QUEUES.replace("preemption.delay: 1s", ""))
    assert victims(script, seconds=29.9) == []
    assert after(script, 0.1) == ["low/n1-3-0"]


def test_2_2_preemption_can_be_switched_off_and_on() -> None:
    script = filled(OFF)
    assert victims(script, seconds=100) == []
    assert "disabled" in explained(script)
    script.configure(TWO_QUEUES)
    assert after(script, 0) == ["low/n1-3-0"]
    script = filled()
    ask(script, "high", "h", vcore=1)
    script.configure(OFF)  # before the ask is due
    assert after(script, 100) == []


def test_2_2_a_shorter_delay_applies_to_pending_asks() -> None:
    script = filled(TWO_QUEUES.replace("delay: 1s", "delay: 1h"))
    assert victims(script, seconds=10) == []
    script.configure(TWO_QUEUES)
    assert after(script, 0) == ["low/n1-3-0"]


@pytest.mark.parametrize(
    ("config", "fields", "why"),
    [
        # I19: only an ask that may preempt others
        (TWO_QUEUES, {"others": False}, "policy"),
        # nor elsewhere than on the node that it requires
        (TWO_QUEUES, {"tags": {TAG_REQUIRED_NODE: "gone"}}, ""),
        (TWO_QUEUES.replace("guaranteed: {vcore: 4m}", ""), {}, "nothing is guaranteed"),
        (
            TWO_QUEUES.replace("low, ", "low, properties: {preemption.policy: disabled}, "),
            {},
            "nobody",
        ),
    ],
    ids=["policy of the ask", "required node", "no guarantee on the path", "disabled queue"],
)
def test_i19_5_9_no_preemption(config: str, fields: dict[str, object], why: str) -> None:
    script = filled(config)
    assert victims(script, seconds=100, **fields) == []
    if why:
        assert why in explained(script)


def test_5_9_a_guarantee_of_the_parent_counts() -> None:
    config = tree(
        "low, resources: {guaranteed: {vcore: 2m}}",
        "top, resources: {guaranteed: {vcore: 4m}}, " + below("high"),
    )
    assert victims(filled(config), seconds=100) == ["low/n1-3-0"]


def test_5_9_no_preemption_above_the_own_guarantee() -> None:
    script = filled(size=8)
    chosen = victims(script, repeat=5, vcore=2, seconds=100)
    assert chosen == ["low/n1-7-0", "low/n1-6-0"]  # once for the whole ask
    script.confirm(PREEMPTED)
    script.schedule()
    assert victims(script, "more", vcore=3, seconds=100) == []
    assert "above what is guaranteed" in explained(script, "high", "more")


def test_5_9_victims_keep_what_is_guaranteed_to_them() -> None:
    script = filled()
    assert victims(script, "a", "b", "c") == ["low/n1-3-0"]
    # the node was reserved when the others had their turn
    for chosen in (["low/n1-2-0"], []):  # low is down to its guarantee
        script.confirm(PREEMPTED)
        script.schedule()
        assert after(script, 15) == chosen


def test_5_9_retries_every_fifteen_seconds() -> None:
    script = filled()
    assert victims(script, vcore=3) == []  # low would fall to one
    assert "15 s" in explained(script)
    script.node("n2", vcore=2)
    script.ask("low", "a", "b", vcore=1)
    script.schedule()
    assert after(script, 14.9) == []
    script.release("low", "a-0")  # there is room for two, and low can spare one more
    script.release("low", "b-0")
    script.node("n2", NodeInfo.DECOMISSION)
    script.node("n1", NodeInfo.UPDATE, vcore=5)
    script.ask("low", "c", vcore=1)
    script.schedule()
    assert after(script, 0.1) == ["low/c-0", "low/n1-3-0", "low/n1-2-0"]


def test_5_9_order_of_victims_opted_out_last_originators_last_newest_first() -> None:
    script = cluster(LOW_ONE.replace("vcore: 4m", "vcore: 9m"), 9)
    ask(script, "low", "keep", vcore=1)
    ask(script, "low", "old", vcore=1)
    ask(script, "low", "opted", itself=False, vcore=1)
    ask(script, "low", "driver", originator=True, vcore=1)
    ask(script, "low", "both", itself=False, originator=True, vcore=1)
    ask(script, "low", "new", vcore=1)
    script.schedule()
    script.ask("high", "has", repeat=3, vcore=1)
    script.schedule()
    order = []
    for n in range(5):
        order += victims(script, f"h{n}")
        script.confirm(PREEMPTED)
        script.schedule()
    assert order == ["low/new-0", "low/old-0", "low/keep-0", "low/driver-0", "low/opted-0"]


@pytest.mark.parametrize(
    ("fields", "urgency"),
    [
        ({"tags": {TAG_ALLOW_PREEMPTION: "false"}}, 0),  # X21: where it has no policy
        ({"tags": {TAG_REQUIRED_NODE: "n1"}}, 0),
        ({"priority": 5}, 4),
    ],
    ids=["opted out by a tag", "requires its node", "more urgent"],
)
def test_5_9_x21_who_is_newer_and_does_not_go(fields: dict[str, object], urgency: int) -> None:
    script = cluster(TWO_QUEUES, 4)
    script.ask("low", "a", "b", vcore=1)
    script.schedule()
    script.ask("low", "c", "d", vcore=1, **fields)
    script.schedule()
    assert victims(script, priority=urgency) == ["low/b-0"]


def test_5_9_candidates_that_do_not_help_on_the_node_come_last() -> None:
    config = tree(
        "low, resources: {guaranteed: {vcore: 1m, memory: 1}}",
        "high, resources: {guaranteed: {vcore: 4m, memory: 50}}",
    )
    script = cluster(config, 4, memory=100)
    ask(script, "low", "a", vcore=1, memory=10)
    ask(script, "low", "b", vcore=1, memory=10)
    ask(script, "low", "c", vcore=2, memory=10)
    ask(script, "low", "big", memory=70)
    script.schedule()
    assert victims(script, vcore=2, seconds=30) == ["low/c-0"]  # not big, which is newer


def test_5_9_the_node_with_the_fewest_victims_then_by_name() -> None:
    script = filled(nodes=2, size=2)
    script.node("n0", vcore=2)
    script.ask("low", "wide", vcore=2)
    script.schedule()
    assert victims(script, vcore=2) == ["low/wide-0"]
    assert reserved(script) == {"n0": "high/h"}


def test_5_9_draining_and_reserved_nodes_are_not_used() -> None:
    script = filled(LOW_ONE, nodes=2, size=2)
    script.node("n1", NodeInfo.DRAIN_NODE)
    assert victims(script, "a", "b") == ["low/n2-1-0"]
    assert reserved(script) == {"n2": "high/a"}
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["high/a-0 on n2"]


@pytest.mark.parametrize(
    ("low", "high", "chosen"),
    [
        ("priority.offset: '0'", "priority.offset: '0'", []),
        ("priority.offset: '-3'", "priority.offset: '0'", ["low/k3-0"]),
        ("priority.offset: '0'", "priority.offset: '3'", ["low/k3-0"]),
        ("priority.policy: fence", "priority.offset: '0'", ["low/k3-0"]),
        ("priority.policy: fence, priority.offset: '1'", "priority.offset: '0'", []),
        ("priority.policy: fence, priority.offset: '1'", "priority.offset: '1'", ["low/k3-0"]),
        ("priority.offset: '0'", "priority.policy: fence, priority.offset: '3'", ["low/k3-0"]),
        ("priority.offset: '0'", "priority.policy: fence, priority.offset: '2'", []),
    ],
)
def test_5_9_priorities_are_seen_through_offsets_and_fences(
    low: str, high: str, chosen: list[str]
) -> None:
    """The ask has priority 0, the candidates have 3."""
    config = TWO_QUEUES.replace("low, ", f"low, properties: {{{low}}}, ")
    script = cluster(config.replace("delay: 1s", f"delay: 1s, {high}"), 4)
    script.ask("low", *(f"k{n}" for n in range(4)), priority=3, vcore=1)
    script.schedule()
    assert victims(script) == chosen


@pytest.mark.parametrize(("policy", "chosen"), [("fence", ["near/v-0"]), ("default", ["low/w-0"])])
def test_5_9_a_preemption_fence_keeps_the_ask_inside(policy: str, chosen: list[str]) -> None:
    inside = below(
        "high, resources: {guaranteed: {vcore: 4m}}", "near, resources: {guaranteed: {vcore: 1m}}"
    )
    top = f"properties: {{preemption.policy: {policy}}}, resources: {{guaranteed: {{vcore: 8m}}}}"
    config = tree("low, resources: {guaranteed: {vcore: 1m}}", f"top, {top}, {inside}")
    script = cluster(config, 2, 2)
    for app, keys in (("near", "vy"), ("low", "wx")):
        script.ask(app, *keys, vcore=1)
        script.schedule()
    assert victims(script, seconds=30) == chosen


@pytest.mark.parametrize("vcore", [1, 2])
def test_5_6_preemption_when_only_a_quota_has_no_room(vcore: int) -> None:
    """The ask fits the second node as it is; the victims are somewhere else."""
    script = filled(QUOTA)
    script.node("n2", vcore=4)
    assert victims(script, vcore=vcore) == ["low/n1-3-0", "low/n1-2-0"][:vcore]
    assert reserved(script) == {"n2": "high/h"}
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["high/h-0 on n2"]


def test_5_9_no_victims_if_the_candidates_hold_too_little() -> None:
    config = QUOTA.replace("2m", "3m").replace("1m", "3m").replace("4m", "6m")
    script = filled(config, size=6)
    script.node("n2", vcore=6)
    assert victims(script, vcore=3) == ["low/n1-5-0", "low/n1-4-0", "low/n1-3-0"]
    assert victims(script, "more") == []


def test_5_6_an_ask_reserves_before_it_preempts_and_each_takes_a_round() -> None:
    script = filled(TWO_QUEUES.replace("delay: 1s", "delay: 3s"), nodes=2)
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100)  # root's quota is not what is short
    ask(script, "high", "h", vcore=1)
    script.advance(3)
    script.schedule(1)
    assert reserved(script) == {"n1": "high/h"}
    assert preempted(script.schedule(1)) == ["low/n1-3-0"]


def test_5_9_no_victims_on_a_node_reserved_for_another_ask() -> None:
    script = filled(LOW_ONE)
    assert victims(script, "a", "b") == ["low/n1-3-0"]
    assert reserved(script) == {"n1": "high/a"}
    script.confirm(PREEMPTED)
    heard = script.schedule()
    assert news(heard) == ["high/a-0 on n1"]
    assert preempted(heard) == []
    assert after(script, 15) == ["low/n1-2-0"]


def test_i17_an_updated_ask_may_preempt_again() -> None:
    script = one_victim()
    ask(script, "high", "h", vcore=2)
    assert reserved(script) == {}
    assert preempted(script.schedule()) == []  # who is on his way already is not counted
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == []
    assert after(script, 15) == ["low/n1-2-0"]
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["high/h-0 on n1"]


def test_5_9_victims_are_released_even_if_the_ask_is_withdrawn() -> None:
    script = one_victim()
    script.release_ask("high", "h")
    assert reserved(script) == {}
    script.confirm(PREEMPTED)
    script.ask("low", "again", vcore=1)
    assert news(script.schedule()) == ["low/again-0 on n1"]
