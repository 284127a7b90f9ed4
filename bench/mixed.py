"""A mixed cluster in a steady state: full, with four levels of queues, limits, priorities and many shapes.

There are three sizes of nodes, a quarter of them with GPUs, and eight shapes of asks. The parents and
half of the leaves have quotas, every user has a limit, there are two priorities, and half of the leaves
are fair. The cluster is filled; then in turn some allocations end and as many asks arrive, so that it
stays full. Arrivals and decisions are timed apart: many more asks arrive than the cluster has room for,
so their cost is given for each ask and not for each allocation.
"""

from __future__ import annotations

from itertools import cycle, islice
from statistics import median
from typing import NamedTuple

from bench import Figure
from bench._support import sizes
from bench._support.cluster import RM, allocations_in, registered
from bench._support.timing import Clock, Pace, service_memory
from quadriga import si
from quadriga.core import Scheduler
from quadriga.core.runtime.outbox import Output
from quadriga.sim.scripted.script import resource

SHAPES = tuple(
    resource({"vcore": vcore, "memory": memory * 2**20, **({"gpu": gpu} if gpu else {})})
    for vcore, memory, gpu in (
        (500, 512, 0),
        (1000, 2048, 0),
        (1000, 8192, 0),
        (2000, 4096, 0),
        (4000, 8192, 0),
        (4000, 16384, 0),
        (8000, 16384, 0),
        (4000, 16384, 1),
    )
)
USERS = 20
APPS = 160

#: Figures that are also given by the second; in the steady state with the release and the ask that
#: precede each allocation.
PER_SECOND = {"an allocation while it fills", "an allocation with its release and ask"}


def measure() -> list[Figure]:
    """Multiples of the floor for one allocation, while the cluster fills and in the steady state."""
    nodes = 5_000 if sizes.FULL else 1_000
    turns = 200 if sizes.FULL else 50
    figures = []
    for reservations in (False, True):
        runs = [_run(nodes, turns, reservations) for _ in range(3)]
        name = f"{nodes:,} nodes, {'with' if reservations else 'without'} reservations"
        for what in runs[0].spent:
            ns = median(run.spent[what] for run in runs)
            floors = median(run.spent[what] / run.floor for run in runs)
            if what in PER_SECOND:
                figures.append(Figure(f"{name}: {what}, a second", 1e9 / ns, "/s"))
            figures.append(Figure(f"{name}: {what}", floors, "floors"))
    return figures


class _Run(NamedTuple):
    """Times of each part of the run (ns), with the floor during the measurement."""

    spent: dict[str, float]
    floor: float


def _run(nodes: int, turns: int, reservations: bool) -> _Run:
    pace = Pace()
    scheduler = registered(_config(nodes))
    if not reservations:
        off = {"scheduler.disableReservation": "true"}
        scheduler.apply(si.UpdateConfigurationRequest(rmID=RM, extraConfig=off), 0)
    _add_nodes(scheduler, nodes)
    _add_apps(scheduler)
    numbers = iter(range(10**9))
    now = 0
    asking, filling, releasing, asking_again, deciding = (Clock() for _ in range(5))
    held: list[si.Allocation] = []
    placed = released = 0
    with service_memory():
        request = _asks(islice(numbers, 12 * nodes))
        with asking:
            scheduler.apply(request, now)
        with filling:
            outputs = scheduler.schedule(now)
            _send(outputs)
        held += _new(outputs)
        first = len(held)
        assert first > 4 * nodes
        for turn in range(turns):
            if turn % 10 == 0:
                pace.look()
            now += 10**8
            ending, held = held[: nodes // 10], held[nodes // 10 :]
            releases, asks = _releases(ending), _asks(islice(numbers, len(ending)))
            with releasing:
                _send(scheduler.apply(releases, now))
            with asking_again:
                _send(scheduler.apply(asks, now))
            with deciding:
                outputs = scheduler.schedule(now)
                _send(outputs)
            held += _new(outputs)
            placed += allocations_in(outputs)
            released += len(ending)
    assert placed > turns * nodes // 20
    steady = releasing.spent + asking_again.spent + deciding.spent
    spent = {
        "an ask while it fills": asking.spent / (12 * nodes),
        "an allocation while it fills": filling.spent / first,
        "a release in steady state": releasing.spent / released,
        "an ask in steady state": asking_again.spent / released,
        "an allocation in steady state": deciding.spent / placed,
        "an allocation with its release and ask": steady / placed,
    }
    return _Run(spent, pace.floor)


def _send(outputs: list[Output]) -> None:
    for _, message in outputs:
        message.SerializeToString()


def _new(outputs: list[Output]) -> list[si.Allocation]:
    return [a for _, m in outputs if isinstance(m, si.AllocationResponse) for a in m.new]


def _config(nodes: int) -> str:
    """A root, two divisions, four departments and sixteen leaves."""
    lines = ["partitions:", "  - name: default", "    queues:", "      - name: root"]
    lines += ["        submitacl: '*'", "        queues:"]
    cores = 16 * nodes
    for division in "ab":
        lines += [f"          - name: {division}", "            resources:"]
        lines += [f"              max: {{vcore: {cores * 7 // 10}}}", "            queues:"]
        for department in "cd":
            lines += [f"              - name: {department}", "                queues:"]
            for leaf in range(4):
                lines += [f"                  - name: q{leaf}", "                    resources:"]
                lines.append(f"                      guaranteed: {{vcore: {cores // 20}}}")
                if leaf % 2:
                    lines.append(f"                      max: {{vcore: {cores // 8}}}")
                    lines += ["                    properties:"]
                    lines += ["                      application.sort.policy: fair"]
                lines += ["                    limits:", "                      - limit: each"]
                lines += ["                        users: ['*']"]
                lines += [f"                        maxresources: {{vcore: {cores // 12}}}"]
    return "\n".join(lines) + "\n"


def _add_nodes(scheduler: Scheduler, number: int) -> None:
    sizes = ((8000, 32), (16000, 64), (32000, 128), (16000, 96))
    request = si.NodeRequest(rmID=RM)
    for at, (vcore, gib) in zip(range(number), cycle(sizes), strict=False):
        quantities = {"vcore": vcore, "memory": gib * 2**30}
        if at % 4 == 3:
            quantities["gpu"] = 4
        request.nodes.add(
            nodeID=f"n{at:06}",
            action=si.NodeInfo.CREATE,
            schedulableResource=resource(quantities),
        )
    scheduler.apply(request, 0)


def _add_apps(scheduler: Scheduler) -> None:
    request = si.ApplicationRequest(rmID=RM)
    for at in range(APPS):
        queue = f"root.{'ab'[at % 2]}.{'cd'[at // 2 % 2]}.q{at // 4 % 4}"
        user = si.UserGroupInformation(user=f"user-{at % USERS}", groups=["group"])
        request.new.add(applicationID=f"app-{at}", queueName=queue, ugi=user)
    outputs = scheduler.apply(request, 0)
    assert not any(m.rejected for _, m in outputs)  # type: ignore[union-attr]


def _asks(numbers: object) -> si.AllocationRequest:
    request = si.AllocationRequest(rmID=RM)
    for number in numbers:  # type: ignore[attr-defined]
        # the stride is coprime to both numbers, so that every application asks for every shape
        request.asks.add(
            allocationKey=f"pod-{number}",
            applicationID=f"app-{number * 7 % APPS}",
            resourceAsk=SHAPES[number * 5 // 3 % len(SHAPES)] if number % 32 else SHAPES[-1],
            maxAllocations=1,
            priority=10 if number % 10 == 0 else 0,
        )
    return request


def _releases(ending: list[si.Allocation]) -> si.AllocationRequest:
    request = si.AllocationRequest(rmID=RM)
    for allocation in ending:
        request.releases.allocationsToRelease.add(
            applicationID=allocation.applicationID,
            UUID=allocation.UUID,
            terminationType=si.TerminationType.STOPPED_BY_RM,
        )
    return request
