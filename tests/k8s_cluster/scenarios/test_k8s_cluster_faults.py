"""The API server dies, forgets, loses answers; a remote core is killed or cut off. No pod suffers."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from control_plane import ControlPlane
from fault_proxy import FaultProxy, Seen
from manifests import in_phase, pod, queues
from our_shim import Running, running
from plain_client import Object
from whole_cluster import Cluster

BINDING = ".*/binding"


@pytest.fixture
def start(control_plane: ControlPlane) -> Iterator[Callable[..., Running]]:
    with ExitStack() as stack:

        def make(server: str | None = None, **more: object) -> Running:
            config = control_plane.kubeconfig(server=server)
            made = stack.enter_context(running(config, **more))  # type: ignore[arg-type]
            return made

        yield make


def bindings(proxy: FaultProxy, name: str = "") -> list[str]:
    return [each.path for each in proxy.writes if each.path.endswith(f"{name}/binding")]


def targets(proxy: FaultProxy) -> list[str]:
    """The nodes of the bindings that were tried."""
    return [
        str(json.loads(each.body)["target"]["name"])
        for each in proxy.writes
        if each.path.endswith("/binding")
    ]


def placed(shim: Running) -> int:
    return sum(count for _, count in shim.applications().values())


# -- T10 -----------------------------------------------------------------------------------------


def test_t10_the_api_server_is_killed_in_the_middle_of_watches(
    cluster: Cluster, start: Callable[..., Running]
) -> None:
    cluster.kubelet(count=1)
    failed: Counter[str] = Counter()

    def observe(method: str, path: str, status: int) -> None:
        if status == 0 and method in ("GET", "WATCH"):
            failed[path.partition("?")[0]] += 1

    ours = start(observe=observe)
    cluster.create(pod("before", "app"))
    cluster.until(lambda present: len(in_phase(present)) == 1)
    failed.clear()
    cluster.plane.kill_server()
    time.sleep(10)  # this is what the scenario is about
    assert failed
    assert max(failed.values()) <= 10
    cluster.plane.restart_server()
    cluster.create(pod("after", "app"))
    cluster.until(lambda present: len(in_phase(present)) == 2, seconds=60)
    assert ours.shim.wait(0) is None
    assert placed(ours) == 2
    ours.wait_as_listed(cluster.admin)


def test_t10_k21_what_happened_while_nothing_was_heard_is_found_by_a_new_list(
    cluster: Cluster, proxy: FaultProxy, start: Callable[..., Running]
) -> None:
    cluster.kubelet(count=1)
    ours = start(proxy.url)
    for name in ("stays", "goes"):
        cluster.create(pod(name, "app"))
    cluster.until(lambda present: len(in_phase(present)) == 2)
    ours.until(lambda: placed(ours) == 2, "both are placed")
    proxy.down = True
    proxy.cut_all()
    cluster.delete("goes")
    cluster.create(pod("comes", "app"))
    cluster.plane.compact()
    cluster.plane.kill_server()
    cluster.plane.restart_server()
    proxy.down = False
    cluster.until(lambda present: len(in_phase(present)) == 2, seconds=60)
    ours.until(lambda: placed(ours) == 2, "one has gone and one has come", 60)
    present = {each["metadata"]["name"] for each in cluster.present()}
    assert present == {"stays", "comes"}
    ours.wait_as_listed(cluster.admin)
    # An answer may have been lost with the connection, so one may have been sent twice.
    assert len(set(bindings(proxy))) == 3


# -- T11 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "more", "posts"),
    [
        ("lost", {}, 1),
        ("cut", {}, 2),
        ("hang", {"seconds": 30}, 2),
        ("answer", {"status": 409, "reason": "Conflict"}, 2),
        ("answer", {"status": 503}, 2),
        ("answer", {"status": 429, "headers": {"Retry-After": "2"}}, 2),
    ],
)
def test_t11_an_answer_to_a_bind_goes_wrong_once(
    cluster: Cluster,
    proxy: FaultProxy,
    start: Callable[..., Running],
    kind: str,
    more: dict[str, object],
    posts: int,
) -> None:
    cluster.kubelet(count=2)
    ours = start(proxy.url)
    proxy.fault("POST", BINDING, kind, **more)  # type: ignore[arg-type]
    cluster.create(pod("one", "app"))
    cluster.until(lambda present: len(in_phase(present)) == 1, seconds=60)
    ours.until(lambda: ours.applications().get("app") == ("Running", 1), "the core has it once")
    assert len(bindings(proxy)) == posts
    assert not [each for each in proxy.writes if each.method == "DELETE"]


def test_t11_k106_somebody_else_has_bound_the_pod(
    cluster: Cluster, proxy: FaultProxy, start: Callable[..., Running]
) -> None:
    cluster.kubelet(count=2)
    ours = start(proxy.url)
    asked = threading.Event()
    chosen: list[str] = []

    def bind_first(seen: object, when: str) -> None:
        path = getattr(seen, "path", "")
        if when == "before" and path.endswith("/binding") and not asked.is_set():
            asked.set()
            body: Object = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "one", "namespace": cluster.namespace},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
            }
            cluster.admin.request("POST", path, body)
            chosen.append("node-1")

    proxy.on_write = bind_first
    cluster.create(pod("one", "app"))
    assert cluster.until(lambda found: len(in_phase(found)) == 1)[0]["spec"]["nodeName"] == "node-1"
    ours.until(lambda: chosen, "the answer to the other bind")
    ours.until(lambda: ours.applications().get("app") == ("Running", 1), "the core has it once")
    assert len(bindings(proxy)) == 1


def test_t11_k106_a_second_try_finds_that_the_first_one_has_bound_the_pod(
    cluster: Cluster, proxy: FaultProxy, start: Callable[..., Running]
) -> None:
    """The answer is lost, the watches are silent, and the pod cannot be read at first."""
    cluster.kubelet(count=2)
    ours = start(proxy.url)
    name = f"/api/v1/namespaces/{cluster.namespace}/pods/one"
    lost = proxy.fault("POST", BINDING, "lost")
    unread = proxy.fault("GET", name, "cut")

    def hold_watches(seen: Seen, when: str) -> None:
        if when == "before" and seen.path.endswith("/binding") and not lost.happened:
            proxy.hold_watches(True)

    proxy.on_write = hold_watches
    cluster.create(pod("one", "app"))
    cluster.until(lambda found: len(in_phase(found)) == 1)
    ours.until(lambda: unread.happened, "it reads the pod")
    proxy.hold_watches(False)
    ours.until(lambda: ours.applications().get("app") == ("Running", 1), "the core has it once")
    ours.wait_as_listed(cluster.admin)
    assert (lost.happened, unread.happened) == (1, 1)
    assert len(set(targets(proxy))) == 1


def test_t11_k106_a_pod_that_goes_while_it_is_bound(
    cluster: Cluster, proxy: FaultProxy, start: Callable[..., Running]
) -> None:
    cluster.kubelet(count=2)
    ours = start(proxy.url)

    def delete_first(seen: Seen, when: str) -> None:
        if when == "before" and seen.path.endswith("/one/binding"):
            cluster.delete("one")

    proxy.on_write = delete_first
    cluster.create(pod("one", "gone"))
    cluster.create(pod("two", "stays"))
    cluster.until(lambda found: len(found) == 1 == len(in_phase(found)) and bindings(proxy, "one"))
    ours.until(lambda: placed(ours) == 1, "the core has given the room back")
    ours.wait_as_listed(cluster.admin)
    assert len(bindings(proxy, "one")) == 1


@pytest.mark.parametrize(
    ("times", "answer"), [(1, {"status": 422, "reason": "Invalid"}), (3, {"status": 500})], ids=str
)
def test_t11_k108_a_bind_that_is_refused_or_fails_for_good_is_tried_on_another_node(
    cluster: Cluster,
    proxy: FaultProxy,
    start: Callable[..., Running],
    times: int,
    answer: dict[str, Any],
) -> None:
    cluster.kubelet(count=2)
    cluster.admin.create(queues("", **{"service.bindTimeout": "3s"}))
    ours = start(proxy.url)
    proxy.fault("POST", BINDING, "answer", times=times, **answer)
    events = cluster.history("Event")
    cluster.create(pod("one", "app"))
    present = cluster.until(lambda found: len(in_phase(found)) == 1, seconds=60)
    *failed, last = targets(proxy)
    assert failed == [failed[0]] * times
    assert failed[0] != last == present[0]["spec"]["nodeName"]
    events.until(lambda now: any(e["reason"] == "PodBindFailure" for e in now), cluster.namespace)
    ours.until(lambda: ours.applications().get("app") == ("Running", 1), "the core has it once")
