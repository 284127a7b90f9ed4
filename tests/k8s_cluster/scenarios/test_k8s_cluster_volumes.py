"""Claims that wait for their first consumer, with a scripted provisioner (T18)."""

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
