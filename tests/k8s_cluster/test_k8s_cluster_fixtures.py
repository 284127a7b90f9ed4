"""The control plane of these tests, its kubelet and its proxy, before anything of ours is in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from control_plane import ControlPlane
from fault_proxy import FaultProxy
from plain_client import APIError, History, Object, PlainClient
from process_kubelet import RUN, ProcessKubelet


def pod(name: str, how: str = "forever", **spec: object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {RUN: how}},
        "spec": {"containers": [{"name": "main", "image": "none"}], **spec},
    }


def job(name: str, count: int, how: str) -> Object:
    template = pod(name, how, restartPolicy="Never")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completions": count,
            "parallelism": count,
            "template": {
                "metadata": {"annotations": template["metadata"]["annotations"]},
                "spec": template["spec"],
            },
        },
    }


def phases(present: list[Object]) -> set[str]:
    return {each["status"].get("phase", "") for each in present}


def test_a_job_runs_to_its_end(
    admin: PlainClient,
    pods: History,
    history: Callable[[str], History],
    namespace: str,
    kubelet: Callable[..., ProcessKubelet],
    stock_scheduler: None,
) -> None:
    jobs = history("Job")
    kubelet(count=2)
    admin.create(job("work", 10, "succeed"), namespace)
    done = jobs.until(
        lambda present: any(each["status"].get("succeeded") == 10 for each in present), namespace
    )
    assert done
    assert {each["spec"]["nodeName"] for each in pods.in_namespace(namespace)} == {
        "node-0",
        "node-1",
    }


def test_a_container_is_a_process_with_its_environment(
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Callable[..., ProcessKubelet],
) -> None:
    local = kubelet(count=1)
    one = pod("one", "process", nodeName="node-0", restartPolicy="Never")
    one["spec"]["containers"][0].update(
        command=["sh", "-c"],
        args=['echo "$NAME on $NODE, $(PLAIN), asks $WHERE"'],
        env=[
            {"name": "PLAIN", "value": "said"},
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "WHERE", "value": f"http://server.{namespace}.svc.cluster.local:80"},
        ],
    )
    admin.create(one, namespace)
    admin.create(
        {
            **pod("two", "process", nodeName="node-0", restartPolicy="Never"),
            "spec": {
                "nodeName": "node-0",
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "none", "command": ["false"]}],
            },
        },
        namespace,
    )
    pods.until(lambda present: phases(present) == {"Succeeded", "Failed"}, namespace)
    assert local.output("one") == "one on node-0, said, asks http://127.0.0.1:80\n"


def test_a_deleted_pod_gets_its_grace(
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Callable[..., ProcessKubelet],
) -> None:
    local = kubelet(count=1)
    one = pod("one", "process", nodeName="node-0")
    script = "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    one["spec"]["containers"][0]["command"] = ["bash", "-c", script]
    admin.create(one, namespace)
    local.wait_output("one", "up")
    admin.delete("Pod", namespace, "one")
    pods.until(lambda present: not present, namespace)
    assert "asked" in local.output("one")


def test_an_owner_takes_its_pods_along(
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Callable[..., ProcessKubelet],
) -> None:
    """The garbage collector, which gangs rely on."""
    kubelet(count=1)
    owner = admin.create(pod("owner", nodeName="node-0"), namespace)
    owned = pod("owned", nodeName="node-0", terminationGracePeriodSeconds=0)
    owned["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
            "controller": False,
            "blockOwnerDeletion": True,
        }
    ]
    admin.create(owned, namespace)
    pods.until(lambda present: len(present) == 2 and phases(present) == {"Running"}, namespace)
    admin.delete("Pod", namespace, "owner", grace=0)
    pods.until(lambda present: not present, namespace)


def test_roles_are_obeyed(control_plane: ControlPlane) -> None:
    nobody = PlainClient(control_plane.server, "nobody-token", control_plane.tls())
    try:
        with pytest.raises(APIError) as refused:
            nobody.list("Pod")
        assert refused.value.status == 403
    finally:
        nobody.close()


def test_an_old_version_is_gone_after_a_compaction(
    admin: PlainClient, control_plane: ControlPlane, namespace: str
) -> None:
    version = admin.request("GET", "/api/v1/pods")["metadata"]["resourceVersion"]
    for index in range(3):
        admin.create(pod(f"pod-{index}"), namespace)
    control_plane.compact()
    # The server's own cache still knows; after a restart it does not.
    control_plane.kill_server()
    control_plane.restart_server()
    first = next(iter(admin.watch("Pod", version)))
    assert first["type"] == "ERROR"
    assert first["object"]["code"] == 410


def test_the_proxy_does_what_it_is_told(
    admin: PlainClient, proxy: FaultProxy, namespace: str
) -> None:
    through = PlainClient(proxy.url, "admin-token", None)
    try:
        creates = f"/api/v1/namespaces/{namespace}/pods"
        proxy.fault("POST", creates, "answer", status=500)
        with pytest.raises(APIError) as refused:
            through.create(pod("one"), namespace)
        assert refused.value.status == 500
        assert admin.list("Pod", namespace) == []
        proxy.fault("POST", creates, "lost")
        # The answer is lost; the client's second try finds the pod there.
        with pytest.raises(APIError) as refused:
            through.create(pod("one"), namespace)
        assert refused.value.status == 409
        assert len(admin.list("Pod", namespace)) == 1
        assert [each.method for each in proxy.writes] == ["POST", "POST", "POST"]
        watched = through.watch("Pod", "0")
        assert next(watched)["type"] == "ADDED"
        watched.close()
    finally:
        through.close()
