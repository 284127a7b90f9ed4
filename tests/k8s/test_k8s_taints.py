"""Taints, tolerations and cordoned nodes (K119, K121)."""

from __future__ import annotations

from typing import Any

import pytest
from small_cluster import SmallCluster

Json = dict[str, Any]

GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
CORDON = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("tolerations", "allowed"),
    [
        ([], False),
        ([{"key": CORDON, "operator": "Exists"}], True),
        ([{"key": CORDON, "operator": "Exists", "effect": "NoSchedule"}], True),
        ([{"key": CORDON, "operator": "Exists", "effect": "NoExecute"}], False),
        ([{"key": CORDON}], True),
        ([{"key": CORDON, "value": "true"}], False),
        ([{"operator": "Exists"}], True),
        ([{"key": "gpu", "operator": "Exists"}], False),
    ],
)
def test_k119_a_cordoned_node_is_tolerated(tolerations: list[Json], allowed: bool) -> None:
    cluster = SmallCluster()
    cluster.node("n1", unschedulable=True)
    cluster.pod("p", tolerations=tolerations)
    answer = cluster.asks("p", "n1")
    assert answer == (None if allowed else "NodeUnschedulable: the node is cordoned")


@pytest.mark.parametrize(
    ("taint", "tolerations", "allowed"),
    [
        (GPU, [], False),
        ({**GPU, "effect": "NoExecute"}, [], False),
        ({**GPU, "effect": "PreferNoSchedule"}, [], True),
        (GPU, [{"key": "gpu", "operator": "Exists"}], True),
        (GPU, [{"key": "gpu", "operator": "Equal", "value": "yes"}], True),
        (GPU, [{"key": "gpu", "value": "yes"}], True),
        (GPU, [{"key": "gpu", "value": "no"}], False),
        (GPU, [{"key": "gpu"}], False),
        ({"key": "gpu", "effect": "NoSchedule"}, [{"key": "gpu"}], True),
        (GPU, [{"key": "cpu", "operator": "Exists"}], False),
        (GPU, [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}], True),
        (GPU, [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}], False),
        (GPU, [{"operator": "Exists"}], True),
        (GPU, [{"operator": "Exists", "effect": "NoExecute"}], False),
        # an empty key is for Exists only
        (GPU, [{"operator": "Equal", "value": "yes"}], False),
        (GPU, [{"value": "yes"}], False),
        # tolerationSeconds does not matter
        (GPU, [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 5}], True),
        (GPU, [{"key": "gpu", "operator": "Like", "value": "yes"}], False),
        # numbers
        ({**GPU, "value": "10"}, [{"key": "gpu", "operator": "Gt", "value": "9"}], True),
        ({**GPU, "value": "10"}, [{"key": "gpu", "operator": "Gt", "value": "10"}], False),
        ({**GPU, "value": "10"}, [{"key": "gpu", "operator": "Lt", "value": "11"}], True),
        ({**GPU, "value": "10"}, [{"key": "gpu", "operator": "Lt", "value": "9"}], False),
        ({**GPU, "value": "-1"}, [{"key": "gpu", "operator": "Lt", "value": "0"}], True),
        (GPU, [{"key": "gpu", "operator": "Gt", "value": "9"}], False),
        ({**GPU, "value": "10"}, [{"key": "gpu", "operator": "Gt", "value": "1_0"}], False),
        ({**GPU, "value": "9" * 20}, [{"key": "gpu", "operator": "Gt", "value": "9"}], False),
        ({**GPU, "value": "10"}, [{"operator": "Gt", "value": "9"}], False),
    ],
)
def test_k121_a_taint_keeps_pods_away_that_do_not_tolerate_it(
    taint: Json, tolerations: list[Json], allowed: bool
) -> None:
    cluster = SmallCluster()
    cluster.node("n1", taints=[taint])
    cluster.pod("p", tolerations=tolerations)
    assert (cluster.asks("p", "n1") is None) == allowed


def test_k121_k135_each_taint_needs_a_toleration_and_a_changed_node_is_asked_anew() -> None:
    cluster = SmallCluster()
    other = {"key": "team", "effect": "NoExecute"}
    cluster.node("n1", taints=[GPU, other])
    cluster.pod("one", tolerations=[{"key": "gpu", "operator": "Exists"}])
    cluster.pod("both", tolerations=[{"key": key, "operator": "Exists"} for key in ("gpu", "team")])
    expected = "TaintToleration: the pod does not tolerate the taint team:NoExecute"
    assert cluster.asks("one", "n1") == expected
    cluster.pod("none")
    expected = "TaintToleration: the pod does not tolerate the taint gpu=yes:NoSchedule"
    assert cluster.asks("none", "n1") == expected, "the first taint"
    assert cluster.asks("both", "n1") is None
    cluster = SmallCluster(n1={}, n2={})
    cluster.pod("p")
    cluster.pod("q", tolerations=[{"key": "gpu", "operator": "Exists"}])
    assert cluster.allows("p") == "n1 n2"
    cluster.node("n1", taints=[GPU])
    assert cluster.allows("p") == "n2"
    assert cluster.allows("q") == "n1 n2"
    cluster.node("n1")
    assert cluster.allows("p") == "n1 n2"
