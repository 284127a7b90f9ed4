"""Clusters to measure, built through the protocol: real requests in, real responses out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bench._support import sizes
from quadriga import si
from quadriga.core import Options, Scheduler
from quadriga.core.runtime.outbox import Output
from quadriga.sim.scripted.script import resource

RM = "rm"
USER = si.UserGroupInformation(user="user", groups=["group"])

TWO_QUEUES = """\
partitions:
  - name: default
    nodesortpolicy: {{type: {sort}}}
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
          - name: b
"""


def registered(
    config: str = TWO_QUEUES.format(sort="fair"), options: Options | None = None
) -> Scheduler:
    """A scheduler with one registered resource manager and this configuration."""
    options = options or Options()
    if sizes.ADMISSION is not None:
        options = replace(options, gang_admission=sizes.ADMISSION)
    scheduler = Scheduler(options)
    scheduler.apply(si.RegisterResourceManagerRequest(rmID=RM, config=config), 0)
    return scheduler


def add_nodes(scheduler: Scheduler, number: int, **quantities: int) -> None:
    """Add ``number`` equal nodes, by default of 100 vcores each, a thousand in each request."""
    capacity = resource(quantities or {"vcore": 100_000, "memory": 10**9})
    for first in range(0, number, 1_000):
        infos = [
            si.NodeInfo(nodeID=f"n{at:06}", action=si.NodeInfo.CREATE, schedulableResource=capacity)
            for at in range(first, min(first + 1_000, number))
        ]
        scheduler.apply(si.NodeRequest(rmID=RM, nodes=infos), scheduler.now)


def add_apps(scheduler: Scheduler, queues: Iterable[str], **extra: object) -> None:
    """Add the applications ``app-0``, ``app-1`` and so on, one for each queue."""
    request = si.ApplicationRequest(rmID=RM)
    for at, queue in enumerate(queues):
        request.new.add(applicationID=f"app-{at}", queueName=queue, ugi=USER, **extra)
    scheduler.apply(request, scheduler.now)


def allocations_in(outputs: Iterable[Output]) -> int:
    return sum(len(m.new) for _, m in outputs if isinstance(m, si.AllocationResponse))


def released_in(outputs: Iterable[Output]) -> list[si.AllocationRelease]:
    return [r for _, m in outputs if isinstance(m, si.AllocationResponse) for r in m.released]
