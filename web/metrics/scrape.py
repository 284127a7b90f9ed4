"""The endpoint that Prometheus scrapes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from quadriga.si.constants import CPU, MEMORY
from quadriga.web.metrics import exposition
from quadriga.web.metrics.meter import Measurer
from quadriga.web.metrics.own_families import (
    extra_families,
    gang_families,
    lifecycle_families,
    queue_waits,
    service_families,
)
from quadriga.web.metrics.process import process_families
from quadriga.web.metrics.snapshot import Snapshot, take
from quadriga.web.metrics.yunikorn import queue_families, scheduler_families
from quadriga.web.resource import Operation, Resource

if TYPE_CHECKING:
    from starlette.requests import Request

    from quadriga.core.driver.service import SchedulerService
    from quadriga.core.runtime.stepwise import Steps
    from quadriga.core.scheduler import Scheduler
    from quadriga.core.views.counters import QueueCounters
    from quadriga.web.metrics.families import Family
    from quadriga.web.site import ExtraMetrics, Site

_log = logging.getLogger("quadriga.metrics")

#: at most this many resource types have series
RESOURCE_LIMIT: Final = 64

#: at most this many queues have series: the highest ones in the tree, sorted by name within a level
QUEUE_LIMIT: Final = 1000


class Metrics:
    """All metrics of one service. Attaches a meter to the service unless it has one of ours
    already.

    ``queue_limit`` bounds the number of series. ``old_names`` adds the metrics that YuniKorn up to
    1.7 named after each queue. ``extra`` are metrics of other parts of the process.
    """

    def __init__(
        self,
        service: SchedulerService,
        *,
        extra: Sequence[ExtraMetrics] = (),
        queue_limit: int = QUEUE_LIMIT,
        old_names: bool = True,
    ) -> None:
        self._service = service
        self._extra = tuple(extra)
        self._queue_limit = queue_limit
        self._old_names = old_names
        #: names of our own metrics
        self._taken: set[str] = set()
        if isinstance(service.meter, Measurer):
            self.meter = service.meter
        else:
            self.meter = Measurer()
            service.attach(self.meter)

    def look(self, scheduler: Scheduler) -> Steps[Snapshot]:
        """Take a snapshot, in steps; called in the owner thread."""
        return take(scheduler, self._service, self.meter)

    def families(self, seen: Snapshot) -> Iterator[Family]:
        """All families for a snapshot; their names are unique."""
        yield from self.of_scheduler(seen)
        yield from self.of_process()

    def of_scheduler(self, seen: Snapshot) -> Iterator[Family]:
        """The families of a snapshot; there may be many."""
        queues = _merged(seen)
        shown = queues[: self._queue_limit]
        paths = {queue["queue"] for queue in shown}
        resources = _resources(seen)
        taken: set[str] = set()
        for family in chain(
            scheduler_families(seen, resources),
            queue_families(shown, resources, old_names=self._old_names),
            lifecycle_families(seen),
            gang_families(seen),
            queue_waits(seen.partitions, paths),
            service_families(seen, len(queues) - len(shown)),
        ):
            if family.name not in taken:  # the old names of one queue may equal those of another
                taken.add(family.name)
                yield family
        self._taken = taken

    def of_process(self) -> Iterator[Family]:
        """The families that need no snapshot: the process, and metrics of other parts of it."""
        yield from process_families()
        try:
            yield from extra_families(self._extra, self._taken)
        except Exception:
            _log.exception("what others measure is left out")

    def plain(self, seen: Snapshot) -> bytes:
        """All families in the Prometheus text format."""
        return exposition.plain(self.families(seen))

    def openmetrics(self, seen: Snapshot) -> bytes:
        """All families in OpenMetrics."""
        return exposition.openmetrics(self.families(seen))

    def plain_of_scheduler(self, seen: Snapshot) -> bytes:
        return exposition.plain(self.of_scheduler(seen))

    def openmetrics_of_scheduler(self, seen: Snapshot) -> bytes:
        return exposition.openmetrics(self.of_scheduler(seen), last=False)


def _resources(seen: Snapshot) -> frozenset[str]:
    """The resource types with series; CPU and memory come first."""
    names = set(seen.counters["node_usage"])
    for partition in seen.partitions:
        for queue in partition.queues:
            for amounts in (
                queue["max"],
                queue["guaranteed"],
                queue["allocated"],
                queue["pending"],
            ):
                names.update(amounts)
    common = (CPU, MEMORY)
    return frozenset(sorted(names, key=lambda name: (name not in common, name))[:RESOURCE_LIMIT])


def _merged(seen: Snapshot) -> list[QueueCounters]:
    """The queues of all partitions, highest first. Queues of the same path are added up."""
    found: dict[str, QueueCounters] = {}
    for partition in seen.partitions:
        for queue in partition.queues:
            path = queue["queue"]
            found[path] = _sum(found[path], queue) if path in found else queue
    return [found[path] for path in sorted(found, key=lambda path: (path.count("."), path))]


def _sum(one: QueueCounters, other: QueueCounters) -> QueueCounters:
    def both(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
        return {name: a.get(name, 0) + b.get(name, 0) for name in sorted({*a, *b})}

    return {
        "queue": one["queue"],
        "applications": both(one["applications"], other["applications"]),
        "ended": both(one["ended"], other["ended"]),
        "containers": both(one["containers"], other["containers"]),
        "guaranteed": both(one["guaranteed"], other["guaranteed"]),
        "max": both(one["max"], other["max"]),
        "allocated": both(one["allocated"], other["allocated"]),
        "pending": both(one["pending"], other["pending"]),
        "preempting": both(one["preempting"], other["preempting"]),
        "maxRunningApps": one["maxRunningApps"] + other["maxRunningApps"],
    }


def routes(site: Site) -> list[Resource]:
    """GET /ws/v1/metrics. The default is the Prometheus text format; the Accept header may ask for
    OpenMetrics."""
    metrics = Metrics(site.service, extra=site.extra_metrics)

    async def answer(request: Request) -> Response:
        """The scheduler's part may be shared by several readers and is encoded in a thread. The
        process' part is current and made for each of them."""
        if exposition.accepts_openmetrics(request.headers.get("accept", "")):
            encode, kind = metrics.openmetrics_of_scheduler, exposition.OPENMETRICS
        else:
            encode, kind = metrics.plain_of_scheduler, exposition.PLAIN
        text = await site.reader.text("metrics", metrics.look, encode)
        rest = exposition.openmetrics if kind == exposition.OPENMETRICS else exposition.plain
        text += rest(metrics.of_process())
        return Response(text, headers={"Content-Type": kind, "Vary": "Accept"})

    about = "Metrics in the Prometheus text format, or in OpenMetrics (docs/metrics.md)."
    media: dict[str, None] = {exposition.PLAIN: None, exposition.OPENMETRICS: None}
    return [Resource("/ws/v1/metrics", {"GET": Operation(answer, about, media, (503,))}, "metrics")]
