"""Where pods are placed: beside the stock scheduler, on nodes that come and go, by predicates (T12 to T14)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from fault_proxy import FaultProxy
from manifests import bound, condition, pod, queues
from plain_client import Object, PlainClient
from process_kubelet import ProcessKubelet, node
from scheduler_process import is_ours, wait
from whole_cluster import Cluster

Kubelets = Callable[..., ProcessKubelet]

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def where(present: list[Object]) -> dict[str, str]:
    """Pod → node, of those that have one."""
    return {each["metadata"]["name"]: each["spec"]["nodeName"] for each in bound(present)}


def room_taken(pods: list[Object]) -> dict[str, Object]:
    """Node → cores (thousandths), memory (MiB) and number of its pods."""
    found: dict[str, Object] = {}
    for each in bound(pods):
        node = found.setdefault(each["spec"]["nodeName"], {"vcore": 0, "memory": 0, "pods": 0})
        requests = each["spec"]["containers"][0]["resources"]["requests"]
        node["vcore"] += int(requests["cpu"].removesuffix("m"))
        node["memory"] += int(requests["memory"].removesuffix("Mi"))
        node["pods"] += 1
    return found


SPREAD = """
partitions:
  - name: default
    nodesortpolicy: {type: fair}
    placementrules: [{name: tag, value: namespace, create: true}]
    queues: [{name: root, submitacl: "*"}]
"""


def test_t12_the_stock_scheduler_works_beside_us(cluster: Cluster, stock_scheduler: None) -> None:
    """Two schedulers that fill one node at the same moment cannot know of each other. So both spread their
    pods, which leaves room on every node, and the rest of the room is ours alone to fill."""
    count, slots = 1000, 20 * 110
    cluster.admin.create(queues(SPREAD))
    cluster.kubelet(*(node(f"node-{index}", cpu="16") for index in range(20)))
    scheduler = cluster.quadriga()

    def create(index: int) -> None:
        cluster.create(pod(f"ours-{index}", "ours", cpu="100m", run="pending"))
        other = pod(f"other-{index}", cpu="150m", run="pending")
        del other["spec"]["schedulerName"]
        cluster.create(other)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(create, range(count)))
    present = cluster.until(lambda present: len(bound(present)) == 2 * count, seconds=120)
    foreign = room_taken([each for each in present if not is_ours(each)])

    def occupied() -> dict[str, Object]:
        nodes = scheduler.rest("/partition/default/nodes")
        return {
            each["nodeID"]: {
                "vcore": used["vcore"],
                "memory": used["memory"] // 2**20,
                "pods": used["pods"],
            }
            for each in nodes
            if any((used := each.get("occupied") or {}).values())
        }

    wait(lambda: occupied() == foreign, "what others use is known", 20, lambda: f"{occupied()}")
    for index in range(slots - 2 * count + 1):
        cluster.create(pod(f"last-{index}", "ours", cpu="10m", run="pending"))
    present = cluster.until(lambda present: len(bound(present)) == slots, seconds=120)
    for taken in room_taken(present).values():
        assert taken["vcore"] <= 16_000
        assert taken["memory"] <= 16 * 1024
        assert taken["pods"] == 110
    scheduler.wait_books(cluster.admin)


class Stream:
    """Creates pods one after another until it is told to stop; every third one stays."""

    def __init__(self, admin: PlainClient, namespace: str) -> None:
        self.created = 0
        self._admin, self._namespace = admin, namespace
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Stream:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(0.02):
            run = "succeed" if self.created % 3 else "forever"
            name = f"load-{self.created}"
            self._admin.create(pod(name, "load", cpu="20m", run=run), self._namespace)
            self.created += 1


def test_t13_nodes_drain_and_come_back_under_load(cluster: Cluster, proxy: FaultProxy) -> None:
    cluster.admin.create(queues(SPREAD))  # so that each node gets some of the load
    local = cluster.kubelet(*(node(name, cpu="8", pods="1000") for name in "abc"))
    scheduler = cluster.quadriga(server=proxy.url)

    def schedulable(name: str) -> bool:
        nodes = scheduler.rest("/partition/default/nodes")
        return any(each["nodeID"] == name and each["schedulable"] for each in nodes)

    with Stream(cluster.admin, cluster.namespace) as stream:

        def next_places(holds: Callable[[set[str]], object]) -> set[str]:
            """The nodes of at least thirty pods that are created from now on, when it holds for them."""
            first = stream.created + 1

            def later(present: list[Object]) -> dict[str, str]:
                return {
                    name: on
                    for name, on in where(present).items()
                    if name.startswith("load-") and int(name[5:]) >= first
                }

            present = cluster.until(
                lambda present: len(places := later(present)) >= 30 and holds(set(places.values()))
            )
            return set(later(present).values())

        next_places(lambda places: places == {"a", "b", "c"})
        # The bind of this one, which goes nowhere else, does not succeed while the node is there.
        refused = proxy.fault("POST", ".*/caught/binding", "answer", times=1000, status=503)
        cluster.create(pod("caught", "caught", nodeSelector={HOST: "a"}))
        wait(lambda: refused.happened, "its bind is tried")

        cluster.admin.patch("Node", None, "a", {"spec": {"unschedulable": True}})
        wait(lambda: not schedulable("a"), "a is cordoned")
        assert next_places(bool) == {"b", "c"}

        def clear() -> None:
            for name, on in where(cluster.present()).items():
                if on == "a":
                    cluster.delete(name)
            cluster.until(lambda present: "a" not in where(present).values())

        # Drained: what is there goes, and the node after it.
        clear()
        assert next_places(bool) == {"b", "c"}
        cluster.admin.delete("Node", None, "a")
        wait(lambda: "a" not in scheduler.allocated(), "a is gone")
        assert next_places(bool) == {"b", "c"}

        # K97: it is pending again, and no returning node takes it for one that runs there.
        refused.times = 0
        assert "caught" not in where(cluster.present())
        before = len(cluster.changes())
        local.register(node("a", cpu="8", pods="1000"))
        cluster.until(lambda present: where(present).get("caught") == "a")
        next_places(lambda places: places == {"a", "b", "c"})
        assert "caught" not in {
            each["metadata"]["name"]
            for _, each in cluster.changes()[:before]
            if each["spec"].get("nodeName")
        }

        # A node goes with its pods, and a node of that name starts empty.
        cluster.admin.patch("Node", None, "a", {"spec": {"unschedulable": True}})
        wait(lambda: not schedulable("a"), "a is cordoned again")
        next_places(bool)
        cluster.admin.delete("Node", None, "a")
        wait(lambda: "a" not in scheduler.allocated(), "a is gone again")
        clear()
        cordoned = node("a", cpu="8", pods="1000")
        cordoned["spec"]["unschedulable"] = True
        local.register(cordoned)
        wait(lambda: scheduler.allocated().get("a") == set(), "a is back, and empty")
        assert next_places(bool) == {"b", "c"}
    cluster.until(lambda present: len(bound(present)) == len(present))
    scheduler.wait_books(cluster.admin)


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


def web(count: int, **spec: object) -> list[Object]:
    return [
        pod(f"web-{index}", "web", labels={"app": "web"}, tolerations=TOLERATED, **spec)
        for index in range(count)
    ]


TOLERATED = [{"key": "owner", "operator": "Equal", "value": "team", "effect": "NoSchedule"}]


def test_t14_replicas_apart_in_one_batch(cluster: Cluster, three_zones: ProcessKubelet) -> None:
    # They are all there before the scheduler is, which so decides on them in one batch.
    cluster.create(*web(4, affinity=affinity("podAntiAffinity", {"app": "web"}, HOST)))
    scheduler = cluster.quadriga()
    present = cluster.until(lambda present: len(bound(present)) == 3)
    assert sorted(where(present).values()) == ["a", "b", "c"]
    # The fourth has no place until one of them goes.
    scheduler.wait_books(cluster.admin)
    gone, free = next(iter(where(present).items()))
    cluster.delete(gone)
    present = cluster.until(lambda present: len(present) == 3 == len(bound(present)))
    assert sorted(where(present).values()) == ["a", "b", "c"]
    assert free in where(present).values()


def test_t14_replicas_are_spread_over_zones(cluster: Cluster, three_zones: ProcessKubelet) -> None:
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    cluster.create(*web(6, topologySpreadConstraints=spread))
    cluster.quadriga()
    present = cluster.until(lambda present: len(bound(present)) == 6)
    zones = ["east" if on == "a" else "west" for on in where(present).values()]
    assert (zones.count("east"), zones.count("west")) == (3, 3)


def test_t14_selectors_taints_and_ports(cluster: Cluster, three_zones: ProcessKubelet) -> None:
    cluster.quadriga()
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

    cluster.create(pod("fast", "one", nodeSelector={"disk": "fast"}))
    cluster.create(pod("tolerant", "one", nodeSelector={"disk": "fast"}, tolerations=TOLERATED))
    cluster.create(pod("eastern", "one", affinity=required))
    cluster.create(pod("beside", "one", affinity=affinity("podAffinity", {"is": "it"}, ZONE)))
    # c is tainted, so two nodes are left for the port.
    for index in range(3):
        cluster.create(with_port(f"port-{index}"))
    present = cluster.until(lambda present: len(bound(present)) == 4)
    placed = where(present)
    assert (placed["tolerant"], placed["eastern"]) == ("c", "a")
    assert sorted(on for name, on in placed.items() if name.startswith("port")) == ["a", "b"]
    cluster.create(pod("it", "one", labels={"is": "it"}, nodeSelector={ZONE: "east"}))
    present = cluster.until(lambda present: "beside" in where(present))
    assert where(present)["beside"] == "a"
    assert "fast" not in where(present)
    # Whoever waits is told why.
    cluster.until(
        lambda present: any(
            each["metadata"]["name"] == "fast"
            and condition(each, "PodScheduled").get("reason") == "Unschedulable"
            for each in present
        )
    )
