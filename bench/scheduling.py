"""What a decision costs, as a multiple of the floor: making and serialising one SI Allocation.

The shapes are those of YuniKorn's own benchmark, through ``Scheduler.apply`` and ``schedule`` with
one response for each allocation: two queues; *repeat* is one ask for all pods of each of two
applications, *u50* an ask for each pod over 50 applications, *u2* over 2. Then the parts: fit check,
node choice, and a round that finds nothing on a full cluster.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from statistics import median
from time import perf_counter_ns

from bench import Figure
from quadriga import si
from quadriga.core import Scheduler
from quadriga.core.order.shapes import Shape
from quadriga.sim.script import resource

ROUNDS = 3
NODES = 1_000
PODS = 10_000

_CONFIG = """\
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


def measure() -> list[Figure]:
    """Multiples of the floor, decisions a second, and what grows with the number of nodes."""
    floor = _floor()
    figures = [Figure("floor: one Allocation made and serialised", floor, "ns")]
    costs = {}
    for name, apps, sort in (
        ("repeat", 2, "fair"),
        ("u50", 50, "fair"),
        ("u2", 2, "fair"),
        ("u50 binpacking", 50, "binpacking"),
    ):
        costs[name] = cost = _median(lambda a=apps, s=sort, n=name: cost_of(NODES, a, s, n))  # type: ignore[misc]
        figures.append(Figure(f"{name}: a decision", cost / floor, "floors"))
        figures.append(Figure(f"{name}: decisions a second", 1e9 / cost, "/s"))
    figures.append(Figure("u2: times u50", costs["u2"] / costs["u50"], "x"))
    figures.append(Figure("binpacking: times fair", costs["u50 binpacking"] / costs["u50"], "x"))
    larger = _median(lambda: cost_of(4 * NODES, 50, "fair", "u50"))
    figures.append(Figure("u50 on 4 times the nodes", larger / costs["u50"], "x"))
    figures.append(
        Figure("full cluster: a round that finds nothing", _fruitless() / floor, "floors")
    )
    shape = Shape(0, (1000, 10**6), "")
    free = [4000, 10**9]
    figures.append(Figure("fit check", _per_call(lambda: shape.fits(free)), "ns"))
    scheduler = cluster(NODES, "fair")
    board = scheduler.partition().board
    wanted, _ = scheduler.partition().shapes.intern((1000, 10**6), "")
    figures.append(
        Figure(f"node choice among {NODES:,}", _per_call(lambda: board.best(wanted)), "ns")
    )
    return figures


def cluster(nodes: int, sort: str) -> Scheduler:
    """A registered scheduler with so many alike nodes."""
    scheduler = Scheduler()
    config = _CONFIG.format(sort=sort)
    scheduler.apply(si.RegisterResourceManagerRequest(rmID="rm", config=config), 0)
    capacity = resource({"vcore": 100_000, "memory": 10**9})
    infos = [
        si.NodeInfo(nodeID=f"n{at:06}", action=si.NodeInfo.CREATE, schedulableResource=capacity)
        for at in range(nodes)
    ]
    scheduler.apply(si.NodeRequest(rmID="rm", nodes=infos), 0)
    return scheduler


def cost_of(nodes: int, apps: int, sort: str, shape: str, pods: int = PODS) -> float:
    """ns for one decision when so many pods of so many applications are placed."""
    scheduler = cluster(nodes, sort)
    _ask(scheduler, apps, pods // apps, shape == "repeat")
    gc.collect()
    began = perf_counter_ns()
    outputs = scheduler.schedule(0)
    took = perf_counter_ns() - began
    new = sum(len(o.message.new) for o in outputs if isinstance(o.message, si.AllocationResponse))
    assert new == pods
    return took / pods


def _ask(scheduler: Scheduler, apps: int, each: int, repeat: bool) -> None:
    user = si.UserGroupInformation(user="user")
    request = si.ApplicationRequest(rmID="rm")
    for at in range(apps):
        request.new.add(applicationID=f"app-{at}", queueName=f"root.{'ab'[at % 2]}", ugi=user)
    scheduler.apply(request, 0)
    size = resource({"vcore": 1000, "memory": 10**6})
    for at in range(apps):
        asks = si.AllocationRequest(rmID="rm")
        for number in range(1 if repeat else each):
            asks.asks.add(
                allocationKey=f"pod-{number}",
                applicationID=f"app-{at}",
                resourceAsk=size,
                maxAllocations=each if repeat else 1,
            )
        scheduler.apply(asks, 0)


def _fruitless() -> float:
    """ns for a round on a cluster that is full, with as many asks waiting as are placed."""
    scheduler = cluster(50, "fair")
    _ask(scheduler, 50, 200, False)
    scheduler.schedule(0)
    return _per_call(lambda: scheduler.schedule(0, 1))


def _floor() -> float:
    template = si.Allocation(
        applicationID="app-1",
        partitionName="default",
        resourcePerAlloc=resource({"vcore": 1000, "memory": 10**6}),
    )

    def once() -> None:
        message = si.Allocation()
        message.CopyFrom(template)
        message.allocationKey = "pod-1"
        message.UUID = "pod-1-0"
        message.nodeID = "n000001"
        message.SerializeToString()

    return _per_call(once)


def _per_call(work: Callable[[], object], calls: int = 2_000) -> float:
    def turn() -> float:
        began = perf_counter_ns()
        for _ in range(calls):
            work()
        return (perf_counter_ns() - began) / calls

    return _median(turn)


def _median(work: Callable[[], float]) -> float:
    return median(work() for _ in range(ROUNDS))
