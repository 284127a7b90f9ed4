"""Pods run because of us: one, a Job of a hundred, and a gang; with the core here and behind gRPC."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from control_plane import ControlPlane
from our_shim import SOON_COMPLETED, Running, running
from plain_client import History, Object, PlainClient
from process_kubelet import RUN, ProcessKubelet

GROUPS = "yunikorn.apache.org/task-groups"
GROUP = "yunikorn.apache.org/task-group-name"
PLACEHOLDER = "internal.yunikorn.apache.org/placeholder"
APP = "yunikorn.apache.org/app-id"


@pytest.fixture(params=[False, True], ids=["in-process", "grpc"])
def ours(
    request: pytest.FixtureRequest,
    control_plane: ControlPlane,
    kubelet: Callable[..., ProcessKubelet],
) -> Iterator[Running]:
    kubelet(count=5)
    with running(control_plane.kubeconfig(), over_grpc=request.param, core=SOON_COMPLETED) as found:
        found.wait_ready()
        yield found


def pod(name: str, app: str = "app", how: str = "forever", **more: object) -> Object:
    container = {
        "name": "main",
        "image": "none",
        "resources": {"requests": {"cpu": "100m", "memory": "10Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {APP: app}, "annotations": {RUN: how}},
        "spec": {"schedulerName": "yunikorn", "restartPolicy": "Never", "containers": [container]},
    }


def gang(name: str, members: dict[str, int]) -> list[Object]:
    """The real pods of a gang, the first one with the definition of its groups."""
    groups = [
        {"name": group, "minMember": count, "minResource": {"cpu": "100m", "memory": "10Mi"}}
        for group, count in members.items()
    ]
    found = []
    for group, count in members.items():
        for index in range(count):
            each = pod(f"{name}-{group}-{index}", name)
            each["metadata"]["annotations"] |= {GROUP: group, GROUPS: json.dumps(groups)}
            found.append(each)
    return found


def is_placeholder(each: Object) -> bool:
    return PLACEHOLDER in each["metadata"].get("annotations", {})


def running_pods(present: list[Object]) -> list[Object]:
    return [each for each in present if each["status"].get("phase") == "Running"]


def test_a_pod_runs(ours: Running, admin: PlainClient, pods: History, namespace: str) -> None:
    admin.create(pod("one"), namespace)
    pods.until(lambda present: len(running_pods(present)) == 1, namespace)
    assert ours.applications()["app"] == ("Running", 1)
    admin.delete("Pod", namespace, "one", grace=0)
    ours.until(ours.is_idle, "no allocation is left")


def test_t1_a_job_of_a_hundred_runs_to_its_end(
    ours: Running,
    admin: PlainClient,
    pods: History,
    history: Callable[[str], History],
    namespace: str,
) -> None:
    jobs = history("Job")
    template = pod("", "work", "succeed")
    del template["metadata"]["name"]
    job = {
        "completions": 100,
        "parallelism": 100,
        "template": {key: template[key] for key in ("metadata", "spec")},
    }
    admin.create(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": job},
        namespace,
    )
    jobs.until(
        lambda present: any(each["status"].get("succeeded") == 100 for each in present),
        namespace,
        seconds=60,
        what="100 pods succeed",
    )
    # The two watches may tell of the last pod in either order.
    present = pods.until(
        lambda present: {each["status"].get("phase") for each in present} == {"Succeeded"},
        namespace,
    )
    assert {each["spec"]["nodeName"] for each in present} <= {f"node-{index}" for index in range(5)}
    ours.until(ours.is_idle, "no allocation is left")
    ours.until(lambda: ours.ended() == {"work": "Completed"}, "the application is completed")
    assert ours.applications() == {}
    ours.wait_forgotten()


def test_t2_a_gang_starts_together(
    ours: Running, admin: PlainClient, pods: History, namespace: str
) -> None:
    members = {"driver": 1, "executors": 6}
    for each in gang("gang", members):
        admin.create(each, namespace)

    def all_run(present: list[Object]) -> bool:
        return len(running_pods(present)) == len(present) == 7 and not any(
            map(is_placeholder, present)
        )

    present = pods.until(
        all_run, namespace, seconds=60, what="the gang runs, its placeholders are gone"
    )
    bound: list[Object] = []
    for change, each in pods.of(namespace):
        if change == "MODIFIED" and each["spec"].get("nodeName"):
            if each["metadata"]["uid"] not in {other["metadata"]["uid"] for other in bound}:
                bound.append(each)
    assert [is_placeholder(each) for each in bound] == [True] * 7 + [False] * 7

    def nodes(which: list[Object]) -> list[tuple[str, str]]:
        return sorted(
            (each["metadata"]["annotations"][GROUP], each["spec"]["nodeName"]) for each in which
        )

    # Each real pod sits where one of its group's placeholders was.
    assert nodes(present) == nodes(bound[:7])
