"""Large numbers: 100,000 nodes and 1,000,000 asks (a tenth of that without ``--full``).

Time and bytes for each node, ask and allocation. The bytes are those of the resident set, which
includes memory that the allocator keeps. The messages of the protocol are freed before.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

from bench import Figure
from bench._support import sizes
from bench._support.cluster import RM, TWO_QUEUES, add_apps, add_nodes, allocations_in, registered
from bench._support.timing import Clock, floor, service_memory
from quadriga import si
from quadriga.core import Options
from quadriga.sim.scripted.script import resource

APPS = 1_000


def measure() -> list[Figure]:
    """Times (ns) and bytes of a node, of an ask and of an allocation; bytes of a pod in total."""
    base = floor()
    nodes, asks = (100_000, 1_000_000) if sizes.FULL else (10_000, 100_000)
    scheduler = registered(TWO_QUEUES.format(sort="fair"), Options(batch=100))
    noding, asking, placing = Clock(), Clock(), Clock()
    with service_memory():
        empty = _resident()
        with noding:
            add_nodes(scheduler, nodes)
        with_nodes = _resident()
        add_apps(scheduler, [f"root.{'ab'[at % 2]}" for at in range(APPS)])
        with_apps = _resident()
        size = resource({"vcore": 1000, "memory": 10**6})
        for app in range(APPS):
            request = si.AllocationRequest(rmID=RM)
            for number in range(asks // APPS):
                request.asks.add(
                    allocationKey=f"00000000-0000-0000-0000-{app:06}{number:06}",
                    applicationID=f"app-{app}",
                    resourceAsk=size,
                    maxAllocations=1,
                )
            with asking:
                scheduler.apply(request, 0)
            del request
        with_asks = _resident()
        placed = 0
        while True:
            with placing:
                outputs = scheduler.schedule(0, 10_000)
            if not outputs:
                break
            placed += allocations_in(outputs)
            del outputs
        with_pods = _resident()
    assert placed == asks
    per_pod = (with_pods - with_apps) / placed
    return [
        Figure("floor", base, "ns"),
        Figure(f"{nodes:,} nodes: each", noding.spent / nodes, "ns"),
        Figure(f"{nodes:,} nodes: each", (with_nodes - empty) / nodes, "bytes"),
        Figure(f"{asks:,} asks: each", asking.spent / asks, "ns"),
        Figure(f"{asks:,} asks: each", (with_asks - with_apps) / asks, "bytes"),
        Figure(f"{asks:,} allocations: each", placing.spent / placed, "ns"),
        Figure(f"{asks:,} allocations: each", placing.spent / placed / base, "floors"),
        Figure("an allocated pod, all told", per_pod, "bytes", 1_500),
    ]


def _resident() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
