"""A node dies under a gang that runs, and a scheduler is replaced by its next version, as docs/kubernetes.md
tells both."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from control_plane import ControlPlane
from manifests import WHOLE, gang, is_placeholder, job, pod, queues
from plain_client import STRATEGIC, APIError, Object, PlainClient
from process_kubelet import node
from scheduler_process import wait
from whole_cluster import Cluster


class Heartbeats:
    """Of the nodes in ``names``."""

    def __init__(self, admin: PlainClient, *names: str) -> None:
        self._admin = admin
        self.names = set(names)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(10)

    def _beat(self) -> None:
        while not self._ended.wait(1):
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now}
            change = {"status": {"conditions": [ready]}}
            for name in sorted(self.names):
                try:
                    self._admin.patch("Node", None, name, change, content=STRATEGIC, part="status")
                except APIError as error:  # the node may have gone meanwhile
                    if error.status != 404:
                        raise


@pytest.fixture
def heartbeats(
    control_plane: ControlPlane, admin: PlainClient, empty: None
) -> Iterator[Callable[..., Heartbeats]]:
    """Starts heartbeats, and the controller that looks at them."""
    ended: list[Callable[[], None]] = []

    def start(*names: str) -> Heartbeats:
        made = Heartbeats(admin, *names)
        ended.append(made.stop)
        ended.append(control_plane.start_node_controller().kill)
        return made

    yield start
    for each in reversed(ended):
        each()


def places(present: list[Object]) -> dict[str, str]:
    """UID → node, of pods that are not being deleted and run."""
    return {
        each["metadata"]["uid"]: each["spec"]["nodeName"]
        for each in present
        if each["status"].get("phase") == "Running"
        and "deletionTimestamp" not in each["metadata"]
        and not is_placeholder(each)
    }


def patience(seconds: int) -> list[Object]:
    """How long a pod stays on a node that is not ready; without it the API server writes 300 s."""
    return [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": seconds,
        }
        for key in ("not-ready", "unreachable")
    ]


def test_a_node_dies_under_a_gang(cluster: Cluster, heartbeats: Callable[..., Heartbeats]) -> None:
    """A Job of three members, each of which fills a node. The node of one sends no heartbeat any more: the member
    is evicted, the Job makes another one, and that goes to a node that is there. The other two run on."""
    local = cluster.kubelet(*(node(name, cpu="4") for name in "abc"))
    beats = heartbeats("a", "b", "c")
    scheduler = cluster.quadriga()
    (template, *_) = gang("work", {"member": (3, "3")}, style="Hard", tolerations=patience(1))
    template["spec"]["terminationGracePeriodSeconds"] = 30
    cluster.create(job("work", 3, template))
    before = places(cluster.until(lambda present: len(places(present)) == 3))
    assert sorted(before.values()) == ["a", "b", "c"]

    local.node_names.discard("c")
    beats.names.discard("c")

    def evicted(present: list[Object]) -> bool:
        return len(places(present)) == 2 and len(present) == 4

    present = cluster.until(evicted, seconds=60, what="the member of the dead node goes")
    rest = places(present)
    assert rest.items() < before.items()
    # The dead node does not confirm the end of its pod, which counts until then. No node has room.
    (lost,) = before.keys() - rest.keys()
    assert scheduler.allocated()["c"] == {lost}
    assert not [each for each in present if is_placeholder(each)]

    beats.names.add("d")
    local.register(node("d", cpu="4"))
    found = places(cluster.until(lambda present: len(places(present)) == 3))
    assert rest.items() < found.items()
    assert sorted(found.values()) == ["a", "b", "d"]

    (name,) = (each["metadata"]["name"] for each in present if each["metadata"]["uid"] == lost)
    cluster.admin.delete("Node", None, "c")
    cluster.delete(name)
    wait(lambda: "c" not in scheduler.allocated(), "the core has let the node go")
    scheduler.wait_books(cluster.admin)
    assert places(cluster.present()) == found


def test_the_next_version_takes_over(cluster: Cluster) -> None:
    """The old process ends before the new one starts, as the Deployment does it. Meanwhile pods run on; a gang
    that gathers keeps its placeholders; what was created is placed afterwards."""
    local = cluster.kubelet(node("a", cpu="4"))
    cluster.admin.create(queues(WHOLE))
    old = cluster.quadriga(lease=True, checked=False)
    cluster.create(pod("runs", "runs", cpu="1"))
    cluster.create(*gang("gang", {"worker": (3, "1400m")}))

    def gathers(present: list[Object]) -> bool:
        held = [each for each in present if is_placeholder(each) and each["spec"].get("nodeName")]
        return len(held) == 2 and len(present) == 7 and len(places(present)) == 1

    before = cluster.until(gathers, what="the gang holds two of three placeholders")
    assert old.stop() == 0, old.tail()
    lease = cluster.admin.get("Lease", "default", "quadriga")
    assert lease["spec"].get("holderIdentity", "") == "", "the lease is given back"
    cluster.create(pod("meanwhile", "meanwhile", cpu="100m"))

    new = cluster.quadriga(lease=True)
    present = cluster.until(lambda present: len(places(present)) == 2)
    uids = {each["metadata"]["uid"] for each in before}
    assert uids < {each["metadata"]["uid"] for each in present}, "every placeholder is still there"
    local.register(node("b", cpu="4"))
    present = cluster.until(lambda present: len(places(present)) == 5)
    assert places(before).items() < places(present).items()
    new.wait_books(cluster.admin)
    nodes: dict[str, set[str]] = {}
    for _, each in cluster.changes():
        if on := each["spec"].get("nodeName"):
            nodes.setdefault(each["metadata"]["uid"], set()).add(on)
    assert {len(each) for each in nodes.values()} == {1}, "no pod was bound twice"
