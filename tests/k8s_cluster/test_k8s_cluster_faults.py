"""The API server dies, forgets, loses answers; a remote core is killed or cut off. No pod suffers."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from control_plane import ControlPlane
from fault_proxy import FaultProxy, Seen
from our_shim import Running, running
from plain_client import History, Object, PlainClient
from process_kubelet import ProcessKubelet
from test_k8s_cluster_runs import pod, running_pods

BINDING = ".*/binding"


@pytest.fixture
def start(control_plane: ControlPlane) -> Iterator[Callable[..., Running]]:
    with ExitStack() as stack:

        def make(server: str | None = None, **more: object) -> Running:
            config = control_plane.kubeconfig(server=server)
            made = stack.enter_context(running(config, **more))  # type: ignore[arg-type]
            made.wait_ready()
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
    control_plane: ControlPlane,
    start: Callable[..., Running],
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Callable[..., ProcessKubelet],
) -> None:
    kubelet(count=1)
    failed: Counter[str] = Counter()

    def observe(method: str, path: str, status: int) -> None:
        if status == 0 and method in ("GET", "WATCH"):
            failed[path.partition("?")[0]] += 1

    ours = start(observe=observe)
    admin.create(pod("before"), namespace)
    pods.until(lambda present: len(running_pods(present)) == 1, namespace)
    failed.clear()
    control_plane.kill_server()
    time.sleep(10)  # this is what the scenario is about
    assert failed
    assert max(failed.values()) <= 10
    control_plane.restart_server()
    admin.create(pod("after"), namespace)
    pods.until(lambda present: len(running_pods(present)) == 2, namespace, seconds=60)
    assert ours.shim.wait(0) is None
    assert placed(ours) == 2
    ours.wait_as_listed(admin)


def test_t10_k21_what_happened_while_nothing_was_heard_is_found_by_a_new_list(
    control_plane: ControlPlane,
    proxy: FaultProxy,
    start: Callable[..., Running],
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Callable[..., ProcessKubelet],
) -> None:
    kubelet(count=1)
    ours = start(proxy.url)
    for name in ("stays", "goes"):
        admin.create(pod(name), namespace)
    pods.until(lambda present: len(running_pods(present)) == 2, namespace)
    ours.until(lambda: placed(ours) == 2, "both are placed")
    proxy.down = True
    proxy.cut_all()
    admin.delete("Pod", namespace, "goes", grace=0)
    admin.create(pod("comes"), namespace)
    control_plane.compact()
    control_plane.kill_server()
    control_plane.restart_server()
    proxy.down = False
    pods.until(lambda present: len(running_pods(present)) == 2, namespace, seconds=60)
    ours.until(lambda: placed(ours) == 2, "one has gone and one has come", 60)
    present = {each["metadata"]["name"] for each in pods.in_namespace(namespace)}
    assert present == {"stays", "comes"}
    ours.wait_as_listed(admin)
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
    proxy: FaultProxy,
    start: Callable[..., Running],
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Callable[..., ProcessKubelet],
    kind: str,
    more: dict[str, object],
    posts: int,
) -> None:
    kubelet(count=2)
    ours = start(proxy.url)
    proxy.fault("POST", BINDING, kind, **more)  # type: ignore[arg-type]
    admin.create(pod("one"), namespace)
    pods.until(lambda present: len(running_pods(present)) == 1, namespace, seconds=60)
    ours.until(lambda: ours.applications().get("app") == ("Running", 1), "the core has it once")
    assert len(bindings(proxy)) == posts
    assert not [each for each in proxy.writes if each.method == "DELETE"]


def test_t11_k106_somebody_else_has_bound_the_pod(
    proxy: FaultProxy,
    start: Callable[..., Running],
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Callable[..., ProcessKubelet],
) -> None:
    kubelet(count=2)
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
                "metadata": {"name": "one", "namespace": namespace},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
            }
            admin.request("POST", path, body)
            chosen.append("node-1")

    proxy.on_write = bind_first
    admin.create(pod("one"), namespace)
    present = pods.until(lambda found: len(running_pods(found)) == 1, namespace)
    assert present[0]["spec"]["nodeName"] == "node-1"
    ours.until(lambda: chosen, "the answer to the other bind")
    ours.until(lambda: ours.applications().get("app") == ("Running", 1), "the core has it once")
    assert len(bindings(proxy)) == 1


def test_t11_k106_a_second_try_finds_that_the_first_one_has_bound_the_pod(
    proxy: FaultProxy,
    start: Callable[..., Running],
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Callable[..., ProcessKubelet],
) -> None:
    """The answer is lost, the watch hangs, and the pod cannot be read: the next try gets a 409."""
    kubelet(count=2)
    ours = start(proxy.url)
    name = f"/api/v1/namespaces/{namespace}/pods/one"
    lost = proxy.fault("POST", BINDING, "lost")
    unread = proxy.fault("GET", name, "cut")
    admin.create(pod("one"), namespace)
    pods.until(lambda found: len(running_pods(found)) == 1, namespace)
    ours.until(lambda: ours.applications().get("app") == ("Running", 1), "the core has it once")
    ours.wait_as_listed(admin)
    assert (lost.happened, unread.happened) == (1, 1)
    assert len(set(targets(proxy))) == 1


def test_t11_k106_a_pod_that_goes_while_it_is_bound(
    proxy: FaultProxy,
    start: Callable[..., Running],
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Callable[..., ProcessKubelet],
) -> None:
    kubelet(count=2)
    ours = start(proxy.url)

    def delete_first(seen: Seen, when: str) -> None:
        if when == "before" and seen.path.endswith("/one/binding"):
            admin.delete("Pod", namespace, "one", grace=0)

    proxy.on_write = delete_first
    admin.create(pod("one", "gone"), namespace)
    admin.create(pod("two", "stays"), namespace)
    pods.until(
        lambda found: len(found) == 1 == len(running_pods(found)) and bindings(proxy, "one"),
        namespace,
    )
    ours.until(lambda: placed(ours) == 1, "the core has given the room back")
    ours.wait_as_listed(admin)
    assert len(bindings(proxy, "one")) == 1


def test_t11_k108_a_bind_that_is_refused_is_not_tried_again_there(
    proxy: FaultProxy,
    start: Callable[..., Running],
    admin: PlainClient,
    pods: History,
    history: Callable[[str], History],
    namespace: str,
    kubelet: Callable[..., ProcessKubelet],
) -> None:
    kubelet(count=2)
    ours = start(proxy.url)
    proxy.fault("POST", BINDING, "answer", status=422, reason="Invalid")
    events = history("Event")
    admin.create(pod("one"), namespace)
    present = pods.until(lambda found: len(running_pods(found)) == 1, namespace)
    first, second = targets(proxy)
    assert first != second == present[0]["spec"]["nodeName"]
    events.until(
        lambda present: any(each["reason"] == "PodBindFailure" for each in present), namespace
    )
    ours.until(lambda: ours.applications().get("app") == ("Running", 1), "the core has it once")


def test_t11_k108_a_bind_that_fails_for_good_is_tried_on_another_node(
    proxy: FaultProxy,
    start: Callable[..., Running],
    admin: PlainClient,
    pods: History,
    history: Callable[[str], History],
    namespace: str,
    kubelet: Callable[..., ProcessKubelet],
) -> None:
    kubelet(count=2)
    settings: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "yunikorn-configs"},
        "data": {"service.bindTimeout": "3s"},
    }
    admin.create(settings, "default")
    ours = start(proxy.url)
    proxy.fault("POST", BINDING, "answer", times=3, status=500)
    events = history("Event")
    admin.create(pod("one"), namespace)
    pods.until(lambda present: len(running_pods(present)) == 1, namespace, seconds=60)
    events.until(
        lambda present: any(each["reason"] == "PodBindFailure" for each in present), namespace
    )
    *failed, last = targets(proxy)
    assert failed == [failed[0]] * 3
    assert failed[0] != last == pods.in_namespace(namespace)[0]["spec"]["nodeName"]
    ours.until(lambda: ours.applications().get("app") == ("Running", 1), "the core has it once")
