"""Metrics: what they add to the cost of a decision, and what a scrape costs the scheduler and its users."""

from __future__ import annotations

from bench import Figure
from bench._support.cluster import RM, add_nodes
from bench._support.timing import Clock, floor, per_call, service_memory
from bench.scheduling import Case, prepared
from quadriga import si
from quadriga.core.driver.service import SchedulerService
from quadriga.core.runtime.stepwise import finish
from quadriga.web.metrics import Measurer, Metrics
from quadriga.web.metrics.journal_metrics import JournalMetrics

ROUNDS = 9
#: Decisions in one call, as in a service.
SLICE = 256


def measure() -> list[Figure]:
    """Time of a followed record (ns), multiples of the floor for all records of a pod, and the cost of
    measuring slices of decisions; time of a scrape of 1,000 nodes and 100 queues (ms)."""
    base = floor()
    follow: list[float] = []
    plain: list[float] = []
    measured: list[float] = []
    for _ in range(ROUNDS):
        plain.append(_sliced(Case("u50"), measuring=False))
        measured.append(_sliced(Case("u50"), measuring=True))
        follow.append(_followed(Case("u50")))
    look, encode = _scrape()
    return [
        Figure("floor", base, "ns"),
        Figure("records of a pod followed", min(follow), "ns"),
        Figure("records of a pod followed", min(follow) / base, "floors"),
        Figure("slices of decisions measured, to not", min(measured) / min(plain), "x", 1.05),
        Figure("a scrape: looking, in the scheduler's thread", look / 1e6, "ms"),
        Figure("a scrape: encoding, outside of it", encode / 1e6, "ms"),
    ]


def _followed(case: Case) -> float:
    """Time for the journal's records of one pod (ns)."""
    scheduler, requests = prepared(case)
    for request in requests:
        scheduler.apply(request, 0)
    scheduler.schedule(0)
    lives = JournalMetrics()
    with service_memory(), Clock() as clock:
        lives.follow(scheduler.journal)
    return clock.spent / case.pods


def _sliced(case: Case, *, measuring: bool) -> float:
    """Time for one pod (ns), decided in slices by a service that is busy until the end. The records are
    followed afterwards, as in a service, unless there are too many."""
    service = SchedulerService(manual=True, clock=lambda: 0)
    scheduler, requests = prepared(case)
    for request in requests:
        scheduler.apply(request, 0)
    service.scheduler = scheduler
    if measuring:
        service.attach(Measurer())
    with service_memory(), Clock() as clock:
        while True:
            service.step(0, SLICE)
            if not scheduler.unfinished:
                break
    return clock.spent / case.pods


def _scrape() -> tuple[float, float]:
    service = SchedulerService(manual=True, clock=lambda: 0)
    scheduler = service.scheduler
    queues = "".join(f"          - name: q{number}\n" for number in range(100))
    config = (
        "partitions:\n  - name: default\n    queues:\n      - name: root\n"
        f"        submitacl: '*'\n        queues:\n{queues}"
    )
    scheduler.apply(si.RegisterResourceManagerRequest(rmID=RM, config=config), 0)
    add_nodes(scheduler, 1_000)
    metrics = Metrics(service)
    look = per_call(lambda: finish(metrics.look(scheduler)), 10)
    seen = finish(metrics.look(scheduler))
    return look, per_call(lambda: metrics.plain(seen), 10)
