"""Affinity and anti-affinity between pods (K126 to K128)."""

from typing import Any

import pytest
from small_cluster import SmallCluster, apart, near, term

Json = dict[str, Any]

WEB, DB = {"app": "web"}, {"app": "db"}
ZONE = "zone"
OTHER_KIND = {"matchLabels": {"kind": "x"}}


@pytest.fixture
def cluster() -> SmallCluster:
    a, b = {"zone": "a"}, {"zone": "b"}
    return SmallCluster(a1=a, a2=a, b1=b, none={})


def ask(cluster: SmallCluster, affinity: Json, **more: Any) -> str:
    cluster.pod("p", affinity=affinity, **more)
    return cluster.allows("p")


def test_k126_k127_the_pod_goes_where_others_are_or_are_not(cluster: SmallCluster) -> None:
    for deleted in (False, True):
        cluster.pod("web", "a1", labels=WEB, deleted=deleted)
        assert ask(cluster, near(term())) == "a1"
        assert ask(cluster, near(term(ZONE))) == "a1 a2"
        assert ask(cluster, apart(term())) == "a2 b1 none"
        assert ask(cluster, apart(term(ZONE))) == "b1 none"
    assert cluster.asks("p", "a2") == (
        "InterPodAffinity: the pod's anti-affinity excludes a pod in the node's topology domain"
    )


def test_k126_the_first_of_its_kind_may_go_anywhere_others_nowhere(cluster: SmallCluster) -> None:
    assert ask(cluster, near(term(ZONE))) == ""
    assert cluster.asks("p", "none") == "InterPodAffinity: the node has no label zone"
    assert cluster.asks("p", "a1") == (
        "InterPodAffinity: no pod in the node's topology domain matches the pod's affinity"
    )
    assert ask(cluster, near(term(ZONE)), labels=WEB) == "a1 a2 b1"
    cluster.pod("web", "a1", labels=WEB)
    assert ask(cluster, near(term(ZONE)), labels=WEB) == "a1 a2"


@pytest.mark.parametrize(
    ("more", "namespace", "counts"),
    [
        ({}, "team", True),
        ({}, "other", False),
        ({"namespaces": []}, "team", True),
        ({"namespaces": ["other"]}, "other", True),
        ({"namespaces": ["other"]}, "team", False),
        ({"namespaceSelector": {}}, "other", True),
        ({"namespaceSelector": {}}, "unknown", True),
        ({"namespaceSelector": {"matchLabels": {"kind": "shared"}}}, "other", True),
        ({"namespaceSelector": {"matchLabels": {"kind": "shared"}}}, "team", False),
        ({"namespaceSelector": OTHER_KIND, "namespaces": ["team"]}, "team", True),
        ({"namespaceSelector": OTHER_KIND, "namespaces": ["team"]}, "other", False),
    ],
)
def test_k126_namespaces_of_a_term(
    cluster: SmallCluster, more: Json, namespace: str, counts: bool
) -> None:
    cluster.namespace("team")
    cluster.namespace("other", kind="shared")
    cluster.pod("web", "a1", labels=WEB, namespace=namespace)
    assert ask(cluster, near(term(**more))) == ("a1" if counts else "")
    assert ask(cluster, apart(term(**more))) == ("a2 b1 none" if counts else "a1 a2 b1 none")


def test_k128_others_keep_the_pod_away(cluster: SmallCluster) -> None:
    cluster.pod("db", "a1", labels=DB, affinity=apart(term(ZONE)))
    cluster.pod("p", labels=WEB)
    assert cluster.allows("p") == "b1 none"
    assert cluster.asks("p", "a2") == (
        "InterPodAffinity: the anti-affinity of a pod in the node's topology domain excludes the pod"
    )
    cluster.pod("q", labels=DB)
    assert cluster.allows("q") == "a1 a2 b1 none"
