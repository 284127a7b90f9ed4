"""Preemption: victims are marked, deleted, and whom it was for runs on their node (T15)."""

from manifests import GUARANTEED, bound, condition, pod, queues
from plain_client import History
from process_kubelet import node
from whole_cluster import Cluster


def disrupted(pods: History, namespace: str) -> set[str]:
    """The pods that ever had the condition of a victim."""
    return {
        each["metadata"]["name"]
        for _, each in pods.of(namespace)
        if condition(each, "DisruptionTarget").get("reason") == "PreemptionByScheduler"
        and condition(each, "DisruptionTarget")["status"] == "True"
    }


def test_t15_a_queue_gets_its_guaranteed_share_back(cluster: Cluster) -> None:
    cluster.kubelet(node("a", cpu="8"))
    cluster.admin.create(queues(GUARANTEED))
    scheduler = cluster.quadriga()
    for index in range(8):
        cluster.create(pod(f"guest-{index}", "guest", cpu="1", queue="root.guest"))
    cluster.until(lambda present: len(bound(present)) == 8)
    cluster.create(pod("owner", "owner", cpu="2", queue="root.owner"))
    cluster.until(lambda present: bound(present, "owner"), seconds=60)
    assert len(bound(cluster.present(), "guest")) == 6
    gone = {f"guest-{index}" for index in range(8)} - {
        each["metadata"]["name"] for each in cluster.present()
    }
    assert disrupted(cluster.pods, cluster.namespace) == gone
    scheduler.wait_books(cluster.admin)


def test_t15_a_daemon_set_gets_its_place_on_a_full_cluster(cluster: Cluster) -> None:
    cluster.kubelet(node("a", cpu="4"), node("b", cpu="4"))
    scheduler = cluster.quadriga()
    for index in range(8):
        cluster.create(pod(f"batch-{index}", "batch", cpu="1"))
    cluster.until(lambda present: len(bound(present)) == 8)
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }
    cluster.admin.create(urgent)
    template = pod("agent", "agent", cpu="1", priorityClassName="urgent")
    del template["spec"]["restartPolicy"]
    template["metadata"]["labels"]["app"] = "agent"
    cluster.create(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "agent"},
            "spec": {
                "selector": {"matchLabels": {"app": "agent"}},
                "template": {"metadata": template["metadata"], "spec": template["spec"]},
            },
        }
    )
    present = cluster.until(lambda present: len(bound(present, "agent")) == 2, seconds=60)
    assert {each["spec"]["nodeName"] for each in bound(present, "agent")} == {"a", "b"}
    assert len(bound(present, "batch")) == 6
    assert len(disrupted(cluster.pods, cluster.namespace)) == 2
    scheduler.wait_books(cluster.admin)
