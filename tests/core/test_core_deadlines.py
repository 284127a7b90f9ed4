"""Timers of what has ended do not outlive it (V8), and late placeholders are given back."""

from __future__ import annotations

from core_steps import on_nodes, serve, submit

from quadriga import si
from quadriga.sim.script import resource


def test_v8_the_run_limit_of_an_ended_application_is_cancelled() -> None:
    script = on_nodes(extra={"event.trackingEnabled": "false"}, n1=1000)
    script.app("app", timeout_ms=3_600_000)
    serve(script, "app", "a", vcore=1000)
    script.remove_app("app")
    # what is left is the expiry of the record, 72 hours away
    assert script.scheduler.next_deadline() == 72 * 3600 * 10**9


def test_v8_the_run_limit_of_an_ended_allocation_is_cancelled() -> None:
    script = on_nodes(extra={"event.trackingEnabled": "false"}, n1=2000)
    submit(script, "app", "long", vcore=1000)
    serve(script, "app", "a", vcore=1000, timeout_ms=3_600_000)
    assert script.scheduler.next_deadline() == 3600 * 10**9
    script.release("app", "a-0")
    assert script.scheduler.next_deadline() is None


def test_x25_a_placeholder_recovered_after_the_soft_timeout_is_given_back() -> None:
    script = on_nodes(n1=1000)
    script.app("gang", gang={"vcore": 2000}, timeout_ms=1000)
    serve(script, "gang", "p0", "p1", vcore=1000, group="g", placeholder=True)
    script.advance(1)
    assert script.scheduler.application("gang").state == "Resuming"
    late = si.Allocation(
        allocationKey="p9",
        applicationID="gang",
        taskGroupName="g",
        placeholder=True,
        resourcePerAlloc=resource({"vcore": 1000}),
    )
    heard = script.node("n2", vcore=1000, existing=[late])
    assert heard == ["released gang/p9-0 TIMEOUT", "accepted node n2"]
    assert script.confirm()[-1] == "gang Accepted (resumed)"
