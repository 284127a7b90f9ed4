"""Predicates: what is asked in which order, and the filters of the node's name and labels (K115 to K122)."""

from __future__ import annotations

from typing import Any

import pytest
from small_cluster import SmallCluster, apart, expression, node_affinity, spread, term

Json = dict[str, Any]


def test_k115_an_unknown_pod_or_node_is_refused_and_a_pod_that_has_ended_is_unknown() -> None:
    cluster = SmallCluster(n1={})
    cluster.pod("p")
    assert cluster.cache.predicates("x", "n1", True) == "the pod x is unknown"
    assert cluster.cache.predicates("p", "n9", True) == "the node n9 is unknown"
    assert cluster.cache.refusals("p", "n9") == ["the node n9 is unknown"]
    assert cluster.cache.predicates("p", "n1", True) is None
    cluster.pod("p", phase="Succeeded")
    assert cluster.cache.pod("p") is None
    assert cluster.asks("p", "n1") == "the pod p is unknown"
    cluster.pod("p")
    cluster.pod("p", phase="Failed")
    assert cluster.asks("p", "n1") == "the pod p is unknown"


def test_k118_the_first_refusal_is_the_answer_and_explain_gets_all() -> None:
    cluster = SmallCluster()
    cluster.node("n1", unschedulable=True, taints=[{"key": "gpu", "effect": "NoSchedule"}])
    cluster.pod("web", "n1", labels={"app": "web"}, containers=[_with_port(80)])
    cluster.pod(
        "p",
        labels={"app": "web"},
        nodeSelector={"disk": "ssd"},
        containers=[_with_port(80)],
        topologySpreadConstraints=[spread()],
        affinity=apart(term()),
        resourceClaims=[{"name": "gpu"}],
    )
    names = [reason.partition(":")[0] for reason in cluster.cache.refusals("p", "n1")]
    assert names == [
        *("NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts"),
        *("PodTopologySpread", "InterPodAffinity", "DynamicResources"),
    ]
    assert cluster.asks("p", "n1") == cluster.cache.refusals("p", "n1")[0]


def test_k120_k133_the_nodes_name_comes_before_the_taints_and_resource_claims_are_refused() -> None:
    cluster = SmallCluster(n1={})
    taints = [{"key": "gpu", "effect": "NoSchedule"}]
    cluster.node("n2", unschedulable=True, taints=taints)
    cluster.node("n3", taints=taints)
    cluster.pod("p", "n1")
    names = [reason.partition(":")[0] for reason in cluster.cache.refusals("p", "n2")]
    assert names == ["NodeUnschedulable", "NodeName", "TaintToleration"]
    assert cluster.asks("p", "n3") == "NodeName: the pod names another node"
    assert cluster.asks("p", "n1") is None
    cluster = SmallCluster(n1={})
    cluster.pod("p", resourceClaims=[{"name": "gpu"}])
    reason = "DynamicResources: resource claims are not supported yet"
    assert cluster.cache.predicates("p", "n1", True) == reason
    assert cluster.cache.predicates("p", "n1", False) is None


def _with_port(port: int) -> Json:
    return {"name": "main", "ports": [{"containerPort": port, "hostPort": port}]}


LABELS = {"disk": "ssd", "cores": "16", "odd": "016", "name": "many"}


@pytest.mark.parametrize(
    ("selector", "allowed"),
    [
        ({}, True),
        ({"disk": "ssd"}, True),
        ({"disk": "hdd"}, False),
        ({"disk": "ssd", "cores": "16"}, True),
        ({"disk": "ssd", "rack": "1"}, False),
        ({"rack": ""}, False),
    ],
)
def test_k122_each_pair_of_the_node_selector(selector: dict[str, str], allowed: bool) -> None:
    cluster = SmallCluster(n1=LABELS)
    cluster.pod("p", nodeSelector=selector)
    assert (cluster.asks("p", "n1") is None) == allowed


@pytest.mark.parametrize(
    ("requirement", "allowed"),
    [
        (expression("disk", "In", "hdd", "ssd"), True),
        (expression("disk", "In", "hdd"), False),
        (expression("rack", "In", "r1"), False),
        (expression("disk", "NotIn", "hdd"), True),
        (expression("disk", "NotIn", "ssd"), False),
        (expression("rack", "NotIn", "r1"), True),
        (expression("disk", "Exists"), True),
        (expression("rack", "Exists"), False),
        (expression("disk", "DoesNotExist"), False),
        (expression("rack", "DoesNotExist"), True),
        (expression("cores", "Gt", "15"), True),
        (expression("cores", "Gt", "16"), False),
        (expression("cores", "Lt", "17"), True),
        (expression("cores", "Lt", "16"), False),
        (expression("cores", "Gt", "9"), True),  # numbers, not texts
        (expression("odd", "Gt", "15"), True),
        (expression("name", "Gt", "1"), False),
        (expression("rack", "Lt", "1"), False),
        # invalid requirements: the term matches nothing
        (expression("disk", "In"), False),
        (expression("rack", "NotIn"), False),
        (expression("disk", "Exists", "ssd"), False),
        (expression("rack", "DoesNotExist", "x"), False),
        (expression("cores", "Gt"), False),
        (expression("cores", "Gt", "1", "2"), False),
        (expression("cores", "Gt", "many"), False),
        (expression("cores", "Gt", "-1"), False),
        (expression("cores", "Lt", "99999999999999999999"), False),
        (expression("disk", "NotIn", "not valid"), False),
        (expression("not valid", "DoesNotExist"), False),
        (expression("disk", "Like", "ssd"), False),
    ],
)
def test_k122_requirements_on_labels(requirement: Json, allowed: bool) -> None:
    cluster = SmallCluster(n1=LABELS)
    cluster.pod("p", affinity=node_affinity({"matchExpressions": [requirement]}))
    assert (cluster.asks("p", "n1") is None) == allowed


SSD = expression("disk", "In", "ssd")
HDD = expression("disk", "In", "hdd")
WRONG = expression("disk", "In")
N1 = expression("metadata.name", "In", "n1")


@pytest.mark.parametrize(
    ("terms", "allowed"),
    [
        ([], False),
        ([{}], False),
        ([{}, {"matchExpressions": [SSD]}], True),
        ([{"matchExpressions": [HDD]}, {"matchExpressions": [SSD]}], True),
        ([{"matchExpressions": [HDD, SSD]}], False),
        ([{"matchExpressions": [WRONG]}, {"matchExpressions": [SSD]}], True),
        ([{"matchExpressions": [SSD, WRONG]}], False),
        ([{"matchFields": [N1]}], True),
        ([{"matchFields": [expression("metadata.name", "In", "n2")]}], False),
        ([{"matchFields": [expression("metadata.name", "NotIn", "n2")]}], True),
        ([{"matchFields": [expression("metadata.name", "NotIn", "n1")]}], False),
        ([{"matchFields": [expression("metadata.name", "In", "n1", "n2")]}], False),
        ([{"matchFields": [expression("metadata.name", "Exists")]}], False),
        ([{"matchFields": [expression("metadata.uid", "In", "n1")]}], False),
        ([{"matchExpressions": [SSD], "matchFields": [N1]}], True),
        ([{"matchExpressions": [HDD], "matchFields": [N1]}], False),
    ],
)
def test_k122_one_term_must_match(terms: list[Json], allowed: bool) -> None:
    cluster = SmallCluster(n1=LABELS)
    cluster.pod("p", affinity=node_affinity(*terms))
    assert (cluster.asks("p", "n1") is None) == allowed


def test_k134_pods_that_say_the_same_share_a_template() -> None:
    cluster = SmallCluster(n1={})
    for number in range(3):
        labels = {"executor": str(number)}
        cluster.pod(f"p{number}", labels=labels, nodeSelector={"disk": "ssd"})
    cluster.pod("q", nodeSelector={"disk": "hdd"})
    templates = [cluster.cache._pods[name].template for name in ("p0", "p1", "p2", "q")]
    assert templates[0] is templates[1] is templates[2] is not templates[3]


def test_k134_labels_that_no_term_looks_at_do_not_tell_pods_apart() -> None:
    cluster = SmallCluster(n1={})
    for number in range(3):
        cluster.pod(f"p{number}", "n1", labels={"executor": str(number), "app": "web"})
    records = [cluster.cache._pods[f"p{number}"] for number in range(3)]
    assert len({id(record.profile) for record in records}) == 1
    by_executor = term(selector={"matchExpressions": [expression("executor", "In", "1", "9")]})
    cluster.pod("q", affinity=apart(by_executor))
    assert len({id(record.profile) for record in records}) == 3
    assert cluster.asks("q", "n1") is not None
    cluster.cache.remove_pod("p1")
    assert cluster.asks("q", "n1") is None


def test_k134_templates_that_no_pod_has_are_forgotten_in_the_end() -> None:
    cluster = SmallCluster(n1={})
    for number in range(1000):
        selector = {"matchLabels": {f"key-{number}": "x"}}
        cluster.pod("p", labels={"app": "web"}, affinity=apart(term(selector=selector)))
        cluster.cache.remove_pod("p")
    cache = cluster.cache
    assert len(cache._templates._templates) == 256
    assert len(cache._selections._selections) == len(cache._selections._holders) == 256
    assert sum(map(len, cache._selections._keys.values())) == 256
    assert cache._selections._profiles == {}


def test_k135_what_a_template_has_kept_is_dropped_with_the_nodes_change() -> None:
    cluster = SmallCluster(n0={"rack": "r0"})
    for name in ("p0", "p1"):
        cluster.pod(name, nodeSelector={"rack": "r1"})
    for _ in range(2):
        assert cluster.cache.predicates("p0", "n0", True) is not None
    cluster.node("n0", {"rack": "r1"})
    assert cluster.cache.predicates("p0", "n0", True) is None
    cluster.node("n0", {"rack": "r2"})
    assert cluster.cache.predicates("p1", "n0", True) is not None
