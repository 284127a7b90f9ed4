"""Where pods are placed: beside the stock scheduler, on nodes that come and go, by predicates (T12 to T14)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from manifests import pod
from plain_client import History, Object, PlainClient
from process_kubelet import ProcessKubelet, node
from scheduler_process import Quadriga, is_ours, wait

Kubelets = Callable[..., ProcessKubelet]
Schedulers = Callable[..., Quadriga]
Histories = Callable[[str], History]

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def bound(present: list[Object]) -> list[Object]:
    return [each for each in present if each["spec"].get("nodeName")]


def where(present: list[Object]) -> dict[str, str]:
    """Pod → node, of those that have one."""
    return {each["metadata"]["name"]: each["spec"]["nodeName"] for each in bound(present)}


def test_t12_the_stock_scheduler_places_pods_beside_us(
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
    stock_scheduler: None,
) -> None:
    count = 300
    kubelet(*(node(f"node-{index}", cpu="8") for index in range(20)))
    scheduler = quadriga()
    for index in range(count):
        admin.create(pod(f"ours-{index}", "ours", cpu="100m", run="pending"), namespace)
        other = pod(f"other-{index}", cpu="150m", run="pending")
        del other["spec"]["schedulerName"]
        admin.create(other, namespace)
    present = pods.until(lambda present: len(bound(present)) == 2 * count, namespace, seconds=90)
    used: dict[str, int] = {}
    foreign: dict[str, int] = {}
    for each in present:
        name, cores = each["spec"]["nodeName"], 100 if is_ours(each) else 150
        used[name] = used.get(name, 0) + cores
        if not is_ours(each):
            foreign[name] = foreign.get(name, 0) + cores
    assert max(used.values()) <= 8000

    def occupied() -> dict[str, int]:
        nodes = scheduler.rest("/partition/default/nodes")
        found = {each["nodeID"]: (each.get("occupied") or {}).get("vcore", 0) for each in nodes}
        return {name: value for name, value in found.items() if value}

    wait(lambda: occupied() == foreign, "what others use is known", 20, lambda: f"{occupied()}")
    scheduler.wait_books(admin)
    # As others end, their room is free again.
    for each in present:
        if not is_ours(each):
            admin.delete("Pod", namespace, each["metadata"]["name"], grace=0)
    wait(lambda: occupied() == {}, "nothing foreign is left", 20, lambda: f"{occupied()}")


def test_t13_nodes_are_cordoned_deleted_and_come_back(
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
) -> None:
    local = kubelet(node("a", cpu="8"), node("b", cpu="8"))
    scheduler = quadriga()
    for index in range(10):
        admin.create(pod(f"first-{index}", "load", cpu="100m"), namespace)
    pods.until(lambda present: len(bound(present)) == 10, namespace)

    def schedulable(name: str) -> bool:
        nodes = scheduler.rest("/partition/default/nodes")
        return any(each["nodeID"] == name and each["schedulable"] for each in nodes)

    wait(lambda: schedulable("a"), "a is open")
    admin.patch("Node", None, "a", {"spec": {"unschedulable": True}})
    wait(lambda: not schedulable("a"), "a is cordoned")
    for index in range(10):
        admin.create(pod(f"second-{index}", "load", cpu="100m"), namespace)
    present = pods.until(lambda present: len(bound(present)) == 20, namespace)
    second = {each: on for each, on in where(present).items() if each.startswith("second")}
    assert set(second.values()) == {"b"}
    # Drained: what is there goes, and the node after it.
    for name, on in where(present).items():
        if on == "a":
            admin.delete("Pod", namespace, name, grace=0)
    pods.until(lambda present: "a" not in where(present).values(), namespace)
    admin.delete("Node", None, "a")
    wait(lambda: "a" not in scheduler.allocated(), "a is gone")
    # Only a has room for this one; it waits for the node to be back.
    admin.create(pod("large", "load", cpu="7"), namespace)
    local.register(node("a", cpu="8"))
    present = pods.until(lambda present: where(present).get("large") == "a", namespace)
    scheduler.wait_books(admin)
    # A node goes with its pods, and a node of that name starts empty.
    admin.delete("Node", None, "a")
    wait(lambda: "a" not in scheduler.allocated(), "a is gone again")
    for name, on in where(pods.in_namespace(namespace)).items():
        if on == "a":
            admin.delete("Pod", namespace, name, grace=0)
    local.register(node("a", cpu="8"))
    wait(lambda: scheduler.allocated().get("a") == set(), "a is back, and empty")
    scheduler.wait_books(admin)


def affinity(kind: str, labels: dict[str, str], key: str) -> Object:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.fixture
def three_zones(kubelet: Kubelets) -> ProcessKubelet:
    """Three nodes in two zones; c is tainted and has a disk of its own."""
    return kubelet(
        node("a", labels={ZONE: "east"}),
        node("b", labels={ZONE: "west"}),
        node(
            "c",
            labels={ZONE: "west", "disk": "fast"},
            taints=[{"key": "owner", "value": "team", "effect": "NoSchedule"}],
        ),
    )


TOLERATED = [{"key": "owner", "operator": "Equal", "value": "team", "effect": "NoSchedule"}]


def test_t14_replicas_that_avoid_each_other_in_one_batch(
    admin: PlainClient,
    pods: History,
    namespace: str,
    three_zones: ProcessKubelet,
    quadriga: Schedulers,
) -> None:
    # They are all there before the scheduler is, which so decides on them in one batch.
    avoid = affinity("podAntiAffinity", {"app": "web"}, HOST)
    for index in range(4):
        admin.create(
            pod(
                f"web-{index}",
                "web",
                labels={"app": "web"},
                affinity=avoid,
                tolerations=TOLERATED,
            ),
            namespace,
        )
    scheduler = quadriga()
    present = pods.until(lambda present: len(bound(present)) == 3, namespace)
    assert sorted(where(present).values()) == ["a", "b", "c"]
    # The fourth has no place until one of them goes.
    scheduler.wait_books(admin)
    gone, free = next(iter(where(present).items()))
    admin.delete("Pod", namespace, gone, grace=0)
    present = pods.until(lambda present: len(present) == 3 == len(bound(present)), namespace)
    assert sorted(where(present).values()) == ["a", "b", "c"]
    assert free in where(present).values()


def test_t14_replicas_are_spread_over_zones(
    admin: PlainClient,
    pods: History,
    namespace: str,
    three_zones: ProcessKubelet,
    quadriga: Schedulers,
) -> None:
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    for index in range(6):
        admin.create(
            pod(
                f"web-{index}",
                "web",
                labels={"app": "web"},
                topologySpreadConstraints=spread,
                tolerations=TOLERATED,
            ),
            namespace,
        )
    quadriga()
    present = pods.until(lambda present: len(bound(present)) == 6, namespace)
    zones = ["east" if on == "a" else "west" for on in where(present).values()]
    assert (zones.count("east"), zones.count("west")) == (3, 3)


def test_t14_selectors_taints_and_ports(
    admin: PlainClient,
    pods: History,
    namespace: str,
    three_zones: ProcessKubelet,
    quadriga: Schedulers,
) -> None:
    quadriga()
    required = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["west"]}]}
                ]
            }
        }
    }

    def with_port(name: str) -> Object:
        made = pod(name, "ports")
        made["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
        return made

    admin.create(pod("fast", "one", nodeSelector={"disk": "fast"}), namespace)
    admin.create(
        pod("tolerant", "one", nodeSelector={"disk": "fast"}, tolerations=TOLERATED), namespace
    )
    admin.create(pod("eastern", "one", affinity=required), namespace)
    admin.create(
        pod("beside", "one", affinity=affinity("podAffinity", {"is": "it"}, ZONE)), namespace
    )
    # c is tainted, so two nodes are left for the port.
    for index in range(3):
        admin.create(with_port(f"port-{index}"), namespace)
    present = pods.until(lambda present: len(bound(present)) == 4, namespace)
    placed = where(present)
    assert placed["tolerant"] == "c"
    assert placed["eastern"] == "a"
    assert sorted(on for name, on in placed.items() if name.startswith("port")) == ["a", "b"]
    admin.create(pod("it", "one", labels={"is": "it"}, nodeSelector={ZONE: "east"}), namespace)
    present = pods.until(lambda present: "beside" in where(present), namespace)
    assert where(present)["beside"] == "a"
    assert "fast" not in where(present)
    # Whoever waits is told why.
    pods.until(
        lambda present: any(
            each["metadata"]["name"] == "fast"
            and any(
                one["type"] == "PodScheduled" and one["reason"] == "Unschedulable"
                for one in each["status"].get("conditions", ())
            )
            for each in present
        ),
        namespace,
    )
