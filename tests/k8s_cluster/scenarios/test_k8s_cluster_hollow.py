"""On nodes of Kubernetes' own kubelet (kubemark): it runs pods without containers, and ends them as always."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from control_plane import ControlPlane, Process, free_ports, programs
from manifests import gang, in_phase, is_placeholder, job, pod
from plain_client import History
from whole_cluster import Cluster

COUNT = 3


@pytest.fixture
def hollow_nodes(
    control_plane: ControlPlane, empty: None, tmp_path: Path, history: Callable[[str], History]
) -> Iterator[None]:
    """Nodes of one core each. They begin one after another: every kubelet makes the socket of its runtime
    at the same path, and must have found it before the next one does."""
    if not (programs() / "kubemark").is_file():
        pytest.skip("this control plane has no kubemark")
    nodes = history("Node")
    ports = free_ports(2 * COUNT)
    kubelets = [
        Process(
            f"hollow-{index}",
            [
                programs() / "kubemark",
                "--morph=kubelet",
                f"--name=hollow-{index}",
                f"--kubeconfig={control_plane.kubeconfig('kubelet')}",
                f"--kubelet-port={ports.pop()}",
                f"--kubelet-read-only-port={ports.pop()}",
            ],
            tmp_path / f"hollow-{index}.log",
        )
        for index in range(COUNT)
    ]
    try:
        for index, each in enumerate(kubelets):
            each.start()
            nodes.until(lambda present, index=index: len(present) > index, seconds=60)
        yield
    finally:
        for each in kubelets:
            each.kill()
            # It makes a folder there, and leaves it.
            for folder in re.findall(r"/tmp/hollow-kubelet\.\d+", each.tail(10_000)):
                shutil.rmtree(folder, ignore_errors=True)


def test_t1_t2_a_gang_and_a_job_on_hollow_nodes(cluster: Cluster, hollow_nodes: None) -> None:
    scheduler = cluster.quadriga()
    for each in gang("pair", {"leader": (1, "200m"), "worker": (4, "200m")}):
        each["spec"]["terminationGracePeriodSeconds"] = 1
        cluster.create(each)
    cluster.until(
        lambda present: (
            len(in_phase(present, "Running")) == 5 == len(present)
            and not any(map(is_placeholder, present))
        ),
        seconds=60,
    )
    work = pod("", "work", cpu="20m", terminationGracePeriodSeconds=1)
    cluster.create(job("work", 30, work))
    present = cluster.until(lambda present: len(in_phase(present, "Running")) == 35, seconds=60)
    assert {e["spec"]["nodeName"] for e in present} <= {f"hollow-{index}" for index in range(COUNT)}
    scheduler.wait_books(cluster.admin)
    # The kubelet ends a pod that lasts too long, and takes away what is deleted.
    cluster.create(pod("short", "short", cpu="20m", activeDeadlineSeconds=1))
    cluster.until(lambda present: len(in_phase(present, "Failed")) == 1, seconds=60)
    cluster.admin.delete("Job", cluster.namespace, "work")
    for each in cluster.present():
        if each["metadata"]["name"].startswith("pair-"):
            cluster.admin.delete("Pod", cluster.namespace, each["metadata"]["name"])
    cluster.until(
        lambda present: [each["metadata"]["name"] for each in present] == ["short"],
        # A kubelet that misses the end of a container looks again after a minute and a half at most.
        seconds=240,
    )
    scheduler.wait_idle()
