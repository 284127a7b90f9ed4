"""Which victims must go before a pod may go to a node (K117)."""

from __future__ import annotations

from small_cluster import SmallCluster, apart, near, spread, term

WEB, DB = {"app": "web"}, {"app": "db"}


def test_k117_the_first_index_after_which_all_filters_pass() -> None:
    cluster = SmallCluster(n1={}, n2={})
    for name, labels in (("v0", DB), ("v1", WEB), ("v2", DB)):
        cluster.pod(name, "n1", labels=labels)
    cluster.pod("p", affinity=apart(term()))
    victims = ["v0", "v1", "v2"]
    ask = cluster.cache.preemption_predicates
    assert ask("p", "n1", victims, 0) == 1
    assert ask("p", "n1", victims, 1) == 1
    assert ask("p", "n1", victims, 2) == 2
    assert ask("p", "n1", victims, 3) is None
    assert ask("p", "n1", ["v0", "v2"], 0) is None
    assert ask("p", "n1", [], 0) is None


def test_k117_counters_of_the_domain_are_lowered_and_who_is_wanted_near_must_not_go() -> None:
    cluster = SmallCluster(a1={"zone": "a"}, b1={"zone": "b"})
    for name in ("v0", "v1"):
        cluster.pod(name, "a1", labels=WEB)
    cluster.pod("p", labels=WEB, topologySpreadConstraints=[spread()])
    assert cluster.allows("p") == "b1"
    assert cluster.cache.preemption_predicates("p", "a1", ["v0", "v1"], 0) == 1
    cluster = SmallCluster(n1={}, n2={})
    cluster.pod("w", "n1", labels=WEB)
    cluster.pod("v", "n1", labels=DB)
    cluster.pod("p", affinity=near(term()))
    assert cluster.cache.preemption_predicates("p", "n1", ["v", "w"], 0) == 0
    assert cluster.cache.preemption_predicates("p", "n1", ["w", "v"], 0) is None


def test_k117_ports_and_the_anti_affinity_of_a_victim_go_with_it() -> None:
    cluster = SmallCluster(n1={})
    ports = [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    cluster.pod("v", "n1", containers=ports)
    cluster.pod("p", containers=ports)
    assert cluster.cache.preemption_predicates("p", "n1", ["v"], 0) == 0
    cluster = SmallCluster(n1={})
    cluster.pod("v", "n1", affinity=apart(term()))
    cluster.pod("p", labels=WEB)
    assert cluster.allows("p") == ""
    assert cluster.cache.preemption_predicates("p", "n1", ["v"], 0) == 0


def test_k117_victims_that_are_unknown_or_elsewhere_are_passed_over() -> None:
    cluster = SmallCluster(a1={"zone": "a"}, a2={"zone": "a"})
    cluster.pod("far", "a2", labels=WEB)
    cluster.pod("p", affinity=apart(term("zone")))
    ask = cluster.cache.preemption_predicates
    assert ask("p", "a1", ["x", "far"], 0) is None
    cluster.pod("v", "a1", labels=DB)
    cluster.pod("q", affinity=apart(term(selector={"matchLabels": DB})))
    assert ask("q", "a1", ["x", "far", "v"], 0) == 2


def test_k117_all_is_as_before_afterwards() -> None:
    cluster = SmallCluster(n1={}, n2={})
    cluster.pod("v", "n1", labels=WEB, affinity=apart(term()))
    cluster.pod("p", labels=WEB, affinity=apart(term()))
    cluster.pod("q", labels=WEB)
    assert cluster.cache.assume("p", "n2") is None
    before = cluster.cache.dump()
    assert cluster.cache.preemption_predicates("p", "n1", ["v", "v"], 0) == 0
    assert cluster.cache.dump() == before
    assert cluster.allows("q") == ""


def test_k117_what_no_eviction_can_change_is_refused() -> None:
    cluster = SmallCluster()
    cluster.node("n1", unschedulable=True)
    cluster.pod("v", "n1")
    cluster.pod("p")
    ask = cluster.cache.preemption_predicates
    assert ask("p", "n1", ["v"], 0) is None
    assert ask("x", "n1", ["v"], 0) is None
    assert ask("p", "n9", ["v"], 0) is None
    assert ask("p", "n1", ["v"], -1) is None
