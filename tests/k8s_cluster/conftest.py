"""One control plane for all tests; each test finds it empty, with nodes and a namespace of its own."""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from control_plane import ControlPlane, Missing
from fault_proxy import FaultProxy
from plain_client import APIError, History, Object, PlainClient
from process_kubelet import Image, ProcessKubelet, node
from real_programs import RealPrograms
from scheduler_process import Quadriga
from whole_cluster import Cluster

#: they stay; that of the manifests is emptied as well, but to delete it takes five seconds
SYSTEM = {"default", "kube-system", "kube-public", "kube-node-lease", "quadriga"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd, the API server and the controllers. Where they have not been built the test is skipped;
    with QUADRIGA_REQUIRE_CLUSTER=1, as in .ci/run, it fails."""
    try:
        plane = ControlPlane(tmp_path_factory.mktemp("control-plane"))
    except Missing as missing:
        if os.environ.get("QUADRIGA_REQUIRE_CLUSTER") == "1":
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


@pytest.fixture(scope="session")
def admin(control_plane: ControlPlane) -> Iterator[PlainClient]:
    """Reads and writes everything."""
    client = PlainClient(control_plane.server, "admin-token", control_plane.tls())
    yield client
    client.close()


@pytest.fixture(scope="session")
def _histories(admin: PlainClient) -> Iterator[dict[str, History]]:
    made: dict[str, History] = {}
    yield made
    for each in made.values():
        each.stop()
    admin.close()


@pytest.fixture
def history(admin: PlainClient, _histories: dict[str, History]) -> Callable[[str], History]:
    """What happens to all objects of a kind."""

    def of(kind: str) -> History:
        if kind not in _histories:
            _histories[kind] = History(admin, kind)
        return _histories[kind]

    return of


@pytest.fixture
def pods(history: Callable[[str], History]) -> History:
    return history("Pod")


_numbers = itertools.count(1)


@pytest.fixture
def namespace(admin: PlainClient, empty: None) -> str:
    """A new one."""
    name = f"test-{next(_numbers)}"
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


@pytest.fixture
def empty(admin: PlainClient, pods: History) -> Iterator[None]:
    """Whatever the test leaves is taken away, so that the next one finds an empty cluster."""
    yield
    for kind in ("Job", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"):
        for each in admin.list(kind):
            admin.delete(kind, each["metadata"]["namespace"], each["metadata"]["name"])

    asked: set[str] = set()

    def gone(present: list[Object]) -> bool:
        # A controller may have made some meanwhile.
        new = [each["metadata"] for each in present if each["metadata"]["uid"] not in asked]
        asked.update(meta["uid"] for meta in new)
        for namespace in sorted({meta["namespace"] for meta in new}):
            admin.delete_all("Pod", namespace)
        return not present

    pods.until(gone, seconds=60, what="no pods are left")
    for kind in ("Node", "PriorityClass", "PersistentVolume", "StorageClass", "Lease"):
        for each in admin.list(kind):
            name = each["metadata"]["name"]
            if not name.startswith("system-"):
                admin.delete(kind, each["metadata"].get("namespace"), name)
    for each in admin.list("ConfigMap"):
        if each["metadata"]["name"].startswith("yunikorn-"):
            admin.delete("ConfigMap", each["metadata"]["namespace"], each["metadata"]["name"])
    for each in admin.list("Namespace"):
        if each["metadata"]["name"] not in SYSTEM and not each["metadata"].get("deletionTimestamp"):
            try:
                admin.delete("Namespace", None, each["metadata"]["name"])
            except APIError as error:
                if error.status != 409:
                    raise


@pytest.fixture
def kubelet(
    control_plane: ControlPlane, empty: None, tmp_path: Path
) -> Iterator[Callable[..., ProcessKubelet]]:
    """Starts a kubelet for the nodes given (objects, or how many of 8 cores and 16 GiB)."""
    started: list[ProcessKubelet] = []

    def start(
        *nodes: Object, count: int = 0, images: dict[str, Image] | None = None, **environment: str
    ) -> ProcessKubelet:
        folder = tmp_path / f"kubelet-{len(started)}"
        folder.mkdir()
        made = ProcessKubelet(
            control_plane.server,
            "kubelet-token",
            control_plane.tls(),
            folder,
            images=images,
            environment=environment,
        )
        made.start()
        started.append(made)
        made.register(*nodes, *(node(f"node-{index}") for index in range(count)))
        return made

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def proxy(control_plane: ControlPlane) -> Iterator[FaultProxy]:
    """Stands before the API server and can be told to do wrong."""
    made = FaultProxy(control_plane.server, control_plane.tls())
    made.start()
    yield made
    made.stop()


@pytest.fixture
def stock_scheduler(control_plane: ControlPlane) -> Iterator[None]:
    """kube-scheduler, for pods that name no other."""
    control_plane.start_scheduler()
    yield
    control_plane.process("kube-scheduler").kill()


@pytest.fixture
def quadriga(
    control_plane: ControlPlane, admin: PlainClient, empty: None, tmp_path: Path
) -> Iterator[Callable[..., Quadriga]]:
    """Starts our scheduler in a process of its own. At the end it has to be there still, and its books
    have to be those of the cluster."""
    started: list[Quadriga] = []

    def start(*, ready: bool = True, checked: bool = True, **settings: Any) -> Quadriga:
        made = Quadriga(control_plane, tmp_path, name=f"quadriga-{len(started)}", **settings)
        if checked:
            checks.append(made)
        started.append(made)
        made.start(ready=ready)
        return made

    checks: list[Quadriga] = []
    try:
        yield start
        for each in checks:
            assert not each.ended(), f"{each.name} has ended:\n{each.tail()}"
            each.wait_books(admin)
    finally:
        for each in started:
            # Shown where the test has failed.
            print(f"--- {each.name}\n{each.tail()}")
            each.kill()


@pytest.fixture
def cluster(
    control_plane: ControlPlane,
    admin: PlainClient,
    pods: History,
    history: Callable[[str], History],
    namespace: str,
    kubelet: Callable[..., ProcessKubelet],
    quadriga: Callable[..., Quadriga],
) -> Cluster:
    return Cluster(control_plane, admin, pods, history, namespace, kubelet, quadriga)


@pytest.fixture(scope="session")
def real_programs() -> RealPrograms:
    """Spark and the Dask operator. Missing ones are as a missing control plane."""
    try:
        return RealPrograms()
    except Missing as missing:
        if os.environ.get("QUADRIGA_REQUIRE_CLUSTER") == "1":
            pytest.fail(str(missing))
        pytest.skip(str(missing))
