"""Our scheduler in a process of its own: a line of JSON (`Task`) in; then ``tell`` gives a line with what
it has cost so far, ``heard UID TEXT`` the same and whether the pod's annotation is that one now, and
``requests`` the times of its binds."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import msgspec

from bench._kubernetes.processes import memory
from quadriga.cli.memory import look_less_often
from quadriga.core.driver.service import SchedulerService
from quadriga.k8s.driver.explaining import LocalCore
from quadriga.k8s.driver.kubernetes import KubernetesShim, Options
from quadriga.k8s.transport.client import Client
from quadriga.k8s.transport.login import log_in

_LOOK = 0.005
#: s, as the command has it
_SWITCH = 0.001


@dataclass(frozen=True, slots=True)
class Task:
    kubeconfig: str
    namespace: str
    #: keep the time of each bind request
    requests: bool = False


class _Watched:
    """The shim and the core, and what is known of them from outside."""

    def __init__(self, task: Task) -> None:
        #: answers of the API server, by what was asked
        self.answers: Counter[str] = Counter()
        #: pod → when its bind was first sent (s, monotonic)
        self.sent: dict[str, float] = {}
        #: since the start (s)
        self.synced_after = self.ready_after = 0.0
        if task.requests:
            self._keep_requests()
        look_less_often(serving=True)
        sys.setswitchinterval(_SWITCH)
        self._began = time.monotonic()
        self._service = SchedulerService()
        login = log_in(task.kubeconfig, clock=time.monotonic_ns, wall=time.time_ns)
        options = Options(namespace=task.namespace, leader_election=False)
        self.shim = KubernetesShim(
            self._service, login, options, core=LocalCore(self._service), observe=self._observe
        )
        self.shim.start()
        threading.Thread(target=self._look, name="looking", daemon=True).start()

    def _observe(self, method: str, path: str, status: int) -> None:
        what = path.partition("?")[0].rpartition("/")[2]
        if what not in ("binding", "status", "events", "pods", "nodes"):
            what = "one pod" if "/pods/" in path else "other"
        self.answers[f"{method} {what} {status}"] += 1

    def _keep_requests(self) -> None:
        request = Client.request
        sent = self.sent

        async def kept(self: Client, method: str, path: str, *args: Any, **more: Any) -> Any:
            if path.endswith("/binding"):
                sent.setdefault(path.split("/")[-2], time.monotonic())
            return await request(self, method, path, *args, **more)

        Client.request = kept  # type: ignore[method-assign]

    def _look(self) -> None:
        """Until it serves; nothing is looked at during a measurement."""
        while self.shim.wait(0) is None:
            health = self.shim.health()
            now = time.monotonic() - self._began
            listed = not any("not listed" in each for each in health.reasons)
            if not self.synced_after and listed:
                self.synced_after = now
            if health.ready:
                self.ready_after = now
                return
            time.sleep(_LOOK)

    def _waiting(self) -> int:
        """Inputs that the shim has not heard yet."""
        inbox = self.shim._inbox
        return len(inbox) if inbox is not None else 0

    def has_heard(self, uid: str, serial: str) -> bool:
        """Whether the pod's annotation is this one in the shim's cache."""
        pod = self.shim._cache.pod(uid)
        return pod is not None and pod.metadata.annotations.get("bench") == serial

    def wait_ready(self) -> None:
        while not self.ready_after:
            if self.shim.wait(0.02) is not None:
                raise SystemExit(f"the shim has ended: {self.shim.reason}")

    def told(self) -> dict[str, Any]:
        threads = {
            each.name: time.clock_gettime(time.pthread_getcpuclockid(each.ident))
            for each in threading.enumerate()
            if each.ident is not None
        }
        return {
            "threads": threads,
            "busy": time.process_time(),
            "memory": memory(os.getpid()),
            "most": memory(os.getpid(), "VmHWM"),
            "answers": self.answers,
            "synced": self.synced_after,
            "ready": self.ready_after,
            "waiting": self._waiting(),
        }


def main() -> None:
    watched = _Watched(msgspec.convert(json.loads(sys.stdin.readline()), Task))
    watched.wait_ready()
    print(json.dumps(watched.told()), flush=True)
    for line in sys.stdin:
        what, *words = line.split()
        answer: Any = watched.sent if what == "requests" else watched.told()
        if what == "heard":
            answer["heard"] = watched.has_heard(*words)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
