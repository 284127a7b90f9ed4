"""Gangs whose application announced no placeholderAsk (X35), gang styles (X41), and when a gang runs
(X42)."""

from __future__ import annotations

import pytest
from core_world import later, member, news, queues, scripted, serve, state

from quadriga.si import NodeInfo
from quadriga.sim.script import Script

MINUTE = 60


def placeholders(script: Script, *keys: str, size: int = 1) -> list[str]:
    return script.ask("g", *keys, group="tg", placeholder=True, memory=size)


def test_x35_real_asks_are_held_until_all_that_were_asked_for_are_there(script: Script) -> None:
    """X9, with and without a task group, also those that came before the first placeholder ask."""
    script.app("g")
    script.ask("g", "before", memory=1)
    placeholders(script, "p0", "p1", size=15)
    assert member(script, "m0", size=15) == ["new g/p0-0 on n1 placeholder of tg"]
    assert state(script) == "Accepted"
    (reason, *_) = script.scheduler.explain("g", "before").reasons
    assert reason.startswith("held until the gang is complete: has 15 B memory of 30 B memory")
    script.node("n2", memory=15)
    heard = script.schedule()
    assert heard[:2] == ["g Running (run)", "new g/p1-0 on n2 placeholder of tg"]
    assert "new g/before-0 on n1" in heard


@pytest.mark.parametrize(("style", "end"), [("Soft", "Accepted"), ("Hard", "Killed")])
def test_x35_the_timeout_takes_back_what_there_is(script: Script, style: str, end: str) -> None:
    """G44 to G46: the timer starts with the first placeholder."""
    script.app("g", style=style, timeout_ms=60_000)
    placeholders(script, "p0", "p1", size=15)
    later(script, 30)
    assert script.advance(59) == ["FAILED g/p1"]
    heard = script.advance(1)
    assert "released g/p0-0 TIMEOUT" in heard
    assert "released ask g/p1 TIMEOUT" in heard
    script.confirm()
    assert state(script) == end


@pytest.mark.parametrize("announced", [{"memory": 1}, None])
def test_x17_x35_the_time_limit_of_a_gang_is_that_of_its_placeholders(
    script: Script, announced: dict[str, int] | None
) -> None:
    """It is no run limit."""
    script.app("g", gang=announced, timeout_ms=60_000)
    placeholders(script, "p0")
    member(script, "m0")
    script.confirm()
    assert script.advance(60 * MINUTE) == []
    assert state(script) == "Running"


def test_x35_a_placeholder_ask_that_is_taken_back_makes_the_gang_smaller(script: Script) -> None:
    script.app("g")
    placeholders(script, "p0")
    placeholders(script, "p1", size=100)
    assert serve(script, "g", "real", memory=1) == ["new g/p0-0 on n1 placeholder of tg"]
    assert "g Running (run)" in script.release_ask("g", "p1")


def test_x35_the_gate_is_left_out(script: Script) -> None:
    """X16 needs the total, which nobody has announced: what fits the quota is placed."""
    script.configure(queues("default", default="resources: {max: {memory: 8}}"))
    script.app("g")
    placeholders(script, "p0", "p1", "p2", size=4)
    assert news(script.schedule()) == ["g/p0-0 on n1", "g/p1-0 on n1"]


def test_x35_a_fair_queue_takes_no_placeholder_asks() -> None:
    """As it takes no placeholderAsk (G7); its other asks are served."""
    config = queues("default", default="properties: {application.sort.policy: fair}")
    script = scripted(config, "g", memory=20)
    (heard,) = placeholders(script, "p0")
    assert heard.startswith("rejected ask g/p0") and "unsupported sort type" in heard
    assert "new g/real-0 on n1" in serve(script, "g", "real", memory=1)


def test_x35_a_node_that_goes_with_a_placeholder(script: Script) -> None:
    """Soft: a lost placeholder counts (S5)."""
    script.node("n2", memory=20)
    script.app("g")
    placeholders(script, "p0", "p1", "p2", size=15)
    script.schedule()
    script.node("n2", NodeInfo.DECOMISSION)
    script.node("n3", memory=20)
    assert script.schedule() == ["g Running (run)", "new g/p2-0 on n3 placeholder of tg"]


@pytest.mark.parametrize("style", ["", "Soft", "soft", "Spongy"])
def test_x41_a_style_that_is_not_hard_is_soft(script: Script, style: str) -> None:
    script.app("g", gang={"memory": 30}, style=style)
    placeholders(script, "p0")
    script.schedule()
    assert any("Resuming" in line for line in script.advance(15 * MINUTE))
    noted = [text for _, text in script.scheduler.notes if "gangSchedulingStyle" in text]
    note = "gangSchedulingStyle 'Spongy' of application g is taken as Soft"
    assert noted == ([note] if style == "Spongy" else [])


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_g45_x38_leftovers_are_released_at_the_timeout(script: Script, style: str) -> None:
    """A complete gang does not time out: the application runs on, and members that come later go the
    normal way."""
    script.app("g", gang={"memory": 4}, style=style)
    placeholders(script, "p0", "p1", size=2)
    script.schedule()
    member(script, "m0", size=2)
    script.confirm()
    assert script.advance(15 * MINUTE) == ["released g/p1-0 TIMEOUT"]
    assert state(script) == "Running"
    assert member(script, "m1", size=2) == ["new g/m1-0 on n1"]
    assert script.confirm() == []
    assert state(script) == "Running"
    (group,) = script.scheduler.application("g").gang.task_groups.values()
    assert (group.count, group.replaced, group.timed_out) == (2, 1, 1)
