"""YuniKorn's metrics, by its names, labels, types and buckets (2.15), and how they are written."""

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from metrics_scene import families, metrics_of, played, samples, scrape, service_of, values
from prometheus_client.openmetrics import parser

from quadriga.core.driver.service import SchedulerService
from quadriga.core.driver.slices import Slices, read_in_slices
from quadriga.core.runtime.tally import Tally
from quadriga.si import RegisterResourceManagerRequest
from quadriga.sim.scripted.script import ONE_QUEUE, Script
from quadriga.web.metrics import Metrics, exposition
from quadriga.web.metrics.families import SECOND, Family, Histogram

#: name, type, labels, and the values of the only label where they are fixed (2.15)
TABLE = """
scheduler_container_allocation_attempt_total | counter | state | allocated;rejected;error;released
scheduler_application_submission_total | counter | result | new;accepted;rejected
scheduler_application_total | gauge | state | running;completed;failed;resuming;failing;completing
scheduler_node | gauge | state | active;draining;decommissioned;unhealthy;failed
scheduler_scheduling_latency_milliseconds | histogram
scheduler_node_sorting_latency_milliseconds | histogram | level | app;queue
scheduler_trynode_latency_milliseconds | histogram
scheduler_trypreemption_latency_milliseconds | histogram
scheduler_scheduling_cycle_milliseconds | histogram
scheduler_trynode_evaluation_milliseconds | histogram
scheduler_vcore_node_usage_total | gauge | range | [0,10%];(10%, 20%];(20%,30%];(30%,40%];(40%,50%];\
(50%,60%];(60%,70%];(70%,80%];(80%,90%];(90%,100%]
queue_app | gauge | queue state
queue_app_total | counter | queue state
queue_resource | gauge | queue state resource
root_batch_queue_app | gauge | state | accepted;running;rejected;failed;completed;new;failing;resuming;\
completing;expired
root_batch_queue_container | counter | state | allocated;released
root_batch_queue_resource | gauge | state resource
event_total_created | gauge
event_total_channeled | gauge
event_total_not_channeled | gauge
event_total_processed | gauge
event_total_stored | gauge
event_total_not_stored | gauge
event_total_collected | gauge
"""
YUNIKORN = {
    f"yunikorn_{name}": (kind, set(labels.split()), set(filter(None, values.split(";"))))
    for name, kind, labels, values in (
        (*line.split(" | "), "", "")[:4] for line in TABLE.strip().splitlines()
    )
}


@pytest.fixture(scope="module")
def page() -> str:
    service = service_of()
    played(service)
    return scrape(metrics_of(service), service)


@pytest.mark.parametrize("name", YUNIKORN)
def test_2_15_name_type_labels_and_buckets(page: str, name: str) -> None:
    kind, labels, values = YUNIKORN[name]
    found = families(page)[name]
    assert (found[0], found[2]) == (kind, labels)
    if values:
        (label,) = labels
        assert {
            dict(own)[label] for n, own in samples(page) if n.removesuffix("_count") == name
        } == values
    if kind == "histogram":
        wanted = ["0.0001", "0.001", "0.01", "0.1", "1", "10", "100", "1000", "+Inf"]
        bounds = re.findall(rf'^{name}_bucket{{.*?le="(.*?)"', page, re.MULTILINE)
        assert bounds == wanted * (len(bounds) // len(wanted))


def test_2_15_states_of_queues_and_their_amounts(page: str) -> None:
    found = samples(page)
    for queue, state, resource, amount in (
        ("root", "max", "vcore", 80_000),
        ("root.batch", "max", "vcore", 60_000),
        ("root.batch", "guaranteed", "vcore", 1_000),
        ("root.batch", "allocated", "vcore", 60_000),
        ("root.batch", "maxRunningApps", "apps", 50),
        ("root.needy", "pending", "vcore", 1_000),
        ("root.batch", "preempting", "vcore", 1_000),
    ):
        labels = {"queue": queue, "state": state, "resource": resource}
        assert found["yunikorn_queue_resource", frozenset(labels.items())] == amount, labels
    old = {("state", "allocated"), ("resource", "vcore")}
    assert found["yunikorn_root_batch_queue_resource", frozenset(old)] == 60_000
    attempts = "yunikorn_scheduler_container_allocation_attempt_total"
    assert found[attempts, frozenset({("state", "rejected")})] == 2
    assert found[attempts, frozenset({("state", "released")})] == 3
    assert found["yunikorn_event_total_created", frozenset()] > 500


def with_queues(root: str, **options: Any) -> tuple[SchedulerService, Script, Callable[[], str]]:
    """A service, a script of it, and what its page says; below root any queue may be made."""
    service = service_of(**options)
    metrics = metrics_of(service)
    script = Script(
        "partitions: [{name: default, placementrules: [{name: provided, create: true}],"
        f" queues: [{{name: root, submitacl: '*'{root}}}]}}]",
        scheduler=service.scheduler,
    )
    return service, script, lambda: scrape(metrics, service)


def test_a_starting_application_runs_and_others_have_yunikorns_names() -> None:
    aware = ", queues: [{name: aware, properties: {application.sort.policy: stateaware}}]"
    service, script, page = with_queues(aware)
    script.node("n", vcore=1_000)
    script.app("app", "root.aware")
    script.ask("app", "pod", vcore=100)
    script.schedule()
    assert service.scheduler.application("app").state == "Starting"
    total = "yunikorn_scheduler_application_total"
    assert samples(page())[total, frozenset({("state", "running")})] == 1
    script.release("app")
    assert samples(page())[total, frozenset({("state", "completing")})] == 1


# -- how many series -------------------------------------------------------------------------------


def test_2_15_series_of_a_queue_go_when_the_queue_goes() -> None:
    service, script, page = with_queues("")
    script.node("n", vcore=1_000)
    script.app("app", "root.made")
    script.ask("app", "pod", vcore=100)
    script.schedule()
    waits = 'quadriga_queue_wait_seconds_count{rm="rm",partition="default",queue="root.made"'
    assert waits in page()
    script.remove_app("app")
    script.advance(20)
    assert service.scheduler.partition().queue("root.made") is None
    after = page()
    assert "root.made" not in after and "root_made" not in after
    assert not Metrics(service).meter.journal_metrics.waits


def test_2_21_ends_are_counted_and_outlive_the_queue() -> None:
    _, script, page = with_queues(", queues: [{name: a}]", keep_ended=1, keep_rejected=1)
    script.node("n", vcore=1_000)

    def ended(path: str) -> dict[str, float]:
        found = samples(page())
        return {
            dict(labels)["state"]: count
            for (name, labels), count in found.items()
            if name == "yunikorn_queue_app_total" and dict(labels)["queue"] == path
        }

    nothing = {"completed": 0, "failed": 0, "rejected": 0}
    assert ended("root") == nothing
    for number in range(3):  # it runs and completes; it is removed before it asks; it is refused
        script.app(f"app-{number}", "root.made")
        script.ask(f"app-{number}", "pod", vcore=100)
        script.schedule()
        script.remove_app(f"app-{number}")
        script.app(f"idle-{number}", "root.a")
        script.remove_app(f"idle-{number}")
        script.app(f"no-{number}", "elsewhere.x", user="")
    assert ended("root.made") == {**nothing, "completed": 3}
    assert ended("root.a") == {**nothing, "failed": 3}
    assert ended("root") == {"completed": 3, "failed": 3, "rejected": 3}
    script.advance(20)
    assert ended("root.made") == {}  # the queue has gone
    script.app("again", "root.made")
    assert ended("root.made") == {**nothing, "completed": 3}
    script.send(RegisterResourceManagerRequest(rmID="rm", config=ONE_QUEUE))
    assert ended("root") == {"completed": 3, "failed": 3, "rejected": 3}


def test_2_21_ends_in_queues_without_end_are_not_remembered_without_end() -> None:
    tally = Tally()
    for number in range(20_000):
        tally.application_ended("[rm]default", f"root.q{number}", "Completed")
    assert len(tally.ended) == 10_000
    assert tally.ended["[rm]default", "root"]["Completed"] == 20_000
    assert ("[rm]default", "root.q19999") in tally.ended
    assert ("[rm]default", "root.q0") not in tally.ended


def test_queues_and_resources_without_end_do_not_make_series_without_end() -> None:
    service, script, _ = with_queues("")
    metrics = metrics_of(service, queue_limit=5)
    script.node("n", vcore=100_000, **{f"a{number:03}": 1 for number in range(100)})
    for number in range(20):
        script.app(f"app-{number:02}", f"root.q{number:02}")
        script.ask(f"app-{number:02}", "pod", "more", vcore=100)
    script.schedule(30)
    text = scrape(metrics, service)
    assert values(text, "queue") == {"root", "root.q00", "root.q01", "root.q02", "root.q03"}
    assert samples(text)["quadriga_queues_left_out", frozenset()] == 16
    used = [name for name in families(text) if name.endswith("_node_usage_total")]
    assert (len(used), len(values(text, "resource") - {"apps"})) == (64, 64)


def test_names_that_only_labels_can_tell_apart_or_that_no_metric_may_have() -> None:
    service, script, page = with_queues(", queues: [{name: a-b}, {name: a_b}]")
    script.node("n", vcore=1_000, **{"nvidia.com/gpu": 4, "nvidia-com/gpu": 4})
    text = page()
    assert list(families(text)).count("yunikorn_root_a_b_queue_app") == 1
    assert {"root.a-b", "root.a_b"} <= values(text, "queue")
    assert "yunikorn_scheduler_nvidia_com_gpu_node_usage_total" in families(text)
    # old names can be left out, but for the containers
    names = families(scrape(metrics_of(service, old_names=False), service))
    assert "yunikorn_root_a_b_queue_container" in names
    assert "yunikorn_root_a_b_queue_app" not in names and "yunikorn_queue_app" in names


def test_queues_of_the_same_path_are_added_up() -> None:
    service = service_of()
    for rm in ("one", "two"):
        script = Script(scheduler=service.scheduler, rm_id=rm)
        script.node(f"{rm}-node", vcore=1_000)
        script.app("app")
        script.ask("app", "pod", vcore=100)
        script.schedule()
    found = samples(scrape(metrics_of(service), service))
    root = {"queue": "root", "resource": "vcore"}
    name = "yunikorn_queue_resource"
    assert found[name, frozenset({**root, "state": "max"}.items())] == 2_000
    assert found[name, frozenset({**root, "state": "allocated"}.items())] == 200
    waits = {"partition": "default", "queue": "root.default", "kind": "real"}
    for rm in ("one", "two"):
        labels = frozenset({**waits, "rm": rm}.items())
        assert found["quadriga_queue_wait_seconds_count", labels] == 1


# -- how they are written --------------------------------------------------------------------------


def test_2_21_openmetrics_says_the_same() -> None:
    service = service_of()
    played(service)
    metrics = metrics_of(service)
    seen = read_in_slices(service, Slices[Any](metrics.look)).result()
    text = metrics.openmetrics(seen).decode()
    assert text.endswith("# EOF\n")
    parsed = list(parser.text_string_to_metric_families(text))
    kinds = {family.name: family.type for family in parsed}
    assert kinds["yunikorn_queue_app"] == "gauge"
    assert kinds["yunikorn_queue_app_total"] == "unknown"  # it does not take the gauge's name
    found = {(s.name, frozenset(s.labels.items())): s.value for f in parsed for s in f.samples}
    plain = {**samples(metrics.plain(seen).decode())}
    # but for buckets, and for what changes by itself
    for told in (found, plain):
        for name, labels in [*told]:
            if name.endswith("_bucket") or name.startswith(("process_", "python_")):
                del told[name, labels]
    assert found == plain


def test_names_of_others_cannot_break_the_text() -> None:
    family = Family("quadriga_odd", "gauge", 'a \\ help\nwith "quotes"')
    odd = 'quote " backslash \\ line\nend ä'
    family.add(1.5, queue=odd)
    family.add(math.inf, queue="inf")
    family.add(-math.inf, queue="-inf")
    found = samples(exposition.plain([family]).decode())
    assert found["quadriga_odd", frozenset({("queue", odd)})] == 1.5
    assert found["quadriga_odd", frozenset({("queue", "inf")})] == math.inf
    (again,) = parser.text_string_to_metric_families(exposition.openmetrics([family]).decode())
    assert again.samples[0].labels == {"queue": odd}
    assert again.documentation == 'a \\ help\nwith "quotes"'


def test_a_duration_that_equals_a_bound_is_below_it() -> None:
    one, many = Histogram((SECOND, 2 * SECOND)), Histogram((SECOND, 2 * SECOND))
    durations = [0, SECOND, SECOND + 1, 2 * SECOND, 2 * SECOND + 1, 10**15] * 20
    for each in durations:
        one.observe(each)
    many.observe_all(durations)
    assert one.counts == many.counts == [40, 40, 40]
    assert one.read() == many.read()


def test_openmetrics_is_for_those_who_prefer_it() -> None:
    ours, plain = "application/openmetrics-text", "text/plain;version=0.0.4"
    for accept in (ours, f"{ours};version=1.0.0;q=0.5,{plain};q=0.3"):
        assert exposition.accepts_openmetrics(accept), accept
    for accept in (
        *("", "*/*", plain, f"{ours}; q=0.2, text/plain; q=0.9", f"{ours};q=0"),
        f"{ours};q=nonsense",
    ):
        assert not exposition.accepts_openmetrics(accept), accept


def test_gangs_that_are_placed_in_one_step_are_counted_by_what_they_wait_for() -> None:
    _, script, page = with_queues(
        ", properties: {gang.admission: atomic, gang.gather.after: 1m},"
        " queues: [{name: default}, {name: small, resources: {max: {vcore: 2}}}]"
    )
    script.node("n", vcore=4_000)
    for name, queue, members in (("runs", "default", 1), ("g", "default", 4), ("h", "small", 2)):
        script.app(name, f"root.{queue}", gang={"vcore": members * 1_000})
        keys = [f"{name}{number}" for number in range(members)]
        script.ask(name, *keys, group="g", placeholder=True, vcore=1_000)
        script.schedule()
    script.app("gated", "root.small", gang={"vcore": 1_000})
    script.ask("gated", "k", group="g", placeholder=True, vcore=1_000)
    script.schedule()

    def counted(name: str, label: str) -> dict[str, float]:
        found = samples(page()).items()
        return {dict(own)[label]: value for (each, own), value in found if each == name and value}

    assert counted("quadriga_gangs", "phase") == {"started": 2, "waiting": 1, "gated": 1}
    attempts = counted("quadriga_gang_attempts_total", "result")
    assert attempts == {"placed": 2, "nodes": 1, "quota": 1}
    script.advance(60)
    script.schedule()
    assert counted("quadriga_gangs", "phase") == {"started": 2, "gathering": 1, "gated": 1}
