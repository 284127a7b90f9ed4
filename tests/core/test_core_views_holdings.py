"""What an application keeps from others without running (Q8): a gang that gathers, reserved nodes."""

from __future__ import annotations

from core_steps import on_nodes, run, submit

from quadriga.core.views import Holdings, holdings_of
from quadriga.sim.script import ONE_QUEUE, Script

INCREMENTAL = ONE_QUEUE.replace(
    "submitacl: '*'", "submitacl: '*'\n        properties: {gang.admission: incremental}"
)


def held(script: Script, app: str) -> Holdings:
    return holdings_of(script.scheduler.application(app))


def test_a_gang_gathers_from_its_first_placeholder_to_its_last() -> None:
    script = Script(INCREMENTAL)
    run(script, "gang", "p-0", "p-1", gang={"vcore": 2000}, group="g", placeholder=True, vcore=1000)
    assert held(script, "gang") == Holdings(gathers=False)  # it holds nothing yet
    script.node("n1", vcore=1000)
    script.schedule()
    assert held(script, "gang") == Holdings(gathers=True)
    script.node("n2", vcore=1000)
    script.schedule()
    assert held(script, "gang") == Holdings(gathers=False)


def test_an_application_holds_the_nodes_that_are_reserved_for_its_asks() -> None:
    script = on_nodes(n1=4000)
    run(script, "small", "s", vcore=2000)
    script.node("n2", vcore=3000)
    submit(script, "large", "l", vcore=4000)
    script.advance(3)
    script.schedule()
    assert held(script, "large") == Holdings(reservations=(("n1", "l"),))
    assert held(script, "small") == Holdings()


def test_an_application_that_has_ended_holds_nothing() -> None:
    script = Script()
    script.app("rejected", "root.nowhere")
    assert held(script, "rejected") == Holdings()
