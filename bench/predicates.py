"""The predicates of the Kubernetes shim: a question, a placement, and whole placements with the core.

A question must not depend on the number of pods (K136). What predicates cost the core is compared with a
core that asks nobody, in the same run.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from bench import Figure
from bench._support import sizes
from bench._support.cluster import RM, TWO_QUEUES, USER, add_nodes, allocations_in, registered
from bench._support.timing import Clock, floor, per_call
from quadriga import si
from quadriga.k8s.cluster import ClusterCache
from quadriga.k8s.objects import (
    Affinity,
    LabelSelector,
    Metadata,
    Node,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    SpreadConstraint,
    Toleration,
)
from quadriga.sim.scripted.script import resource

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
ZONES = 10
PER_NODE = 10
WEB = LabelSelector({"app": "web"})

#: what a pod asks of a node beside room for it
KINDS = {
    "plain": PodSpec(),
    "selector of one node in ten": PodSpec(node_selector={"rack": "r1"}),
    "tolerations and selector": PodSpec(
        node_selector={"kind": "worker"}, tolerations=(Toleration(key="gpu", operator="Exists"),)
    ),
    "anti-affinity by host": PodSpec(
        affinity=Affinity(pod_anti_affinity=PodAffinity((PodAffinityTerm(HOST, WEB),)))
    ),
    "affinity by zone": PodSpec(
        affinity=Affinity(pod_affinity=PodAffinity((PodAffinityTerm(ZONE, WEB),)))
    ),
    "spread over zones": PodSpec(
        topology_spread_constraints=(SpreadConstraint(ZONE, 1, "DoNotSchedule", WEB),)
    ),
}


def measure() -> list[Figure]:
    """Floors for each question and placement, what more pods make of them, and pods a second."""
    nodes = 5_000 if sizes.FULL else 1_000
    figures = []
    for kind in KINDS:
        few, many = _Cluster(nodes // 10), _Cluster(nodes)
        base = floor()
        question = per_call(many.question(kind))
        figures.append(Figure(f"a question, {kind}", question / base, "floors"))
        # Turn by turn, since the machine is not equally fast all the time.
        ratio = per_call(many.question(kind)) / per_call(few.question(kind))
        figures.append(Figure(f"the same with ten times the nodes and pods, {kind}", ratio, "x", 2))
        base = floor()
        placement = per_call(many.placement(kind), 1_000)
        figures.append(
            Figure(f"a placement: pod, yes, assumed, {kind}", placement / base, "floors")
        )
        figures.append(Figure(f"a placement in all, {kind}", placement / 1e3, "µs"))
    without = _core(nodes, None)
    for kind in KINDS:
        cost = _core(nodes, kind)
        figures.append(Figure(f"with the core: pods a second, {kind}", 1e9 / cost, "/s"))
        figures.append(Figure(f"to a core that asks nobody, {kind}", cost / without, "x"))
    refused = nodes // 5
    ratio = _core(100, "plain", refused, each=1) / _core(100, "plain", each=1)
    figures.append(Figure(f"a pod by itself beside {refused} that no node accepts", ratio, "x", 2))
    return figures


class _Cluster:
    """Nodes with ten pods each, none of which is in the way of the next."""

    def __init__(self, nodes: int) -> None:
        self.cache = ClusterCache(lambda: 0)
        self.nodes = nodes
        self._numbers = count()
        for at in range(nodes):
            self.cache.set_node(_node(at))
        for at in range(nodes * PER_NODE):
            self.cache.set_pod(_pod(f"there-{at}", KINDS["plain"], "db", f"n{at % nodes:06}"))

    def question(self, kind: str) -> Callable[[], None]:
        uid = self.new(kind)
        nodes = [f"n{at:06}" for at in range(self.nodes)]
        at = count()
        ask, number = self.cache.predicates, self.nodes

        def once() -> None:
            ask(uid, nodes[next(at) % number], True)

        for _ in range(self.nodes):  # the template is known
            once()
        return once

    def placement(self, kind: str) -> Callable[[], None]:
        at, cache = count(), self.cache

        def once() -> None:
            uid, node = self.new(kind), f"n{next(at) % self.nodes:06}"
            cache.predicates(uid, node, True)
            cache.assume(uid, node)
            cache.remove_pod(uid)

        return once

    def new(self, kind: str) -> str:
        uid = f"p{next(self._numbers)}"
        self.cache.set_pod(_pod(uid, KINDS[kind], "web"))
        return uid


def _node(at: int) -> Node:
    labels = {HOST: f"n{at:06}", ZONE: f"z{at % ZONES}", "kind": "worker", "rack": f"r{at % 10}"}
    return Node(Metadata(name=f"n{at:06}", labels=labels))


def _pod(uid: str, spec: PodSpec, app: str, node: str = "") -> Pod:
    # Each has a label of its own, as the pods of a job do.
    meta = Metadata(name=uid, namespace="team", uid=uid, labels={"app": app, "index": uid})
    if not node:
        return Pod(meta, spec)
    return Pod(meta, PodSpec(node_name=node))


class _Predicates:
    """Those of a cache, as the shim's callback has them."""

    def __init__(self, cache: ClusterCache) -> None:
        self._ask = cache.predicates
        self.refused_nodes = cache.refused_nodes

    def __call__(self, uid: str, node: str, allocate: bool) -> str | None:
        return self._ask(uid, node, allocate)


def _core(nodes: int, kind: str | None, refused: int = 0, *, each: int = 0) -> float:
    """The time (ns) from the asks to the assumption of one of as many pods as there are nodes.

    They come ``each`` at a time, or all at once, while pods wait that no node accepts, each of a selector of
    its own.
    """
    scheduler = registered(TWO_QUEUES.format(sort="fair"))
    add_nodes(scheduler, nodes)
    request = si.ApplicationRequest(rmID=RM)
    request.new.add(applicationID="app", queueName="root.a", ugi=USER)
    scheduler.apply(request, 0)
    cache = ClusterCache(lambda: 0)
    for at in range(nodes):
        cache.set_node(_node(at))
    if kind is not None:
        scheduler.set_predicate(RM, _Predicates(cache))
    for at in range(refused):
        cache.set_pod(_pod(f"r{at}", PodSpec(node_selector={f"no{at}": ""}), "web"))
    scheduler.apply(_asks("r", range(refused)), 0)
    scheduler.schedule(0)
    for at in range(nodes):
        cache.set_pod(_pod(f"p{at}", KINDS[kind or "plain"], "web"))
    size = each or nodes
    requests = [_asks("p", range(at, at + size)) for at in range(0, nodes, size)]
    placed = 0
    with Clock() as clock:
        for asks in requests:
            scheduler.apply(asks, 0)
            while outputs := scheduler.schedule(scheduler.now, 256):
                placed += allocations_in(outputs)
                if kind is not None:
                    for _, message in outputs:
                        if isinstance(message, si.AllocationResponse):
                            for new in message.new:
                                assert cache.assume(new.allocationKey, new.nodeID) is None
    assert placed == nodes, (kind, placed)
    return clock.spent / nodes


def _asks(prefix: str, numbers: range) -> si.AllocationRequest:
    asks = si.AllocationRequest(rmID=RM)
    for at in numbers:
        asks.asks.add(
            allocationKey=f"{prefix}{at}",
            applicationID="app",
            partitionName="default",
            resourceAsk=resource({"vcore": 1_000, "memory": 10**6}),
            maxAllocations=1,
        )
    return asks
