"""Volumes that were made by hand, with the real controller of volumes, and beside kube-scheduler (K102, K103)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from control_plane import ControlPlane
from our_shim import running
from plain_client import History, Object, PlainClient
from process_kubelet import RUN, ProcessKubelet

NODES = ("node-0", "node-1")


def storage_class(name: str) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume(
    name: str, of_class: str, *nodes: str, size: int = 1, labels: Object | None = None, **spec: Any
) -> Object:
    """Of ``size`` GiB; these nodes can use it."""
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "capacity": {"storage": f"{size}Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": of_class,
            "local": {"path": "/tmp"},
            "persistentVolumeReclaimPolicy": "Retain",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
            **spec,
        },
    }


def claim(name: str, of_class: str, size: int = 1, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": of_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": f"{size}Gi"}},
            **spec,
        },
    }


def pod(name: str, *claims: str, scheduler: str = "yunikorn", **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"applicationId": name, "queue": "root.default"},
            "annotations": {RUN: "forever"},
        },
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "image": "none"}],
            "volumes": [
                {"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims
            ],
            **spec,
        },
    }


def running_of(present: list[Object]) -> dict[str, str]:
    """The nodes of the pods that run."""
    return {
        each["metadata"]["name"]: each["spec"]["nodeName"]
        for each in present
        if each["status"].get("phase") == "Running"
    }


def wait_available(admin: PlainClient, history: Callable[[str], History]) -> None:
    def available(present: list[Object]) -> bool:
        return all(each["status"].get("phase") == "Available" for each in present)

    history("PersistentVolume").until(available, what="the volumes are available")


def test_k103_local_volumes_have_one_pod_each(
    control_plane: ControlPlane,
    admin: PlainClient,
    namespace: str,
    pods: History,
    history: Callable[[str], History],
    kubelet: Callable[..., ProcessKubelet],
) -> None:
    """Six pods at once and two volumes on each node: four run, each where its volume is. The rest waits
    until there are more."""
    kubelet(count=2)
    admin.create(storage_class("local"))
    for index in range(4):
        admin.create(volume(f"pv-{index}", "local", NODES[index % 2]))
    wait_available(admin, history)
    names = [f"pod-{index}" for index in range(6)]
    with running(control_plane.kubeconfig("admin")) as ours:
        ours.wait_ready()
        for name in names:
            admin.create(claim(name, "local"), namespace)
            admin.create(pod(name, name), namespace)
        pods.until(lambda present: len(running_of(present)) == 4, namespace)

        def waiting(present: list[Object]) -> bool:
            reasons = [
                condition.get("reason")
                for each in present
                for condition in each["status"].get("conditions", ())
                if condition["type"] == "PodScheduled" and condition["status"] == "False"
            ]
            return reasons == ["Unschedulable"] * 2

        pods.until(waiting, namespace, what="two pods wait")
        for index in (4, 5):
            admin.create(volume(f"pv-{index}", "local", "node-1", size=9))
        present = pods.until(lambda present: len(running_of(present)) == 6, namespace)
    where = running_of(present)
    used = set()
    for name in names:
        of_pod = admin.get("PersistentVolumeClaim", namespace, name)["spec"]["volumeName"]
        used.add(of_pod)
        (number,) = (index for index in range(6) if of_pod == f"pv-{index}")
        assert where[name] == ("node-1" if number > 3 else NODES[number % 2])
    assert len(used) == 6


def test_k138_the_volume_is_the_one_that_kube_scheduler_takes(
    control_plane: ControlPlane,
    admin: PlainClient,
    namespace: str,
    pods: History,
    history: Callable[[str], History],
    kubelet: Callable[..., ProcessKubelet],
    stock_scheduler: None,
) -> None:
    """Random volumes and claims, twice: once with a pod of each. Sizes are all different, so that only one
    volume is the smallest, and at most one volume is set aside for a claim: of two, the controller takes
    the one that it sees first."""
    kubelet(count=2)
    chance = random.Random(27)
    cases = 12
    for number in range(cases):
        volumes: list[tuple[int, int, tuple[str, ...], dict[str, Any], bool]] = []
        for index, size in enumerate(chance.sample(range(1, 12), 6)):
            nodes = chance.choice((("node-0",), ("node-1",), NODES))
            spec: dict[str, Any] = {"labels": {"disk": chance.choice(("ssd", "hdd"))}}
            if chance.random() < 0.3:
                spec["accessModes"] = ["ReadOnlyMany"]
            if chance.random() < 0.2:
                spec["volumeMode"] = "Block"
            aside = chance.random() < 0.1 and not any(each[-1] for each in volumes)
            volumes.append((index, size, nodes, spec, aside))
        size = chance.randint(1, 6)
        wanted: dict[str, Any] = {}
        if chance.random() < 0.5:
            wanted["selector"] = {"matchLabels": {"disk": "ssd"}}
        for side in ("ours", "stock"):
            name = f"{side}-{number}"
            admin.create(storage_class(name))
            for index, size_of_it, nodes, spec, aside in volumes:
                more = dict(spec)
                if aside:
                    more["claimRef"] = {"namespace": namespace, "name": name}
                admin.create(volume(f"{name}-{index}", name, *nodes, size=size_of_it, **more))
            admin.create(claim(name, name, size, **wanted), namespace)

    def known(present: list[Object]) -> bool:
        ready = ("Available", "Bound")
        return all(
            each["status"].get("phase") in ready or "claimRef" in each["spec"] for each in present
        )

    history("PersistentVolume").until(known, what="the volumes are available")
    with running(control_plane.kubeconfig("admin")) as ours:
        ours.wait_ready()
        for number in range(cases):
            node = chance.choice(NODES)
            there = {"nodeSelector": {"kubernetes.io/hostname": node}}
            scheduler = "default-scheduler"
            name = f"stock-{number}"
            admin.create(pod(name, name, scheduler=scheduler, **there), namespace)
            name = f"ours-{number}"
            admin.create(pod(name, name, **there), namespace)

        def judged(present: list[Object]) -> bool:
            return all(
                each["spec"].get("nodeName")
                or any(
                    condition["type"] == "PodScheduled" and condition["status"] == "False"
                    for condition in each["status"].get("conditions", ())
                )
                for each in present
            )

        present = pods.until(judged, namespace, seconds=60, what="each pod runs or says why not")
    nodes = {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in present}
    chosen: dict[str, dict[int, str]] = {"ours": {}, "stock": {}}
    for number in range(cases):
        for side, found in chosen.items():
            name = f"{side}-{number}"
            bound = admin.get("PersistentVolumeClaim", namespace, name)["spec"].get(
                "volumeName", ""
            )
            found[number] = bound.removeprefix(f"{name}-") + " " + nodes[name]
    assert chosen["ours"] == chosen["stock"]
    assert len({each for each in chosen["ours"].values() if each.strip()}) > 4
