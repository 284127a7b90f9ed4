"""How much of a GPU cluster is allocated before it is full: the node order of the scheduler beside references.

``python -m bench gpus`` has the setting of Weng et al. (USENIX ATC 2023): pods are drawn from a list, in random
order, until 130 % of the cluster's GPUs are asked for, and none ends. The nodes and the list are those of
openb-2023. The scheduler decides itself, pod by pod; the references are written here.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import mean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bench._support.cluster import RM, USER
from quadriga import si
from quadriga.core import Options, Scheduler
from quadriga.sim.reports.rendering import table
from quadriga.sim.scripted.script import resource
from quadriga.sim.workload import GPU

_MILLI = 1000
_ASKED = 1.3
_MIB = 1 << 20
#: the order without devices, which does not share them
_PLAIN = "ours, no devices"


class Pod(NamedTuple):
    """``gpus`` devices, of each of which it takes ``milli``."""

    cpu: int
    memory: int
    gpus: int
    milli: int


Pods = Sequence[Pod]
Nodes = Sequence[tuple[int, int, int]]
Amounts = npt.NDArray[np.float64]


def main(arguments: Sequence[str]) -> None:
    """Print the share of the GPUs that each order allocates in each mix of pods."""
    parser = argparse.ArgumentParser(prog="python -m bench gpus", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of openb-2023")
    parser.add_argument("--shares", action="store_true", help="pods may take a share of a GPU")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="draws (default: 3)")
    parser.add_argument("--order", action="append", choices=_ORDERS, help="repeatable")
    parser.add_argument("--mix", action="append", choices=_MIXES, help="repeatable")
    options = parser.parse_args(arguments)
    try:
        nodes, shares = _read(options.folder)
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}")
    pods = shares if options.shares else _whole(shares)
    orders = options.order or [order for order in _ORDERS if order != _PLAIN or not options.shares]
    rows = []
    for mix in options.mix or _MIXES:
        drawn = [_draw(_MIXES[mix](pods), nodes, seed) for seed in range(options.seeds)]
        figures = [mean(_ORDERS[order](each, nodes) for each in drawn) for order in orders]
        rows.append([mix, *(f"{figure:.2f}" for figure in figures)])
    print(*table([["GPUs allocated, %", *orders], *rows]), sep="\n")


def _read(folder: Path) -> tuple[Nodes, Pods]:
    with (folder / "nodes.csv").open() as file:
        nodes = [
            (int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]))
            for row in csv.DictReader(file)
        ]
    with gzip.open(folder / "pods.csv.gz", "rt") as file:
        pods = [
            Pod(
                *(
                    int(row[name] or 0)
                    for name in ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
                )
            )
            for row in csv.DictReader(file)
        ]
    return nodes, pods


def _whole(pods: Pods) -> Pods:
    return [pod._replace(milli=_MILLI) if pod.gpus else pod for pod in pods]


def _draw(pods: Pods, nodes: Nodes, seed: int) -> Pods:
    random, drawn = Random(seed), []
    left = _ASKED * _MILLI * sum(gpus for _, _, gpus in nodes)
    while left > 0:
        pod = random.choice(pods)
        drawn.append(pod)
        left -= pod.gpus * pod.milli
    return drawn


#: the list itself, and other mixes made of it
_MIXES: dict[str, Callable[[Pods], Pods]] = {
    "openb": lambda pods: pods,
    "no pod without a GPU": lambda pods: [pod for pod in pods if pod.gpus],
    "pods without a GPU fivefold": lambda pods: [
        pod for pod in pods for _ in range(1 if pod.gpus else 5)
    ],
    "pods of several GPUs 21fold": lambda pods: [
        pod for pod in pods for _ in range(21 if pod.gpus > 1 else 1)
    ],
    "half as many vcores again": lambda pods: [pod._replace(cpu=pod.cpu * 3 // 2) for pod in pods],
    "half the vcores": lambda pods: [pod._replace(cpu=pod.cpu // 2) for pod in pods],
}


# -- the scheduler ---------------------------------------------------------------------------------


def _scheduled(*, plain: bool) -> Callable[[Pods, Nodes], float]:
    weights = f"resourceweights: {{vcore: 1, memory: 1, {GPU}: 1}}"

    def allocated(pods: Pods, nodes: Nodes) -> float:
        shared = any(0 < pod.milli < _MILLI for pod in pods)
        one = _MILLI if shared else 1
        devices = f"[{{name: {GPU}, shared: true}}]" if shared else "[]" if plain else ""
        config = f"""\
partitions:
  - name: default
    nodesortpolicy: {{type: bestfit, {weights}}}
    devices: {devices}
    queues: [{{name: root, submitacl: '*', queues: [{{name: a}}]}}]
"""
        scheduler = Scheduler(Options(journal_size=None))
        scheduler.apply(si.RegisterResourceManagerRequest(rmID=RM, config=config), 0)
        request = si.NodeRequest(rmID=RM)
        for at, (cpu, memory, gpus) in enumerate(nodes):
            capacity = resource({"vcore": cpu, "memory": memory * _MIB, GPU: gpus * one})
            request.nodes.add(
                nodeID=f"n{at:04}", action=si.NodeInfo.CREATE, schedulableResource=capacity
            )
        scheduler.apply(request, 0)
        apps = si.ApplicationRequest(rmID=RM)
        apps.new.add(applicationID="app", queueName="root.a", ugi=USER)
        scheduler.apply(apps, 0)
        for at, pod in enumerate(pods):
            asks = si.AllocationRequest(rmID=RM)
            size = {
                "vcore": pod.cpu,
                "memory": pod.memory * _MIB,
                GPU: pod.gpus * pod.milli * one // _MILLI,
            }
            asks.asks.add(
                allocationKey=f"k{at}",
                applicationID="app",
                resourceAsk=resource({name: value for name, value in size.items() if value}),
                maxAllocations=1,
            )
            scheduler.apply(asks, 0)
            scheduler.schedule(0)
        partition = scheduler.partition()
        at = partition.registry.position(GPU)
        return 100 * partition.root.allocated[at] / partition.capacity[at]

    return allocated


# -- references ------------------------------------------------------------------------------------


class _Cluster:
    """What is free: vcores and memory by node, and GPUs by node and device (milli)."""

    def __init__(self, nodes: Nodes) -> None:
        self.cpu = np.array([node[0] for node in nodes], np.float64)
        self.memory = np.array([node[1] for node in nodes], np.float64)
        most = max(node[2] for node in nodes)
        self.gpus = np.array([[_MILLI * (at < node[2]) for at in range(most)] for node in nodes])
        self.total = int(self.gpus.sum())

    def fitting(self, pod: Pod) -> npt.NDArray[np.intp]:
        fits = (self.cpu >= pod.cpu) & (self.memory >= pod.memory)
        if pod.gpus:
            fits &= (self.gpus >= pod.milli).sum(axis=1) >= pod.gpus
        return np.flatnonzero(fits)

    def placements(self, pod: Pod, node: int) -> list[list[int]]:
        """The sets of devices that the pod may take on the node, without equal ones."""
        gpus = self.gpus[node]
        fit = np.flatnonzero(gpus >= pod.milli).tolist()
        if pod.milli < _MILLI:
            return [[at] for at in {int(gpus[at]): at for at in reversed(fit)}.values()]
        return [fit[: pod.gpus]]

    def take(self, pod: Pod, node: int, devices: list[int]) -> None:
        self.cpu[node] -= pod.cpu
        self.memory[node] -= pod.memory
        self.gpus[node, devices] -= pod.milli


def _fewest_gpus(pods: Pods, nodes: Nodes) -> float:
    """What is left of the scarcest resource first: GPUs, then vcores. The score is one of the node alone."""
    cluster = _Cluster(nodes)
    for pod in pods:
        if len(found := cluster.fitting(pod)):
            left = cluster.gpus[found].sum(axis=1) + cluster.cpu[found] / 1e9
            node = int(found[left.argmin()])
            choices = cluster.placements(pod, node)
            cluster.take(pod, node, min(choices, key=lambda d: int(cluster.gpus[node, d].sum())))
    return 100 - 100 * float(cluster.gpus.sum()) / cluster.total


class _Fragmentation:
    """The expected fragmentation of a node: of its free GPUs, what pods of the list cannot use."""

    def __init__(self, pods: Pods) -> None:
        kinds = Counter((pod.cpu, pod.gpus, pod.milli) for pod in pods)
        self._cpu, self._gpus, milli = np.array(list(kinds)).T
        self._share = np.array(list(kinds.values())) / len(pods)
        self._milli = np.where(self._gpus, milli, 1)
        self._known: dict[tuple[float, tuple[int, ...]], float] = {}

    def of(self, cpu: float, gpus: npt.NDArray[np.int64]) -> float:
        key = cpu, tuple(sorted(gpus.tolist()))
        known = self._known.get(key)
        if known is None:
            enough = gpus[:, None] >= self._milli[None, :]
            runs = (enough.sum(axis=0) >= self._gpus) & (cpu >= self._cpu) & (self._gpus > 0)
            lost = np.where(runs, (gpus[:, None] * ~enough).sum(axis=0), gpus.sum())
            known = self._known[key] = float(lost @ self._share)
        return known


def _fgd(pods: Pods, nodes: Nodes) -> float:
    """Fragmentation gradient descent: the node and the devices where fragmentation grows least."""
    cluster, fragmentation = _Cluster(nodes), _Fragmentation(pods)
    for pod in pods:
        known: dict[tuple[float, tuple[int, ...]], tuple[float, list[int]]] = {}
        best: tuple[float, int, list[int]] | None = None
        for node in cluster.fitting(pod).tolist():
            cpu, gpus = float(cluster.cpu[node]), cluster.gpus[node]
            key = cpu, tuple(gpus.tolist())
            if key not in known:
                before, choices = fragmentation.of(cpu, gpus), []
                for devices in cluster.placements(pod, node):
                    after = gpus.copy()
                    after[devices] -= pod.milli
                    choices.append((fragmentation.of(cpu - pod.cpu, after) - before, devices))
                known[key] = min(choices)
            growth, devices = known[key]
            if best is None or growth < best[0]:
                best = growth, node, devices
        if best is not None:
            cluster.take(pod, best[1], best[2])
    return 100 - 100 * float(cluster.gpus.sum()) / cluster.total


_ORDERS: dict[str, Callable[[Pods, Nodes], float]] = {
    "ours": _scheduled(plain=False),
    _PLAIN: _scheduled(plain=True),
    "fewest GPUs": _fewest_gpus,
    "FGD": _fgd,
}
