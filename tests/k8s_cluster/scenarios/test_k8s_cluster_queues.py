"""Queues: configurations that change, quotas of namespaces, preemption by what is guaranteed (T15 to T17)."""

import base64
import gzip

from manifests import GUARANTEED, bound, condition, pod, queues
from plain_client import History, Object
from process_kubelet import node
from scheduler_process import SCHEDULER, Quadriga, wait
from whole_cluster import Cluster

BY_NAMESPACE = """
partitions:
  - name: default
    placementrules:
      - name: tag
        value: namespace
        create: true
        parent: {name: tag, value: namespace.parentqueue}
      - name: tag
        value: namespace
        create: true
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: teams
            parent: true
"""


def queue_names(scheduler: Quadriga) -> set[str]:
    found: set[str] = set()

    def visit(queue: Object) -> None:
        found.add(queue["queuename"])
        for each in queue.get("children") or ():
            visit(each)

    visit(scheduler.rest("/partition/default/queues"))
    return found


def test_t16_configurations_change_while_it_runs(cluster: Cluster) -> None:
    told = cluster.history("Event")
    cluster.kubelet(count=1)
    cluster.admin.create(queues(GUARANTEED))
    scheduler = cluster.quadriga()
    wait(lambda: "root.owner" in queue_names(scheduler), "the first queues")
    cluster.create(pod("one", "one", queue="root.owner"))
    cluster.until(lambda present: len(bound(present)) == 1)

    def change(data: Object) -> None:
        cluster.admin.patch("ConfigMap", "default", "yunikorn-configs", data)

    # A good one.
    more = GUARANTEED + "          - name: third\n"
    change({"data": {"queues.yaml": more}})
    wait(lambda: "root.third" in queue_names(scheduler), "the third queue")
    # A bad one changes nothing and is told on the ConfigMap.
    change({"data": {"queues.yaml": "partitions: [{name: default, queues: 7}]"}})
    told.until(
        lambda present: any(
            each["reason"] == "ConfigurationRejected" and each["type"] == "Warning"
            for each in present
        ),
        "default",
    )
    assert "root.third" in queue_names(scheduler)
    # A packed one wins over the plain one.
    packed = more.replace("third", "packed").encode()
    text = base64.b64encode(gzip.compress(packed)).decode()
    change({"binaryData": {"queues.yaml.gz": text}, "data": {"queues.yaml": more}})
    wait(lambda: "root.packed" in queue_names(scheduler), "the packed queues")
    # A restart finds other queues; what ran in one that is gone goes on.
    scheduler.kill()
    other = GUARANTEED.replace("owner", "other")
    change({"binaryData": None, "data": {"queues.yaml": other}})
    scheduler.start()
    scheduler.wait_books(cluster.admin)
    assert scheduler.applications() == {"one": "Running"}
    assert "root.@recovery@" in queue_names(scheduler)
    assert len(bound(cluster.present())) == 1


def annotate(cluster: Cluster, **annotations: str) -> None:
    own = {f"yunikorn.apache.org/{name}": value for name, value in annotations.items()}
    change = {"metadata": {"annotations": own}}
    cluster.admin.patch("Namespace", None, cluster.namespace, change)


def test_t17_quotas_and_parent_queues_of_namespaces(cluster: Cluster) -> None:
    cluster.kubelet(count=1)
    cluster.admin.create(queues(BY_NAMESPACE))
    quota = '{"cpu": "2", "memory": "1Gi"}'
    annotate(cluster, **{"namespace.quota": quota, "parentqueue": "root.teams"})
    scheduler = cluster.quadriga()
    for index in range(3):
        cluster.create(pod(f"pod-{index}", "team", cpu="1"))
    cluster.until(lambda present: len(bound(present)) == 2)
    # The third one is over the quota: no reason for more nodes.
    present = cluster.until(
        lambda present: any(
            condition(each, "PodScheduled").get("reason") == "SchedulingSkipped" for each in present
        )
    )
    assert len(bound(present)) == 2
    queue = f"root.teams.{cluster.namespace}"
    assert queue in queue_names(scheduler)
    assert scheduler.rest(f"/partition/default/queue/{queue}")["maxResource"]["vcore"] == 2000
    cluster.delete(bound(present)[0]["metadata"]["name"])
    cluster.until(lambda present: len(bound(present)) == 2 == len(present))


def test_t17_so_many_applications_of_a_namespace_run(cluster: Cluster) -> None:
    cluster.kubelet(count=1)
    cluster.admin.create(queues(BY_NAMESPACE))
    annotate(cluster, **{"namespace.maxApps": "1"})
    scheduler = cluster.quadriga()
    cluster.create(pod("first", "first"))
    cluster.until(lambda present: len(bound(present, "first")) == 1)
    cluster.create(pod("second", "second"))
    wait(lambda: scheduler.applications().get("second") == "Accepted", "the second one waits")
    assert not bound(cluster.present(), "second")
    cluster.delete("first")
    cluster.until(lambda present: bound(present, "second"))
    assert {each["spec"]["schedulerName"] for each in cluster.present()} == {SCHEDULER}


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
    gone = {f"guest-{i}" for i in range(8)} - {e["metadata"]["name"] for e in cluster.present()}
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
