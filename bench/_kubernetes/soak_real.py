"""A soak in real time: random work on a real control plane, through a proxy that does wrong."""

from __future__ import annotations

import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from bench._kubernetes.processes import memory
from bench._kubernetes.soaked import Sample, Soaked

# The modules of the tests import each other by their plain names.
sys.path.append(str(Path(__file__).parents[2] / "tests" / "k8s_cluster"))

from control_plane import ControlPlane
from fault_proxy import Fault, FaultProxy
from manifests import foreign, gang, job, pod, queues
from plain_client import APIError, PlainClient
from process_kubelet import ProcessKubelet, node
from scheduler_process import Quadriga, wait

_NAMESPACE = "soak"
_LASTS = "soak.test/seconds"
_NODES = 4
_CPU = 8
#: what happens, and how often in a minute on average
_RATES = {
    "job": 8.0, "gang": 4.0, "foreign": 3.0, "delete": 6.0, "cordon": 1.0, "uncordon": 1.5, "lose": 0.5,
    "configure": 0.5, "cut": 0.3,
}  # fmt: skip
_QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: default
            resources:
              max: {{vcore: {cpu}, memory: 64Gi}}
"""
_ENDED = ("Succeeded", "Failed")


class RandomFaults(FaultProxy):
    """A share of all writes goes wrong, in one way or another."""

    share = 0.0
    #: how many, by what happened
    done: Counter[str]
    choose: random.Random

    def _fault_of(self, request: Any) -> Fault | None:
        if request.method == "GET" or self.choose.random() >= self.share:
            return None
        kind, status = self.choose.choice(
            [("answer", 500), ("answer", 404), ("answer", 429), ("answer", 409), ("lost", 0), ("cut", 0)]
        )  # fmt: skip
        if status == 404 and not request.path.endswith("/binding"):
            status = 503
        self.done[f"{kind} {status}" if status else kind] += 1
        return Fault(request.method, request.path, kind, status=status)  # type: ignore[arg-type]


class _Work:
    """What the users, the nodes and the operator do."""

    def __init__(self, plane: ControlPlane, admin: PlainClient, seed: int) -> None:
        self.choose = random.Random(seed)
        self.admin = admin
        self.kubelet = ProcessKubelet(
            plane.server, "kubelet-token", plane.tls(), Path(tempfile.mkdtemp())
        )
        self.count = 0
        self.made: Counter[str] = Counter()
        self.lost: dict[str, float] = {}
        self.pods: list[Any] = []
        self.jobs = False

    def node(self, name: str) -> Any:
        return node(name, cpu=str(_CPU))

    def start(self) -> None:
        self.admin.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}
        )
        self.admin.create(queues(_QUEUES.format(cpu=100)))
        self.kubelet.start()
        self.kubelet.register(*(self.node(f"node-{n}") for n in range(_NODES)))

    def look(self) -> None:
        """End what has run long enough, and clear away what has ended."""
        self.pods = self.admin.list("Pod", _NAMESPACE)
        now = time.time()
        for each in self.pods:
            meta, status = each["metadata"], each["status"]
            if status.get("phase") in _ENDED:
                if "job-name" not in (meta.get("labels") or {}):
                    self.admin.delete("Pod", _NAMESPACE, meta["name"], grace=0)
            elif status.get("phase") == "Running":
                lasts = (meta.get("annotations") or {}).get(_LASTS)
                began = status.get("startTime") or meta["creationTimestamp"]
                if lasts is not None and now - _unix(began) > float(lasts):
                    self._end(meta["name"])
        for each in self.admin.list("Job", _NAMESPACE):
            conditions = each.get("status", {}).get("conditions") or ()
            if any(one["type"] in ("Complete", "Failed") for one in conditions):
                self.admin.delete("Job", _NAMESPACE, each["metadata"]["name"])
        for name, until in list(self.lost.items()):
            if time.monotonic() > until:
                self.back(name)

    def _end(self, name: str) -> None:
        """Not by the kubelet, which would wait for a pod that is deleted meanwhile."""
        phase = "Succeeded" if self.choose.random() > 0.05 else "Failed"
        with suppress(APIError):
            self.admin.patch("Pod", _NAMESPACE, name, {"status": {"phase": phase}}, part="status")

    def back(self, name: str) -> None:
        del self.lost[name]
        self.kubelet.register(self.node(name))

    def step(self, operation: str, proxy: FaultProxy) -> None:
        """One thing that somebody does."""
        choose = self.choose
        self.count += 1
        name = f"{operation}-{self.count}"
        nodes = [f"node-{n}" for n in range(_NODES) if f"node-{n}" not in self.lost]
        lasts = {_LASTS: str(choose.choice([2, 5, 10, 20, 40]))}
        if operation == "job":
            template = pod("x", name, cpu=choose.choice(["250m", "1", "2"]), annotations=lasts)
            if choose.random() < 0.3:  # several applications that last
                template["metadata"]["labels"]["yunikorn.apache.org/app-id"] = (
                    f"steady-{choose.randrange(3)}"
                )
            self._create("Job", job(name, choose.randrange(1, 9), template))
        elif operation == "gang":
            size = choose.choice([2, 3, 5, 8])
            cpu = choose.choice(["500m", "2", "6"])
            style = choose.choice(["Soft", "Hard"])
            for each in gang(name, {"w": (size, cpu)}, timeout=15, style=style):
                each["metadata"]["annotations"].update(lasts)
                self._create("gang pod", each)
        elif operation == "foreign":
            made = foreign(name, choose.choice(nodes), cpu="300m")
            made["metadata"]["annotations"].update(lasts)
            self._create("foreign pod", made)
        elif operation == "delete" and self.pods:
            found = choose.choice(self.pods)["metadata"]
            grace = choose.choice([0, None])
            self.admin.delete("Pod", _NAMESPACE, found["name"], grace=grace)
            self.made["deleted"] += 1
        elif operation in ("cordon", "uncordon"):
            change = {"spec": {"unschedulable": operation == "cordon"}}
            self.admin.patch("Node", None, choose.choice(nodes), change)
            self.made[operation] += 1
        elif operation == "lose" and len(nodes) > 2:
            lost = choose.choice(nodes)
            self.lost[lost] = time.monotonic() + choose.choice([5, 30, 60])
            self.admin.delete("Node", None, lost)
            self.made["lost node"] += 1
            if choose.random() < 0.7:
                for each in self.pods:
                    if each["spec"].get("nodeName") == lost:
                        self.admin.delete("Pod", _NAMESPACE, each["metadata"]["name"], grace=0)
        elif operation == "configure":
            text = _QUEUES.format(cpu=choose.choice([10, 20, 100]))
            if choose.random() < 0.2:
                text = "partitions: [wrong"
            change = {"data": {"queues.yaml": text}}
            self.admin.patch("ConfigMap", "default", "yunikorn-configs", change)
            self.made["configured"] += 1
        elif operation == "cut":
            proxy.cut_all()
            self.made["connections cut"] += 1

    def _create(self, what: str, thing: Any) -> None:
        self.admin.create(thing, _NAMESPACE)
        self.made[what] += 1

    def heal(self) -> None:
        """Room for all, so that all can end."""
        for name in list(self.lost):
            self.back(name)
        for n in range(_NODES):
            self.admin.patch("Node", None, f"node-{n}", {"spec": {"unschedulable": False}})
        change = {"data": {"queues.yaml": _QUEUES.format(cpu=100)}}
        self.admin.patch("ConfigMap", "default", "yunikorn-configs", change)


def _unix(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@contextmanager
def _running(folder: Path, seed: int) -> Iterator[tuple[_Work, RandomFaults, Quadriga]]:
    with ExitStack() as stack:
        plane = ControlPlane(folder)
        stack.callback(plane.stop)
        plane.start()
        admin = PlainClient(plane.server, "admin-token", plane.tls())
        stack.callback(admin.close)
        proxy = RandomFaults(plane.server, plane.tls())
        proxy.choose, proxy.done = random.Random(seed), Counter()
        stack.callback(proxy.stop)
        proxy.start()
        work = _Work(plane, admin, seed)
        stack.callback(work.kubelet.stop)
        work.start()
        scheduler = Quadriga(plane, folder, server=proxy.url)
        stack.callback(scheduler.kill)
        scheduler.start()
        yield work, proxy, scheduler


def soak(minutes: float, seed: int, faults: float, tell: Callable[[str], object]) -> Soaked:
    """Work for so many minutes, then until all has ended. One audit a minute is the scheduler's own."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    with _running(folder, seed) as (work, proxy, scheduler):
        found = Soaked()
        proxy.share = faults
        began = sampled = time.monotonic()
        while (now := time.monotonic()) < began + minutes * 60:
            work.look()
            for operation, rate in _RATES.items():
                if work.choose.random() < rate / 60:
                    try:
                        work.step(operation, proxy)
                    except APIError as error:
                        tell(f"{operation}: {error}")
            if scheduler.ended():
                raise AssertionError(f"the scheduler has ended:\n{scheduler.tail()}")
            proxy.requests.clear()
            proxy.writes.clear()
            if now >= sampled + 60:
                sampled = now
                found.samples.append(_sample(scheduler, (now - began) / 60, len(work.pods)))
                tell(str(found.samples[-1]))
            time.sleep(max(0.0, 1 - (time.monotonic() - now)))
        proxy.share = 0
        work.heal()
        tell("no more work: waiting for the end of all")
        wait(
            lambda: work.look() or not work.pods,
            "all has ended",
            300,
            lambda: _left(work, scheduler),
        )
        wait(
            lambda: not scheduler.applications(),
            "no application is left",
            120,
            lambda: str(scheduler.applications()),
        )
        scheduler.wait_idle()
        last = _sample(scheduler, 0, 0).audits
        wait(lambda: _sample(scheduler, 0, 0).audits >= last + 2, "two audits of rest", 180)
        found.samples.append(_sample(scheduler, (time.monotonic() - began) / 60, 0))
        found.made = dict(work.made)
        found.faults = dict(proxy.done)
        found.left = _sizes(scheduler)
        found.differences = [
            line for line in scheduler.tail(1_000_000).splitlines() if "audit: " in line
        ]
        return found


def _left(work: _Work, scheduler: Quadriga) -> str:
    return "\n".join(
        f"{each['metadata']['name']} {each['status'].get('phase')} {each['spec'].get('nodeName')}"
        for each in work.pods
    ) + scheduler.tail(40)


def _metrics(scheduler: Quadriga) -> dict[str, float]:
    text = (scheduler._ask("health", "/metrics") or b"").decode()
    return {
        name: float(value) for name, value in re.findall(r"^(\w+(?:\{.*?\})?) (\S+)$", text, re.M)
    }


def _sample(scheduler: Quadriga, minute: float, pods: int) -> Sample:
    metrics = _metrics(scheduler)
    stood = {
        name.partition('kind="')[2].partition('"')[0]: int(value)
        for name, value in metrics.items()
        if name.startswith("quadriga_kubernetes_audit_differences_total") and value
    }
    return Sample(
        minute,
        memory(scheduler._process.pid),
        pods,
        int(metrics.get("quadriga_kubernetes_audits_total", 0)),
        int(metrics.get("quadriga_kubernetes_audit_standing", 0)),
        stood,
    )


def _sizes(scheduler: Quadriga) -> dict[str, int]:
    """What the scheduler still has when nothing is left."""
    state = scheduler.rest("/fullstatedump")
    (shim,) = (each["shim"] for each in _dumps(state) if "shim" in each)
    return {
        "applications": len(shim["applications"]),
        "foreign pods": len(shim["foreignPods"]),
        "pods in the cache": len(shim["cluster"]["pods"]),
    }


def _dumps(thing: Any) -> Iterator[dict[str, Any]]:
    if isinstance(thing, dict):
        yield thing
        for each in thing.values():
            yield from _dumps(each)
