"""GET /ws/v1/metrics over HTTP, what a driver measures, and what others add."""

import itertools
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from metrics_scene import families, metrics_of, played, samples, scrape, service_of
from on_a_port import PATIENCE, client_of

from quadriga import si
from quadriga.core.driver.service import SchedulerService
from quadriga.core.views import Views
from quadriga.web.metrics import Measurer, Metrics
from quadriga.web.site import Measured
from tests.si.requests import apps, asks, nodes, register


async def get(service: SchedulerService, **options: Any) -> httpx.Response:
    headers = options.pop("headers", {})
    scene = SimpleNamespace(service=service, views=Views(service.scheduler))
    async with client_of(scene, **options) as client:
        return await client.get("/ws/v1/metrics", headers=headers)


async def test_2_14_metrics_for_prometheus() -> None:
    """And the OpenMetrics for those who ask."""
    service = service_of()
    played(service)
    answer = await get(service)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert samples(answer.text)["yunikorn_scheduler_node", frozenset({("state", "active")})] == 5
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    answer = await get(service, headers={"Accept": accept})
    kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert answer.headers["content-type"] == kind
    assert answer.headers["vary"] == "Accept, Accept-Encoding"
    assert answer.text.endswith("# EOF\n")


async def test_2_15_a_scrape_before_any_registration(caplog: pytest.LogCaptureFixture) -> None:
    service = SchedulerService(manual=True)
    answer = await get(service)
    assert answer.status_code == 200
    records = samples(answer.text)["quadriga_journal_records_total", frozenset()]
    assert (records, service.failures, caplog.text) == (0, 0, "")


async def test_others_may_add_metrics() -> None:
    streams = [({"kind": "allocation"}, 3), ({"kind": "node"}, 2)]
    told: list[Measured] = [
        ("quadriga_grpc_streams", "gauge", "Open streams.", streams),
        ("quadriga_grpc_sent_total", "counter", "Messages sent.", [({}, 7)]),
    ]
    answer = await get(service_of(), extra_metrics=(lambda: told,))
    found = families(answer.text)["quadriga_grpc_streams"]
    assert found == ("gauge", "Open streams.", frozenset({"kind"}))
    assert samples(answer.text)["quadriga_grpc_sent_total", frozenset()] == 7


@pytest.mark.parametrize("name", ["quadriga_inbox", "other_name", ""])
async def test_names_that_are_not_theirs_and_who_fails_to_measure_are_left_out(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    def measured() -> list[Measured]:
        if not name:
            raise OSError("no numbers today")
        return [(name, "gauge", "x", [({}, 99)])]

    answer = await get(service_of(), extra_metrics=(measured,))
    assert answer.status_code == 200
    assert samples(answer.text).get((name, frozenset())) != 99
    assert "left out" in caplog.text and (name or "no numbers today") in caplog.text


# -- what the driver measures ----------------------------------------------------------------------


class Picky(si.NullCallback):
    """Lets pods onto the last node only."""

    def __init__(self) -> None:
        self.placed = threading.Event()

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        return None if args.nodeID == "n3" else "not here"

    def update_allocation(self, response: object) -> None:
        self.placed.set()


def ticking() -> Callable[[], int]:
    """A clock; every look at it takes a millisecond."""
    return itertools.count(1_000_000, 1_000_000).__next__


def busy(service: SchedulerService, callback: si.NullCallback) -> None:
    service.register_resource_manager(register(), callback)
    service.update_node(nodes("n1", "n2", "n3", vcore=1_000))
    service.update_application(apps("app"))
    service.update_allocation(asks("app", "pod", vcore=10, repeat=2))


def counts(text: str) -> dict[str, float]:
    """Of the histograms without labels: how many, and their sums."""
    return {name: value for (name, labels), value in samples(text).items() if not labels}


def test_latencies_are_measured_by_the_drivers_clock() -> None:
    service = service_of()
    service.attach(Measurer(ticking()))
    metrics = metrics_of(service)
    busy(service, Picky())
    service.step()
    found = counts(scrape(metrics, service))
    prefix = "yunikorn_scheduler_"
    assert found[f"{prefix}trynode_latency_milliseconds_count"] == 6  # three nodes for each pod
    assert found[f"{prefix}trynode_latency_milliseconds_sum"] == pytest.approx(0.006)
    assert found[f"{prefix}trynode_evaluation_milliseconds_count"] == 1
    assert found[f"{prefix}trynode_evaluation_milliseconds_sum"] == pytest.approx(0.006)
    assert found[f"{prefix}scheduling_cycle_milliseconds_count"] == 1
    # from the first look at the clock to the last: two for each predicate, and one more
    assert found[f"{prefix}scheduling_cycle_milliseconds_sum"] == pytest.approx(0.013)
    assert found[f"{prefix}scheduling_latency_milliseconds_count"] == found["quadriga_rounds_total"]
    assert found["quadriga_work_seconds_count"] == 4  # requests; the look itself comes too late


def test_what_is_measured_changes_no_decision() -> None:
    """Victims are searched for, and that takes time; nothing is measured where nobody does."""
    measured, plain = service_of(), service_of()
    measured.attach(Measurer(ticking()))
    metrics = metrics_of(measured)
    assert played(measured).log == played(plain).log
    found = counts(scrape(metrics, measured))
    assert found["yunikorn_scheduler_trypreemption_latency_milliseconds_count"] >= 1
    assert found["yunikorn_scheduler_trypreemption_latency_milliseconds_sum"] >= 0.001
    meter, plain = Measurer(ticking()), service_of()
    plain.attach(meter)
    plain.attach(None)
    busy(plain, Picky())
    plain.step()
    assert meter.clock() <= 3 * 1_000_000
    assert plain.meter is None


def test_a_service_with_a_thread_is_followed_while_it_idles() -> None:
    callback = Picky()
    with SchedulerService() as threaded:
        metrics = Metrics(threaded)
        busy(threaded, callback)
        assert callback.placed.wait(PATIENCE)
        found = samples(scrape(metrics, threaded))
        assert Metrics(threaded).meter is metrics.meter  # one meter for all who ask
    edge = {"lifecycle": "allocation", "trigger": "allocate", "from": "Planned", "to": "Allocated"}
    assert found["quadriga_transitions_total", frozenset(edge.items())] >= 1
    assert found["quadriga_resource_managers", frozenset({("state", "Running")})] == 1


def test_a_saturated_service_is_left_alone_until_the_journal_fills() -> None:
    """Under load, records wait; while there is nothing to decide they are looked at in portions."""
    service = service_of()
    metrics = metrics_of(service)
    lives, journal = metrics.meter.journal_metrics, service.scheduler.journal
    played(service)
    metrics.meter.scheduled(service.scheduler, 1, 5, messages=5)
    assert lives.cursor == 0
    metrics.meter.scheduled(service.scheduler, 1, 1, messages=0)
    assert lives.cursor == journal.count
