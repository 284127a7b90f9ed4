"""When preemption is tried, tried again, and given up (5.9, 2.8); and preemption after a restart (I7)."""

from __future__ import annotations

from quadriga.si import Allocation, RegisterResourceManagerRequest, TerminationType
from quadriga.sim.script import Script, resource

from .preemption_side import TWO_QUEUES, ask, filled, news, preempted, preempting

PREEMPTED = TerminationType.PREEMPTED_BY_SCHEDULER


# -- attempts --------------------------------------------------------------------------------------


def of_all_sizes(script: Script) -> None:
    """Twenty-five asks, each of another size."""
    for size in range(25):
        ask(script, "high", f"h{size:02}", vcore=1 + size)
    script.advance(1)


def test_2_8_ten_attempts_in_a_leaf_and_round() -> None:
    """Only those count that fail: the others end the round."""
    script = filled(size=2)  # low is not above its guarantee
    of_all_sizes(script)
    failures = script.scheduler.partition().failed_preemptions.by_shape
    for expected in (10, 20, 25):
        script.schedule(1)
        assert len(failures) == expected
    assert not script.scheduler.unfinished


def test_2_8_an_unlimited_call_continues_until_all_have_tried() -> None:
    script = filled(size=2)
    of_all_sizes(script)
    script.schedule()
    assert len(script.scheduler.partition().failed_preemptions.by_shape) == 25


# -- failed preemptions ----------------------------------------------------------------------------


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


def test_5_9_asks_of_one_shape_share_a_failed_attempt() -> None:
    script = filled(size=2)
    ask(script, "high", *(f"h{n}" for n in range(100)), vcore=1)
    script.advance(1)
    script.schedule()
    (failed,) = script.scheduler.partition().failed_preemptions.by_shape.values()
    assert (failed.leaf.path, failed.since) == ("root.high", 10**9)


def test_5_9_no_retry_without_a_change() -> None:
    script = filled(size=2)
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    script.schedule()
    deadlines(script, 60)
    assert deadlines(script, 3000) == []


def test_5_9_after_a_change_a_timer_tells_the_driver_when_to_retry() -> None:
    script = filled()
    ask(script, "high", "h", vcore=4)  # low can spare two
    script.advance(1)
    assert script.schedule() == []
    script.advance(5)
    script.ask("low", "big", vcore=3)
    script.node("n2", vcore=3)
    assert news(script.schedule()) == ["low/big-0 on n2"]
    assert 10.0 in deadlines(script, 20)
    assert preempted(script.log) == [f"low/n1-{n}-0" for n in (3, 2, 1, 0)]


def test_5_9_a_queue_above_its_guarantee_waits_for_its_own_releases() -> None:
    """What becomes free elsewhere does not help: the queue itself must get resources back."""
    script = filled(size=8)
    ask(script, "high", "h", "more", vcore=4)
    script.advance(1)
    assert preempted(script.schedule()) == [f"low/n1-{n}-0" for n in (7, 6, 5, 4)]
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["high/h-0 on n1"]
    script.advance(20)
    script.schedule()
    (failed,) = script.scheduler.partition().failed_preemptions.by_shape.values()
    assert "above its guarantee" in failed.why
    script.release("low", "n1-0-0")
    script.schedule()
    script.advance(100)
    script.schedule()
    assert failed in script.scheduler.partition().failed_preemptions.by_shape.values()
    script.release("high", "h-0")
    script.schedule()
    assert failed not in script.scheduler.partition().failed_preemptions.by_shape.values()


def test_5_9_an_ask_of_a_higher_priority_tries_again() -> None:
    script = Script(TWO_QUEUES)
    script.app("low", "root.low")
    script.app("high", "root.high")
    script.node("n1", vcore=4)
    script.ask("low", *"abcd", priority=5, vcore=1)
    script.schedule()
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    assert script.schedule() == []
    ask(script, "high", "urgent", priority=5, vcore=1)
    script.advance(1)
    assert preempted(script.schedule()) == ["low/d-0"]


# -- restarts --------------------------------------------------------------------------------------


def test_i7_a_victim_reported_after_a_restart_may_be_preempted_again() -> None:
    """Nothing is remembered of the release: it runs, and the ask preempts again."""
    script = filled(size=4)
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    assert preempted(script.schedule()) == ["low/n1-3-0"]
    script.outstanding.clear()
    script.send(RegisterResourceManagerRequest(rmID="rm", config=TWO_QUEUES))
    script.app("low", "root.low")
    script.app("high", "root.high")
    existing = [
        Allocation(
            allocationKey=f"n1-{n}",
            UUID=f"n1-{n}-0",
            applicationID="low",
            partitionName="default",
            resourcePerAlloc=resource({"vcore": 1}),
            nodeID="n1",
        )
        for n in range(4)
    ]
    script.node("n1", vcore=4, existing=existing)
    assert preempting(script, "root") == {}
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    assert len(preempted(script.schedule())) == 1


def test_r3_a_late_confirmation_after_a_restart_is_a_stop() -> None:
    script = filled()
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    script.schedule()
    script.release("low", "n1-0-0", PREEMPTED)  # nobody asked for this one (X32)
    assert preempting(script, "root.low") == {"vcore": 1}
    assert news(script.schedule()) == ["high/h-0 on n1"]
    script.confirm(PREEMPTED)
    assert preempting(script, "root.low") == {}
