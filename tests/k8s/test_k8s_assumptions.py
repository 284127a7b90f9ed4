"""Assumptions: where a pod counts between the core's decision and its bind (K97 to K100, K109, K110)."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from small_cluster import SECOND, SmallCluster, apart, term

from quadriga.k8s.driver.core_callback import CoreCallback
from quadriga.si import PredicatesArgs, RefusalPlugin

WEB = {"app": "web"}


@pytest.fixture
def pair() -> SmallCluster:
    """Two pods that must not share a node, and two nodes."""
    cluster = SmallCluster(n1={}, n2={})
    for name in ("p", "q"):
        cluster.pod(name, labels=WEB, affinity=apart(term()))
    return cluster


def test_k98_an_assumed_pod_counts_on_its_node(pair: SmallCluster) -> None:
    assert pair.cache.assume("p", "n1") is None
    pair.now += 3600 * SECOND
    pair.pod("p", labels={**WEB, "new": "label"}, affinity=apart(term()))
    assert (pair.cache.assumed("p"), pair.allows("q")) == ("n1", "n2")
    pair.pod("p", "n1", labels=WEB, affinity=apart(term()))
    assert (pair.cache.assumed("p"), pair.allows("q")) == (None, "n2")
    assert pair.cache.assume("q", "n2") is None
    pair.pod("q", "n1", labels=WEB, affinity=apart(term()))
    assert (pair.cache.assumed("q"), pair.cache.dump()["pods"]["q"]["node"]) == (None, "n1")


def test_k99_a_yes_counts_at_once_and_that_for_a_reservation_does_not(pair: SmallCluster) -> None:
    assert pair.cache.predicates("p", "n1", False) is None
    assert pair.allows("q") == "n1 n2"
    assert pair.cache.predicates("p", "n1", True) is None
    assert (pair.cache.assumed("p"), pair.allows("q")) == (None, "n2")
    assert pair.cache.dump()["pods"]["p"]["tentative"] == "n1"


def test_k99_an_explanation_does_not_count(pair: SmallCluster) -> None:
    before = pair.cache.dump()
    made = CoreCallback(pair.cache, lambda heard: None, lambda: "{}")
    assert isinstance(made, RefusalPlugin)
    question = PredicatesArgs(allocationKey="p", nodeID="n1", allocate=True)
    assert made.refusal(question) is None
    assert pair.cache.dump() == before
    assert pair.allows("q") == "n1 n2"
    pair.pod("there", "n1", labels=WEB)
    assert made.refusal(question) == made.predicates(question)


def test_k99_the_next_yes_takes_its_place_and_the_core_chooses(pair: SmallCluster) -> None:
    for _ in range(2):  # a pod is not in its own way
        assert pair.cache.predicates("p", "n1", True) is None
    pair.cache.predicates("p", "n2", True)
    assert pair.allows("q") == "n1"
    assert pair.cache.assume("p", "n1") is None
    assert (pair.cache.refusals("p", "n1"), pair.allows("q")) == ([], "n2")


def test_k99_a_yes_is_dropped_after_a_second_of_its_own(pair: SmallCluster) -> None:
    pair.cache.predicates("p", "n1", True)
    pair.now += SECOND - 1
    assert pair.cache.predicates("q", "n1", True) is not None, "a refusal does not count"
    assert pair.allows("p") == "n1 n2"
    pair.cache.predicates("p", "n1", True)
    pair.now += SECOND - 1
    assert pair.allows("q") == "n2"
    pair.now += 1
    assert pair.cache.predicates("q", "n1", True) is None


def test_k99_what_is_assumed_is_neither_dropped_nor_moved_by_a_yes(pair: SmallCluster) -> None:
    pair.cache.predicates("p", "n1", True)
    assert pair.cache.assume("p", "n1") is None
    pair.now += 2 * SECOND
    assert pair.allows("q") == "n2"
    assert pair.cache.predicates("p", "n2", True) is None
    assert (pair.cache.assumed("p"), pair.allows("q")) == ("n1", "n2")


def test_k100_the_filters_of_other_pods_are_asked_once_more(pair: SmallCluster) -> None:
    assert pair.cache.predicates("p", "n1", True) is None
    pair.pod("foreign", "n1", labels=WEB)
    assert pair.cache.assume("p", "n1").startswith("InterPodAffinity: ")
    assert pair.cache.assumed("p") is None
    pair.cache.remove_pod("foreign")
    assert pair.allows("q") == "n1 n2"
    pair.node("n1", unschedulable=True)
    assert pair.cache.assume("p", "n1") is None
    assert pair.cache.assume("x", "n1") == "the pod x is unknown"
    assert pair.cache.assume("p", "n9") == "the node n9 is unknown"
    pair.pod("p", "n1", labels=WEB)
    assert pair.cache.assume("p", "n1") is None
    assert pair.cache.assume("p", "n2") == "NodeName: the pod names another node"
    assert pair.cache.assumed("p") is None


@pytest.mark.parametrize("how", ["assumed", "a yes"])
def test_k108_what_is_forgotten_counts_nowhere(pair: SmallCluster, how: str) -> None:
    if how == "assumed":
        pair.cache.assume("p", "n1")
    else:
        pair.cache.predicates("p", "n1", True)
    for name in ("p", "p", "unknown"):
        pair.cache.forget(name)
        assert (pair.cache.assumed("p"), pair.allows("q")) == (None, "n1 n2")


def test_k109_k110_a_refusal_goes_with_the_pod_or_to_another_node(pair: SmallCluster) -> None:
    pair.cache.assume("p", "n1")
    pair.pod("p", labels=WEB, affinity=apart(term()))
    pair.cache.forget("p")
    pair.cache.refuse("p", "n1")
    pair.pod("p", labels=WEB, affinity=apart(term()))
    assert pair.allows("p") == "n2"
    assert pair.cache.predicates("p", "n2", True) is None
    assert pair.cache.assume("p", "n2") is None
    pair.cache.refuse("p", "n1")
    pair.cache.remove_pod("p")
    pair.pod("p", labels=WEB)
    assert pair.allows("p") == "n1 n2"
    pair.cache.refuse("unknown", "n1")


def test_k110_a_node_that_failed_is_refused_for_up_to_five_minutes(pair: SmallCluster) -> None:
    for seconds in (30, 60, 120, 240, 300, 300):
        pair.cache.refuse("p", "n1")
        assert pair.asks("p", "n1") == (
            "LastBindFailed: binding the pod to this node failed, so other nodes are tried first"
        )
        assert pair.allows("q") == "n1 n2"
        pair.now += seconds * SECOND - 1
        assert pair.allows("p") == "n2"
        pair.now += 1
        assert pair.allows("p") == "n1 n2"
    pair.cache.remove_pod("p")
    pair.pod("p", labels=WEB, affinity=apart(term()))
    for node in ("n1", "n2"):  # each has a time of its own
        pair.cache.refuse("p", node)
        pair.now += 20 * SECOND
    assert pair.allows("p") == "n1"


def test_k110_a_change_of_the_node_ends_it_and_the_same_node_does_not(pair: SmallCluster) -> None:
    taint = {"key": "x", "effect": "PreferNoSchedule"}
    changes: list[dict[str, Any]] = [{"labels": {"new": "label"}}, {"taints": [taint]}, {}]
    for change in changes:
        pair.cache.refuse("p", "n1")
        if not change:
            pair.cache.remove_node("n1")
        pair.node("n1", **change)
        assert pair.allows("p") == "n1 n2", change
    pair.cache.refuse("p", "n1")
    pair.node("n1")
    assert pair.allows("p") == "n2"
    pair.now += 30 * SECOND  # no longer than the first time
    assert pair.allows("p") == "n1 n2"


def test_k97_pods_assumed_on_a_node_that_is_gone_have_none(pair: SmallCluster) -> None:
    pair.cache.assume("p", "n1")
    pair.pod("bound", "n1", labels=WEB)
    pair.cache.predicates("q", "n2", True)
    assert pair.cache.remove_node("n1") == ("p",)
    assert pair.cache.assumed("p") is None
    assert pair.cache.remove_node("n2") == ()
    assert pair.cache.remove_node("n2") == ()
    pair.node("n1")
    pair.node("n2")
    # the bound pod is there again, the others are not
    assert pair.allows("p") == pair.allows("q") == "n2"
    nowhere = {"node": "", "assumed": "", "tentative": ""}
    flags = {"volumes_bound": True, "orphan": False}
    assert pair.cache.dump()["pods"]["p"] == {"namespace": "team", "name": "p", **nowhere, **flags}


def test_k17_the_dump_tells_nodes_and_pods_in_their_newest_versions(pair: SmallCluster) -> None:
    pair.node("n2", unschedulable=True)
    pair.cache.assume("p", "n1")
    pair.pod("lost", "n9")
    dump = pair.cache.dump()
    assert dump["nodes"] == {"n1": {"unschedulable": False}, "n2": {"unschedulable": True}}
    assert list(dump["pods"]) == ["lost", "p", "q"]
    assert dump["pods"]["p"]["assumed"] == "n1"
    assert dump["pods"]["lost"]["node"] == "n9"
    assert dump["pods"]["lost"]["orphan"] is True
    pair.pod("p", labels={"app": "db"})
    assert pair.cache.pod("p").metadata.labels == {"app": "db"}
    assert pair.cache.node("n1").name == "n1"
    assert pair.cache.pod("x") is pair.cache.node("x") is pair.cache.assumed("x") is None


def test_k3_two_threads_share_the_cache() -> None:
    """One writes as the shim does, one asks as the core does; in the end all counters are back."""
    cluster = SmallCluster(n1={}, n2={})
    cluster.pod("p", labels=WEB, affinity=apart(term()))

    def write(number: int) -> None:
        cluster.pod(f"w{number}", "n1", labels=WEB, affinity=apart(term()))
        cluster.node("n2", {"number": str(number)})
        cluster.cache.remove_pod(f"w{number}")

    def ask(_: int) -> None:
        cluster.cache.predicates("p", "n1", True)
        cluster.cache.assume("p", "n2")
        cluster.cache.forget("p")
        cluster.cache.dump()

    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(list, map(each, range(300))) for each in (write, ask)]
    assert [each.exception() for each in both] == [None, None]
    assert cluster.allows("p") == "n1 n2"
