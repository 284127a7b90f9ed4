"""Our scheduler in single situations: a steady rate, a gang, a restart, many changes, a full cluster."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from bench._kubernetes.observer import Seen
from bench._kubernetes.plane import Plane, Pods, gang_of, pod_object
from bench._kubernetes.processes import Child, processor_time
from bench._kubernetes.runs import PATIENCE, all_bound, all_there, new_plane, shim
from bench._kubernetes.stored import Template, uid

#: what is written before a pod's labels change
_SERIAL = "serial-00000000"
_LOOK = 0.1
#: changes that are stored together: alone they cost more than the shim
_TOGETHER = 10
#: a full cluster is at rest when nothing was written for this time (s)
_REST = 5.0
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True)
class Steady:
    """Of each pod, in seconds after the request that creates it was sent: when the API server had created
    it, and when its bind was sent."""

    created: list[float]
    bound: list[float]


def steady(nodes: int, count: int, rate: float) -> Steady:
    """Create pods through the API server at this rate (a second) and see when their binds are sent."""
    pods = Pods(count, 10)
    with new_plane() as plane:
        plane.add_nodes(nodes)
        with shim(plane, requests=True) as (child, _):
            sent, done = _create(plane, pods, rate)
            all_bound(plane, count)
            requests = child.ask("requests")
    names = list(sent)
    return Steady(
        [done[name] - sent[name] for name in names],
        [requests[name] - sent[name] for name in names],
    )


def _create(plane: Plane, pods: Pods, rate: float) -> tuple[dict[str, float], dict[str, float]]:
    """When each request was sent and answered, by name. One request at a time; a slow answer delays the
    next request, and the lost time is made up for."""
    sent: dict[str, float] = {}
    done: dict[str, float] = {}
    began = time.monotonic()
    for number in range(pods.count):
        made = pod_object(pods, number)
        for key in ("uid", "resourceVersion", "creationTimestamp"):
            del made["metadata"][key]
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        name = made["metadata"]["name"]
        sent[name] = time.monotonic()
        plane.admin.create(made)
        done[name] = time.monotonic()
    return sent, done


def gang(nodes: int, members: int) -> float:
    """A gang arrives at once; the time until its real pods are all bound to their placeholders' nodes (s)."""
    annotations = {
        **gang_of(members, "1", "1Gi"),
        "yunikorn.apache.org/schedulingPolicyParameters": "placeholderTimeoutInSeconds=600",
    }
    pods = Pods(members, annotations=annotations)

    def real(seen: dict[str, Seen]) -> list[Seen]:
        return [each for each in seen.values() if each.name.startswith("pod-") and each.bound]

    with new_plane() as plane:
        plane.add_nodes(nodes)
        plane.prepare(pods)
        with shim(plane):
            began = time.monotonic()
            plane.etcd.put(plane.stored_pods(pods), together=1)
            plane.observer.until(
                lambda seen: len(real(seen)) >= members, "the gang is bound", PATIENCE
            )
            return max(each.bound for each in real(plane.observer.pods)) - began


@dataclass(frozen=True, slots=True)
class Restarted:
    """From the start of the process's work (s): all lists read, and serving. Bytes: with all read, serving,
    at most."""

    synced: float
    ready: float
    memory: int
    most: int
    busy: float


def restarted(nodes: int, count: int, applications: int = 100) -> Restarted:
    """Start with a cluster full of bound pods, a fifth of them of another scheduler."""
    foreign = count // 5
    with new_plane() as plane:
        plane.add_nodes(nodes)
        ours = Pods(count - foreign, applications, on_nodes=nodes)
        theirs = Pods(
            foreign, prefix="fgn", first=count, on_nodes=nodes, scheduler="default-scheduler"
        )
        plane.add_pods(ours)
        plane.add_pods(theirs)
        all_there(plane, count)
        with shim(plane) as (_, told):
            return Restarted(
                told["synced"], told["ready"], told["memory"], told["most"], told["busy"]
            )


@dataclass(frozen=True, slots=True)
class Watched:
    """``rate``: changes a second that were really written; ``most``: of them waiting in the shim;
    ``emptied``: time from the last write until the shim had heard it (s); ``busy``: processor time of a
    change (s)."""

    rate: float
    most: int
    emptied: float
    busy: float


def changes(nodes: int, count: int, rate: float, seconds: float) -> Watched:
    """Change pods at this rate (a second): each change is one of an annotation."""
    pods = Pods(count, 10, on_nodes=nodes, annotations={"bench": _SERIAL})
    with new_plane() as plane:
        plane.add_nodes(nodes)
        objects = [Template(key, value) for key, value in plane.stored_pods(pods)]
        plane.etcd.put((each.key, each.value) for each in objects)
        all_there(plane, count)
        with shim(plane) as (child, before):
            began = looked = time.monotonic()
            most = written = 0
            total = int(rate * seconds)
            while written < total:
                due = min(total, int((time.monotonic() - began) * rate) + 1)
                plane.etcd.put(
                    (
                        objects[at % count].copy([(_SERIAL, f"serial-{at:08}")])
                        for at in range(written, due)
                    ),
                    together=_TOGETHER,
                )
                written = due
                if time.monotonic() - looked > _LOOK:
                    looked = time.monotonic()
                    most = max(most, int(child.ask("tell")["waiting"]))
                time.sleep(max(0.0, began + written / rate - time.monotonic()))
            ended = time.monotonic()
            after = _until_heard(child, uid((total - 1) % count), f"serial-{total - 1:08}")
            emptied = time.monotonic() - ended
            return Watched(
                total / (ended - began), most, emptied, (after["busy"] - before["busy"]) / total
            )


def _until_heard(child: Child, pod: str, text: str) -> dict[str, Any]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        told = child.ask(f"heard {pod} {text}")
        if told["heard"]:
            return told
        time.sleep(_LOOK)
    raise TimeoutError(f"the shim has not heard of {text}")


@dataclass(frozen=True, slots=True)
class Idle:
    """``share``: processor time a second once nothing happens any more; ``writes``: requests to the API
    server meanwhile other than events; ``events``: those of events."""

    share: float
    writes: int
    events: int


def saturated(nodes: int, waiting: int, *, seconds: float) -> Idle:
    """A full cluster where pods wait: its costs for some seconds, once the conditions of all are written."""
    with new_plane() as plane:
        plane.add_nodes(nodes)
        plane.add_pods(Pods(nodes, 10, on_nodes=nodes, cpu="64"))
        plane.add_pods(Pods(waiting, 50, first=nodes, prefix="new"))
        all_there(plane, nodes + waiting)
        with shim(plane) as (child, _):
            _rest(child, waiting)
            before, busy = _writes(child), processor_time(child.pid)
            time.sleep(seconds)
            after = _writes(child)
            busy = processor_time(child.pid) - busy
    events = after["events"] - before["events"]
    return Idle(busy / seconds, sum(after.values()) - sum(before.values()) - events, events)


def _writes(child: Child) -> Counter[str]:
    """By what was written."""
    found: Counter[str] = Counter()
    for name, value in child.ask("tell")["answers"].items():
        method, *what, _ = name.split()
        if method in _WRITES:
            found[" ".join(what)] += value
    return found


def _rest(child: Child, waiting: int) -> None:
    """Wait until each waiting pod has its condition and nothing is written any more."""
    end = time.monotonic() + 2 * PATIENCE
    before, now = None, _writes(child)
    while now != before or now["status"] < waiting:
        if time.monotonic() > end:
            raise TimeoutError(f"the shim does not come to rest: {now}")
        time.sleep(_REST)
        before, now = now, _writes(child)
