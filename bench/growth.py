"""How the cost of one step grows with what does not take part in it.

Each dimension has one step that is measured at two sizes of something that the step does not need. The exponent of
the growth is printed: 0 is no growth, 1 is proportional growth. Times are processor times (µs), the least of several
turns, so that other programs on the machine change an exponent little. Where they change it nevertheless, the
instructions of Python are counted instead (D323).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from math import log
from time import process_time
from typing import NamedTuple

from bench import Figure
from bench._support import sizes
from bench._support.cluster import (
    RM,
    TWO_QUEUES,
    USER,
    add_apps,
    add_nodes,
    allocations_in,
    registered,
    released_in,
)
from bench._support.timing import Clock, Opcodes
from quadriga import si
from quadriga.base.times import SECOND
from quadriga.core import Scheduler
from quadriga.core.driver.slices import Slices
from quadriga.core.runtime.stepwise import parts
from quadriga.core.views import Views
from quadriga.sim.scripted.script import resource
from quadriga.web.pages.data.cluster import overview

#: the times (ns) or instructions of turns of one step at a size
Turns = Callable[[int], Iterator[int]]

POD = {"vcore": 1000, "memory": 10**6}
#: turns of each step
TURNS = 15


class Dimension(NamedTuple):
    """A step and what it does not need, with two sizes of that; ``goal`` is for the exponent. Instructions are
    ``counted`` instead of times."""

    step: str
    of: str
    turns: Turns
    few: int
    many: int
    goal: float | None = None
    counted: bool = False


def measure() -> list[Figure]:
    """The times of each step at both sizes, and the exponent of the growth."""
    figures = []
    for each in DIMENSIONS:
        many = each.many * (10 if sizes.FULL else 1)
        costs = [cost(each, size) for size in (each.few, many)]
        for size, found in zip((each.few, many), costs, strict=True):
            value, unit = (found, "opcodes") if each.counted else (found / 1e3, "µs")
            figures.append(Figure(f"{each.step}: {size:,} {each.of}", value, unit))
        exponent = log(costs[1] / costs[0]) / log(many / each.few)
        figures.append(Figure(f"{each.step}: exponent in {each.of}", exponent, "", each.goal))
    return figures


def cost(dimension: Dimension, size: int) -> float:
    """The time of one step at this size (ns)."""
    gc.collect()
    gc.disable()
    try:
        return min(dimension.turns(size))
    finally:
        gc.enable()


# -- queues ----------------------------------------------------------------------------------------


def tied_queues(queues: int) -> Iterator[int]:
    """Ten decisions among queues of equal share with different pending amounts of two types."""
    scheduler = _with_queues(queues, nodes=4 + queues // 50)
    request = si.AllocationRequest(rmID=RM)
    for at in range(queues):
        for number in range(2 + at * 7919 % 5 + 200 // queues):
            _ask(request, f"app-{at}", f"{at}-{number}", vcore=1000, memory=10**6)
    scheduler.apply(request, 0)
    scheduler.schedule(0, queues + 10)  # an application starts with its first pod
    for _ in range(TURNS):
        with Opcodes() as opcodes:
            outputs = scheduler.schedule(0, 10)
        assert allocations_in(outputs) == 10
        yield opcodes.spent // 10


def node_joins_queues(queues: int) -> Iterator[int]:
    """A message with ten nodes, for each node; no queue has asks."""
    scheduler = _with_queues(queues, nodes=2)
    for turn in range(TURNS):
        with Clock() as clock:
            _join(scheduler, [f"x{turn}-{at}" for at in range(10)])
        yield clock.spent // 10


def flat_leaves(leaves: int) -> Iterator[int]:
    """A pod ends and one is placed, in a full cluster with an ask of each of two sizes in each leaf."""
    scheduler = _with_queues(leaves, nodes=1)
    request = si.AllocationRequest(rmID=RM)
    for at in range(leaves):
        for number in range(2 + 200 // leaves):
            _ask(request, f"app-{at}", f"{at}-{number}", **POD)
        _ask(request, f"app-{at}", f"{at}-large", vcore=2000, memory=10**6)
    scheduler.apply(request, 0)
    yield from _replacements(scheduler)


# -- nodes -----------------------------------------------------------------------------------------


def _pod_after(change: Callable[[Scheduler, int], None], sort: str = "fair") -> Turns:
    """One node changes, and a pod is placed."""

    def turns(nodes: int) -> Iterator[int]:
        scheduler = registered(TWO_QUEUES.format(sort=sort))
        add_nodes(scheduler, nodes)
        add_apps(scheduler, ["root.a"])
        for turn in range(TURNS):
            _asked(scheduler, "app-0", f"first-{turn}")
            scheduler.schedule(0)
            request = si.AllocationRequest(rmID=RM)
            _ask(request, "app-0", f"pod-{turn}", **POD)
            with Clock() as clock:
                change(scheduler, nodes // 2 + turn)
                scheduler.apply(request, 0)
                outputs = scheduler.schedule(0)
            assert allocations_in(outputs) == 1
            yield clock.spent

    return turns


def _joins(scheduler: Scheduler, at: int) -> None:
    _join(scheduler, [f"n{at:06}-new"])


def _twenty_join(scheduler: Scheduler, at: int) -> None:
    _join(scheduler, [f"n{at:06}-{number}" for number in range(20)])


def _leaves(scheduler: Scheduler, at: int) -> None:
    _update(scheduler, si.NodeInfo(nodeID=f"n{at:06}", action=si.NodeInfo.DECOMISSION))


def _resizes(scheduler: Scheduler, at: int) -> None:
    size = resource({"vcore": 90_000, "memory": 10**9})
    name, action = f"n{at:06}", si.NodeInfo.UPDATE
    _update(scheduler, si.NodeInfo(nodeID=name, action=action, schedulableResource=size))


def _update(scheduler: Scheduler, info: si.NodeInfo) -> None:
    scheduler.apply(si.NodeRequest(rmID=RM, nodes=[info]), scheduler.now)


# -- preemption ------------------------------------------------------------------------------------

PREEMPTING = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: low
          - name: high
            properties: {preemption.delay: 1s}
            resources: {guaranteed: {vcore: 1000000}}
"""


def preempting_asks(running: int) -> Iterator[int]:
    """A hundred asks that preempt, for each ask; there are this many running allocations."""
    for _ in range(3):
        scheduler = registered(PREEMPTING)
        add_nodes(scheduler, running // 10, vcore=10_000, memory=10**9)
        add_apps(scheduler, ["root.low", "root.high"])
        request = si.AllocationRequest(rmID=RM)
        for at in range(running):
            _ask(request, "app-0", f"low-{at}", **POD)
        scheduler.apply(request, 0)
        assert allocations_in(scheduler.schedule(0)) == running
        request = si.AllocationRequest(rmID=RM)
        for at in range(100):
            _ask(request, "app-1", f"high-{at}", **POD)
            request.asks[-1].preemptionPolicy.allowPreemptOther = True
        scheduler.apply(request, 0)
        scheduler.schedule(0)
        with Clock() as clock:
            scheduler.advance(2 * SECOND)
            outputs = scheduler.schedule(2 * SECOND)
        assert len(released_in(outputs)) == 100
        yield clock.spent // 100


# -- applications ----------------------------------------------------------------------------------


def waiting_gangs(gangs: int) -> Iterator[int]:
    """A pod ends while gangs of one size wait, and are tried with each pod that ends: they lack more than it had."""
    scheduler = registered(TWO_QUEUES.format(sort="fair"))
    add_nodes(scheduler, 1, vcore=(TURNS + 5) * 1000, memory=10**9)
    add_apps(scheduler, ["root.a"])
    asks = [f"pod-{at}" for at in range(TURNS + 5)]
    request = si.AllocationRequest(rmID=RM)
    for key in asks:
        _ask(request, "app-0", key, **POD)
    scheduler.apply(request, 0)
    held = _allocations(scheduler.schedule(0))
    size = (TURNS + 4) * 1000
    wanted = si.ApplicationRequest(rmID=RM)
    request = si.AllocationRequest(rmID=RM)
    for at in range(gangs):
        whole = resource({"vcore": size + 1, "memory": 20})
        wanted.new.add(
            applicationID=f"gang-{at}", queueName="root.b", ugi=USER, placeholderAsk=whole
        )
        _ask(request, f"gang-{at}", f"gang-{at}", vcore=size // (TURNS + 4), memory=1)
        request.asks[-1].maxAllocations = TURNS + 4
        _ask(request, f"gang-{at}", f"leader-{at}", vcore=1, memory=1)
        for each in request.asks[-2:]:
            each.placeholder, each.taskGroupName = True, each.allocationKey
    scheduler.apply(wanted, 0)
    scheduler.apply(request, 0)
    scheduler.schedule(0)
    yield from _releases(scheduler, held, Clock)


def crowded_gang(nodes: int) -> Iterator[int]:
    """A pod ends, and a gang of two sizes is tried: ten nodes have room for any of its members, the others are full."""
    scheduler = registered(TWO_QUEUES.format(sort="fair"))
    add_nodes(scheduler, nodes)
    add_apps(scheduler, ["root.a"])
    request = si.AllocationRequest(rmID=RM)
    for at in range(nodes):
        _ask(request, "app-0", f"pod-{at}", vcore=100_000 if at > 10 else 96_000, memory=1)
    for at in range(TURNS):
        _ask(request, "app-0", f"small-{at}", vcore=200, memory=1)
    scheduler.apply(request, 0)
    held = _allocations(scheduler.schedule(0))
    whole = resource({"vcore": 45_000, "memory": 18})
    wanted, request = si.ApplicationRequest(rmID=RM), si.AllocationRequest(rmID=RM)
    wanted.new.add(applicationID="gang", queueName="root.b", ugi=USER, placeholderAsk=whole)
    for size in (3000, 2000):
        _ask(request, "gang", f"member-{size}", vcore=size, memory=1)
        request.asks[-1].maxAllocations, request.asks[-1].placeholder = 9, True
        request.asks[-1].taskGroupName = f"{size}"
    scheduler.apply(wanted, 0)
    scheduler.apply(request, 0)
    scheduler.schedule(0)
    for turn, each in enumerate(each for each in held if each.allocationKey.startswith("small")):
        tried = scheduler.tally.gang_attempts["nodes"]
        with Clock() as clock:
            scheduler.apply(_release(each), turn + 1)
            scheduler.schedule(turn + 1)
        if scheduler.tally.gang_attempts["nodes"] > tried:
            yield clock.spent


def task_groups(groups: int) -> Iterator[int]:
    """A pod of an application with so many task groups, each with an ask that waits."""
    scheduler = registered(TWO_QUEUES.format(sort="fair"))
    add_nodes(scheduler, 10)
    whole = resource({"vcore": min(1000, 500_000 // groups) * groups, "memory": groups})
    add_apps(scheduler, ["root.a"], placeholderAsk=whole)
    placeholders, asks = si.AllocationRequest(rmID=RM), si.AllocationRequest(rmID=RM)
    for at in range(groups):
        for request, placeholder in ((placeholders, True), (asks, False)):
            _ask(
                request,
                "app-0",
                f"{at}-{placeholder}",
                vcore=min(1000, 500_000 // groups),
                memory=1,
            )
            request.asks[-1].placeholder = placeholder
            request.asks[-1].taskGroupName = f"group-{at}"
    scheduler.apply(placeholders, 0)
    assert allocations_in(scheduler.schedule(0)) == groups
    scheduler.apply(asks, 0)
    for _ in range(TURNS):
        with Opcodes() as opcodes:
            outputs = scheduler.schedule(0, 1)
            for released in released_in(outputs):
                released_request = si.AllocationRequest(rmID=RM)
                released_request.releases.allocationsToRelease.add(
                    applicationID=released.applicationID,
                    UUID=released.UUID,
                    terminationType=si.TerminationType.PLACEHOLDER_REPLACED,
                )
                scheduler.apply(released_request, 0)
        yield opcodes.spent


def stateaware_leaf(applications: int) -> Iterator[int]:
    """An ask of the last application of a stateaware leaf, in which all wait for their turn."""
    aware = "          - name: a\n            properties: {application.sort.policy: stateaware}\n"
    config = TWO_QUEUES.format(sort="fair").replace("          - name: a\n", aware)
    scheduler = registered(config)
    add_nodes(scheduler, 1)
    add_apps(scheduler, ["root.a"] * applications)
    request = si.AllocationRequest(rmID=RM)
    for at in range(applications):
        _ask(request, f"app-{at}", "large", vcore=100_001)
    scheduler.apply(request, 0)
    scheduler.schedule(0)
    for turn in range(TURNS):
        with Opcodes() as opcodes:
            _asked(scheduler, f"app-{applications - 1}", f"pod-{turn}")
            assert not allocations_in(scheduler.schedule(0))
        yield opcodes.spent


def sizes_of_asks(number: int) -> Iterator[int]:
    """A pod ends and one is placed, in a full cluster with asks of so many sizes that wait."""
    scheduler = registered(TWO_QUEUES.format(sort="fair"))
    add_nodes(scheduler, 1)
    add_apps(scheduler, ["root.a", "root.b"])
    request = si.AllocationRequest(rmID=RM)
    for at in range(200):
        _ask(request, f"app-{at % 2}", f"first-{at}", **POD)
    for at in range(number):
        _ask(request, f"app-{at % 2}", f"size-{at}", vcore=1001 + at, memory=10**6)
    scheduler.apply(request, 0)
    yield from _replacements(scheduler)


def sizes_in_queues(queues: int) -> Iterator[int]:
    """Ten decisions among queues that each wait for a size of their own, for which nodes have room."""
    scheduler = _with_queues(queues, nodes=4 + queues // 50)
    request = si.AllocationRequest(rmID=RM)
    for at in range(queues):
        for number in range(4 + 200 // queues):
            _ask(request, f"app-{at}", f"{at}-{number}", vcore=1000, memory=1 + at)
    scheduler.apply(request, 0)
    scheduler.schedule(0, queues + 10)
    for _ in range(TURNS):
        with Opcodes() as opcodes:
            outputs = scheduler.schedule(0, 10)
        assert allocations_in(outputs) == 10
        yield opcodes.spent // 10


def sizes_short_of_quota(number: int) -> Iterator[int]:
    """A round in which a quota stops asks of so many sizes that nodes have room for, for each size."""
    quota = "          - name: a\n            resources: {max: {vcore: 1m}}\n"
    config = TWO_QUEUES.format(sort="fair").replace("          - name: a\n", quota)
    for _ in range(2):
        scheduler = registered(config)
        add_nodes(scheduler, 10)
        add_apps(scheduler, ["root.a"] * number)
        request = si.AllocationRequest(rmID=RM)
        for at in range(number):
            _ask(request, f"app-{at}", "pod", vcore=1000, memory=1 + at)
        scheduler.apply(request, 0)
        with Opcodes() as opcodes:
            assert not allocations_in(scheduler.schedule(0))
        yield opcodes.spent // number


def sizes_short_of_limit(number: int) -> Iterator[int]:
    """A pod of a user at a limit ends; the user's asks of so many sizes wait for more than it had."""
    limit = "limits: [{limit: each, users: ['*'], maxresources: {vcore: 20}}]"
    config = TWO_QUEUES.format(sort="fair").replace(
        "- name: a\n", f"- name: a\n            {limit}\n"
    )
    scheduler = registered(config)
    add_nodes(scheduler, 10)
    add_apps(scheduler, ["root.a"])
    for at in range(20):
        _asked(scheduler, "app-0", f"first-{at}")
    held = _allocations(scheduler.schedule(0))
    request = si.AllocationRequest(rmID=RM)
    for at in range(number):
        _ask(request, "app-0", f"size-{at}", vcore=19_500, memory=1 + at)
    scheduler.apply(request, 0)
    scheduler.schedule(0)
    yield from _releases(scheduler, held, Opcodes)


def new_sizes(queues: int) -> Iterator[int]:
    """A pod of a size that no other has is placed, as were hundreds before; no queue has asks."""
    scheduler = _with_queues(queues, nodes=2)
    for at in range(300 + TURNS):
        request = si.AllocationRequest(rmID=RM)
        _ask(request, "app-0", f"pod-{at}", vcore=1, memory=1 + at)
        with Opcodes() if at >= 300 else nullcontext() as opcodes:
            scheduler.apply(request, 0)
            assert allocations_in(scheduler.schedule(0)) == 1
        if opcodes is not None:
            yield opcodes.spent


# -- reading ---------------------------------------------------------------------------------------


#: what is read, in each turn
Read = Callable[[Views, int], Callable[[Scheduler], object]]


def _longest_slice(read: Read, turns: int = 3) -> Turns:
    """The longest pause of the thread that decides while this is read; there are four pods on a node, and an
    application for each ten nodes."""

    def cluster(nodes: int) -> Iterator[int]:
        scheduler = registered(TWO_QUEUES.format(sort="fair"))
        add_nodes(scheduler, nodes)
        apps = max(2, nodes // 10)
        add_apps(scheduler, ["root.a", "root.b"] * (apps // 2))
        request = si.AllocationRequest(rmID=RM)
        for at in range(apps):
            _ask(request, f"app-{at}", "pod", **POD)
            request.asks[-1].maxAllocations = 40
        scheduler.apply(request, 0)
        while allocations_in(scheduler.schedule(0, budget=5_000)):
            pass
        request = si.AllocationRequest(rmID=RM)
        for at in range(3):
            _ask(request, "app-0", f"large-{at}", vcore=100_000, memory=1)
        scheduler.apply(request, 0)
        scheduler.schedule(0)
        yield from _longest(scheduler, read, turns)

    return cluster


def _longest(scheduler: Scheduler, read: Read, turns: int = 3) -> Iterator[int]:
    views = Views(scheduler)
    for turn in range(turns):
        slices: Slices[object] = Slices(read(views, turn), clock=process_time)
        longest = 0.0
        while not slices.over:
            before = slices.cost
            slices.next(scheduler)
            longest = max(longest, slices.cost - before)
        yield int(longest * 1e9)


def one_user(applications: int) -> Iterator[int]:
    """The longest pause while a user is read who has all applications."""
    scheduler = registered(TWO_QUEUES.format(sort="fair"))
    add_nodes(scheduler, 2 + applications // 100)
    add_apps(scheduler, ["root.a", "root.b"] * (applications // 2))
    request = si.AllocationRequest(rmID=RM)
    for at in range(applications):
        _ask(request, f"app-{at}", "pod", **POD)
    scheduler.apply(request, 0)
    while allocations_in(scheduler.schedule(0, budget=5_000)):
        pass
    yield from _longest(
        scheduler, lambda views, _: lambda core: views.user_in_steps("default", "user")
    )


def page_of_nodes(nodes: int) -> Iterator[int]:
    """What a page of a hundred nodes takes of the thread that decides."""
    scheduler = registered(TWO_QUEUES.format(sort="fair"))
    add_nodes(scheduler, nodes)
    views = Views(scheduler)
    for _ in range(TURNS):
        with Clock() as clock:
            assert parts(views.each_node("default", slice(nodes // 2, nodes // 2 + 100)))
        yield clock.spent


DIMENSIONS = (
    Dimension("a decision among tied queues", "queues", tied_queues, 100, 1_000, 0.2, counted=True),
    Dimension("a node joins", "queues", node_joins_queues, 1_000, 10_000, 0.05),
    Dimension("a node joins and a pod is placed", "nodes", _pod_after(_joins), 1_000, 10_000, 0.2),
    Dimension("twenty join and a pod is placed", "nodes", _pod_after(_twenty_join), 1_000, 10_000, 0.2),
    Dimension("a node joins and a pod is packed", "nodes", _pod_after(_joins, "bestfit"), 1_000, 10_000, 0.2),
    Dimension("a node leaves and a pod is placed", "nodes", _pod_after(_leaves), 1_000, 10_000, 0.2),
    Dimension("a node is resized and a pod is placed", "nodes", _pod_after(_resizes), 1_000, 10_000, 0.2),
    Dimension("an ask preempts", "running allocations", preempting_asks, 1_000, 10_000, 0.3),
    Dimension("a gang of two sizes is tried", "nodes", crowded_gang, 1_000, 10_000, 0.2),
    Dimension("a release", "waiting gangs", waiting_gangs, 10, 1_000, 0.2),
    Dimension("the longest slice of a health check", "nodes", _longest_slice(
        lambda views, _: lambda core: views.health_in_steps()), 1_000, 10_000),
    Dimension("the longest slice of a state dump", "nodes", _longest_slice(
        lambda views, _: lambda core: views.each_state()), 1_000, 10_000),
    Dimension("the longest slice of a list of nodes", "nodes", _longest_slice(
        lambda views, _: lambda core: views.each_node("default")), 1_000, 10_000),
    Dimension("the longest slice of a list of applications", "nodes", _longest_slice(
        lambda views, _: lambda core: views.each_application("default", "active")), 1_000, 10_000),
    Dimension("the longest slice of the first explanation", "nodes", _longest_slice(
        lambda _, turn: lambda core: core.explain_in_steps("app-0", "large-0"), turns=1), 1_000, 10_000),
    Dimension("the longest slice of the overview", "nodes", _longest_slice(
        lambda views, _: lambda core: overview(core, views, "", 0)), 1_000, 10_000),
    Dimension("the longest slice of one user", "applications", one_user, 1_000, 10_000),
    Dimension("a page of nodes", "nodes", page_of_nodes, 1_000, 10_000, 0.2),
    Dimension("a member is replaced", "task groups", task_groups, 30, 300, 0.2, counted=True),
    Dimension("an ask in a stateaware leaf", "applications", stateaware_leaf, 100, 1_000, 0.2, counted=True),
    Dimension("a release and a placement", "waiting sizes", sizes_of_asks, 10, 100, 0.2, counted=True),
    Dimension("a decision", "queues with a size each", sizes_in_queues, 100, 1_000, 0.2, counted=True),
    Dimension("a release at a limit", "sizes of asks", sizes_short_of_limit, 100, 1_000, 0.2, counted=True),
    Dimension("a pod of a new size", "queues", new_sizes, 100, 1_000, 0.2, counted=True),
    Dimension("an ask without quota", "sizes of these", sizes_short_of_quota, 100, 1_000, 0.2, counted=True),
    Dimension("a release and a placement", "flat leaves", flat_leaves, 30, 300, 0.2, counted=True),
)  # fmt: skip


# -- shared ----------------------------------------------------------------------------------------


def _with_queues(queues: int, nodes: int) -> Scheduler:
    """A cluster with so many leaves below root and an application in each of the first thousands."""
    lines = "".join(f"          - name: q{at:06}\n" for at in range(queues))
    head, _, _ = TWO_QUEUES.format(sort="fair").partition("          - name: a\n")
    scheduler = registered(head + lines)
    add_nodes(scheduler, nodes)
    add_apps(scheduler, [f"root.q{at:06}" for at in range(min(queues, 5_000))])
    return scheduler


def _ask(request: si.AllocationRequest, app: str, key: str, **quantities: int) -> None:
    request.asks.add(
        allocationKey=key,
        applicationID=app,
        resourceAsk=resource(quantities),
        maxAllocations=1,
    )


def _asked(scheduler: Scheduler, app: str, key: str) -> None:
    request = si.AllocationRequest(rmID=RM)
    _ask(request, app, key, **POD)
    scheduler.apply(request, 0)


def _join(scheduler: Scheduler, names: list[str]) -> None:
    capacity = resource({"vcore": 100_000, "memory": 10**9})
    infos = [
        si.NodeInfo(nodeID=name, action=si.NodeInfo.CREATE, schedulableResource=capacity)
        for name in names
    ]
    scheduler.apply(si.NodeRequest(rmID=RM, nodes=infos), scheduler.now)


def _allocations(outputs: object) -> list[si.Allocation]:
    return [a for _, m in outputs if isinstance(m, si.AllocationResponse) for a in m.new]  # type: ignore[attr-defined]


def _release(allocation: si.Allocation) -> si.AllocationRequest:
    request = si.AllocationRequest(rmID=RM)
    request.releases.allocationsToRelease.add(
        applicationID=allocation.applicationID,
        UUID=allocation.UUID,
        terminationType=si.TerminationType.STOPPED_BY_RM,
    )
    return request


def _releases(
    scheduler: Scheduler, held: list[si.Allocation], measure: type[Clock | Opcodes], placed: int = 0
) -> Iterator[int]:
    """The cost of a release with the round after it, in which so many pods are placed."""
    for each in held[:TURNS]:
        with measure() as measured:
            scheduler.apply(_release(each), 0)
            outputs = scheduler.schedule(0)
        assert allocations_in(outputs) == placed
        yield measured.spent


def _replacements(scheduler: Scheduler) -> Iterator[int]:
    """The instructions of a release with the placement that follows, in a cluster that is full from now on."""
    return _releases(scheduler, _allocations(scheduler.schedule(0)), Opcodes, placed=1)
