"""The cache answers the core: whole placements of ten pods in one batch (K99, K115)."""

from __future__ import annotations

from typing import Any

import pytest
from small_cluster import SmallCluster, apart, expression, near, node_affinity, spread, term

from quadriga import si
from quadriga.core import Options, Scheduler
from quadriga.sim.script import resource

RM = "rm"
CONFIG = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]"
)
WEB = {"app": "web"}


def core(cluster: SmallCluster, pods: int) -> dict[str, str]:
    """The nodes on which the core places the pods ``p0``, ``p1``, ..., each assumed when it hears of it."""
    scheduler = Scheduler(Options())
    scheduler.apply(si.RegisterResourceManagerRequest(rmID=RM, config=CONFIG), 0)
    nodes = si.NodeRequest(rmID=RM)
    for name in sorted(cluster.cache.dump()["nodes"]):
        nodes.nodes.add(
            nodeID=name,
            action=si.NodeInfo.CREATE,
            schedulableResource=resource({"vcore": 100_000}),
        )
    scheduler.apply(nodes, 0)
    applications = si.ApplicationRequest(rmID=RM)
    user = si.UserGroupInformation(user="user")
    applications.new.add(applicationID="app", queueName="root.a", ugi=user)
    scheduler.apply(applications, 0)
    scheduler.set_predicate(RM, cluster.cache.predicates)
    asks = si.AllocationRequest(rmID=RM)
    for number in range(pods):
        asks.asks.add(
            allocationKey=f"p{number}",
            applicationID="app",
            partitionName="default",
            resourceAsk=resource({"vcore": 1_000}),
            maxAllocations=1,
        )
    scheduler.apply(asks, 0)
    placed = {}
    for _, message in scheduler.schedule(0, 256):
        if isinstance(message, si.AllocationResponse):
            for each in message.new:
                assert cluster.cache.assume(each.allocationKey, each.nodeID) is None
                placed[each.allocationKey] = each.nodeID
    return placed


SPECS: dict[str, dict[str, Any]] = {
    "plain": {},
    "selector": {"nodeSelector": {"rack": "r1"}},
    "affinity to nodes": {
        "affinity": node_affinity({"matchExpressions": [expression("rack", "NotIn", "r1")]})
    },
    "together": {"affinity": near(term("zone"))},
    "apart": {"affinity": apart(term())},
    "spread": {"topologySpreadConstraints": [spread()]},
    "ports": {"containers": [{"name": "main", "ports": [{"hostPort": 80}]}]},
    "nowhere": {"nodeSelector": {"rack": "none"}},
}


def made(spec: dict[str, Any]) -> SmallCluster:
    """Eight nodes in two zones and four racks, one of them cordoned, and ten pods without a node."""
    cluster = SmallCluster()
    for number in range(8):
        labels = {"zone": f"z{number % 2}", "rack": f"r{number % 4}"}
        cluster.node(f"n{number}", labels, unschedulable=number == 5)
    for number in range(10):
        cluster.pod(f"p{number}", labels=WEB, **spec)
    return cluster


@pytest.mark.parametrize("kind", SPECS)
def test_k115_the_core_places_pods_where_predicates_allow(kind: str) -> None:
    cluster = made(SPECS[kind])
    placed = core(cluster, 10)
    numbers = {"apart": 7, "ports": 7, "nowhere": 0}
    assert len(placed) == numbers.get(kind, 10)
    nodes = [int(node[1]) for node in placed.values()]
    assert 5 not in nodes
    match kind:
        case "selector":
            assert {node % 4 for node in nodes} == {1}
        case "affinity to nodes":
            assert {node % 4 for node in nodes} == {0, 2, 3}
        case "together":
            assert len({node % 2 for node in nodes}) == 1
        case "apart" | "ports":
            assert len(set(nodes)) == len(nodes)
        case "spread":
            assert sum(node % 2 for node in nodes) == 5


def test_k135_what_a_template_has_kept_is_dropped_with_the_nodes_change() -> None:
    cluster = made(SPECS["selector"])
    for _ in range(2):
        assert cluster.cache.predicates("p0", "n0", True) is not None
    cluster.node("n0", {"rack": "r1"})
    assert cluster.cache.predicates("p0", "n0", True) is None
    cluster.node("n0", {"rack": "r2"})
    assert cluster.cache.predicates("p1", "n0", True) is not None
