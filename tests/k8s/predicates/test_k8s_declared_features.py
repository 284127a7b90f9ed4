"""Constraints that select nothing, and features that nodes declare (K210). The random histories compare both with
a reference that looks at everything anew (``naive_predicates``)."""

from typing import Any

import pytest
from decoded import decoded
from k8s_world import World
from msgspec.structs import replace
from small_cluster import SmallCluster

from quadriga.k8s.cluster.static_filters import needed_features
from quadriga.k8s.objects import Node, Pod
from tests.k8s.predicates.test_k8s_device_classes import Server, explained

RESTART, USERS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
LABELS = {"app": "web", "tier": "1"}


def constraint(selector: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    made = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **more}
    return made if selector is None else {**made, "labelSelector": selector}


@pytest.mark.parametrize("selector", [None, {}, {"matchLabels": {}, "matchExpressions": []}])
@pytest.mark.parametrize("domains", [1, 5])
def test_k210_a_constraint_whose_selector_says_nothing_counts_no_pods(
    selector: dict[str, Any] | None, domains: int
) -> None:
    cluster = SmallCluster(n1={"zone": "a"}, n2={"zone": "b"}, n3={})
    for number in range(3):
        cluster.pod(f"there-{number}", "n1", labels=LABELS)
    cluster.pod("p", topologySpreadConstraints=[constraint(selector, minDomains=domains)])
    assert cluster.allows("p") == "n1 n2", "a node without the key is refused all the same"


@pytest.mark.parametrize(
    ("selector", "keys", "allowed"),
    [
        ({}, ["tier"], "n2"),
        ({}, ["team"], "n1 n2"),  # the pod has no such label: the selector stays empty
        ({"matchLabels": {"app": "web"}}, ["team"], "n2"),
        (None, ["tier"], "n1 n2"),  # no API server takes it; kube-scheduler selects nothing
    ],
)
def test_k210_keys_of_labels_make_a_selector_of_an_empty_one(
    selector: dict[str, Any] | None, keys: list[str], allowed: str
) -> None:
    cluster = SmallCluster(n1={"zone": "a"}, n2={"zone": "b"})
    cluster.pod("there", "n1", labels=LABELS)
    constraints = [constraint(selector, matchLabelKeys=keys)]
    cluster.pod("p", labels=LABELS, topologySpreadConstraints=constraints)
    assert cluster.allows("p") == allowed


def declares(cluster: SmallCluster, name: str, *features: str) -> bool:
    status = {"declaredFeatures": list(features)}
    manifest = {"metadata": {"name": name}, "status": status}
    return cluster.cache.set_node(decoded(Node, manifest))


MAIN = {"name": "main"}
RULES = [{"action": "Restart"}, {"action": "RestartAllContainers"}]
RESTARTS = {**MAIN, "restartPolicyRules": RULES}


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        ({}, ()),
        ({"hostNetwork": True}, ()),
        ({"hostUsers": False}, ()),
        ({"hostNetwork": True, "hostUsers": True}, ()),
        ({"hostNetwork": True, "hostUsers": False}, (USERS,)),
        ({"containers": [{**MAIN, "restartPolicyRules": RULES[:1]}]}, ()),
        ({"containers": [MAIN, RESTARTS]}, (RESTART,)),
        ({"initContainers": [RESTARTS]}, (RESTART,)),
        ({"containers": [RESTARTS] * 2, "hostNetwork": True, "hostUsers": False}, (RESTART, USERS)),
    ],
)
def test_k210_what_a_pod_needs_of_a_kubelet(spec: dict[str, Any], needed: tuple[str, ...]) -> None:
    assert needed_features(decoded(Pod, {"spec": spec}).spec) == needed


def test_k210_pods_that_need_other_features_have_signatures_of_their_own() -> None:
    cluster = SmallCluster(n1={}, n2={})
    declares(cluster, "n1", USERS, RESTART)
    declares(cluster, "n2", RESTART)
    cluster.pod("one", containers=[RESTARTS])
    cluster.pod("both", containers=[RESTARTS], hostNetwork=True, hostUsers=False)
    assert (cluster.allows("one"), cluster.allows("both")) == ("n1 n2", "n1")


def test_k210_features_count_where_any_node_declares_some() -> None:
    cluster = SmallCluster(n1={}, n2={})
    cluster.pod("plain")
    cluster.pod("p", hostNetwork=True, hostUsers=False)
    assert cluster.allows("p") == "n1 n2", "no kubelet of the cluster declares anything"
    assert declares(cluster, "n2", USERS), "a pod that was refused may be tried again"
    assert cluster.allows("p") == "n2"
    reason = f"NodeDeclaredFeatures: the node does not declare {USERS}"
    assert cluster.cache.refusals("p", "n1") == [reason]
    known = cluster.cache.refused_nodes("p", ("n1", "n2"))
    assert known is not None and (list(known.numbers), list(known.reasons)) == ([1, 0], [reason])
    assert declares(cluster, "n2", "GuaranteedQoSPodCPUResize")
    assert cluster.allows("p") == "", "a kubelet that declares another feature has been asked"
    assert cluster.allows("plain") == "n1 n2"
    cluster.cache.remove_node("n2")
    assert cluster.allows("p") == "n1"


def test_k210_a_pod_waits_for_a_node_that_declares_what_it_needs() -> None:
    world = World()
    for name, features in (("n1", ()), ("n2", (RESTART,))):
        world.add_node(name)
        status = replace(world.nodes[name].status, declared_features=features)
        world.set_node(replace(world.nodes[name], status=status))
    pod = world.add_pod("a", "app", host_network=True, host_users=False)
    world.run(5)
    assert world.phases("a") == {"Pending": 1}
    text = explained(world, pod, Server(404))
    reason = f"NodeDeclaredFeatures: the node does not declare {USERS}"
    assert text is not None and f"0 of 2 nodes: 2 {reason}." in text, text
    status = replace(world.nodes["n1"].status, declared_features=(USERS,))
    world.set_node(replace(world.nodes["n1"], status=status))
    world.run(5)
    assert world.pods[pod.uid].spec.node_name == "n1"
    world.check()
