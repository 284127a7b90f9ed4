"""What applications have used, and the summary when they end (2.18)."""

from __future__ import annotations

import json
import logging

import pytest
from core_steps import run, serve, submit

from quadriga import si
from quadriga.core.driver.service import SchedulerService
from quadriga.core.model import usage
from quadriga.core.preemption.eviction import Eviction
from quadriga.core.scheduling.releasing import evict
from quadriga.si.constants import INSTANCE_TYPE
from quadriga.sim.script import ONE_QUEUE, Script

SECOND = 10**9


def cluster() -> Script:
    """A node of a named machine type, and one that does not say."""
    script = Script()
    script.node("n1", attributes={INSTANCE_TYPE: "m5"}, vcore=2000, memory=100)
    return script


def usage_of(script: Script, app: str, later: int = 0) -> usage.Usage:
    return usage.live(script.scheduler.application(app), script.now + later)


def test_2_18_quantity_times_whole_seconds_by_instance_type() -> None:
    """Apart by machine type, and added up over allocations; a node that names none is unknown."""
    script = cluster()
    script.node("n2", attributes={INSTANCE_TYPE: "c4"}, vcore=1000, memory=100)
    script.node("n3", vcore=1000, memory=100)
    run(script, "a", "k0", "k1", "k2", "k3", vcore=1000, memory=7)
    script.advance(10.9)
    script.release("a")
    used = usage_of(script, "a")
    assert used.used == {
        "c4": {"vcore": 10_000, "memory": 70},
        "m5": {"vcore": 20_000, "memory": 140},
        usage.UNKNOWN_INSTANCE: {"vcore": 10_000, "memory": 70},
    }
    assert used.preempted == used.placeholder == {}


def test_2_18_the_live_view_adds_what_runs() -> None:
    script = cluster()
    run(script, "a", "k0", "k1", vcore=1000)
    script.advance(3)
    script.release("a", "k0-0")
    script.advance(4)
    for later in (0, 1, 0):  # looking counts nothing
        assert usage_of(script, "a", later * SECOND).used == {
            "m5": {"vcore": 10_000 + later * 1000}
        }


def test_2_18_placeholders_have_an_account_of_their_own() -> None:
    script = cluster()
    run(script, "g", "p0", "p1", gang={"vcore": 2000}, group="tg", placeholder=True, vcore=1000)
    serve(script, "g", "r0", group="tg", vcore=500)
    script.advance(6)
    script.confirm()  # r0 takes the place of p0, and is bound from now on
    script.advance(4)
    used = usage_of(script, "g")
    assert used.placeholder == {"m5": {"vcore": 6 * 1000 + 10 * 1000}}
    assert used.used == {"m5": {"vcore": 4 * 500}}


def test_2_18_what_was_preempted_is_counted_apart() -> None:
    script = cluster()
    run(script, "a", "k", vcore=1000)
    script.advance(8)
    app = script.scheduler.application("a")
    victim = app.allocations["k-0"]
    evict(script.scheduler._kernel, Eviction((victim,), victim.ask, "for another"))
    script.advance(1)
    script.release("a", "k-0", si.TerminationType.PREEMPTED_BY_SCHEDULER)
    used = usage_of(script, "a")
    assert (used.preempted, used.used) == ({"m5": {"vcore": 9000}}, {})


def test_2_18_a_node_that_goes_ends_what_ran_there() -> None:
    script = cluster()
    run(script, "a", "k", vcore=1000)
    script.advance(2)
    script.node("n1", si.NodeInfo.DECOMISSION)
    script.advance(5)
    assert usage_of(script, "a").used == {"m5": {"vcore": 2000}}


def test_2_1_the_summary_of_an_application_that_has_ended() -> None:
    script = cluster()
    script.advance(1)
    submit(script, "a", "k", user="ann", vcore=1000)
    script.advance(2)
    script.schedule()
    script.advance(3)
    script.release("a", "k-0")
    app = script.scheduler.application("a")
    assert app.summary is None
    script.advance(30)
    (summary,) = script.scheduler.take_summaries()
    assert summary is app.summary
    assert summary.fields() == {
        "ApplicationID": "a",
        "SubmissionTime": 1000,
        "StartTime": 3000,
        "FinishTime": 36_000,
        "User": "ann",
        "Queue": "root.default",
        "State": "Completed",
        "RmID": "rm",
        "ResourceUsage": {"m5": {"vcore": 3000}},
        "PreemptedResource": {},
        "PlaceholderResource": {},
    }
    assert script.scheduler.take_summaries() == []
    assert usage.live(app, script.now + 100 * SECOND) is summary.usage  # closed for good


def test_2_1_a_killed_application_has_a_summary() -> None:
    script = cluster()
    script.app("g", gang={"vcore": 9000}, style="Hard", timeout_ms=5000)
    serve(script, "g", *[f"p{at}" for at in range(9)], group="tg", placeholder=True, vcore=1000)
    script.advance(5)
    script.confirm()
    (summary,) = script.scheduler.take_summaries()
    assert (summary.state, summary.started) == ("Killed", 0)
    assert summary.usage.placeholder == {"m5": {"vcore": 2 * 5000}}


def test_x31_an_application_that_is_removed_has_a_summary() -> None:
    script = cluster()
    run(script, "a", "k", vcore=1000)
    script.advance(2)
    script.remove_app("a")
    (summary,) = script.scheduler.take_summaries()
    assert summary.usage.used == {"m5": {"vcore": 2000}}


def test_2_4_a_rejected_application_has_none() -> None:
    script = cluster()
    script.app("a", "root")
    script.app("a", partition="nowhere")
    assert script.scheduler.take_summaries() == []


def test_nobody_has_to_take_summaries() -> None:
    script = Script(check=False)
    for at in range(1100):
        script.app(f"app-{at}")
        script.remove_app(f"app-{at}")
    summaries = script.scheduler.take_summaries()
    assert [each.application_id for each in summaries] == [f"app-{at}" for at in range(100, 1100)]


def test_2_18_the_service_logs_a_summary(caplog: pytest.LogCaptureFixture) -> None:
    service = SchedulerService(manual=True, clock=lambda: SECOND)
    request = si.RegisterResourceManagerRequest(rmID="rm", config=ONE_QUEUE)
    service.register_resource_manager(request, si.NullCallback())
    ugi = si.UserGroupInformation(user="ann")
    new = si.AddApplicationRequest(applicationID="a", queueName="root.default", ugi=ugi)
    removal = si.RemoveApplicationRequest(applicationID="a")
    with caplog.at_level(logging.INFO, "quadriga.applications"):
        service.update_application(si.ApplicationRequest(rmID="rm", new=[new], remove=[removal]))
    (record,) = caplog.records
    text, _, fields = record.getMessage().partition(": ")
    assert text == "YK_APP_SUMMARY"
    assert json.loads(fields)["ApplicationID"] == "a"
