"""Assumptions: where a pod counts between the core's decision and its bind (K97 to K100, K109, K110)."""

from __future__ import annotations

import threading

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
    assert pair.cache.assumed("p") == "n1"
    pair.now += 3600 * SECOND
    assert pair.allows("q") == "n2"
    pair.pod("p", "n1", labels=WEB, affinity=apart(term()))
    assert pair.cache.assumed("p") is None
    assert pair.allows("q") == "n2"


def test_k98_a_new_version_without_a_node_does_not_undo_it(pair: SmallCluster) -> None:
    pair.cache.assume("p", "n1")
    pair.pod("p", labels={**WEB, "new": "label"}, affinity=apart(term()))
    assert pair.cache.assumed("p") == "n1"
    assert pair.allows("q") == "n2"


def test_k98_a_pod_that_somebody_else_has_bound_counts_there(pair: SmallCluster) -> None:
    pair.cache.assume("p", "n1")
    pair.pod("p", "n2", labels=WEB, affinity=apart(term()))
    assert pair.cache.assumed("p") is None
    assert pair.allows("q") == "n1"


def test_k99_a_yes_counts_at_once(pair: SmallCluster) -> None:
    assert pair.cache.predicates("p", "n1", True) is None
    assert pair.allows("q") == "n2"
    assert pair.cache.assumed("p") is None
    assert pair.cache.dump()["pods"]["p"]["tentative"] == "n1"


def test_k99_a_question_about_a_reservation_does_not_count(pair: SmallCluster) -> None:
    assert pair.cache.predicates("p", "n1", False) is None
    assert pair.allows("q") == "n1 n2"


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


def test_k99_a_refusal_does_not_count(pair: SmallCluster) -> None:
    pair.pod("there", "n1", labels=WEB)
    assert pair.cache.predicates("p", "n1", True) is not None
    pair.cache.remove_pod("there")
    assert pair.allows("q") == "n1 n2"


def test_k99_the_next_yes_takes_its_place(pair: SmallCluster) -> None:
    pair.cache.predicates("p", "n1", True)
    pair.cache.predicates("p", "n2", True)
    assert pair.allows("q") == "n1"


def test_k99_a_pod_is_not_in_its_own_way(pair: SmallCluster) -> None:
    for _ in range(2):
        assert pair.cache.predicates("p", "n1", True) is None
    assert pair.cache.assume("p", "n1") is None
    assert pair.cache.refusals("p", "n1") == []


def test_k99_it_is_dropped_after_a_second(pair: SmallCluster) -> None:
    pair.cache.predicates("p", "n1", True)
    pair.now += SECOND - 1
    assert pair.cache.predicates("q", "n1", True) is not None
    pair.now += 1
    assert pair.cache.predicates("q", "n1", True) is None


def test_k99_a_later_yes_has_a_second_of_its_own(pair: SmallCluster) -> None:
    pair.cache.predicates("p", "n1", True)
    pair.now += SECOND // 2
    pair.cache.predicates("p", "n1", True)
    pair.now += SECOND // 2
    assert pair.allows("q") == "n2"
    pair.now += SECOND // 2
    assert pair.allows("q") == "n1 n2"


def test_k99_what_is_assumed_is_not_dropped(pair: SmallCluster) -> None:
    pair.cache.predicates("p", "n1", True)
    assert pair.cache.assume("p", "n1") is None
    pair.now += 2 * SECOND
    assert pair.allows("q") == "n2"


def test_k99_the_core_may_choose_another_node_than_the_last_yes(pair: SmallCluster) -> None:
    pair.cache.predicates("p", "n1", True)
    assert pair.cache.assume("p", "n2") is None
    assert pair.allows("q") == "n1"


def test_k99_a_yes_for_a_pod_that_is_assumed_moves_nothing(pair: SmallCluster) -> None:
    pair.cache.assume("p", "n1")
    assert pair.cache.predicates("p", "n2", True) is None
    assert pair.cache.assumed("p") == "n1"
    assert pair.allows("q") == "n2"


def test_k100_the_filters_of_other_pods_are_asked_once_more(pair: SmallCluster) -> None:
    assert pair.cache.predicates("p", "n1", True) is None
    pair.pod("foreign", "n1", labels=WEB)
    reason = pair.cache.assume("p", "n1")
    assert reason is not None
    assert reason.startswith("InterPodAffinity: ")
    assert pair.cache.assumed("p") is None
    pair.cache.remove_pod("foreign")
    assert pair.allows("q") == "n1 n2"


def test_k100_the_static_filters_are_not(pair: SmallCluster) -> None:
    pair.node("n1", unschedulable=True)
    assert pair.cache.assume("p", "n1") is None


def test_k100_what_is_unknown_is_refused(pair: SmallCluster) -> None:
    assert pair.cache.assume("x", "n1") == "the pod x is unknown"
    assert pair.cache.assume("p", "n9") == "the node n9 is unknown"


def test_k100_a_pod_that_is_bound_there_already_needs_nothing(pair: SmallCluster) -> None:
    pair.pod("p", "n1", labels=WEB)
    assert pair.cache.assume("p", "n1") is None
    assert pair.cache.assume("p", "n2") == "NodeName: the pod names another node"
    assert pair.cache.assumed("p") is None


def test_k108_what_is_forgotten_counts_nowhere(pair: SmallCluster) -> None:
    pair.cache.assume("p", "n1")
    pair.cache.forget("p")
    assert pair.cache.assumed("p") is None
    assert pair.allows("q") == "n1 n2"
    pair.cache.forget("p")
    pair.cache.forget("unknown")


def test_k108_a_yes_can_be_forgotten_too(pair: SmallCluster) -> None:
    pair.cache.predicates("p", "n1", True)
    pair.cache.forget("p")
    assert pair.allows("q") == "n1 n2"


def test_k109_a_forgotten_pod_may_go_to_another_node(pair: SmallCluster) -> None:
    pair.cache.assume("p", "n1")
    pair.pod("p", labels=WEB, affinity=apart(term()))
    pair.cache.forget("p")
    pair.cache.refuse("p", "n1")
    pair.pod("p", labels=WEB, affinity=apart(term()))
    assert pair.allows("p") == "n2"
    assert pair.cache.predicates("p", "n2", True) is None
    assert pair.cache.assume("p", "n2") is None


def test_k110_a_node_that_failed_is_refused_for_a_while(pair: SmallCluster) -> None:
    pair.cache.refuse("p", "n1")
    assert pair.asks("p", "n1") == (
        "LastBindFailed: binding the pod to this node failed, so other nodes are tried first"
    )
    assert pair.allows("q") == "n1 n2"
    pair.now += 30 * SECOND - 1
    assert pair.allows("p") == "n2"
    pair.now += 1
    assert pair.allows("p") == "n1 n2"


def test_k110_the_time_is_doubled_up_to_five_minutes(pair: SmallCluster) -> None:
    for seconds in (30, 60, 120, 240, 300, 300):
        pair.cache.refuse("p", "n1")
        pair.now += seconds * SECOND - 1
        assert pair.allows("p") == "n2"
        pair.now += 1
        assert pair.allows("p") == "n1 n2"


def test_k110_each_node_has_a_time_of_its_own(pair: SmallCluster) -> None:
    pair.cache.refuse("p", "n1")
    pair.now += 20 * SECOND
    pair.cache.refuse("p", "n2")
    assert pair.allows("p") == ""
    pair.now += 10 * SECOND
    assert pair.allows("p") == "n1"


@pytest.mark.parametrize("change", ["labels", "spec", "removed"])
def test_k110_a_change_of_the_node_ends_it(pair: SmallCluster, change: str) -> None:
    pair.cache.refuse("p", "n1")
    match change:
        case "labels":
            pair.node("n1", {"new": "label"})
        case "spec":
            pair.node("n1", taints=[{"key": "x", "effect": "PreferNoSchedule"}])
        case "removed":
            pair.cache.remove_node("n1")
            pair.node("n1")
    assert pair.allows("p") == "n1 n2"
    pair.cache.refuse("p", "n1")
    pair.now += 30 * SECOND
    assert pair.allows("p") == "n1 n2"


def test_k110_the_same_node_again_is_no_change(pair: SmallCluster) -> None:
    pair.cache.refuse("p", "n1")
    pair.node("n1")
    assert pair.allows("p") == "n2"


def test_k110_it_goes_with_the_pod(pair: SmallCluster) -> None:
    pair.cache.refuse("p", "n1")
    pair.cache.remove_pod("p")
    pair.pod("p", labels=WEB)
    assert pair.allows("p") == "n1 n2"
    pair.cache.refuse("unknown", "n1")


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
    assert pair.cache.dump()["pods"]["p"] == {
        "namespace": "team",
        "name": "p",
        "node": "",
        "assumed": "",
        "tentative": "",
        "volumes_bound": True,
        "orphan": False,
    }


def test_k17_the_dump_tells_nodes_and_pods(pair: SmallCluster) -> None:
    pair.node("n2", unschedulable=True)
    pair.cache.assume("p", "n1")
    pair.pod("lost", "n9")
    dump = pair.cache.dump()
    assert dump["nodes"] == {"n1": {"unschedulable": False}, "n2": {"unschedulable": True}}
    assert list(dump["pods"]) == ["lost", "p", "q"]
    assert dump["pods"]["p"]["assumed"] == "n1"
    assert dump["pods"]["lost"]["node"] == "n9"
    assert dump["pods"]["lost"]["orphan"] is True


def test_the_newest_versions_are_there(pair: SmallCluster) -> None:
    pair.pod("p", labels={"app": "db"})
    pod, node = pair.cache.pod("p"), pair.cache.node("n1")
    assert pod is not None
    assert pod.metadata.labels == {"app": "db"}
    assert node is not None
    assert node.name == "n1"
    assert pair.cache.pod("x") is None
    assert pair.cache.node("x") is None
    assert pair.cache.assumed("x") is None


def test_k3_two_threads_share_the_cache() -> None:
    """One writes as the shim does, one asks as the core does; in the end all counters are back."""
    cluster = SmallCluster(n1={}, n2={})
    cluster.pod("p", labels=WEB, affinity=apart(term()))
    failures: list[BaseException] = []

    def write() -> None:
        try:
            for number in range(300):
                cluster.pod(f"w{number}", "n1", labels=WEB, affinity=apart(term()))
                cluster.node("n2", {"number": str(number)})
                cluster.cache.remove_pod(f"w{number}")
        except BaseException as error:
            failures.append(error)

    def ask() -> None:
        try:
            for _ in range(300):
                cluster.cache.predicates("p", "n1", True)
                cluster.cache.assume("p", "n2")
                cluster.cache.forget("p")
                cluster.cache.dump()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write), threading.Thread(target=ask)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert cluster.allows("p") == "n1 n2"
