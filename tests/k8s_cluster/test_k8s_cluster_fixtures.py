"""The control plane of these tests, its kubelet and its proxy, before anything of ours is in it."""

from typing import Any

import pytest
from control_plane import ControlPlane
from fault_proxy import FaultProxy
from manifests import job, pod
from plain_client import APIError, Object, PlainClient
from whole_cluster import Cluster


def plain(name: str, how: str = "forever", **spec: Any) -> Object:
    """For the stock scheduler, if it has no node."""
    return pod(name, run=how, schedulerName="default-scheduler", **spec)


def phases(present: list[Object]) -> set[str]:
    return {each["status"].get("phase", "") for each in present}


def test_a_job_runs_to_its_end(cluster: Cluster, stock_scheduler: None) -> None:
    jobs = cluster.history("Job")
    cluster.kubelet(count=2)
    cluster.create(job("work", 10, plain("", "succeed")))
    done = jobs.until(
        lambda present: any(each["status"].get("succeeded") == 10 for each in present),
        cluster.namespace,
    )
    assert done
    assert {each["spec"]["nodeName"] for each in cluster.present()} == {"node-0", "node-1"}


def test_a_container_is_a_process_with_its_environment(cluster: Cluster) -> None:
    local = cluster.kubelet(count=1)
    one = plain("one", "process", nodeName="node-0")
    one["spec"]["containers"][0].update(
        command=["sh", "-c"],
        args=['echo "$NAME on $NODE, $(PLAIN), asks $WHERE"'],
        env=[
            {"name": "PLAIN", "value": "said"},
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "WHERE", "value": f"http://server.{cluster.namespace}.svc.cluster.local:80"},
        ],
    )
    cluster.create(one)
    two = plain("two", "process", nodeName="node-0")
    two["spec"]["containers"][0]["command"] = ["false"]
    cluster.create(two)
    cluster.until(lambda present: phases(present) == {"Succeeded", "Failed"})
    assert local.output("one") == "one on node-0, said, asks http://127.0.0.1:80\n"


def test_a_deleted_pod_gets_its_grace(cluster: Cluster) -> None:
    local = cluster.kubelet(count=1)
    one = plain("one", "process", nodeName="node-0", terminationGracePeriodSeconds=30)
    script = "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    one["spec"]["containers"][0]["command"] = ["bash", "-c", script]
    cluster.create(one)
    local.wait_output("one", "up")
    cluster.admin.delete("Pod", cluster.namespace, "one")
    cluster.until(lambda present: not present)
    assert "asked" in local.output("one")


def test_an_owner_takes_its_pods_along(cluster: Cluster) -> None:
    """The garbage collector, which gangs rely on."""
    cluster.kubelet(count=1)
    owner = cluster.create(plain("owner", nodeName="node-0"))
    owned = plain("owned", nodeName="node-0")
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
    cluster.create(owned)
    cluster.until(lambda present: len(present) == 2 and phases(present) == {"Running"})
    cluster.delete("owner")
    cluster.until(lambda present: not present)


def test_roles_are_obeyed(control_plane: ControlPlane) -> None:
    nobody = PlainClient(control_plane.server, "nobody-token", control_plane.tls())
    try:
        with pytest.raises(APIError) as refused:
            nobody.list("Pod")
        assert refused.value.status == 403
    finally:
        nobody.close()


def test_an_old_version_is_gone_after_a_compaction(cluster: Cluster) -> None:
    version = cluster.admin.request("GET", "/api/v1/pods")["metadata"]["resourceVersion"]
    for index in range(3):
        cluster.create(plain(f"pod-{index}"))
    cluster.plane.compact()
    # The server's own cache still knows; after a restart it does not.
    cluster.plane.kill_server()
    cluster.plane.restart_server()
    first = next(iter(cluster.admin.watch("Pod", version)))
    assert first["type"] == "ERROR"
    assert first["object"]["code"] == 410


def test_the_proxy_does_as_told(admin: PlainClient, proxy: FaultProxy, namespace: str) -> None:
    through = PlainClient(proxy.url, "admin-token", None)
    try:
        creates = f"/api/v1/namespaces/{namespace}/pods"
        proxy.fault("POST", creates, "answer", status=500)
        with pytest.raises(APIError) as refused:
            through.create(plain("one"), namespace)
        assert refused.value.status == 500
        assert admin.list("Pod", namespace) == []
        proxy.fault("POST", creates, "lost")
        # The answer is lost; the client's second try finds the pod there.
        with pytest.raises(APIError) as refused:
            through.create(plain("one"), namespace)
        assert refused.value.status == 409
        assert len(admin.list("Pod", namespace)) == 1
        assert [each.method for each in proxy.writes] == ["POST", "POST", "POST"]
        watched = through.watch("Pod", "0")
        assert next(watched)["type"] == "ADDED"
        watched.close()
    finally:
        through.close()
