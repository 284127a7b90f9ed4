"""The cluster of ``quadriga serve --demo``: there is something to see soon, and no end of it."""

from collections import Counter

import httpx

from quadriga.core import SchedulerService
from quadriga.core.views import Views
from quadriga.sim.demo import OPTIONS, Demo
from quadriga.web.app import create_app

SECOND = 1_000_000_000
TENTH = SECOND // 10


class Watched:
    """A demo in virtual time, a tenth of a second at a step."""

    def __init__(self) -> None:
        self.now = 1_790_000_000 * SECOND
        self.began = self.now
        self.service = SchedulerService(OPTIONS, manual=True, clock=lambda: self.now)
        self.views = Views(self.service.scheduler)
        self.demo = Demo(self.service)
        self.demo.begin()
        self.seen: Counter[str] = Counter()

    def live(self, seconds: int, step: int = TENTH) -> None:
        for _ in range(seconds * SECOND // step):
            self.now += step
            self.demo.step(self.now - self.began)
            self.service.step(self.now)
            [partition] = self.views.partitions()
            self.seen.update(partition["applications"].keys())


def test_gangs_start_wait_and_end_and_services_push_batch_jobs_out() -> None:
    watched = Watched()
    watched.live(120)
    manager = watched.demo.manager
    assert manager.gangs["placed"] > 5
    assert manager.gangs["replaced"] > 15
    assert manager.received["AllocationResponse.released.PREEMPTED_BY_SCHEDULER"] > 0
    assert manager.restarts > 0
    assert {"Accepted", "Running", "Completing", "Completed"} <= set(watched.seen)
    assert watched.demo.ended > 30
    assert watched.service.scheduler.check() == []
    assert watched.service.failures == 0
    assert watched.service.scheduler.events.counts.created > 0


def test_it_is_the_same_cluster_every_time() -> None:
    one, other = Watched(), Watched()
    one.live(20)
    other.live(20)
    assert one.views.state_dump() == other.views.state_dump()


def test_it_does_not_grow_however_long_it_runs() -> None:
    watched = Watched()
    watched.live(1500, step=5 * SECOND)
    manager, scheduler = watched.demo.manager, watched.service.scheduler
    assert len(manager.runs) <= 80 + 10  # and those of one rush
    assert manager.fates == []
    assert len(scheduler.partition().ended) < watched.demo.ended / 2  # ten minutes of them
    assert len(scheduler._kernel.timers._heap) < 20_000


async def test_within_five_seconds_a_gang_waits_a_quota_binds_and_services_preempt() -> None:
    """At 60 simulated seconds a second; the first minute of a look shows all three."""
    watched = Watched()
    watched.live(5)
    transport = httpx.ASGITransport(create_app(watched.service, watched.views))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:9080") as client:
        address = "/ws/v1/partition/default/applications/active"
        active = (await client.get(address)).json()
        waiting = {
            (app["queueName"], ask["placeholder"], entry["message"])
            for app in active
            if app["applicationState"] == "Accepted"
            for ask in app["requests"]
            for entry in ask["allocationLog"]
        }
        whole = "Not enough queue quota for the whole gang"
        assert ("root.research.training", True, whole) in waiting
        assert ("root.batch", False, "The cluster is full") in waiting
        events = (await client.get("/ws/v1/events/batch?count=10000")).json()["EventRecords"]
        preempted = [e for e in events if e.get("message", "").startswith("Preempted by shop-")]
        assert len(preempted) >= 5
        assert all(each["message"].endswith(" in root.services") for each in preempted)
