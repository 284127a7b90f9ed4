"""Pods run because of us: one, a Job of a hundred, and a gang; with the core here and behind gRPC."""

from collections.abc import Callable, Iterator

import pytest
from control_plane import ControlPlane
from manifests import GROUP, gang, in_phase, is_placeholder, job, pod
from our_shim import SOON_COMPLETED, Running, running
from plain_client import Object
from process_kubelet import ProcessKubelet
from whole_cluster import Cluster


@pytest.fixture(params=[False, True], ids=["in-process", "grpc"])
def ours(
    request: pytest.FixtureRequest,
    control_plane: ControlPlane,
    kubelet: Callable[..., ProcessKubelet],
) -> Iterator[Running]:
    kubelet(count=5)
    with running(control_plane.kubeconfig(), over_grpc=request.param, core=SOON_COMPLETED) as found:
        yield found


def test_t1_a_job_of_a_hundred_runs_to_its_end(cluster: Cluster, ours: Running) -> None:
    jobs = cluster.history("Job")
    cluster.create(job("work", 100, pod("", "work", run="succeed")))
    jobs.until(
        lambda present: any(each["status"].get("succeeded") == 100 for each in present),
        cluster.namespace,
        seconds=60,
        what="100 pods succeed",
    )
    # The two watches may tell of the last pod in either order.
    present = cluster.until(
        lambda present: {each["status"].get("phase") for each in present} == {"Succeeded"}
    )
    assert {each["spec"]["nodeName"] for each in present} <= {f"node-{index}" for index in range(5)}
    ours.until(ours.is_idle, "no allocation is left")
    ours.until(lambda: ours.ended() == {"work": "Completed"}, "the application is completed")
    assert ours.applications() == {}
    ours.wait_forgotten()


def test_t2_a_gang_starts_together(cluster: Cluster, ours: Running) -> None:
    cluster.create(*gang("gang", {"driver": (1, "100m"), "executors": (6, "100m")}))

    def all_run(present: list[Object]) -> bool:
        return len(in_phase(present)) == len(present) == 7 and not any(map(is_placeholder, present))

    present = cluster.until(all_run, seconds=60, what="the gang runs, its placeholders are gone")
    bound: list[Object] = []
    for change, each in cluster.changes():
        if change == "MODIFIED" and each["spec"].get("nodeName"):
            if each["metadata"]["uid"] not in {other["metadata"]["uid"] for other in bound}:
                bound.append(each)
    assert [is_placeholder(each) for each in bound] == [True] * 7 + [False] * 7

    def nodes(which: list[Object]) -> list[tuple[str, str]]:
        return sorted((e["metadata"]["annotations"][GROUP], e["spec"]["nodeName"]) for e in which)

    # Each real pod sits where one of its group's placeholders was.
    assert nodes(present) == nodes(bound[:7])
