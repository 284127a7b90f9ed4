"""Claims that wait for their first consumer, and volumes made by hand, beside kube-scheduler (T18, K102, K103)."""

import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from manifests import claim, claiming, condition, storage_class, volume
from our_shim import running
from plain_client import APIError, History, Object, PlainClient
from whole_cluster import Cluster

SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"
PROVISIONER = "example.com/scripted"


class Provisioner:
    """Makes a volume for each claim that has a node, except for the first ``refusals`` tries: then it takes
    the node away, as provisioners do where there is no room."""

    def __init__(self, admin: PlainClient, claims: History, refusals: int) -> None:
        self._admin = admin
        self._claims = claims
        self._refusals = refusals
        #: claim and node of each try
        self.tries: list[tuple[str, str]] = []
        self._ended = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended = True
        self._thread.join(10)

    def _work(self) -> None:
        seen: set[tuple[str, str]] = set()
        while not self._ended:
            for found in list(self._claims.now.values()):
                meta = found["metadata"]
                node = meta.get("annotations", {}).get(SELECTED)
                key = (meta["uid"], meta["resourceVersion"])
                if node and not found["spec"].get("volumeName") and key not in seen:
                    seen.add(key)
                    known = any(name == meta["name"] and on == node for name, on in self.tries)
                    if not known and self._is_current(found):
                        self._answer(found, node)
            threading.Event().wait(0.02)

    def _is_current(self, claim: Object) -> bool:
        """A volume on the node of an older version would be in the way of the right one."""
        meta = claim["metadata"]
        found = self._admin.find("PersistentVolumeClaim", meta["namespace"], meta["name"])
        return found is not None and found["metadata"]["resourceVersion"] == meta["resourceVersion"]

    def _answer(self, claim: Object, node: str) -> None:
        meta = claim["metadata"]
        self.tries.append((meta["name"], node))
        if len(self.tries) <= self._refusals:
            change = {"metadata": {"annotations": {SELECTED: None}}}
            self._admin.patch("PersistentVolumeClaim", meta["namespace"], meta["name"], change)
            return
        self.make(claim, node)

    def make(self, claim: Object, node: str) -> None:
        """A volume for the claim, on this node."""
        meta = claim["metadata"]
        reference = {key: meta[key] for key in ("namespace", "name", "uid")}
        reference |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        of_class = claim["spec"]["storageClassName"]
        self._admin.create(volume(f"pv-{meta['uid']}", of_class, node, claimRef=reference))


@pytest.fixture
def provisioner(
    admin: PlainClient, empty: None, history: Callable[[str], History]
) -> Iterator[Callable[[int], Provisioner]]:
    for name, mode in (("wait", "WaitForFirstConsumer"), ("now", "Immediate")):
        admin.create(storage_class(name, mode, PROVISIONER))
    started: list[Provisioner] = []

    def start(refusals: int) -> Provisioner:
        started.append(Provisioner(admin, history("PersistentVolumeClaim"), refusals))
        return started[-1]

    yield start
    for each in started:
        each.stop()


def is_running(name: str) -> Callable[[list[Object]], bool]:
    def holds(present: list[Object]) -> bool:
        return any(
            each["metadata"]["name"] == name and each["status"].get("phase") == "Running"
            for each in present
        )

    return holds


def node_of(present: list[Object], name: str) -> str:
    (found,) = (each for each in present if each["metadata"]["name"] == name)
    return str(found["spec"].get("nodeName", ""))


def bound_claim(admin: PlainClient, namespace: str, name: str) -> Object:
    found = admin.get("PersistentVolumeClaim", namespace, name)
    # The controller writes the phase a moment later.
    assert found["spec"]["volumeName"]
    assert COMPLETED in found["metadata"]["annotations"]
    return found


@pytest.mark.parametrize("refusals", [0, 1], ids=["at once", "on the second try"])
def test_t18_a_claim_is_bound_where_its_pod_runs(
    cluster: Cluster, provisioner: Callable[[int], Provisioner], refusals: int
) -> None:
    """The second try is on another node."""
    cluster.kubelet(count=2)
    scripted = provisioner(refusals)
    with running(cluster.plane.kubeconfig("admin")):
        cluster.create(claim("data"))
        cluster.create(claiming("one", "data"))
        node = node_of(cluster.until(is_running("one")), "one")
        found = bound_claim(cluster.admin, cluster.namespace, "data")
        assert found["metadata"]["annotations"][SELECTED] == node
        tries = [on for _, on in scripted.tries]
        assert len({*tries}) == refusals + 1 == len(tries)
        assert tries[-1] == node
        reasons = {each["reason"] for each in events_of(cluster.admin, cluster.namespace, "one")}
        assert ("PodVolumesBindFailure" in reasons) == bool(refusals)


def events_of(admin: PlainClient, namespace: str, name: str) -> list[Any]:
    found = []
    for each in admin.list("Event", namespace):
        about = each.get("involvedObject") or each.get("regarding") or {}
        if about.get("name") == name:
            found.append(each)
    return found


def test_k88_a_pod_waits_for_a_claim_that_is_made_later(
    cluster: Cluster, provisioner: Callable[[int], Provisioner]
) -> None:
    cluster.kubelet(count=1)
    provisioner(0)
    # The pod is there before the scheduler.
    cluster.create(claiming("one", "late"))
    with running(cluster.plane.kubeconfig("admin")) as ours:
        ours.until(
            lambda: any(
                each["reason"] == "FailedScheduling" and "late does not exist" in each["message"]
                for each in events_of(cluster.admin, cluster.namespace, "one")
            ),
            "the pod says that its claim is missing",
        )
        assert node_of(cluster.present(), "one") == ""
        cluster.create(claim("late"))
        cluster.until(is_running("one"))
        bound_claim(cluster.admin, cluster.namespace, "late")


def test_k150_a_restart_goes_on_with_the_claim(
    cluster: Cluster, provisioner: Callable[[int], Provisioner]
) -> None:
    """The scheduler ends while the provisioner works. The next one finds the node in the claim."""
    cluster.kubelet(count=1)
    cluster.create(claim("data"))
    cluster.create(claiming("one", "data"))
    with running(cluster.plane.kubeconfig("admin")) as ours:

        def selected() -> bool:
            try:
                found = cluster.admin.get("PersistentVolumeClaim", cluster.namespace, "data")
            except APIError:
                return False
            return SELECTED in found["metadata"].get("annotations", {})

        ours.until(selected, "the claim has a node")
    assert node_of(cluster.present(), "one") == ""
    scripted = provisioner(0)
    with running(cluster.plane.kubeconfig("admin")) as ours:
        cluster.until(is_running("one"))
        bound_claim(cluster.admin, cluster.namespace, "data")
        assert len(scripted.tries) == 1


def test_k129_a_pod_waits_for_a_claim_that_others_bind(
    cluster: Cluster, provisioner: Callable[[int], Provisioner]
) -> None:
    """No node takes the pod until the claim is bound, and then the node of the volume does."""
    cluster.kubelet(count=3)
    scripted = provisioner(0)
    with running(cluster.plane.kubeconfig("admin")):
        made = cluster.create(claim("data", "now"))
        cluster.create(claiming("one", "data"))

        def waits(present: list[Object]) -> bool:
            return any(
                condition(each, "PodScheduled").get("reason") == "Unschedulable" for each in present
            )

        cluster.until(waits)
        scripted.make(made, "node-1")
        present = cluster.until(is_running("one"))
        assert node_of(present, "one") == "node-1"


def test_k150_a_claim_is_taken_to_another_node(
    cluster: Cluster, provisioner: Callable[[int], Provisioner]
) -> None:
    """The node that was chosen before a restart takes no pods any more."""
    cluster.kubelet(count=2)
    made = claim("data")
    made["metadata"]["annotations"] = {SELECTED: "node-0"}
    cluster.create(made)
    cluster.admin.patch("Node", None, "node-0", {"spec": {"unschedulable": True}})
    cluster.create(claiming("one", "data"))
    with running(cluster.plane.kubeconfig("admin")) as ours:

        def moved() -> bool:
            found = cluster.admin.get("PersistentVolumeClaim", cluster.namespace, "data")
            return bool(found["metadata"]["annotations"].get(SELECTED) == "node-1")

        ours.until(moved, "the claim has the other node")
        scripted = provisioner(0)
        # A bind that has failed is tried again after half a minute (K110).
        assert node_of(cluster.until(is_running("one"), seconds=75), "one") == "node-1"
        assert set(scripted.tries) == {("data", "node-1")}


NODES = ("node-0", "node-1")


def running_of(present: list[Object]) -> dict[str, str]:
    """The nodes of the pods that run."""
    return {
        each["metadata"]["name"]: each["spec"]["nodeName"]
        for each in present
        if each["status"].get("phase") == "Running"
    }


def test_k103_local_volumes_have_one_pod_each(cluster: Cluster) -> None:
    """Six pods at once and two volumes on each node: four run, each where its volume is. The rest waits
    until there are more."""
    cluster.kubelet(count=2)
    cluster.admin.create(storage_class("local"))
    volumes = {f"pv-{index}" for index in range(4)}
    for index, name in enumerate(sorted(volumes)):
        cluster.admin.create(volume(name, "local", NODES[index % 2]))

    def available(
        present: list[Object],
    ) -> bool:  # those of earlier scenarios may still be terminating
        free = {x["metadata"]["name"] for x in present if x["status"].get("phase") == "Available"}
        return free >= volumes

    cluster.history("PersistentVolume").until(available, what="the volumes are available")
    names = [f"pod-{index}" for index in range(6)]
    with running(cluster.plane.kubeconfig("admin")):
        for name in names:
            cluster.create(claim(name, "local"))
            cluster.create(claiming(name, name))
        cluster.until(lambda present: len(running_of(present)) == 4)

        def waiting(present: list[Object]) -> bool:
            told = [condition(each, "PodScheduled") for each in present]
            reasons = [each["reason"] for each in told if each.get("status") == "False"]
            return reasons == ["Unschedulable"] * 2

        cluster.until(waiting, what="two pods wait")
        for index in (4, 5):
            cluster.admin.create(volume(f"pv-{index}", "local", "node-1", size=9))
        present = cluster.until(lambda present: len(running_of(present)) == 6)
    where = running_of(present)
    used = set()
    for name in names:
        of_pod = cluster.admin.get("PersistentVolumeClaim", cluster.namespace, name)["spec"][
            "volumeName"
        ]
        used.add(of_pod)
        (number,) = (index for index in range(6) if of_pod == f"pv-{index}")
        assert where[name] == ("node-1" if number > 3 else NODES[number % 2])
    assert len(used) == 6


def test_k138_the_volume_that_kube_scheduler_takes(cluster: Cluster, stock_scheduler: None) -> None:
    """Random volumes and claims, twice: once with a pod of each. Sizes are all different, so that only one
    volume is the smallest, and at most one volume is set aside for a claim: of two, the controller takes
    the one that it sees first."""
    cluster.kubelet(count=2)
    chance = random.Random(27)
    cases = 12
    for number in range(cases):
        volumes: list[tuple[int, int, tuple[str, ...], dict[str, Any], bool]] = []
        for index, size in enumerate(chance.sample(range(1, 12), 6)):
            nodes = chance.choice((("node-0",), ("node-1",), NODES))
            spec: dict[str, Any] = {"labels": {"disk": chance.choice(("ssd", "hdd"))}}
            if chance.random() < 0.3:
                spec["accessModes"] = ["ReadOnlyMany"]
            if chance.random() < 0.2:
                spec["volumeMode"] = "Block"
            aside = chance.random() < 0.1 and not any(each[-1] for each in volumes)
            volumes.append((index, size, nodes, spec, aside))
        size = chance.randint(1, 6)
        wanted: dict[str, Any] = {}
        if chance.random() < 0.5:
            wanted["selector"] = {"matchLabels": {"disk": "ssd"}}
        for side in ("ours", "stock"):
            name = f"{side}-{number}"
            cluster.admin.create(storage_class(name))
            for index, of_it, nodes, spec, aside in volumes:
                more = dict(spec)
                if aside:
                    more["claimRef"] = {"namespace": cluster.namespace, "name": name}
                cluster.admin.create(volume(f"{name}-{index}", name, *nodes, size=of_it, **more))
            cluster.create(claim(name, name, size, **wanted))

    def known(present: list[Object]) -> bool:
        ready = ("Available", "Bound")
        return all(e["status"].get("phase") in ready or "claimRef" in e["spec"] for e in present)

    cluster.history("PersistentVolume").until(known, what="the volumes are available")
    with running(cluster.plane.kubeconfig("admin")):
        for number in range(cases):
            node = chance.choice(NODES)
            there = {"nodeSelector": {"kubernetes.io/hostname": node}}
            scheduler = "default-scheduler"
            name = f"stock-{number}"
            cluster.create(claiming(name, name, schedulerName=scheduler, **there))
            name = f"ours-{number}"
            cluster.create(claiming(name, name, **there))

        def judged(present: list[Object]) -> bool:
            return all(
                each["spec"].get("nodeName")
                or condition(each, "PodScheduled").get("status") == "False"
                for each in present
            )

        present = cluster.until(judged, seconds=60, what="each pod runs or says why not")
    nodes = {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in present}
    chosen: dict[str, dict[int, str]] = {"ours": {}, "stock": {}}
    for number in range(cases):
        for side, found in chosen.items():
            name = f"{side}-{number}"
            bound = cluster.admin.get("PersistentVolumeClaim", cluster.namespace, name)["spec"].get(
                "volumeName", ""
            )
            found[number] = bound.removeprefix(f"{name}-") + " " + nodes[name]
    assert chosen["ours"] == chosen["stock"]
    assert len({each for each in chosen["ours"].values() if each.strip()}) > 4
