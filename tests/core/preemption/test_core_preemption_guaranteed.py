"""Preemption for guarantees (5.9): when, which victims in which order, and what follows."""

import pytest
from preemption_side import (
    NEVER,
    PREEMPTED,
    QUOTA,
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

from quadriga.si import NodeInfo
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.scripted.script import Script

OFF = TWO_QUEUES.replace("name: default", f"name: default, {NEVER}")


def one_victim() -> Script:
    """The ask ``h`` has one victim, whose release is not confirmed."""
    script = filled()
    assert victims(script) == ["low/n1-3-0"]
    return script


def test_2_2_2_10_the_delay_is_thirty_seconds_and_a_shorter_one_applies_to_pending_asks() -> None:
    script = filled(TWO_QUEUES.replace("preemption.delay: 1s", ""))
    assert victims(script, seconds=29.9) == []
    assert after(script, 0.1) == ["low/n1-3-0"]
    script = filled(TWO_QUEUES.replace("delay: 1s", "delay: 1h"))
    assert victims(script, seconds=10) == []
    script.configure(TWO_QUEUES)
    assert after(script, 0) == ["low/n1-3-0"]


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
            "no queue outside is above its guarantee",
        ),
    ],
    ids=["policy of the ask", "required node", "no guarantee on the path", "disabled queue"],
)
def test_i19_5_9_no_preemption(config: str, fields: dict[str, object], why: str) -> None:
    script = filled(config)
    assert victims(script, seconds=100, **fields) == []
    if why:
        assert why in explained(script)


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


@pytest.mark.parametrize("vcore", [1, 2])
def test_5_6_preemption_when_only_a_quota_has_no_room(vcore: int) -> None:
    """The ask fits the second node as it is; the victims are somewhere else."""
    script = filled(QUOTA)
    script.node("n2", vcore=4)
    assert victims(script, vcore=vcore) == ["low/n1-3-0", "low/n1-2-0"][:vcore]
    assert reserved(script) == {"n2": "high/h"}
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["high/h-0 on n2"]


def test_5_6_who_frees_nothing_of_what_the_quota_lacks_stays() -> None:
    script = filled(QUOTA)
    script.node("n2", vcore=4, memory=4)
    script.ask("low", "newest", memory=1)
    script.schedule()
    assert victims(script) == ["low/n1-3-0"]


def test_5_6_an_ask_reserves_before_it_preempts_and_each_takes_a_round() -> None:
    script = filled(TWO_QUEUES.replace("delay: 1s", "delay: 3s"), nodes=2)
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100)  # root's quota is not what is short
    ask(script, "high", "h", vcore=1)
    script.advance(3)
    script.schedule(1)
    assert reserved(script) == {"n1": "high/h"}
    assert preempted(script.schedule(1)) == ["low/n1-3-0"]


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
