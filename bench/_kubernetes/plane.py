"""A control plane to measure on, with objects in any number and schedulers one at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench._kubernetes.observer import Observer
from bench._kubernetes.stored import Etcd, Template, application, node_name, pod_name, uid, zone
from tests.k8s_cluster.control_plane import ControlPlane
from tests.k8s_cluster.plain_client import APIError, PlainClient

NAMESPACE = "bench"
OURS = "yunikorn"
STOCK = "default-scheduler"

#: What is replaced in the stored objects, each of the length of what replaces it.
_NODE, _ZONE, _APPLICATION = "node-ttttt", "zone-tt", "app-tttt"
_CREATED = "2026-11-23T12:00:00Z"

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pods:
    """Equal pods: how many, of how many applications, and what else is in their spec."""

    count: int
    applications: int = 1
    #: so many of an application come one after the other; 0: the applications take turns
    in_row: int = 0
    #: with a node, evenly, of so many
    on_nodes: int = 0
    prefix: str = "pod"
    first: int = 0
    scheduler: str = OURS
    cpu: str = "1"
    memory: str = "1Gi"
    role: str = "worker"
    spec: Object = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of the template: as long as those of the pods."""
        return f"{self.prefix}-tttttt"

    def application_of(self, number: int) -> int:
        if self.in_row:
            number = (number - self.first) // self.in_row
        return number % self.applications


def gang_of(members: int, cpu: str, memory: str) -> dict[str, str]:
    """The annotations of a pod of a gang of so many equal ones."""
    group = {
        "name": "workers",
        "minMember": members,
        "minResource": {"cpu": cpu, "memory": memory},
    }
    return {
        "yunikorn.apache.org/task-group-name": "workers",
        "yunikorn.apache.org/task-groups": json.dumps([group]),
    }


class Plane:
    """etcd and the API server, without controllers: nodes and pods are nothing but objects."""

    def __init__(self, folder: Path) -> None:
        self.control = ControlPlane(folder, controllers=False)
        self._templates: dict[str, Template] = {}

    def start(self) -> None:
        self.control.start()
        self.etcd = Etcd(self.control.etcd)
        self.admin = PlainClient(self.control.server, "admin-token", self.control.tls())
        # The API server makes this one itself, a moment after it is ready.
        self._soon(lambda: self.admin.get("Namespace", None, "default"))
        self.admin.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        )
        self.observer = Observer(self.control.server, "admin-token", self.control.tls(), NAMESPACE)
        self.observer.start()

    def stop(self) -> None:
        with suppress(AttributeError):
            self.observer.stop()
            self.admin.close()
            self.etcd.close()
        self.control.stop()

    @staticmethod
    def _soon(call: Callable[[], object]) -> None:
        for _ in range(200):
            try:
                call()
                return
            except APIError:
                time.sleep(0.05)
        call()

    # -- objects

    def add_nodes(
        self, count: int, *, cpu: str = "64", memory: str = "256Gi", zones: int = 10
    ) -> None:
        template = self._template(f"/registry/minions/{_NODE}", _node(cpu, memory))
        own = template.uid
        self.etcd.put(
            template.copy([(_NODE, node_name(at)), (_ZONE, zone(at % zones)), (own, uid(at))])
            for at in range(count)
        )

    def add_pods(self, pods: Pods) -> None:
        self.etcd.put(self.stored_pods(pods))

    def remove_pods(self) -> None:
        """All of the namespace, with no scheduler there to see it."""
        self.etcd.delete(f"/registry/pods/{NAMESPACE}/")
        # They go together, so that the observer may miss some. This is the list that a scheduler starts with.
        end = time.monotonic() + 60
        while self.admin.list("Pod", NAMESPACE, resourceVersion="0"):
            if time.monotonic() > end:
                raise TimeoutError("the pods are still there")
            time.sleep(0.1)

    def stored_pods(self, pods: Pods) -> Iterator[tuple[bytes, bytes]]:
        """Key and value of each."""
        template = self.prepare(pods)
        own = template.uid
        for number in range(pods.first, pods.first + pods.count):
            replaced = [
                (pods.name, pod_name(number, pods.prefix)),
                (_APPLICATION, application(pods.application_of(number))),
                (own, uid(number)),
            ]
            if pods.on_nodes:
                replaced.append((_NODE, node_name(number % pods.on_nodes)))
            yield template.copy(replaced)

    def prepare(self, pods: Pods) -> Template:
        """Have the API server make such a pod, before a scheduler sees it."""
        return self._template(f"/registry/pods/{NAMESPACE}/{pods.name}", _pod(pods))

    def _template(self, key: str, manifest: Object) -> Template:
        name = f"{key} {json.dumps(manifest, sort_keys=True)}"
        if name not in self._templates:
            self.admin.create(manifest)
            self._templates[name] = self.etcd.template(key)
            self.etcd.delete(key)
        return self._templates[name]


def node_object(number: int, *, cpu: str = "64", zones: int = 10) -> Object:
    """As the API server gives it."""
    text = json.dumps(_node(cpu)).replace(_NODE, node_name(number))
    made: Object = json.loads(text.replace(_ZONE, zone(number % zones)))
    made["metadata"].update(uid=uid(number), resourceVersion="1", creationTimestamp=_CREATED)
    return made


def pod_object(pods: Pods, number: int) -> Object:
    """As the API server gives it, without the fields that only it uses."""
    text = json.dumps(_pod(pods)).replace(pods.name, pod_name(number, pods.prefix))
    text = text.replace(_APPLICATION, application(pods.application_of(number)))
    if pods.on_nodes:
        text = text.replace(_NODE, node_name(number % pods.on_nodes))
    made: Object = json.loads(text)
    made["metadata"].update(uid=uid(number), resourceVersion="1", creationTimestamp=_CREATED)
    made["status"] = {"phase": "Pending", "qosClass": "Burstable"}
    return made


def _node(cpu: str, memory: str = "256Gi") -> Object:
    size = {"cpu": cpu, "memory": memory, "ephemeral-storage": "1Ti", "pods": "110"}
    labels = {
        "kubernetes.io/hostname": _NODE,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": _ZONE,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": _NODE, "labels": labels},
        "status": {
            "capacity": size,
            "allocatable": size,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(pods: Pods) -> Object:
    """As executors of a job have it; the API server adds its defaults."""
    container = {
        "name": "executor",
        "image": "registry.example.org/bench/executor:1.0",
        "command": ["/opt/executor/bin/start", "--driver", "driver.bench.svc:7078"],
        "resources": {"requests": {"cpu": pods.cpu, "memory": pods.memory}},
        "env": [
            {"name": "APPLICATION", "value": _APPLICATION},
            {"name": "ROLE", "value": pods.role},
        ],
    }
    labels = {"yunikorn.apache.org/app-id": _APPLICATION, "queue": "root.bench", "role": pods.role}
    made: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pods.name,
            "namespace": NAMESPACE,
            "labels": labels,
            "annotations": pods.annotations,
        },
        "spec": {
            "schedulerName": pods.scheduler,
            "containers": [container],
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 0,
            **pods.spec,
        },
    }
    if pods.on_nodes:
        made["spec"]["nodeName"] = _NODE
    return made
