"""What the journal tells: edges, time in states, waits, placeholders, however it is followed."""

import random
from collections import Counter
from typing import Any

import pytest
from everything_life import Life
from metrics_scene import metrics_of, played, samples, scrape, service_of

from quadriga.core import Options
from quadriga.core.driver.service import SchedulerService
from quadriga.core.runtime.journal import Journal
from quadriga.si import Allocation, NullCallback, RegisterResourceManagerRequest
from quadriga.sim.scripted.script import ONE_QUEUE, Script, resource
from quadriga.web.metrics import Measurer
from quadriga.web.metrics.journal_metrics import STATE_BOUNDS, WAIT_BOUNDS, JournalMetrics
from tests.si.requests import apps, asks, nodes, register


def told(lives: JournalMetrics) -> dict[str, Any]:
    """Everything that lives tell, comparable."""
    return {
        "edges": lives.edges,
        "lasted": {k: v.read() for k, v in sorted(lives.lasted.items())},
        "waits": {(q.key, p): v.read() for (q, p), v in lives.waits.items()},
        "releases": lives.releases,
        "placeholders": lives.placeholders,
        "cursor": lives.cursor,
        "missed": lives.missed,
    }


def followed(script: Script) -> JournalMetrics:
    lives = JournalMetrics()
    lives.follow(script.scheduler.journal)
    return lives


def test_every_edge_is_counted_once_in_whatever_portions() -> None:
    journal = played(service_of()).scheduler.journal
    lives = JournalMetrics()
    lives.follow(journal)
    wanted = Counter((r.key.partition("/")[0], r.trigger, r.source, r.target) for r in journal)
    assert lives.edges == wanted
    assert list(lives.edges) == sorted(wanted)
    for portion in (1, 7, 100):
        parts = JournalMetrics()
        while parts.cursor < journal.count:
            parts.follow(journal, portion)
        assert told(parts) == told(lives)
    lives.follow(journal)
    assert lives.edges == wanted


def test_whoever_follows_all_along_is_told_the_same() -> None:
    """Also while entities change further after their record was written."""
    life = Life(random.Random(7))
    lives, late = JournalMetrics(), JournalMetrics()
    for _ in range(150):
        life.step()
        lives.follow(life.scheduler.journal)
    late.follow(life.scheduler.journal)
    one, other = told(lives), told(late)
    for each in (one, other):
        each.pop("waits")  # by the queue it is in when somebody looks
    assert one == other


# -- time in states --------------------------------------------------------------------------------


def seconds(lives: JournalMetrics, lifecycle: str, state: str) -> tuple[int, float]:
    found = lives.lasted[lifecycle, state].read()
    return sum(found.counts), found.total


def test_how_long_states_last() -> None:
    script = Script(check=False)
    script.app("app")
    script.advance(5)  # New
    script.ask("app", "pod", vcore=1)
    script.advance(7)  # Accepted, and the ask Pending: there is no node
    script.node("n", vcore=10)
    script.schedule()
    script.advance(11)  # Running, Allocated
    script.release("app")
    script.advance(31)  # Waiting
    lives = followed(script)
    for state, lasted in (("New", 5), ("Accepted", 7), ("Running", 11), ("Waiting", 30)):
        assert seconds(lives, "application", state) == (1, lasted)
    assert seconds(lives, "ask", "Pending") == (1, 7)
    assert seconds(lives, "allocation", "Allocated") == (1, 11)
    assert ("application", "Completed") not in lives.lasted
    assert ("allocation", "Planned") not in lives.lasted


def test_parked_asks_and_releases_that_nobody_confirms_yet() -> None:
    script = Script(check=False)
    script.node("n", vcore=10)
    script.app("gang", gang={"vcore": 1})
    script.advance(1)
    script.ask("gang", "ph", group="tg", placeholder=True, vcore=1)
    script.advance(2)
    script.schedule()
    script.advance(3)
    script.ask("gang", "real", group="tg", vcore=1)
    script.advance(4)
    script.schedule()  # the placeholder is asked back, the ask is parked
    script.advance(6)
    script.confirm()
    lives = followed(script)
    assert seconds(lives, "ask", "Pending") == (2, 2 + 4)
    assert seconds(lives, "ask", "Parked") == (1, 6)
    assert seconds(lives, "allocation", "Allocated") == (1, 7)
    assert seconds(lives, "allocation", "Releasing") == (1, 6)
    assert lives.placeholders == {"Allocated": 1, "Releasing": 1, "Replaced": 1}
    assert lives.releases == {"replacement": 1}
    queue = script.scheduler.partition().queue("root.default")
    assert queue is not None
    assert sum(lives.waits[queue, True].counts) == 1
    assert lives.waits[queue, True].total == 2 * 10**9
    assert lives.waits[queue, False].total == 10 * 10**9  # until the placeholder was gone


def test_each_repeat_of_an_ask_has_waited() -> None:
    script = Script(check=False)
    script.app("app")
    script.ask("app", "pods", vcore=1, repeat=3)
    for _ in range(2):
        script.node(f"n{script.now}", vcore=2)
        script.schedule()
        script.advance(20)
    ((_, waited),) = followed(script).waits.items()
    assert (sum(waited.counts), waited.total) == (3, 20 * 10**9)
    for bounds in (STATE_BOUNDS, WAIT_BOUNDS):
        assert list(bounds) == sorted(set(bounds))


def test_what_a_restart_brings_back_has_not_waited() -> None:
    service = service_of()
    script = Script(scheduler=service.scheduler, check=False)
    script.app("app")
    script.advance(100)
    pod = Allocation(
        allocationKey="pod",
        applicationID="app",
        nodeID="n",
        resourcePerAlloc=resource({"vcore": 1}),
        allocationTags={"creationTime": "1"},
    )
    script.node("n", vcore=10, existing=[pod])
    lives = followed(script)
    assert lives.edges["allocation", "allocate", "Planned", "Allocated"] == 1
    assert not lives.waits
    assert ("ask", "Pending") not in lives.lasted


# -- the ring --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "missed"), [(10, 51), (0, 61)])
def test_what_was_gone_before_anybody_looked_is_said(size: int, missed: int) -> None:
    service = SchedulerService(Options(journal_size=size), manual=True, clock=lambda: 1)
    script = Script(scheduler=service.scheduler)
    for number in range(30):
        script.app(f"app-{number}")
        script.ask(f"app-{number}", "pod", vcore=1)
    found = samples(scrape(metrics_of(service), service))
    assert found["quadriga_journal_records_total", frozenset()] == 61
    assert found["quadriga_journal_missed_total", frozenset()] == missed
    counted = sum(v for (name, _), v in found.items() if name == "quadriga_transitions_total")
    assert counted == 61 - missed


def test_a_meter_loses_nothing_of_a_ring_that_goes_round() -> None:
    """As long as one request does not fill it."""
    service = SchedulerService(Options(journal_size=100), manual=True, clock=lambda: 1)
    metrics = metrics_of(service)
    service.register_resource_manager(register(), NullCallback())
    service.submit(nodes("n", vcore=10_000))
    for number in range(100):
        service.submit(apps(f"app-{number}"))
        service.submit(asks(f"app-{number}", "pod", vcore=1))
        service.step(1)
    found = samples(scrape(metrics, service))
    assert found["quadriga_journal_missed_total", frozenset()] == 0
    edge = {"lifecycle": "ask", "trigger": "allocate", "from": "Pending", "to": "Allocated"}
    assert found["quadriga_transitions_total", frozenset(edge.items())] == 100
    assert found["quadriga_rounds_total", frozenset()] >= 100


def test_what_was_dropped_has_ended_or_is_removed_is_not_remembered() -> None:
    """A resource manager that registers anew reports its state anew (I7)."""
    queues = "queues: [{name: root}]"
    two = f"partitions: [{{name: default, {queues}}}, {{name: other, {queues}}}]"
    script = Script(two, check=False)
    script.app("app", "root.default", partition="other")  # rejected: the record knows since when
    lives = followed(script)
    assert lives.remembered == 1  # the resource manager
    script.configure("partitions: [{name: default, queues: [{name: root}]}]")
    script.advance(20)
    assert [partition.name for partition in script.scheduler.partitions()] == ["default"]
    script.advance(72 * 3600)
    lives.follow(script.scheduler.journal)
    assert lives.remembered == 1
    assert lives.lasted["application", "Rejected"].read().total == 72 * 3600
    script = Script(check=False)
    script.node("n", vcore=10)
    script.app("app")
    script.ask("app", "pod", vcore=1)
    script.schedule()
    lives = followed(script)
    assert lives.remembered > 1
    assert lives.waits
    script.send(RegisterResourceManagerRequest(rmID="rm", config=ONE_QUEUE))
    lives.follow(script.scheduler.journal)
    assert lives.remembered == 1
    assert not lives.waits


def test_numbers_that_go_wrong_do_not_stop_the_scheduler(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(JournalMetrics):
        def follow(self, journal: Journal, most: int | None = None) -> None:
            raise ZeroDivisionError

    service = service_of()
    meter = Measurer()
    meter.journal_metrics = Broken()
    service.attach(meter)
    Script(scheduler=service.scheduler).app("app")
    service.step()
    meter.follow(service.scheduler.journal)
    assert "could not be followed" in caplog.text
    assert meter.journal_metrics.missed == service.scheduler.journal.count
