"""Preemption: victims are marked, deleted, and whom it was for runs on their node (T15)."""

from __future__ import annotations

from collections.abc import Callable

from manifests import pod, queues
from plain_client import History, Object, PlainClient
from process_kubelet import ProcessKubelet, node
from scheduler_process import Quadriga

Kubelets = Callable[..., ProcessKubelet]
Schedulers = Callable[..., Quadriga]
Histories = Callable[[str], History]

GUARANTEED = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: owner
            resources:
              guaranteed: {vcore: 4}
            properties: {preemption.delay: 1s}
          - name: guest
            resources:
              guaranteed: {vcore: 1}
"""


def bound(present: list[Object], prefix: str = "") -> list[Object]:
    return [
        each
        for each in present
        if each["spec"].get("nodeName") and each["metadata"]["name"].startswith(prefix)
    ]


def condition(pod: Object, kind: str) -> Object:
    found = (each for each in pod["status"].get("conditions", ()) if each["type"] == kind)
    return next(found, {})


def disrupted(pods: History, namespace: str) -> set[str]:
    """The pods that ever had the condition of a victim."""
    return {
        each["metadata"]["name"]
        for _, each in pods.of(namespace)
        if condition(each, "DisruptionTarget").get("reason") == "PreemptionByScheduler"
        and condition(each, "DisruptionTarget")["status"] == "True"
    }


def test_t15_a_queue_gets_its_guaranteed_share_back(
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
) -> None:
    kubelet(node("a", cpu="8"))
    admin.create(queues(GUARANTEED))
    scheduler = quadriga()
    for index in range(8):
        admin.create(pod(f"guest-{index}", "guest", cpu="1", queue="root.guest"), namespace)
    pods.until(lambda present: len(bound(present)) == 8, namespace)
    admin.create(pod("owner", "owner", cpu="2", queue="root.owner"), namespace)
    pods.until(lambda present: bound(present, "owner"), namespace, seconds=60)
    assert len(bound(pods.in_namespace(namespace), "guest")) == 6
    gone = {f"guest-{index}" for index in range(8)} - {
        each["metadata"]["name"] for each in pods.in_namespace(namespace)
    }
    assert disrupted(pods, namespace) == gone
    scheduler.wait_books(admin)


def test_t15_a_daemon_set_gets_its_place_on_a_full_cluster(
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
) -> None:
    kubelet(node("a", cpu="4"), node("b", cpu="4"))
    scheduler = quadriga()
    for index in range(8):
        admin.create(pod(f"batch-{index}", "batch", cpu="1"), namespace)
    pods.until(lambda present: len(bound(present)) == 8, namespace)
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }
    admin.create(urgent)
    template = pod("agent", "agent", cpu="1", priorityClassName="urgent")
    del template["spec"]["restartPolicy"]
    template["metadata"]["labels"]["app"] = "agent"
    admin.create(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "agent"},
            "spec": {
                "selector": {"matchLabels": {"app": "agent"}},
                "template": {"metadata": template["metadata"], "spec": template["spec"]},
            },
        },
        namespace,
    )
    present = pods.until(lambda present: len(bound(present, "agent")) == 2, namespace, seconds=60)
    assert {each["spec"]["nodeName"] for each in bound(present, "agent")} == {"a", "b"}
    assert len(bound(present, "batch")) == 6
    assert len(disrupted(pods, namespace)) == 2
    scheduler.wait_books(admin)
