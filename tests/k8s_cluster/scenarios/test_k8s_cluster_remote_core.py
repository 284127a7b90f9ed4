"""The core is `quadriga serve`, another process behind gRPC. It is killed, and cut off: no pod suffers (T23)."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_proxy import FaultProxy
from manifests import pod
from process_kubelet import node
from scheduler_process import ServedCore, wait
from whole_cluster import Cluster

from tests.si.remote_side import Wire

COUNT = 500
APPS = 5


@pytest.fixture
def core(tmp_path: Path) -> Iterator[ServedCore]:
    made = ServedCore(tmp_path)
    made.start()
    yield made
    print(f"--- the core\n{made.tail()}")
    made.kill()


@pytest.fixture
def wire(core: ServedCore) -> Iterator[Wire]:
    """The network before the core."""
    with Wire(core.port) as made:
        yield made


def writes_to_pods(proxy: FaultProxy) -> list[str]:
    pattern = re.compile(r".*/pods/[^/]+(/binding)?")
    return [f"{each.method} {each.path}" for each in proxy.writes if pattern.fullmatch(each.path)]


def moved(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """The pods that are not where they were."""
    return {name for name, _ in before.items() ^ after.items()}


def test_t23_k151_the_core_is_cut_off_for_a_while_and_then_killed(
    cluster: Cluster, proxy: FaultProxy, core: ServedCore, wire: Wire
) -> None:
    cluster.kubelet(*(node(f"node-{index}", cpu="16", pods="200") for index in range(5)))
    scheduler = cluster.quadriga(server=proxy.url, core=wire.address, checked=False)
    for index in range(COUNT):
        cluster.create(pod(f"pod-{index}", f"app-{index % APPS}", cpu="10m"))

    def run(*expected: str) -> dict[str, str]:
        """Pod → node, when these and all others of the beginning run."""
        present = cluster.until(
            lambda present: (
                len(present) == COUNT
                and all(each["status"].get("phase") == "Running" for each in present)
                and set(expected) <= {each["metadata"]["name"] for each in present}
            ),
            seconds=60,
        )
        return {each["metadata"]["name"]: each["spec"]["nodeName"] for each in present}

    before = run()
    core.wait_books(cluster.admin)
    proxy.writes.clear()

    # Cut off: what happens meanwhile is told afterwards, and the core need not be told anything else.
    wire.cut()
    cluster.create(pod("while-away", "app-0", cpu="10m"))
    cluster.delete("pod-0")
    threading.Event().wait(10)  # this is what the scenario is about
    assert writes_to_pods(proxy) == []
    wire.mend()
    after = run("while-away")
    core.wait_books(cluster.admin)
    own = f"/api/v1/namespaces/{cluster.namespace}/pods"
    assert writes_to_pods(proxy) == [f"POST {own}/while-away/binding"]
    assert moved(before, after) == {"while-away", "pod-0"}
    assert "is Forgotten" not in scheduler.log()

    # Killed: another one at the same address learns everything anew.
    core.kill()
    cluster.create(pod("while-dead", "app-0", cpu="10m"))
    cluster.delete("pod-1")
    core.start()
    before, after = after, run("while-dead")
    core.wait_books(cluster.admin)
    wait(scheduler.is_ready, "it is ready", 30, scheduler.tail)
    assert moved(before, after) == {"while-dead", "pod-1"}
    assert "is Forgotten" in scheduler.log()
    assert writes_to_pods(proxy) == [
        f"POST {own}/{name}/binding" for name in ("while-away", "while-dead")
    ]
    assert core.applications() == dict.fromkeys((f"app-{i}" for i in range(APPS)), "Running")
    assert not scheduler.ended()
