"""The stuck paths of 5.10, S1 to S6: no application may be caught in one of them."""

from __future__ import annotations

import pytest

from quadriga.si import NodeInfo, TerminationType
from quadriga.sim.script import Script

STOPPED = TerminationType.STOPPED_BY_RM
PREEMPTED = TerminationType.PREEMPTED_BY_SCHEDULER
MINUTE = 60
HOUR = 3600


@pytest.fixture(params=["design", "k8shim"])
def order(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def script(order: str) -> Script:
    script = Script(extra={"si.messageOrder": order})
    script.node("n1", memory=20)
    return script


def state(script: Script) -> str:
    return script.scheduler.application("g").state


def counts(script: Script) -> tuple[int, int, int]:
    (group,) = script.scheduler.application("g").gang.task_groups.values()
    return group.count, group.replaced, group.timed_out


# -- S1 --------------------------------------------------------------------------------------------


def test_s1_a_real_ask_larger_than_its_placeholder_is_scheduled(script: Script) -> None:
    script.app("g", gang={"memory": 6})
    script.ask("g", "p", group="tg", placeholder=True, memory=6)
    script.schedule()
    script.ask("g", "real", group="tg", memory=10)
    assert script.schedule() == ["released g/p-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/real-0 on n1"]
    assert counts(script) == (1, 1, 0)


def test_s1_with_a_smaller_one_among_the_larger(script: Script) -> None:
    """Each takes over one placeholder (X37)."""
    script.app("g", gang={"memory": 8})
    script.ask("g", "p0", "p1", group="tg", placeholder=True, memory=4)
    script.schedule()
    script.ask("g", "large", group="tg", memory=5)
    script.ask("g", "small", group="tg", memory=4)
    assert script.schedule() == [
        "released g/p0-0 PLACEHOLDER_REPLACED",
        "released g/p1-0 PLACEHOLDER_REPLACED",
    ]
    assert script.confirm() == ["new g/large-0 on n1", "new g/small-0 on n1"]


# -- S2 --------------------------------------------------------------------------------------------


def test_s2_a_pending_placeholder_taken_back_is_not_waited_for(script: Script) -> None:
    script.app("g", gang={"memory": 2})
    script.ask("g", "p0", "p1", "p2", group="tg", placeholder=True, memory=1)
    script.ask("g", "huge", group="tg", placeholder=True, memory=100)
    script.schedule()
    assert state(script) == "Running"
    assert counts(script) == (4, 0, 0)
    script.release_ask("g", "huge")
    assert counts(script) == (3, 0, 0)
    script.ask("g", *[f"m{n}" for n in range(4)], group="tg", memory=1)
    assert script.schedule()[-1] == "new g/m3-0 on n1"  # X36
    assert len(script.confirm()) == 3


def test_s2_the_whole_group_taken_back(script: Script) -> None:
    script.app("g", gang={"memory": 1})
    script.ask("g", "p", group="tg", placeholder=True, memory=1)
    script.schedule()
    script.ask("g", "q", group="other", placeholder=True, memory=100)
    script.ask("g", "real", group="other", memory=1)
    assert script.schedule() == []
    script.release_ask("g", "q")
    assert script.schedule() == ["new g/real-0 on n1"]


# -- S3 --------------------------------------------------------------------------------------------

LIMITED = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: default
            properties: {gang.wait.limit: 10m}
"""


def test_s3_a_gang_without_any_placeholder_may_have_a_limit(order: str) -> None:
    script = Script(LIMITED, extra={"si.messageOrder": order})
    script.node("n1", memory=20)
    script.app("g", gang={"memory": 50}, style="Soft")
    script.ask("g", "p", group="tg", placeholder=True, memory=50)
    script.ask("g", "real", group="tg", memory=5)
    script.schedule()
    script.advance(10 * MINUTE)
    assert script.schedule() == ["g Running (run)", "new g/real-0 on n1"]


def test_s3_without_the_limit_it_waits_and_says_so(script: Script) -> None:
    script.app("g", gang={"memory": 50})
    script.ask("g", "p", group="tg", placeholder=True, memory=50)
    script.schedule()
    assert script.advance(1) == ["FAILED g/p"]
    assert script.advance(100 * HOUR) == []
    assert state(script) == "Accepted"


# -- S4 --------------------------------------------------------------------------------------------


def lost_confirmation(script: Script, style: str) -> None:
    """An incomplete gang after its timeout; nobody answers."""
    script.app("g", gang={"memory": 40}, style=style, timeout_ms=60_000)
    script.ask("g", "p0", "p1", group="tg", placeholder=True, memory=20)
    script.schedule()
    script.advance(60)


@pytest.mark.parametrize(
    ("style", "during", "after"),
    [("Hard", "Killing", "g Killed (killed)"), ("Soft", "Resuming", "g Accepted (resumed)")],
)
def test_s4_an_unconfirmed_release_is_sent_again(
    script: Script, style: str, during: str, after: str
) -> None:
    """After a minute, then at twice the interval each time, up to ten minutes."""
    lost_confirmation(script, style)
    for wait in (60, 120, 240, 480, 600, 600):
        assert state(script) == during
        assert script.advance(wait - 1) == []
        assert script.advance(1) == ["released g/p0-0 TIMEOUT"]
    script.outstanding.clear()
    assert script.release("g", "p0-0", TerminationType.TIMEOUT) == [after]


def test_s4_the_interval_is_the_resource_managers_choice(order: str) -> None:
    script = Script(extra={"si.messageOrder": order, "release.resend": "5s"})
    script.node("n1", memory=20)
    lost_confirmation(script, "Hard")
    for wait in (5, 10, 20, 40, 80, 160, 320, 600, 600):
        assert script.advance(wait - 1) == []
        assert script.advance(1) == ["released g/p0-0 TIMEOUT"]


def test_s4_the_watchdog_reports_who_stays(script: Script) -> None:
    lost_confirmation(script, "Hard")
    script.advance(30 * MINUTE)
    states = {(key, state) for _, key, state in script.scheduler.overdue}
    assert states == {("application/g", "Killing"), ("allocation/g/p0-0", "Releasing")}


def test_s4_waiting_for_leftovers_is_watched_too(script: Script) -> None:
    script.app("g", gang={"memory": 2})
    script.ask("g", "p0", "p1", group="tg", placeholder=True, memory=1)
    script.schedule()
    script.ask("g", "real", memory=1)
    script.schedule()
    script.release("g", "real-0")
    script.advance(30)
    assert script.advance(60) == ["released g/p0-0 TIMEOUT", "released g/p1-0 TIMEOUT"]
    assert script.confirm() == ["g Completed (complete)"]


def test_s4_every_state_can_be_killed_or_removed(script: Script) -> None:
    """Resuming and Waiting have a way out: the resource manager's removal."""
    lost_confirmation(script, "Soft")
    script.remove_app("g")
    assert state(script) == "Killed"


# -- S5 --------------------------------------------------------------------------------------------


def test_s5_more_than_announced_is_enough(script: Script) -> None:
    """Sizes that step over the sum: at least, not exactly."""
    script.app("g", gang={"memory": 5})
    script.ask("g", "p0", "p1", group="tg", placeholder=True, memory=3)
    assert script.schedule()[1] == "g Running (run)"


def test_s5_soft_a_lost_placeholder_counts(script: Script) -> None:
    script.app("g", gang={"memory": 3}, style="Soft")
    script.ask("g", "p0", "p1", group="tg", placeholder=True, memory=1)
    script.schedule()
    script.release("g", "p0-0")
    script.ask("g", "p2", group="tg", placeholder=True, memory=1)
    assert "g Running (run)" in script.schedule()


def test_s5_soft_the_loss_itself_may_complete_it(script: Script) -> None:
    """Nothing more will land: what is lost and what is there are all of it."""
    script.node("n1", memory=2)
    script.app("g", gang={"memory": 3}, style="Soft")
    script.ask("g", "p0", "p1", group="tg", placeholder=True, memory=1)
    script.schedule()
    script.ask("g", "p2", group="tg", placeholder=True, memory=1)
    script.schedule()
    assert state(script) == "Running"


def test_s5_hard_a_lost_placeholder_waits_for_the_timer(script: Script) -> None:
    script.app("g", gang={"memory": 3}, style="Hard")
    script.ask("g", "p0", "p1", group="tg", placeholder=True, memory=1)
    script.schedule()
    script.release("g", "p0-0")
    script.ask("g", "p2", group="tg", placeholder=True, memory=1)
    script.schedule()
    assert state(script) == "Accepted"
    script.advance(15 * MINUTE)
    assert state(script) == "Killing"


@pytest.mark.parametrize("style", ["Hard", "Soft"])
def test_s5_all_placeholders_lost_with_a_member_waiting(script: Script, style: str) -> None:
    """Soft: it runs without them. Hard: the timer goes on, and ends it."""
    script.app("g", gang={"memory": 2}, style=style)
    script.ask("g", "p0", group="tg", placeholder=True, memory=1)
    script.schedule()
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


# -- S6 --------------------------------------------------------------------------------------------


def test_s6_a_reservation_is_given_up_when_its_ask_goes(script: Script) -> None:
    script.node("n2", memory=5)
    script.app("plain")
    script.ask("plain", "x", memory=10)
    script.schedule()
    script.ask("plain", "big", memory=14)
    script.schedule()
    script.advance(2)
    script.schedule()
    partition = script.scheduler.partition()
    assert partition.nodes["n1"].reservation is not None
    script.app("other")
    script.ask("other", "small", memory=8)
    assert script.schedule() == []
    script.release_ask("plain", "big")
    assert "new other/small-0 on n1" in script.schedule()


def test_s6_a_reservation_does_not_keep_a_node_for_ever(script: Script) -> None:
    """2.10: after an hour in vain others are served on the node again."""
    script.node("n2", memory=5)
    script.app("plain")
    script.ask("plain", "x", memory=10)
    script.schedule()
    script.ask("plain", "big", memory=14)
    script.schedule()
    script.advance(2)
    script.schedule()
    script.app("other")
    script.ask("other", "small", memory=8)
    assert script.schedule() == []
    script.advance(HOUR)
    assert "new other/small-0 on n1" in script.schedule()


# -- V7 --------------------------------------------------------------------------------------------

STATEAWARE = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: default
            properties: {application.sort.policy: stateaware}
"""


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_v7_a_gang_that_sends_no_placeholders_has_an_end(order: str, style: str) -> None:
    """It does not hold up a stateaware queue for ever: its real asks are held, and nothing else comes."""
    script = Script(STATEAWARE, extra={"si.messageOrder": order})
    script.node("n1", memory=20)
    script.app("g", gang={"memory": 5}, style=style)
    script.ask("g", "real", memory=1)
    script.app("next")
    script.ask("next", "x", memory=1)
    assert script.schedule() == []
    assert script.advance(15 * MINUTE - 1) == []
    heard = script.advance(1)
    script.confirm()
    if style == "Hard":
        assert "g Killed (killed)" in heard
        assert "new next/x-0 on n1" in script.schedule()
    else:
        assert "g Accepted (resumed)" in heard
        assert "new g/real-0 on n1" in script.schedule()


def test_v7_a_gang_whose_placeholders_are_pending_waits_on(script: Script) -> None:
    """It is larger than the cluster and asks for nodes (G12, S3)."""
    script.app("g", gang={"memory": 500})
    script.ask("g", "p", group="tg", placeholder=True, memory=500)
    script.schedule()
    script.advance(100 * MINUTE)
    assert state(script) == "Accepted"
    script.ask("g", "real", memory=1)
    script.release_ask("g", "p")  # now nothing can come of it any more
    script.advance(15 * MINUTE)
    assert "new g/real-0 on n1" in script.schedule()


def test_v7_a_soft_gang_with_nothing_left_has_an_end(script: Script) -> None:
    script.app("g", gang={"memory": 30}, timeout_ms=60_000)
    script.ask("g", "p0", group="tg", placeholder=True, memory=1)
    script.schedule()
    script.advance(MINUTE)
    script.confirm()
    assert state(script) == "Accepted"
    assert script.advance(MINUTE - 1) == []
    assert script.advance(1) == ["g Waiting (wait)"]
    assert script.advance(30) == ["g Completed (complete)"]


def test_v7_a_soft_gang_that_asks_again_goes_on(script: Script) -> None:
    script.app("g", gang={"memory": 30}, timeout_ms=60_000)
    script.ask("g", "p0", group="tg", placeholder=True, memory=1)
    script.schedule()
    script.advance(MINUTE)
    script.confirm()
    script.ask("g", "large", memory=500)
    script.advance(10 * MINUTE)
    assert state(script) == "Accepted"
    script.node("n9", memory=500)
    assert script.schedule() == ["g Running (run)", "new g/large-0 on n9"]
