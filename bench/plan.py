"""The plan of a gang that is placed in one step (Q2): the time for each member.

The time must not grow with the number of nodes, or with the size of the gang beyond that of its memory.
It is given for plans that succeed, and for plans that fail because half of the members find no node. A
figure beside them compares the placing of whole gangs with that of the same gangs one by one.
"""

from __future__ import annotations

from statistics import median

from bench import Figure
from bench._support.cluster import RM, TWO_QUEUES, add_apps, add_nodes, allocations_in, registered
from bench._support.timing import Clock, floor, service_memory
from quadriga import si
from quadriga.core import Options, Scheduler
from quadriga.core.gangs.plan import Plan, make_plan
from quadriga.core.model import accounting
from quadriga.core.model.application import Application
from quadriga.sim.scripted.script import resource

MEMBER = {"vcore": 1000, "memory": 10**6}
SIZES = (10, 500, 5_000)
NODES = (1_000, 10_000)
#: nodes of so many members each
ROOM = 100


def measure() -> list[Figure]:
    """Times of a plan for each member, and ratios of large clusters to small ones."""
    base = floor()
    figures = []
    for sort in ("fair", "bestfit"):
        for size in SIZES:
            costs = [_planning(nodes, size, sort) for nodes in NODES]
            for nodes, cost in zip(NODES, costs, strict=True):
                name = f"{sort}, {nodes:,} nodes, a gang of {size:,}: a member planned"
                figures.append(Figure(name, cost / base, "floors"))
            name = f"{sort}, a gang of {size:,}: {NODES[1]:,} nodes to {NODES[0]:,}"
            figures.append(Figure(name, costs[1] / costs[0], "x", 1.5))
    for nodes in NODES:
        cost = _failing(nodes)
        figures.append(Figure(f"{nodes:,} nodes, a gang of 500: a plan fails", cost / 1000, "us"))
    for size in (10, 200):
        ratio = median(_placing("atomic", size) / _placing("whole", size) for _ in range(5))
        name = f"gangs of {size}: placed in one step to one by one"
        figures.append(Figure(name, ratio, "x", 1.0))
    return figures


def _waiting(nodes: int, size: int, sort: str = "fair") -> Scheduler:
    """A cluster with one gang whose members wait."""
    scheduler = registered(TWO_QUEUES.format(sort=sort), Options(gang_admission="atomic"))
    add_nodes(scheduler, nodes, **{name: ROOM * value for name, value in MEMBER.items()})
    _ask(scheduler, 1, size)
    return scheduler


def _ask(scheduler: Scheduler, gangs: int, size: int) -> None:
    whole = resource({name: value * size for name, value in MEMBER.items()})
    queues = [f"root.{'ab'[at % 2]}" for at in range(gangs)]
    add_apps(scheduler, queues, placeholderAsk=whole, gangSchedulingStyle="Hard")
    member = resource(MEMBER)
    for at in range(gangs):
        request = si.AllocationRequest(rmID=RM)
        for number in range(size):
            request.asks.add(
                allocationKey=f"placeholder-{number}",
                applicationID=f"app-{at}",
                resourceAsk=member,
                maxAllocations=1,
                taskGroupName="workers",
                placeholder=True,
            )
        scheduler.apply(request, 0)


def _planning(nodes: int, size: int, sort: str) -> float:
    """The time of a plan for each member (ns). The first plans, which look at all nodes, do not count."""
    scheduler = _waiting(nodes, size, sort)
    times = []
    with service_memory():
        for _ in range(max(7, 1000 // size)):
            with Clock() as clock:
                plan = _plan(scheduler)
            assert len(plan.places) == size
            times.append(clock.spent / size)
            for ask, node in plan.places:
                assert ask.group is not None
                accounting.charge_planned(node, ask.group.shape, -1)
    return median(times[2:])


def _failing(nodes: int) -> float:
    """The time of a plan for which half of the members find no node (ns)."""
    scheduler = _waiting(nodes, 500)
    partition = scheduler.partition()
    shape = next(iter(_app(scheduler).groups.values())).shape
    for at, node in enumerate(partition.node_index.nodes):
        accounting.charge_planned(node, shape, ROOM - (at < 250))
    times = []
    for _ in range(7):
        with Clock() as clock:
            plan = _plan(scheduler)
        assert plan.missing == 250
        times.append(clock.spent)
    return float(median(times[2:]))


def _plan(scheduler: Scheduler) -> Plan:
    members = _app(scheduler).gang.members
    return make_plan(scheduler._kernel, scheduler.partition(), members)


def _placing(admission: str, size: int) -> float:
    """The time in which gangs are placed (ns)."""
    scheduler = registered(options=Options(gang_admission=admission))
    add_nodes(scheduler, 1_000)
    gangs = 10_000 // size
    _ask(scheduler, gangs, size)
    with service_memory(), Clock() as clock:
        outputs = scheduler.schedule(0)
    assert allocations_in(outputs) == gangs * size
    return float(clock.spent)


def _app(scheduler: Scheduler) -> Application:
    app = scheduler.application("app-0")
    assert isinstance(app, Application)
    return app
