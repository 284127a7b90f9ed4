"""When preemption is tried, tried again, and given up (5.9, 2.8); preemption after a restart (I7)."""

from collections.abc import Callable
from typing import Any

import pytest
from preemption_side import (
    PREEMPTED,
    TWO_QUEUES,
    ask,
    cluster,
    filled,
    news,
    preempting,
    victims,
)

from quadriga.core.views import Views
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.si import NodeInfo
from quadriga.sim.scripted.script import Script


def of_all_sizes() -> Script:
    """Twenty-five asks, each of another size; ``low`` is not above its guarantee."""
    script = filled(size=2)
    for size in range(25):
        ask(script, "high", f"h{size:02}", vcore=1 + size)
    script.advance(1)
    return script


def test_2_8_ten_attempts_in_a_leaf_and_round() -> None:
    """Only those count that fail: the others end the round."""
    script = of_all_sizes()
    failures = script.scheduler.partition().failed_preemptions.by_shape
    for expected in (10, 20, 25):
        script.schedule(1)
        assert len(failures) == expected
    assert not script.scheduler.unfinished
    script = of_all_sizes()
    script.schedule()  # an unlimited call goes on until all have tried
    assert len(script.scheduler.partition().failed_preemptions.by_shape) == 25


def deadlines(script: Script, seconds: float) -> list[float]:
    """When the scheduler wants to be called in this time, in seconds from now."""
    begin, found = script.now, []
    while (deadline := script.scheduler.next_deadline()) is not None:
        if deadline > begin + seconds * 1e9:
            break
        found.append((deadline - begin) / 1e9)
        script.advance((deadline - script.now) / 1e9)
        script.schedule()
    return found


def test_5_9_no_retry_without_a_change() -> None:
    script = filled(size=2)
    victims(script)
    deadlines(script, 60)
    assert deadlines(script, 3000) == []


def test_5_9_an_ask_of_a_higher_priority_tries_again() -> None:
    script = cluster(TWO_QUEUES, 4)
    script.ask("low", *"abcd", priority=5, vcore=1)
    script.schedule()
    assert victims(script) == []
    assert victims(script, "urgent", priority=5) == ["low/d-0"]


def test_r3_a_late_confirmation_after_a_restart_is_a_stop() -> None:
    script = filled()
    victims(script)
    script.release("low", "n1-0-0", PREEMPTED)  # nobody asked for this one (X32)
    assert preempting(script, "root.low") == {"vcore": 1}
    assert news(script.schedule()) == ["high/h-0 on n1"]
    script.confirm(PREEMPTED)
    assert preempting(script, "root.low") == {}


# -- victims of an application ---------------------------------------------------------------------

ENDS: dict[str, Callable[[Script], object]] = {
    "confirmed": lambda script: script.confirm(PREEMPTED),
    "stopped": lambda script: script.release("low", "n1-3-0"),
    "node removed": lambda script: script.node("n1", NodeInfo.DECOMISSION),
    "application removed": lambda script: script.remove_app("low"),
}


def asked_back() -> Script:
    """One of the four allocations of ``low`` is evicted for ``high``."""
    script = filled()
    script.advance(10)
    assert victims(script) == ["low/n1-3-0"]
    return script


@pytest.mark.parametrize("end", ENDS)
def test_2_8_a_victim_keeps_its_reason_whatever_ends_it(end: str) -> None:
    script = asked_back()
    low: Any = script.scheduler.application("low")
    taken = low.allocations["n1-3-0"]
    ENDS[end](script)
    assert taken.state == (
        allocation_fsm.PREEMPTED if end == "confirmed" else allocation_fsm.COMPLETED
    )
    assert taken.reason == allocation_fsm.PREEMPTION
    assert taken.message.endswith("to run ask: h")
    assert (low.preempting, low.preempted) == (0, 1)
    partition = script.scheduler.partition()
    history = Views(script.scheduler).application(partition.name, "low")["resourceHistory"]
    assert [each["vcore"] for each in history["preemptedResource"].values()] == [11]  # 1 for 11 s
    assert script.scheduler.check() == []
