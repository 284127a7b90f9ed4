"""Predicates: what is asked in which order, and the filters of names, labels, taints and ports (K115 to K126)."""

from itertools import product
from typing import Any

import pytest
from decoded import decoded
from naive_predicates import NaiveCluster
from small_cluster import SmallCluster, apart, expression, near, node_affinity, spread, term

from quadriga.k8s.cluster import ClusterCache
from quadriga.k8s.objects import Node, Pod

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
CORDON = "node.kubernetes.io/unschedulable"


def allows(node: Json, spec: Json, there: Json | None = None) -> bool:
    """Whether the pod may go to the node; the cache and the naive cluster must say the same."""
    cache, naive = ClusterCache(lambda: 0), NaiveCluster()
    manifest = {"metadata": {"name": "n1", "labels": LABELS}, "spec": node}
    cache.set_node(decoded(Node, manifest))
    naive.nodes["n1"] = manifest
    for name, of_pod in (("p", spec), ("other", {"nodeName": "n1", **(there or {})})):
        metadata = {"name": name, "namespace": "team", "uid": name, "labels": {"app": "web"}}
        pod = {"metadata": metadata, "spec": {"containers": [], **of_pod}}
        cache.set_pod(decoded(Pod, pod))
        naive.pods[name] = pod
    found = list(dict.fromkeys(each.split(":")[0] for each in cache.refusals("p", "n1")))
    assert found == naive.refusals("p", "n1"), (node, spec, there)
    return not found


def all_of(**values: tuple[Any, ...]) -> list[Json]:
    """Objects with all combinations; None leaves a field out."""
    return [
        {name: value for name, value in zip(values, each, strict=True) if value is not None}
        for each in product(*values.values())
    ]


TAINTS = [
    *all_of(key=("gpu",), effect=("NoSchedule",), value=(None, "yes", "10", "-1", "9" * 20)),
    *all_of(key=("gpu",), effect=("NoExecute", "PreferNoSchedule"), value=("yes",)),
]
TOLERATIONS = all_of(
    key=(None, "gpu", "cpu", CORDON),
    operator=(None, "Equal", "Exists", "Gt", "Lt", "Like"),
    value=(None, "yes", "9", "10", "11", "0", "1_0"),
    effect=(None, "NoSchedule", "NoExecute"),
)
NODES = [*({"taints": [each]} for each in TAINTS), {"unschedulable": True}]


@pytest.mark.parametrize("node", NODES, ids=str)
def test_k119_k121_a_taint_and_each_toleration(node: Json) -> None:
    assert sum(allows(node, {"tolerations": [each]}) for each in TOLERATIONS) > 0
    assert allows(node, {}) == ("PreferNoSchedule" in str(node))


VALUES = "ssd|hdd,ssd|9|15|16|17|1,2|many|-1|not valid".split("|")
REQUIREMENTS = all_of(
    key=(*LABELS, "rack", "not valid"),
    operator=("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Like"),
    values=([], ["9" * 20], *(each.split(",") for each in VALUES)),
)


def test_k122_each_pair_of_the_node_selector_and_each_requirement_on_labels() -> None:
    selectors = all_of(disk=(None, "ssd", "hdd"), cores=(None, "16"), rack=(None, "1", ""))
    assert sum(allows({}, {"nodeSelector": each}) for each in selectors) == 4
    terms = [node_affinity({"matchExpressions": [each]}) for each in REQUIREMENTS]
    assert sum(allows({}, {"affinity": each}) for each in terms) > 50


def test_k123_each_pair_of_ports() -> None:
    ports = all_of(
        containerPort=(80,),
        hostPort=(None, 0, 80, 81),
        hostIP=(None, "10.0.0.1", "10.0.0.2", "0.0.0.0"),
        protocol=(None, "TCP", "UDP"),
    )
    taken = [[{"name": "main", "ports": [each]}] for each in ports]
    taken.append([{"name": "main", "ports": ports[-2:]}])
    found = [allows({}, {"containers": p}, {"containers": q}) for p, q in product(taken, taken)]
    assert {*found} == {True, False}


def test_k126_each_requirement_of_a_terms_selector() -> None:
    for each in all_of(
        key=("app", "tier"),
        operator=("In", "NotIn", "Exists", "DoesNotExist", "Gt"),
        values=([], ["web", "db"], ["db"], ["web"], ["1"]),
    ):
        allows({}, {"affinity": near(term("disk", {"matchExpressions": [each]}))})


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


def test_k134_pods_share_a_template_unless_a_term_looks_at_their_labels() -> None:
    cluster = SmallCluster(n1={})
    for number in range(3):
        labels = {"executor": str(number)}
        cluster.pod(f"p{number}", labels=labels, nodeSelector={"disk": "ssd"})
    cluster.pod("q", nodeSelector={"disk": "hdd"})
    signatures = [cluster.cache._pods[name].signature for name in ("p0", "p1", "p2", "q")]
    assert signatures[0] is signatures[1] is signatures[2] is not signatures[3]
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


def test_k134_signatures_that_no_pod_has_are_forgotten_in_the_end() -> None:
    cluster = SmallCluster(n1={})
    for number in range(1000):
        selector = {"matchLabels": {f"key-{number}": "x"}}
        cluster.pod("p", labels={"app": "web"}, affinity=apart(term(selector=selector)))
        cluster.cache.remove_pod("p")
    cache = cluster.cache
    assert len(cache._signatures._signatures) == 256
    assert len(cache._selections._selections) == len(cache._selections._holders) == 256
    assert sum(map(len, cache._selections._keys.values())) == 256
    assert cache._selections._profiles == {}


GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


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


PORT = {"containerPort": 1, "hostPort": 80}


def containers(*ports: Json, **more: Any) -> list[Json]:
    return [{"name": "main", "ports": list(ports), **more}]


@pytest.fixture
def taken() -> SmallCluster:
    """One node, and the pod ``p``, which asks for the port 80."""
    found = SmallCluster(n1={})
    found.pod("p", containers=PORT_80)
    return found


PORT_80 = containers(PORT)


def test_k123_the_reason_names_the_port_and_sidecars_have_ports(taken: SmallCluster) -> None:
    taken.pod("other", "n1", containers=PORT_80)
    assert taken.asks("p", "n1") == "NodePorts: host port 80/TCP is in use on the node"
    taken.pod("other", "n1", hostNetwork=True, containers=containers({"containerPort": 80}))
    assert taken.allows("p") == "", "also on the host's network"
    sidecar = containers(PORT, restartPolicy="Always")
    taken.pod("other", "n1", initContainers=sidecar + containers({**PORT, "hostPort": 81}))
    taken.pod("q", containers=containers({**PORT, "hostPort": 81}))
    assert (taken.allows("p"), taken.allows("q")) == ("", "n1"), "other init containers do not"


def test_k123_two_containers_of_one_pod_may_name_the_same_port(taken: SmallCluster) -> None:
    both = [*PORT_80, {"name": "b", "ports": [PORT]}]
    taken.pod("two", containers=both)
    assert taken.allows("two") == "n1"
    taken.pod("two", "n1", containers=both)
    assert taken.allows("p") == ""
    taken.cache.remove_pod("two")
    assert taken.allows("p") == "n1"


def test_k123_a_port_is_taken_by_assumed_pods_until_the_last_is_gone(taken: SmallCluster) -> None:
    taken.pod("a", containers=PORT_80)
    assert taken.cache.assume("a", "n1") is None
    assert taken.allows("p") == ""
    for phase, allowed in (("Running", ""), ("Succeeded", "n1")):
        taken.pod("a", "n1", phase=phase, containers=PORT_80)
        assert taken.allows("p") == allowed
    for name in ("a", "b"):  # that others have put there, past all filters
        taken.pod(name, "n1", containers=PORT_80)
    for name, allowed in (("a", ""), ("b", "n1")):
        taken.cache.remove_pod(name)
        assert taken.allows("p") == allowed


WEB, DB = {"app": "web"}, {"app": "db"}


def test_k117_the_first_index_after_which_all_filters_pass_and_victims_passed_over() -> None:
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
    cluster = SmallCluster(a1={"zone": "a"}, a2={"zone": "a"})
    cluster.pod("far", "a2", labels=WEB)
    cluster.pod("p", affinity=apart(term("zone")))
    ask = cluster.cache.preemption_predicates
    assert ask("p", "a1", ["x", "far"], 0) is None
    cluster.pod("v", "a1", labels=DB)
    cluster.pod("q", affinity=apart(term(selector={"matchLabels": DB})))
    assert ask("q", "a1", ["x", "far", "v"], 0) == 2


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
