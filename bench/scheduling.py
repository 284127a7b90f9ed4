"""The cost of a decision, as a multiple of the floor: making and serialising one SI Allocation.

The workload is that of YuniKorn's own benchmark, with two queues. *repeat* is one ask for all pods of
each of two applications; *u50* is one ask for each pod over 50 applications, *u2* over 2. The
measurement runs from the first request with asks, which is built before, to the last serialised
response; *decisions* is the part of it inside ``schedule``. Decisions are made in slices, as in the
service, and the responses of a slice are serialised before the next one.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from bench import Figure
from bench._support import sizes
from bench._support.cluster import RM, TWO_QUEUES, add_apps, add_nodes, allocations_in, registered
from bench._support.timing import Clock, Pace, floor, per_call, service_memory
from quadriga import si
from quadriga.core import Options, Scheduler
from quadriga.core.resources.shapes import Requirements, Shape
from quadriga.sim.scripted.script import resource


class Case(NamedTuple):
    """``pods`` pods on ``nodes`` nodes, asked for by ``apps`` applications: with one ask each, or one a pod."""

    shape: str
    nodes: int = 1_000
    pods: int = 10_000
    sort: str = "fair"
    batch: int = 1

    @property
    def apps(self) -> int:
        return 50 if self.shape == "u50" else 2

    def __str__(self) -> str:
        each = f", {self.batch} a response" if self.batch > 1 else ""
        return f"{self.shape} {self.sort} {self.nodes:,}/{self.pods:,}{each}"


class Cost(NamedTuple):
    """Times for one pod, in total and for the decision alone (ns), with the floor during the measurement."""

    whole: float
    decision: float
    floor: float

    @property
    def floors(self) -> float:
        return self.whole / self.floor


#: Decisions in one slice, as in the service.
SLICE = 256
#: The floor is measured again after this many pods.
LOOK = 2_000
SHAPES = ("repeat", "u50", "u2")


def measure() -> list[Figure]:
    """Multiples of the floor for every workload and size, and the ratios between them."""
    figures = [Figure("floor: one Allocation made and serialised", floor(), "ns")]
    clusters = (
        [(1_000, 10_000), (5_000, 50_000), (10_000, 50_000)] if sizes.FULL else [(1_000, 10_000)]
    )
    for nodes, pods in clusters:
        costs: dict[str, Cost] = {}
        for shape in SHAPES:
            for batch in (1, 100):
                case = Case(shape, nodes, pods, batch=batch)
                cost = cost_of(case)
                if batch == 1:
                    costs[shape] = cost
                    figures.append(Figure(f"{case}: a second", 1e9 / cost.whole, "/s"))
                    figures.append(
                        Figure(f"{case}: decision", cost.decision / cost.floor, "floors")
                    )
                figures.append(Figure(str(case), cost.floors, "floors"))
        wholes = [cost.floors for cost in costs.values()]
        apart = max(wholes) / min(wholes)
        figures.append(Figure(f"{nodes:,}/{pods:,}: dearest shape to cheapest", apart, "x", 1.45))
        compressed = cost_of(Case("u50", nodes, pods, "binpacking"))
        ratio = compressed.floors / costs["u50"].floors
        figures.append(Figure(f"{nodes:,}/{pods:,}: binpacking to fair", ratio, "x", 1.2))
    few, many = cost_of(Case("u50", 1_000)), cost_of(Case("u50", 10_000))
    figures.append(Figure("u50 on 10,000 nodes to 1,000", many.floors / few.floors, "x", 1.5))
    figures += _tail()
    figures += _parts()
    return figures


def cost_of(case: Case, rounds: int = 5) -> Cost:
    """The median of several runs."""
    return sorted((run(case) for _ in range(rounds)), key=lambda cost: cost.floors)[rounds // 2]


def prepared(
    case: Case, options: Options | None = None
) -> tuple[Scheduler, list[si.AllocationRequest]]:
    """A cluster with its applications, and the requests with their asks."""
    scheduler = registered(TWO_QUEUES.format(sort=case.sort), options or Options(batch=case.batch))
    add_nodes(scheduler, case.nodes)
    add_apps(scheduler, [f"root.{'ab'[at % 2]}" for at in range(case.apps)])
    each = case.pods // case.apps
    size = resource({"vcore": 1000, "memory": 10**6})
    requests = []
    for at in range(case.apps):
        request = si.AllocationRequest(rmID=RM)
        for number in range(1 if case.shape == "repeat" else each):
            request.asks.add(
                allocationKey=f"pod-{number}",
                applicationID=f"app-{at}",
                resourceAsk=size,
                maxAllocations=each if case.shape == "repeat" else 1,
            )
        requests.append(request)
    return scheduler, requests


def run(case: Case, options: Options | None = None) -> Cost:
    """One run, from the first request with asks to the last response."""
    scheduler, requests = prepared(case, options)
    asking, deciding, saying = Clock(), Clock(), Clock()
    pace = Pace()
    with service_memory():
        with asking:
            for request in requests:
                scheduler.apply(request, 0)
        pods, looked, going = 0, 0, True
        while going:
            with deciding:
                outputs = scheduler.schedule(0, budget=SLICE)
                going = scheduler.unfinished
            with saying:
                for _, message in outputs:
                    message.SerializeToString()
            pods += allocations_in(outputs)
            if pods - looked >= LOOK:
                pace.look()
                looked = pods
    assert pods == case.pods
    whole = asking.spent + deciding.spent + saying.spent
    return Cost(whole / case.pods, deciding.spent / case.pods, pace.floor)


def _tail() -> list[Figure]:
    """The 99th percentile of the time of a decision, compared with the median."""
    scheduler, requests = prepared(Case("u50"))
    for request in requests:
        scheduler.apply(request, 0)
    times = []
    with service_memory():
        for _ in range(10_000):
            with Clock() as clock:
                scheduler.schedule(0, 1)
            times.append(clock.spent)
    times.sort()
    ratio = times[len(times) * 99 // 100] / times[len(times) // 2]
    return [Figure("u50: 99th percentile of a decision to the median", ratio, "x", 10)]


def _parts() -> list[Figure]:
    shape = Shape(0, Requirements((1000, 10**6)))
    free = [4000, 10**9]
    figures = [Figure("fit check", per_call(lambda: shape.fits(free)), "ns")]
    for nodes in (1_000, 10_000):
        scheduler = registered()
        add_nodes(scheduler, nodes)
        partition = scheduler.partition()
        wanted, _ = partition.shapes.intern(Requirements((1000, 10**6)))
        choose = partial(partition.node_index.best, wanted)
        figures.append(Figure(f"node choice among {nodes:,}", per_call(choose), "ns"))
    return figures
