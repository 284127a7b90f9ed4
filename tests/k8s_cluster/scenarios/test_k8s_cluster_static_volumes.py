"""Volumes that were made by hand, with the real controller of volumes, and beside kube-scheduler (K102, K103)."""

import random
from collections.abc import Callable
from typing import Any

from manifests import claim, claiming, condition, storage_class, volume
from our_shim import running
from plain_client import History, Object, PlainClient
from whole_cluster import Cluster

NODES = ("node-0", "node-1")


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


def test_k103_local_volumes_have_one_pod_each(cluster: Cluster) -> None:
    """Six pods at once and two volumes on each node: four run, each where its volume is. The rest waits
    until there are more."""
    cluster.kubelet(count=2)
    cluster.admin.create(storage_class("local"))
    for index in range(4):
        cluster.admin.create(volume(f"pv-{index}", "local", NODES[index % 2]))
    wait_available(cluster.admin, cluster.history)
    names = [f"pod-{index}" for index in range(6)]
    with running(cluster.plane.kubeconfig("admin")):
        for name in names:
            cluster.create(claim(name, "local"))
            cluster.create(claiming(name, name))
        cluster.until(lambda present: len(running_of(present)) == 4)

        def waiting(present: list[Object]) -> bool:
            told = [condition(each, "PodScheduled") for each in present]
            reasons = [each["reason"] for each in told if each.get("status") == "False"]
            return reasons == ["Unschedulable"] * 2

        cluster.until(waiting, what="two pods wait")
        for index in (4, 5):
            cluster.admin.create(volume(f"pv-{index}", "local", "node-1", size=9))
        present = cluster.until(lambda present: len(running_of(present)) == 6)
    where = running_of(present)
    used = set()
    for name in names:
        of_pod = cluster.admin.get("PersistentVolumeClaim", cluster.namespace, name)["spec"][
            "volumeName"
        ]
        used.add(of_pod)
        (number,) = (index for index in range(6) if of_pod == f"pv-{index}")
        assert where[name] == ("node-1" if number > 3 else NODES[number % 2])
    assert len(used) == 6


def test_k138_the_volume_that_kube_scheduler_takes(cluster: Cluster, stock_scheduler: None) -> None:
    """Random volumes and claims, twice: once with a pod of each. Sizes are all different, so that only one
    volume is the smallest, and at most one volume is set aside for a claim: of two, the controller takes
    the one that it sees first."""
    cluster.kubelet(count=2)
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
            cluster.admin.create(storage_class(name))
            for index, size_of_it, nodes, spec, aside in volumes:
                more = dict(spec)
                if aside:
                    more["claimRef"] = {"namespace": cluster.namespace, "name": name}
                cluster.admin.create(
                    volume(f"{name}-{index}", name, *nodes, size=size_of_it, **more)
                )
            cluster.create(claim(name, name, size, **wanted))

    def known(present: list[Object]) -> bool:
        ready = ("Available", "Bound")
        return all(e["status"].get("phase") in ready or "claimRef" in e["spec"] for e in present)

    cluster.history("PersistentVolume").until(known, what="the volumes are available")
    with running(cluster.plane.kubeconfig("admin")):
        for number in range(cases):
            node = chance.choice(NODES)
            there = {"nodeSelector": {"kubernetes.io/hostname": node}}
            scheduler = "default-scheduler"
            name = f"stock-{number}"
            cluster.create(claiming(name, name, schedulerName=scheduler, **there))
            name = f"ours-{number}"
            cluster.create(claiming(name, name, **there))

        def judged(present: list[Object]) -> bool:
            return all(
                each["spec"].get("nodeName")
                or condition(each, "PodScheduled").get("status") == "False"
                for each in present
            )

        present = cluster.until(judged, seconds=60, what="each pod runs or says why not")
    nodes = {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in present}
    chosen: dict[str, dict[int, str]] = {"ours": {}, "stock": {}}
    for number in range(cases):
        for side, found in chosen.items():
            name = f"{side}-{number}"
            bound = cluster.admin.get("PersistentVolumeClaim", cluster.namespace, name)["spec"].get(
                "volumeName", ""
            )
            found[number] = bound.removeprefix(f"{name}-") + " " + nodes[name]
    assert chosen["ours"] == chosen["stock"]
    assert len({each for each in chosen["ours"].values() if each.strip()}) > 4
