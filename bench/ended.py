"""Ended applications: the memory of one, and of a long stream of them."""

from __future__ import annotations

import tracemalloc
from typing import Final

from bench import Figure
from bench._support import sizes
from bench._support.cluster import RM, add_nodes
from quadriga.core import Options, Scheduler
from quadriga.si import (
    AddApplicationRequest,
    AllocationAsk,
    AllocationRequest,
    ApplicationRequest,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    UserGroupInformation,
)
from quadriga.sim.scripted.script import resource

_SECOND: Final = 1_000_000_000
#: Applications that end in one second, as in a service that was observed for a week.
RATE: Final = 14


#: After this many applications the number of living ones is constant, and bounded buffers (notes,
#: summaries) are full.
_WARM: Final = 2_200


def measure() -> list[Figure]:
    """Bytes of an application that has run and ended, and of a rejected one; then the largest number of
    applications known while many end at a steady rate."""
    kept = 20_000 if sizes.FULL else 8_000
    figures = []
    for kind, queue in (("ended", "root.a"), ("rejected", "root.nope")):
        scheduler = _cluster(Options(journal_size=0, keep_ended=kept, keep_rejected=kept))
        tracemalloc.start()
        _end(scheduler, queue, 0, _WARM)
        before = tracemalloc.get_traced_memory()[0]
        _end(scheduler, queue, _WARM, kept)
        taken = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        figures.append(Figure(f"{kind}: one", taken / (kept - _WARM), "bytes", 1500))
        most = 0
        for number in range(kept, 3 * kept, RATE):
            _end(scheduler, queue, number, number + RATE)
            most = max(most, len(scheduler.partition().ended))
        figures.append(Figure(f"{kind}: known at most, of {3 * kept:,}", most, "", kept))
    return figures


def _cluster(options: Options) -> Scheduler:
    scheduler = Scheduler(options)
    config = (
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]"
    )
    extra = {"event.trackingEnabled": "false"}
    scheduler.apply(RegisterResourceManagerRequest(rmID=RM, config=config, extraConfig=extra), 0)
    add_nodes(scheduler, 1)
    return scheduler


def _end(scheduler: Scheduler, queue: str, first: int, end: int) -> None:
    """Applications with these numbers arrive at a steady rate, run for a minute and are removed."""
    for number in range(first, end):
        now = number * _SECOND // RATE
        new = AddApplicationRequest(
            applicationID=_name(number),
            queueName=queue,
            ugi=UserGroupInformation(user="alice", groups=["developers"]),
            tags={"namespace": "batch", "application.creationTime": "1700000000"},
        )
        gone = RemoveApplicationRequest(applicationID=_name(number - 60 * RATE))
        scheduler.apply(ApplicationRequest(rmID=RM, new=[new], remove=[gone]), now)
        pod = AllocationAsk(
            allocationKey="driver",
            applicationID=_name(number),
            resourceAsk=resource({"vcore": 100, "memory": 10**6}),
            maxAllocations=1,
        )
        scheduler.apply(AllocationRequest(rmID=RM, asks=[pod]), now)
        scheduler.schedule(now)


def _name(number: int) -> str:
    return f"application-{number:010}"
