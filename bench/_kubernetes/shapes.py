"""The shapes of the Kubernetes project's own scheduler benchmark, scheduler_perf, each for the stock scheduler
and for ours, one after the other on one API server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from bench._kubernetes.plane import OURS, STOCK, Plane, Pods, gang_of
from bench._kubernetes.processes import processor_time
from bench._kubernetes.runs import PATIENCE, server_time, shim, start_stock

#: The numbers of pods below are for so many; with fewer nodes they are in proportion.
_NODES = 5_000
_CPU, _MEMORY = "100m", "500Mi"
_LABELS = {"matchLabels": {"role": "worker"}}

#: in a pod's spec: no two workers on a node
APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": _LABELS}
            ]
        }
    }
}


def spread(skew: int) -> dict[str, Any]:
    """In a pod's spec: workers evenly over the zones."""
    constraint = {
        "maxSkew": skew,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": _LABELS,
    }
    return {"topologySpreadConstraints": [constraint]}


@dataclass(frozen=True, slots=True)
class Shape:
    """``before``: pods that are there before the counted ones come, bound unless they fit on no node."""

    name: str
    before: int
    counted: int
    spec: dict[str, Any] = field(default_factory=dict)
    #: The pods before have the same spec, and are counted by its selectors.
    alike: bool = False
    cpu_before: str = _CPU
    #: pods of a gang; the stock scheduler of this version has no gangs and gets single pods
    gang: int = 0
    #: of our ConfigMap, for this shape only
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def fits_before(self) -> bool:
        return self.cpu_before == _CPU

    def pods(self, nodes: int, turn: int, scheduler: str) -> tuple[Pods, Pods]:
        """Before, and counted. In each turn they have other names and UIDs."""
        before, counted = self.before * nodes // _NODES, self.counted * nodes // _NODES
        gangs = counted // self.gang if self.gang else 1
        # A name has six digits, and no shape has more pods.
        first = turn * 50_000
        return (
            Pods(
                before,
                prefix=f"b{turn}",
                first=first,
                scheduler=scheduler,
                cpu=self.cpu_before,
                memory=_MEMORY,
                role="worker" if self.alike else "before",
                spec=self.spec if self.alike else {},
            ),
            Pods(
                gangs * self.gang or counted,
                gangs,
                self.gang,
                prefix=f"c{turn}",
                first=first + before,
                scheduler=scheduler,
                cpu=_CPU,
                memory=_MEMORY,
                spec=self.spec,
                annotations=gang_of(self.gang, _CPU, _MEMORY)
                if self.gang and scheduler == OURS
                else {},
            ),
        )


SHAPES = (
    Shape("SchedulingBasic", 1_000, 10_000),
    Shape("TopologySpreading", 5_000, 5_000, spread(5)),
    Shape("SchedulingPodAntiAffinity", 1_000, 2_000, APART, alike=True),
    Shape("Unschedulable", 20_000, 10_000, cpu_before="9"),
    Shape("gangs of 3", 0, 3_000, gang=3),
    Shape(
        "gangs of 3, no placeholders",
        0,
        3_000,
        gang=3,
        settings={"service.gangPlaceholders": "missing"},
    ),
)


def add_nodes(plane: Plane, count: int) -> None:
    """As scheduler_perf has them."""
    plane.add_nodes(count, cpu="4", memory="32Gi", zones=3)


@dataclass(frozen=True, slots=True)
class Found:
    """``rate``: pods a second, from the creation of the first counted pod until the last one is bound;
    ``busy`` and ``server``: processor time of a counted pod (s), of the scheduler, and of API server and etcd."""

    rate: float
    busy: float
    server: float


def in_turn(plane: Plane, shape: Shape, nodes: int, turn: int) -> tuple[Found, Found]:
    """The stock scheduler, then ours. ``turn``: the number of shapes measured on this plane before."""
    stock = _found(plane, shape, shape.pods(nodes, 2 * turn, STOCK), _stock)
    with _settings(plane, shape.settings):
        ours = _found(plane, shape, shape.pods(nodes, 2 * turn + 1, OURS), _ours)
    return stock, ours


@contextmanager
def _settings(plane: Plane, settings: dict[str, str]) -> Iterator[None]:
    if not settings:
        yield
        return
    name = {"name": "yunikorn-configs", "namespace": "default"}
    plane.admin.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": name, "data": settings}
    )
    try:
        yield
    finally:
        plane.admin.delete("ConfigMap", "default", "yunikorn-configs")


def _found(
    plane: Plane,
    shape: Shape,
    pods: tuple[Pods, Pods],
    scheduler: Callable[[Plane], AbstractContextManager[int]],
) -> Found:
    before, counted = pods
    for each in pods:
        plane.prepare(each)
    with scheduler(plane) as pid:
        plane.etcd.put(plane.stored_pods(before), together=1)
        if shape.fits_before:
            _until_bound(plane, before)
        busy, server = processor_time(pid), server_time(plane)
        plane.etcd.put(plane.stored_pods(counted), together=1)
        _until_bound(plane, counted)
        busy, server = processor_time(pid) - busy, server_time(plane) - server
    names = f"{counted.prefix}-"
    mine = [pod for pod in plane.observer.pods.values() if pod.bound and pod.name.startswith(names)]
    plane.remove_pods()
    seconds = max(pod.bound for pod in mine) - min(pod.added for pod in mine)
    return Found(len(mine) / seconds, busy / len(mine), server / len(mine))


def _until_bound(plane: Plane, pods: Pods) -> None:
    """Raises TimeoutError if hardly any is bound for a long time."""
    bound, wanted = plane.observer.bound, 0

    def reached(_: object) -> bool:
        return bound[pods.prefix] >= wanted

    while wanted < pods.count:
        wanted = min(wanted + 100, pods.count)
        plane.observer.until(reached, f"{wanted} of {pods.count} pods are bound", PATIENCE)


@contextmanager
def _stock(plane: Plane) -> Iterator[int]:
    start_stock(plane)
    try:
        yield plane.control.process("kube-scheduler").pid
    finally:
        plane.control.process("kube-scheduler").kill()


@contextmanager
def _ours(plane: Plane) -> Iterator[int]:
    with shim(plane) as (child, _):
        yield child.pid
