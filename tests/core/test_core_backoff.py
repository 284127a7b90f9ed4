"""Applications with too many unschedulable asks are left alone for a while (2.2.2, +1.8)."""

from __future__ import annotations

from core_steps import on_nodes, run, submit
from core_world import queues

from quadriga.sim.script import Script

from .preemption_side import news

BACKOFF = "application.unschedasks.backoff: '3', application.unschedasks.backoff.delay: 10s"
CONFIG = queues("a", "b", a=f"properties: {{{BACKOFF}}}")


def waiting(asks: int, queue: str = "root.a") -> Script:
    script = on_nodes(CONFIG, n1=2)
    run(script, "app", *(f"k{n}" for n in range(asks)), queue=queue, vcore=4)
    return script


def reasons(script: Script, key: str = "k0") -> str:
    return "; ".join(script.scheduler.explain("app", key).reasons)


def test_2_2_2_three_asks_that_find_no_place_are_enough() -> None:
    script = waiting(3)
    app = script.scheduler.application("app")
    assert app.backoff_until == 10 * 10**9
    assert "left alone for 10 s" in reasons(script)
    script.node("n2", vcore=8)
    assert script.schedule() == []
    script.advance(9.9)
    assert script.schedule() == []
    script.advance(0.1)
    assert app.backoff_until == 0
    assert news(script.schedule()) == ["app/k0-0 on n2", "app/k1-0 on n2"]


def test_2_2_2_two_are_not() -> None:
    script = waiting(2)
    assert script.scheduler.application("app").backoff_until == 0
    script.node("n2", vcore=8)
    assert news(script.schedule()) == ["app/k0-0 on n2", "app/k1-0 on n2"]


def test_2_2_2_other_queues_are_not_concerned() -> None:
    assert waiting(9, "root.b").scheduler.application("app").backoff_until == 0


def test_2_2_2_asks_behind_them_are_not_looked_at_and_asks_before_them_are() -> None:
    script = on_nodes(CONFIG, n1=3)
    submit(script, "app", "before", queue="root.a", vcore=1)
    script.ask("app", "k0", "k1", "k2", vcore=4)
    script.ask("app", "small", vcore=1)
    submit(script, "another", "x", queue="root.a", vcore=1)
    assert news(script.schedule()) == ["app/before-0 on n1", "another/x-0 on n1"]
    script.advance(10)
    assert script.schedule() == []
    assert script.scheduler.application("app").backoff_until == 20 * 10**9


def test_2_2_2_an_application_that_ends_meanwhile() -> None:
    script = waiting(3)
    script.remove_app("app")
    assert script.advance(20) == []
    submit(script, "app", "small", queue="root.a", vcore=1)
    assert news(script.schedule()) == ["app/small-0 on n1"]
