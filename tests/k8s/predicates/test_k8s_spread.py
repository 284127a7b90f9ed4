"""Topology spread (K125)."""

from typing import Any

import pytest
from small_cluster import SmallCluster, expression, node_affinity, spread

WEB = {"app": "web"}


@pytest.fixture
def cluster() -> SmallCluster:
    """Zones a, b and c, with two nodes, one and one, and a node without a zone."""
    a, b, c = ({"zone": name} for name in "abc")
    return SmallCluster(a1=a, a2=a, b1=b, c1=c, none={})


def put(cluster: SmallCluster, **numbers: int) -> None:
    """So many pods with the label ``app=web`` on these nodes."""
    for node, number in numbers.items():
        for index in range(number):
            cluster.pod(f"{node}-{index}", node, labels=WEB)


def ask(cluster: SmallCluster, *constraints: dict[str, Any], **more: Any) -> str:
    more.setdefault("labels", WEB)
    cluster.pod("p", topologySpreadConstraints=list(constraints), **more)
    return cluster.allows("p")


@pytest.mark.parametrize(
    ("there", "skew", "allowed"),
    [
        ({}, 1, "a1 a2 b1 c1"),
        ({"a1": 1}, 1, "b1 c1"),
        ({"a1": 1, "b1": 1}, 1, "c1"),
        ({"a1": 1, "b1": 1, "c1": 1}, 1, "a1 a2 b1 c1"),
        ({"a1": 1, "a2": 1, "b1": 1, "c1": 1}, 1, "b1 c1"),
        ({"a1": 1}, 2, "a1 a2 b1 c1"),
        ({"a1": 1, "a2": 1}, 2, "b1 c1"),
        ({"none": 5}, 1, "a1 a2 b1 c1"),
    ],
)
def test_k125_domains_differ_by_no_more_than_max_skew(
    cluster: SmallCluster, there: dict[str, int], skew: int, allowed: str
) -> None:
    put(cluster, **there)
    assert ask(cluster, spread(skew=skew)) == allowed


def test_k125_the_reasons_and_a_constraint_that_only_prefers(cluster: SmallCluster) -> None:
    put(cluster, a1=1)
    ask(cluster, spread())
    assert cluster.asks("p", "none") == "PodTopologySpread: the node has no label zone"
    assert cluster.asks("p", "a2") == (
        "PodTopologySpread: the pods would be spread too unevenly over zone (maxSkew 1)"
    )
    put(cluster, a1=5)
    soft = spread(whenUnsatisfiable="ScheduleAnyway")
    assert ask(cluster, soft) == "a1 a2 b1 c1 none"


def test_k125_pods_of_other_namespaces_or_being_deleted_do_not_count(cluster: SmallCluster) -> None:
    cluster.pod("foreign", "a1", namespace="other", labels=WEB)
    cluster.pod("leaving", "a1", labels=WEB, deleted=True)
    cluster.pod("db", "a1", labels={"app": "db"})
    assert ask(cluster, spread()) == "a1 a2 b1 c1"
    cluster.pod("counts", "a1", labels=WEB)
    assert ask(cluster, spread()) == "b1 c1"
    cluster.pod("counts", "a1", labels=WEB, deleted=True)
    assert ask(cluster, spread()) == "a1 a2 b1 c1"


def test_k125_nodes_that_the_pod_cannot_use_are_no_domains(cluster: SmallCluster) -> None:
    put(cluster, a1=1, b1=1)
    assert ask(cluster, spread()) == "c1"
    wanted = expression("zone", "In", "a", "b")
    affinity = node_affinity({"matchExpressions": [wanted]})
    assert ask(cluster, spread(), affinity=affinity) == "a1 a2 b1"
    ignoring = spread(nodeAffinityPolicy="Ignore")
    assert ask(cluster, ignoring, affinity=affinity) == ""


def test_k125_taints_make_no_difference_unless_they_are_honored(cluster: SmallCluster) -> None:
    taints = [{"key": "gpu", "effect": "NoSchedule"}]
    cluster.node("c1", {"zone": "c"}, taints=taints)
    put(cluster, a1=1, b1=1)
    assert ask(cluster, spread()) == ""
    honoring = spread(nodeTaintsPolicy="Honor")
    assert ask(cluster, honoring) == "a1 a2 b1"
    tolerations = [{"key": "gpu", "operator": "Exists"}]
    assert ask(cluster, honoring, tolerations=tolerations) == "c1"


@pytest.mark.parametrize(
    ("domains", "allowed"), [(None, "a1 a2 b1 c1"), (1, "a1 a2 b1 c1"), (3, "a1 a2 b1 c1"), (4, "")]
)
def test_k125_with_fewer_domains_than_wanted_the_minimum_is_zero(
    cluster: SmallCluster, domains: int | None, allowed: str
) -> None:
    put(cluster, a1=1, b1=1, c1=1)
    assert ask(cluster, spread(minDomains=domains)) == allowed


def test_k125_labels_that_a_constraint_names_are_in_its_selector(cluster: SmallCluster) -> None:
    cluster.pod("old", "a1", labels={**WEB, "version": "1"})
    by_version = spread(matchLabelKeys=["version", "absent"])
    assert ask(cluster, by_version, labels={**WEB, "version": "2"}) == "a1 a2 b1 c1"
    assert ask(cluster, by_version, labels={**WEB, "version": "1"}) == "b1 c1"
