"""The stuck paths of 5.10, S1 to S6: no application may be caught in one of them."""

from __future__ import annotations

import pytest
from core_world import gang, later, launch, queues, scripted, serve, state

from quadriga.si import NodeInfo, TerminationType
from quadriga.sim.script import Script

STOPPED = TerminationType.STOPPED_BY_RM
PREEMPTED = TerminationType.PREEMPTED_BY_SCHEDULER
MINUTE = 60
HOUR = 3600


def counts(script: Script) -> tuple[int, int, int]:
    (group,) = script.scheduler.application("g").gang.task_groups.values()
    return group.count, group.replaced, group.timed_out


def test_s2_a_pending_placeholder_taken_back_is_not_waited_for(script: Script) -> None:
    script.app("g", gang={"memory": 2})
    script.ask("g", "p0", "p1", "p2", group="tg", placeholder=True, memory=1)
    serve(script, "g", "huge", group="tg", placeholder=True, memory=100)
    assert state(script) == "Running"
    assert counts(script) == (4, 0, 0)
    script.release_ask("g", "huge")
    assert counts(script) == (3, 0, 0)
    script.ask("g", *[f"m{n}" for n in range(4)], group="tg", memory=1)
    assert script.schedule()[-1] == "new g/m3-0 on n1"  # X36
    assert len(script.confirm()) == 3


@pytest.mark.parametrize(
    ("style", "during", "after"),
    [("Hard", "Killing", "g Killed (killed)"), ("Soft", "Resuming", "g Accepted (resumed)")],
)
@pytest.mark.parametrize(
    ("first", "waits"),
    [("60s", (60, 120, 240, 480, 600, 600)), ("5s", (5, 10, 20, 40, 80, 160, 320, 600, 600))],
)
def test_s4_an_unconfirmed_release_is_sent_again(
    order: str, style: str, during: str, after: str, first: str, waits: tuple[int, ...]
) -> None:
    """After a minute, or what the resource manager says, then at twice the interval each time, up to ten
    minutes."""
    extra = {} if first == "60s" else {"release.resend": first}
    script = scripted(order=order, extra=extra, memory=20)
    gang(script, "p0", "p1", announced=40, size=20, style=style, timeout_ms=60_000)
    script.advance(60)
    for wait in waits:
        assert state(script) == during
        assert script.advance(wait - 1) == []
        assert script.advance(1) == ["released g/p0-0 TIMEOUT"]
    overdue = {(key, state) for _, key, state in script.scheduler.overdue}
    assert overdue == {("application/g", during), ("allocation/g/p0-0", "Releasing")}
    script.outstanding.clear()
    assert script.release("g", "p0-0", TerminationType.TIMEOUT) == [after]


@pytest.mark.parametrize("style", ["Hard", "Soft"])
def test_s5_a_lost_placeholder_counts_where_the_style_is_soft(script: Script, style: str) -> None:
    """Hard waits for the timer."""
    gang(script, "p0", "p1", announced=3, style=style)
    script.release("g", "p0-0")
    script.ask("g", "p2", group="tg", placeholder=True, memory=1)
    assert ("g Running (run)" in script.schedule()) == (style == "Soft")
    if style == "Hard":
        assert state(script) == "Accepted"
        script.advance(15 * MINUTE)
        assert state(script) == "Killing"


def test_s5_sizes_that_step_over_the_sum_are_enough(script: Script) -> None:
    assert gang(script, "p0", "p1", announced=5, size=3)[1] == "g Running (run)"


def test_s5_soft_the_loss_itself_may_complete_it(script: Script) -> None:
    """Nothing more will land: what is lost and what is there are all of it."""
    script.node("n1", memory=2)
    gang(script, "p0", "p1", announced=3, style="Soft")
    serve(script, "g", "p2", group="tg", placeholder=True, memory=1)
    assert state(script) == "Running"


@pytest.mark.parametrize("style", ["Hard", "Soft"])
def test_s5_all_placeholders_lost_with_a_member_waiting(script: Script, style: str) -> None:
    """Soft: it runs without them. Hard: the timer goes on, and ends it."""
    gang(script, "p0", announced=2, style=style)
    script.ask("g", "real", group="tg", memory=1)
    script.node("n2", memory=5)
    script.node("n1", NodeInfo.DECOMISSION)
    script.ask("g", "p1", group="tg", placeholder=True, memory=1)
    if style == "Soft":
        assert "g Running (run)" in script.schedule()
        return
    script.schedule()
    script.release("g", "p1-0")
    assert state(script) == "Accepted"
    script.advance(15 * MINUTE)
    script.confirm()
    assert state(script) == "Killed"


@pytest.mark.parametrize("how", ["its ask goes", "an hour passes"])
def test_s6_a_reservation_does_not_keep_a_node_for_ever(script: Script, how: str) -> None:
    """2.10: after an hour in vain others are served on the node again."""
    script.node("n2", memory=5)
    launch(script, "plain", "x", memory=10)
    serve(script, "plain", "big", memory=14)
    later(script, 2)
    assert script.scheduler.partition().nodes["n1"].reservation is not None
    assert launch(script, "other", "small", memory=8) == []
    if how == "its ask goes":
        script.release_ask("plain", "big")
    else:
        script.advance(HOUR)
    assert "new other/small-0 on n1" in script.schedule()


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_v7_a_gang_that_sends_no_placeholders_has_an_end(order: str, style: str) -> None:
    """It does not hold up a stateaware queue for ever: its real asks are held, and nothing else comes."""
    config = queues("default", default="properties: {application.sort.policy: stateaware}")
    script = scripted(config, order=order, memory=20)
    script.app("g", gang={"memory": 5}, style=style)
    script.ask("g", "real", memory=1)
    assert launch(script, "next", "x", memory=1) == []
    assert script.advance(15 * MINUTE - 1) == []
    heard = script.advance(1)
    script.confirm()
    if style == "Hard":
        assert "g Killed (killed)" in heard
        assert "new next/x-0 on n1" in script.schedule()
    else:
        assert "g Accepted (resumed)" in heard
        assert "new g/real-0 on n1" in script.schedule()


def test_v7_s3_a_gang_whose_placeholders_are_pending_waits_on_and_says_so(script: Script) -> None:
    """It is larger than the cluster and asks for nodes (G12)."""
    gang(script, "p", announced=500, size=500)
    assert script.advance(1) == ["FAILED g/p"]
    assert script.advance(100 * HOUR) == []
    assert state(script) == "Accepted"
    script.ask("g", "real", memory=1)
    script.release_ask("g", "p")  # now nothing can come of it any more
    assert "new g/real-0 on n1" in later(script, 15 * MINUTE)


@pytest.mark.parametrize("again", [False, True])
def test_v7_a_soft_gang_with_nothing_left_has_an_end(script: Script, again: bool) -> None:
    """Unless it asks again."""
    gang(script, "p0", announced=30, timeout_ms=60_000)
    script.advance(MINUTE)
    script.confirm()
    assert state(script) == "Accepted"
    if again:
        script.ask("g", "large", memory=500)
        script.advance(10 * MINUTE)
        assert state(script) == "Accepted"
        script.node("n9", memory=500)
        assert script.schedule() == ["g Running (run)", "new g/large-0 on n9"]
    else:
        assert script.advance(MINUTE - 1) == []
        assert script.advance(1) == ["g Waiting (wait)"]
        assert script.advance(30) == ["g Completed (complete)"]
