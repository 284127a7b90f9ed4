"""Queues: configurations that change, quotas of namespaces (T16, T17)."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable

from manifests import pod, queues
from plain_client import History, Object, PlainClient
from process_kubelet import ProcessKubelet
from scheduler_process import SCHEDULER, Quadriga, wait

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
"""
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


def bound(present: list[Object], prefix: str = "") -> list[Object]:
    return [
        each
        for each in present
        if each["spec"].get("nodeName") and each["metadata"]["name"].startswith(prefix)
    ]


def condition(pod: Object, kind: str) -> Object:
    found = (each for each in pod["status"].get("conditions", ()) if each["type"] == kind)
    return next(found, {})


def queue_names(scheduler: Quadriga) -> set[str]:
    found: set[str] = set()

    def visit(queue: Object) -> None:
        found.add(queue["queuename"])
        for each in queue.get("children") or ():
            visit(each)

    visit(scheduler.rest("/partition/default/queues"))
    return found


def test_t16_configurations_change_while_it_runs(
    admin: PlainClient,
    pods: History,
    history: Histories,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
) -> None:
    told = history("Event")
    kubelet(count=1)
    admin.create(queues(GUARANTEED))
    scheduler = quadriga()
    wait(lambda: "root.owner" in queue_names(scheduler), "the first queues")
    admin.create(pod("one", "one", queue="root.owner"), namespace)
    pods.until(lambda present: len(bound(present)) == 1, namespace)

    def change(data: Object) -> None:
        admin.patch("ConfigMap", "default", "yunikorn-configs", data)

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
    admin.patch(
        "ConfigMap",
        "default",
        "yunikorn-configs",
        {"binaryData": None, "data": {"queues.yaml": other}},
    )
    scheduler.start()
    scheduler.wait_books(admin)
    assert scheduler.applications() == {"one": "Running"}
    assert "root.@recovery@" in queue_names(scheduler)
    assert len(bound(pods.in_namespace(namespace))) == 1


def test_t17_quotas_and_parent_queues_of_namespaces(
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
) -> None:
    kubelet(count=1)
    admin.create(queues(BY_NAMESPACE))
    admin.patch(
        "Namespace",
        None,
        namespace,
        {
            "metadata": {
                "annotations": {
                    "yunikorn.apache.org/namespace.quota": '{"cpu": "2", "memory": "1Gi"}',
                    "yunikorn.apache.org/parentqueue": "root.teams",
                }
            }
        },
    )
    scheduler = quadriga()
    for index in range(3):
        admin.create(pod(f"pod-{index}", "team", cpu="1"), namespace)
    pods.until(lambda present: len(bound(present)) == 2, namespace)
    # The third one is over the quota: no reason for more nodes.
    present = pods.until(
        lambda present: any(
            condition(each, "PodScheduled").get("reason") == "SchedulingSkipped" for each in present
        ),
        namespace,
    )
    assert len(bound(present)) == 2
    queue = f"root.teams.{namespace}"
    assert queue in queue_names(scheduler)
    assert scheduler.rest(f"/partition/default/queue/{queue}")["maxResource"]["vcore"] == 2000
    admin.delete("Pod", namespace, bound(present)[0]["metadata"]["name"], grace=0)
    pods.until(lambda present: len(bound(present)) == 2 == len(present), namespace)


def test_t17_so_many_applications_of_a_namespace_run(
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
) -> None:
    kubelet(count=1)
    admin.create(queues(BY_NAMESPACE))
    admin.patch(
        "Namespace",
        None,
        namespace,
        {"metadata": {"annotations": {"yunikorn.apache.org/namespace.maxApps": "1"}}},
    )
    scheduler = quadriga()
    admin.create(pod("first", "first"), namespace)
    pods.until(lambda present: len(bound(present, "first")) == 1, namespace)
    admin.create(pod("second", "second"), namespace)
    wait(lambda: scheduler.applications().get("second") == "Accepted", "the second one waits")
    assert not bound(pods.in_namespace(namespace), "second")
    admin.delete("Pod", namespace, "first", grace=0)
    pods.until(lambda present: bound(present, "second"), namespace)
    assert {each["spec"]["schedulerName"] for each in pods.in_namespace(namespace)} == {SCHEDULER}
