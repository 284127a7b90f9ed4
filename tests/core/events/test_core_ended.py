"""What is kept of applications after their end and how much of it; what they have used (2.18)."""

import gc
import json
import logging
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from core_steps import later, partitions, run, serve, submit

from quadriga import si
from quadriga.base.texts import LONGEST
from quadriga.core import Options
from quadriga.core.driver.service import SchedulerService
from quadriga.core.model import usage
from quadriga.core.model.application import EndedApplication
from quadriga.core.preemption.candidates import Eviction
from quadriga.core.resources.message_bounds import MessageBounds
from quadriga.core.steps.releasing import evict
from quadriga.core.views import NotFound, Views
from quadriga.si.constants import INSTANCE_TYPE
from quadriga.sim.scripted.script import ONE_QUEUE, Script

QUEUES = partitions("default", "other").replace(
    " " * 10 + "- name: default", " " * 10 + "- name: a"
)


def cluster(*, check: bool = True, **options: int | None) -> Script:
    script = Script(QUEUES, options=Options(**options), check=check)  # type: ignore[arg-type]
    script.node("n1", vcore=100_000)
    return script


def send(
    script: Script, come: Iterable[str], go: Iterable[str], queue: str = "root.a"
) -> list[str]:
    """One message with applications that come, and one with some that go."""
    ugi = si.UserGroupInformation(user="user")
    new = [si.AddApplicationRequest(applicationID=each, queueName=queue, ugi=ugi) for each in come]
    removals = [si.RemoveApplicationRequest(applicationID=each) for each in go]
    return [
        *script.send(si.ApplicationRequest(rmID=script.rm_id, new=new)),
        *script.send(si.ApplicationRequest(rmID=script.rm_id, remove=removals)),
    ]


def come_and_go(
    script: Script, app_id: str, partition: str = "default", user: str = "user"
) -> None:
    """It comes and goes."""
    script.app(app_id, "root.a", partition=partition, user=user)
    removal = si.RemoveApplicationRequest(applicationID=app_id, partitionName=partition)
    script.send(si.ApplicationRequest(rmID=script.rm_id, remove=[removal]))


def timers(script: Script) -> int:
    """How many are kept, dead ones among them."""
    return len(script.scheduler._kernel.timers)


def known(script: Script, partition: str = "default") -> list[str]:
    return [app.app_id for app in script.scheduler.partition(partition).ended]


def test_v8_the_oldest_expire_where_too_many_have_ended() -> None:
    script = cluster(keep_ended=3, keep_rejected=2)
    for number in range(5):
        come_and_go(script, f"ran-{number}")
        script.app(f"lost-{number}", "root.nowhere")
        script.advance(1)
    assert known(script) == ["ran-2", "ran-3", "lost-3", "ran-4", "lost-4"]
    assert script.scheduler.tally.forgotten == Counter(rejected=3, ended=2)
    with pytest.raises(KeyError):
        script.scheduler.application("ran-1")
    send(script, [f"app-{number}" for number in range(100)], [], "root.nowhere")
    assert known(script) == ["ran-2", "ran-3", "ran-4", "app-98", "app-99"]


def test_v8_g55_what_is_forgotten_early_leaves_through_the_table() -> None:
    """Unless its id is in use again."""
    script = cluster(keep_ended=1)
    come_and_go(script, "first")
    script.app("second", "root.a")
    said = script.remove_app("second")
    assert said[-1] == "first Expired (expire)"
    story = [(r.trigger, r.target) for r in script.scheduler.story("application/first")]
    assert story[-1] == ("expire", "Expired")
    script.app("second", "root.a")
    said = [*script.app("third", "root.a"), *script.remove_app("third")]
    assert "second Expired (expire)" not in said
    assert script.scheduler.application("second").state == "New"
    script.advance(72 * 3600)  # its timer is nobody's
    assert known(script) == []
    assert len(script.scheduler.story("application/first")) == len(story)


def test_v8_the_bound_is_for_all_partitions_of_a_resource_manager() -> None:
    script = cluster(keep_ended=2)
    come_and_go(script, "here")
    come_and_go(script, "there", "other")
    come_and_go(script, "here-too")
    assert (known(script), known(script, "other")) == (["here-too"], ["there"])
    come_and_go(script, "there-too", "other")
    assert (known(script), known(script, "other")) == (["here-too"], ["there-too"])


def test_v8_bytes_are_bounded_and_a_record_counts_for_at_least_what_it_takes() -> None:
    bounds = MessageBounds(text=200_000)
    script = cluster(check=False, keep_rejected_bytes=100_000, bounds=bounds)
    long = "x" * 100_000
    for number in range(50):
        script.app(f"{number}-{long}", f"root.{long}", user=long, tags={long: long})
    shelf = script.scheduler.resource_managers()[0].rejected
    assert 0 < shelf.bytes <= 100_000
    (last,) = list(script.scheduler.partition().ended)[-1:]
    assert last.app_id == f"49-{long}"[: LONGEST - 1] + "…"
    assert max(map(len, (last.user, last.queue_asked, last.rejected_message))) == LONGEST
    texts = [text for _, text in script.scheduler.notes]
    assert all(len(text) <= LONGEST for text in texts)
    # Measured without what is shared: states, the queue's path, the partition.
    script = cluster(journal_size=0)
    script.app("app", "root.a", user="büro", tags={"note": "für später"})
    serve(script, "app", "pod", vcore=100)
    script.advance(60)
    script.remove_app("app")
    (ended,) = script.scheduler.partition().ended
    own = (ended, ended.app_id, ended.user, ended.packed, ended.submitted, ended.finished)
    timer_and_places = 400
    assert sum(map(sys.getsizeof, own)) + timer_and_places <= ended.size


def test_v8_an_ended_application_takes_less_than_1500_bytes() -> None:
    script = cluster(check=False, journal_size=0)
    script.configure(QUEUES, extra={"event.trackingEnabled": "false"})

    def live_and_end(first: int, last: int) -> None:
        for number in range(first, last):
            app_id = f"application-{number:08}"
            script.app(
                app_id, "root.a", user="alice", groups=["developers"], tags={"kind": "batch"}
            )
            serve(script, app_id, "pod", vcore=100)
            script.advance(60)
            script.remove_app(app_id)
            script.scheduler.take_summaries()
            script.log.clear()
            script.messages.clear()

    gc.disable()  # an application is freed when it ends, and does not wait for the collector
    try:
        tracemalloc.start()
        live_and_end(0, 50)
        before = tracemalloc.get_traced_memory()[0]
        live_and_end(50, 350)
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        gc.enable()
    assert len(known(script)) == 350
    assert 500 < taken / 300 < 1_500


def test_v8_a_steady_load_reaches_a_plateau() -> None:
    """14 applications end in a second. Timers of those that are gone do not pile up either."""
    script = cluster(check=False, journal_size=1_000, keep_ended=200)
    for second in range(60):
        names = [f"app-{second}-{number}" for number in range(14)]
        send(script, names, names)
        script.advance(1)
        script.log.clear()
        script.messages.clear()
    assert len(known(script)) == 200
    assert script.scheduler.tally.forgotten["ended"] == 14 * 60 - 200
    assert timers(script) < 3 * 200  # and not 840


def test_i7_a_resource_manager_that_registers_anew_takes_its_ended_ones_along() -> None:
    script = cluster()
    for number in range(10):
        come_and_go(script, f"app-{number}")
    before = timers(script)
    script.send(si.RegisterResourceManagerRequest(rmID=script.rm_id, config=QUEUES))
    assert known(script) == []
    assert timers(script) <= before - 10
    shelf = script.scheduler.resource_managers()[0].ended
    assert (shelf.count, shelf.bytes) == (0, 0)


CHANGED = """usedResource maxUsedResource requests allocations applicationState stateLog placeholderData
resourceHistory maxRequestPriority startTime"""


def test_an_ended_application_says_what_it_said_while_it_lived() -> None:
    script = cluster()
    script.app("g", "root.a", gang={"vcore": 200}, style="Hard", groups=["dev"], tags={"a": "b"})
    serve(script, "g", "p0", "p1", group="tg", placeholder=True, vcore=100)
    views = Views(script.scheduler)
    before: Any = views.application("default", "g")
    script.advance(10)
    script.remove_app("g")
    after: Any = views.application("default", "g")
    assert isinstance(script.scheduler.application("g"), EndedApplication)
    assert set(after) == {*before, "finishedTime"}
    assert {name for name in before if before[name] != after[name]} <= {*CHANGED.split()}
    assert after["finishedTime"] == script.now
    assert after["resourceHistory"]["placeholderResource"] == {"UNKNOWN": {"vcore": 2_000}}
    assert [each["applicationState"] for each in after["stateLog"]][-1] == "Completed"


def test_v8_without_a_bound_all_stay_for_72_hours() -> None:
    script = cluster(keep_ended=None, keep_ended_bytes=None)
    for number in range(30):
        come_and_go(script, f"app-{number}")
    script.advance(72 * 3600 - 1)
    assert len(known(script)) == 30
    script.advance(1)
    assert known(script) == []


SECOND = 10**9


def machines() -> Script:
    """A node of a named machine type, and one that does not say."""
    script = Script()
    script.node("n1", attributes={INSTANCE_TYPE: "m5"}, vcore=2000, memory=100)
    return script


def usage_of(script: Script, app: str, later: int = 0) -> usage.Usage:
    return usage.live(script.scheduler.application(app), script.now + later)


def test_2_18_quantity_times_whole_seconds_by_instance_type() -> None:
    """Apart by machine type, and added up over allocations; a node that names none is unknown."""
    script = machines()
    script.node("n2", attributes={INSTANCE_TYPE: "c4"}, vcore=1000, memory=100)
    script.node("n3", vcore=1000, memory=100)
    run(script, "a", "k0", "k1", "k2", "k3", vcore=1000, memory=7)
    script.advance(10)

    def used(seconds: int) -> dict[str, dict[str, int]]:
        names = {"c4": 1, "m5": 2, usage.UNKNOWN_INSTANCE: 1}
        return {
            n: {"vcore": k * seconds * 1000, "memory": k * seconds * 7} for n, k in names.items()
        }

    for more in (0, 1, 0):  # what runs is added, and looking counts nothing
        assert usage_of(script, "a", more * SECOND).used == used(10 + more)
    script.advance(0.9)
    script.release("a")
    found = usage_of(script, "a")
    assert found.used == used(10)
    assert found.preempted == found.placeholder == {}


def test_2_18_placeholders_and_what_was_preempted_have_accounts_of_their_own() -> None:
    script = machines()
    run(script, "g", "p0", "p1", gang={"vcore": 2000}, group="tg", placeholder=True, vcore=1000)
    serve(script, "g", "r0", group="tg", vcore=500)
    script.advance(6)
    script.confirm()  # r0 takes the place of p0, and is bound from now on
    script.advance(4)
    used = usage_of(script, "g")
    assert used.placeholder == {"m5": {"vcore": 6 * 1000 + 10 * 1000}}
    assert used.used == {"m5": {"vcore": 4 * 500}}
    script = machines()
    run(script, "a", "k", vcore=1000)
    script.advance(8)
    victim = script.scheduler.application("a").allocations["k-0"]
    evict(script.scheduler._kernel, Eviction((victim,), victim.ask, "for another"))
    script.advance(1)
    script.release("a", "k-0", si.TerminationType.PREEMPTED_BY_SCHEDULER)
    used = usage_of(script, "a")
    assert (used.preempted, used.used) == ({"m5": {"vcore": 9000}}, {})


@pytest.mark.parametrize("node", [True, False], ids=["node", "application"])
def test_2_18_x31_a_node_or_an_application_that_goes_ends_what_ran_there(node: bool) -> None:
    script = machines()
    run(script, "a", "k", vcore=1000)
    script.advance(2)
    if node:
        script.node("n1", si.NodeInfo.DECOMISSION)
    else:
        script.remove_app("a")
        (summary,) = script.scheduler.take_summaries()
        assert summary.usage.used == {"m5": {"vcore": 2000}}
    script.advance(5)
    assert usage_of(script, "a").used == {"m5": {"vcore": 2000}}


def test_2_1_the_summary_of_an_application_that_has_ended() -> None:
    script = machines()
    script.advance(1)
    submit(script, "a", "k", user="ann", vcore=1000)
    later(script, 2)
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


def _names(script: Script) -> list[str]:
    return [user["userName"] for user in Views(script.scheduler).users("default")]


def test_2_14_a_user_stays_after_the_last_application_and_the_oldest_leave_at_the_bound() -> None:
    script = cluster(keep_users=2)
    come_and_go(script, "one", user="ann")
    script.app("two", "root.a", user="bob")
    assert _names(script) == ["ann", "bob"]
    ann = Views(script.scheduler).user("default", "ann")
    assert ann["groups"] == {} and ann["queues"]["runningApplications"] == []
    with pytest.raises(NotFound):
        Views(script.scheduler).user("default", "carl")
    script.remove_app("two")
    for number, user in enumerate(("ann", "carl", "dora")):
        come_and_go(script, f"app-{number}", user=user)
    assert _names(script) == ["carl", "dora"]
    script.app("runs", "root.a", user="ann")
    assert _names(script) == ["ann", "carl", "dora"]
    script = cluster(keep_users=0)
    come_and_go(script, "one")
    assert _names(script) == []
