"""One scheduler on one fresh control plane."""

from __future__ import annotations

import dataclasses
import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench._kubernetes.observer import Seen
from bench._kubernetes.plane import NAMESPACE, STOCK, Plane, Pods
from bench._kubernetes.processes import Child, processor_time
from bench._kubernetes.raw_process import Task as RawTask
from bench._kubernetes.shim_process import Task as ShimTask

#: for the slowest measurement on a busy machine (s)
PATIENCE = 600.0
#: after this time the pods are listed (s)
_STALLED = 20.0


@dataclass(frozen=True, slots=True)
class Bound:
    """All pods bound by one scheduler."""

    pods: int
    #: from the first bind to the last one, seen by the same watch for all (s)
    seconds: float
    #: processor time from the start of the scheduling until the last bind (s)
    busy: float
    #: of the API server and etcd meanwhile
    server: float
    #: of ours: processor time by thread
    threads: dict[str, float]
    answers: dict[str, int]

    @property
    def rate(self) -> float:
        return (self.pods - 1) / self.seconds


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them does not exceed."""
    row = sorted(values)
    return row[max(0, math.ceil(share * len(row)) - 1)]


@contextmanager
def new_plane() -> Iterator[Plane]:
    with tempfile.TemporaryDirectory(prefix="quadriga-bench-") as folder:
        plane = Plane(Path(folder))
        try:
            plane.start()
            yield plane
        finally:
            plane.stop()


@contextmanager
def shim(plane: Plane, *, requests: bool = False) -> Iterator[tuple[Child, dict[str, Any]]]:
    """Our scheduler, serving, and what it had cost by then."""
    task = ShimTask(str(plane.control.kubeconfig("admin")), "default", requests)
    child = Child("shim_process", dataclasses.asdict(task))
    try:
        yield child, child.first()
    finally:
        child.end()


def bound_by_us(nodes: int, pods: Pods, *, arriving: bool = False) -> Bound:
    """Pods that wait when it starts, or (``arriving``) that come while it serves."""
    with new_plane() as plane:
        plane.add_nodes(nodes)
        plane.prepare(pods)
        if not arriving:
            plane.add_pods(pods)
            all_there(plane, pods.count)
        server = server_time(plane)
        with shim(plane) as (child, before):
            if arriving:
                server = server_time(plane)
                plane.etcd.put(plane.stored_pods(pods), together=1)
            else:
                before = {"busy": 0.0, "threads": {}, "answers": {}}
            seconds = all_bound(plane, pods.count)
            server = server_time(plane) - server
            after = child.ask("tell")
        return Bound(
            pods.count,
            seconds,
            after["busy"] - before["busy"],
            server,
            _less(after["threads"], before["threads"]),
            {
                name: int(value)
                for name, value in _less(after["answers"], before["answers"]).items()
            },
        )


def bound_raw(nodes: int, count: int, applications: int = 1) -> Bound:
    """The raw loop."""
    with new_plane() as plane:
        plane.add_nodes(nodes)
        plane.add_pods(Pods(count, applications))
        all_there(plane, count)
        task = RawTask(str(plane.control.kubeconfig("admin")), NAMESPACE, count, nodes)
        child = Child("raw_process", dataclasses.asdict(task))
        try:
            child.line()
            server = server_time(plane)
            told = child.ask("go")
            seconds = all_bound(plane, count)
            server = server_time(plane) - server
        finally:
            child.end()
        if told["refused"]:
            raise AssertionError(f"{told['refused']} raw binds were refused")
        return Bound(count, seconds, told["busy"], server, {}, {})


def bound_by_stock(nodes: int, pods: Pods) -> Bound:
    """The stock scheduler."""
    pods = dataclasses.replace(pods, scheduler=STOCK)
    with new_plane() as plane:
        plane.add_nodes(nodes)
        plane.add_pods(pods)
        all_there(plane, pods.count)
        server = server_time(plane)
        start_stock(plane)
        seconds = all_bound(plane, pods.count)
        busy = processor_time(plane.control.process("kube-scheduler").pid)
        return Bound(pods.count, seconds, busy, server_time(plane) - server, {}, {})


def start_stock(plane: Plane) -> None:
    """The stock kube-scheduler of the same build; its client limits do not hold it back."""
    plane.control.start_scheduler("--kube-api-qps=10000", "--kube-api-burst=10000")


def server_time(plane: Plane) -> float:
    """Processor time of the API server and etcd until now (s)."""
    return sum(processor_time(plane.control.process(n).pid) for n in ("etcd", "kube-apiserver"))


def all_there(plane: Plane, count: int) -> None:
    def there(pods: dict[str, Seen]) -> bool:
        return len(pods) >= count and sum(not each.gone for each in pods.values()) >= count

    end = time.monotonic() + PATIENCE
    while True:
        try:
            plane.observer.until(there, f"{count} pods are there", _STALLED)
            return
        except TimeoutError:
            if time.monotonic() > end:
                raise
            plane.observer.look()


def all_bound(plane: Plane, count: int) -> float:
    """The time from the first bind to the last (s)."""
    plane.observer.until(
        lambda pods: sum(each.bound > 0 for each in pods.values()) >= count,
        f"{count} pods are bound",
        PATIENCE,
    )
    times = [each.bound for each in plane.observer.pods.values() if each.bound]
    return max(times) - min(times)


def _less(after: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    found = {name: value - before.get(name, 0) for name, value in after.items()}
    return {name: value for name, value in found.items() if value}
