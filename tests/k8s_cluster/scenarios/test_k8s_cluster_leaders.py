"""Several schedulers, of which one leads: it is frozen, it is killed (T22)."""

import time

from fault_proxy import FaultProxy
from manifests import gang, is_placeholder, pod
from plain_client import History, Object, PlainClient
from process_kubelet import node
from scheduler_process import Quadriga, wait
from whole_cluster import Cluster

#: within this time (s) somebody else leads: the lease lasts for 15 s, and is looked at every 2.4 s
HANDED_OVER = 20


def holder(admin: PlainClient) -> str:
    lease = admin.find("Lease", "default", "quadriga")
    return str(lease["spec"].get("holderIdentity", "")) if lease is not None else ""


def bound(present: list[Object]) -> set[str]:
    return {each["metadata"]["name"] for each in present if each["spec"].get("nodeName")}


def test_t22_the_leader_is_frozen_and_the_next_killed(cluster: Cluster, proxy: FaultProxy) -> None:
    cluster.kubelet(node("a", cpu="4"))
    first = cluster.quadriga(lease=True, server=proxy.url, checked=False)
    others = [cluster.quadriga(lease=True, ready=False, checked=False) for _ in range(2)]
    cluster.create(pod("one", "one", cpu="1"))
    cluster.until(lambda present: bound(present) == {"one"})
    led = holder(cluster.admin)
    for each in others:
        wait(lambda each=each: f"{led} leads" in each.log(), "it stands by", 60, each.tail)

    def handed_over(since: float, candidates: list[Quadriga]) -> Quadriga:
        wait(lambda: holder(cluster.admin) != led, "another one has the lease", 30)
        wait(
            lambda: any(each.is_ready() for each in candidates),
            "another one leads",
            since + HANDED_OVER - time.monotonic(),
            lambda: "\n".join(each.tail() for each in candidates),
        )
        return next(each for each in candidates if each.is_ready())

    # One bind is to be tried again, and a gang without room has its placeholders, when it is frozen.
    proxy.fault("POST", ".*/two/binding", "answer", times=3, status=503)
    cluster.create(pod("two", "two", cpu="1"))
    cluster.create(*gang("gang", {"worker": (2, "2")}))
    cluster.until(lambda present: sum(map(is_placeholder, present)) == 2)
    wait(lambda: len(binds(proxy, "two")) == 3, "the bind fails three times", 30, first.tail)
    time.sleep(1)  # the fourth try is due after four seconds, before the lease is over
    frozen = time.monotonic()
    first.freeze()
    written = len(proxy.writes)
    cluster.create(pod("three", "three", cpu="500m"))
    second = handed_over(frozen, others)
    cluster.until(lambda present: {"one", "two", "three"} <= bound(present))
    led = holder(cluster.admin)

    first.thaw()
    assert first.wait(20) == 1, first.tail()
    # Events only tell.
    assert [each for each in proxy.writes[written:] if "/events" not in each.path] == []
    assert first.log().count("Traceback") == 0
    assert sum(map(is_placeholder, cluster.present())) == 2

    killed = time.monotonic()
    second.kill()
    cluster.create(pod("four", "four", cpu="500m"))
    third = handed_over(killed, [each for each in others if each is not second])
    cluster.until(lambda present: {"one", "two", "three", "four"} <= bound(present))
    third.wait_books(cluster.admin)
    assert {
        name: len(on) for name, on in places(cluster.pods, cluster.namespace).items()
    } == dict.fromkeys(("one", "two", "three", "four"), 1)
    assert third.stop() == 0, third.tail()
    assert holder(cluster.admin) == "", "the lease was not given back"


def binds(proxy: FaultProxy, name: str) -> list[str]:
    return [each.path for each in proxy.writes if each.path.endswith(f"/{name}/binding")]


def places(pods: History, namespace: str) -> dict[str, set[str]]:
    """Pod → the nodes that it has ever had."""
    found: dict[str, set[str]] = {}
    for _, each in pods.of(namespace):
        if on := each["spec"].get("nodeName"):
            found.setdefault(each["metadata"]["name"], set()).add(on)
    return found
