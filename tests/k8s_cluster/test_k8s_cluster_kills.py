"""The scheduler is killed at every write: nothing is lost, nothing is done twice (T9)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

import pytest
from fault_proxy import FaultProxy, Seen
from manifests import gang, is_placeholder, job, pod, queues
from plain_client import History, Object, PlainClient
from process_kubelet import ProcessKubelet, node
from scheduler_process import Quadriga, wait

Kubelets = Callable[..., ProcessKubelet]
Schedulers = Callable[..., Quadriga]
Histories = Callable[[str], History]
When = Literal["before", "after"]

#: of a run; every write of theirs is a place where the process is killed
Scenario = Callable[[PlainClient, str], None]


def a_job(admin: PlainClient, namespace: str) -> None:
    admin.create(job("few", 2, pod("", "few")), namespace)


def a_gang(admin: PlainClient, namespace: str) -> None:
    for each in gang("pair", {"leader": (1, "1"), "worker": (1, "2")}):
        admin.create(each, namespace)


def a_gang_that_gives_up(admin: PlainClient, namespace: str) -> None:
    for each in gang("soft", {"worker": (3, "3")}, timeout=1):
        admin.create(each, namespace)


WHOLE = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        properties: {gang.admission: whole}
        queues:
          - name: default
"""


def counts(write: Seen) -> bool:
    """Events and conditions only tell."""
    return "/events" not in write.path and not write.path.endswith("/status")


class Killer:
    """Kills the scheduler at its n-th write that counts: before the server hears of it, or when it is
    done there and before the answer."""

    def __init__(self, proxy: FaultProxy, number: int, when: When) -> None:
        self._number = number
        self._when = when
        self._lock = threading.Lock()
        self._seen = 0
        self.scheduler: Quadriga | None = None
        self.killed = threading.Event()
        self.at: Seen | None = None
        proxy.on_write = self._hear

    def _hear(self, write: Seen, when: When) -> bool:
        if not counts(write) or when != self._when:
            return False
        with self._lock:
            self._seen += 1
            if self._seen == self._number and self.scheduler is not None:
                self.scheduler.kill_soon()
                self.at = write
                self.killed.set()
        # What it has sent already does not arrive either.
        return self.killed.is_set() and when == "before"


def bindings(pods: History, namespace: str) -> dict[str, set[str]]:
    """Pod → the nodes it has ever been on."""
    found: dict[str, set[str]] = {}
    for _, each in pods.of(namespace):
        if each["spec"].get("nodeName"):
            found.setdefault(each["metadata"]["uid"], set()).add(each["spec"]["nodeName"])
    return found


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("scenario", "members", "running"),
    [(a_job, 2, 2), (a_gang, 2, 2), (a_gang_that_gives_up, 3, 2)],
)
def test_t9_killed_at_every_write(
    scenario: Scenario,
    members: int,
    running: int,
    when: When,
    admin: PlainClient,
    pods: History,
    namespace: str,
    kubelet: Kubelets,
    quadriga: Schedulers,
    proxy: FaultProxy,
) -> None:
    kubelet(node("a", cpu="4"), node("b", cpu="4"))
    admin.create(queues(WHOLE if scenario is a_gang_that_gives_up else ""))

    def settled(present: list[Object]) -> bool:
        real = [each for each in present if not is_placeholder(each)]
        return len(present) == len(real) == members and (
            sum(1 for each in real if each["spec"].get("nodeName")) == running
        )

    for number in range(1, 40):
        killer = Killer(proxy, number, when)
        scheduler = quadriga(server=proxy.url, checked=False)
        killer.scheduler = scheduler
        scenario(admin, namespace)
        wait(
            lambda killer=killer: killer.killed.is_set() or settled(pods.in_namespace(namespace)),
            "killed, or all is done",
            60,
            scheduler.tail,
        )
        proxy.on_write = None
        if killer.killed.is_set():
            scheduler.kill()
            scheduler.start()
        told = f"killed {when} write {number}: {killer.at}"
        pods.until(settled, namespace, seconds=60, what=told)
        assert all(len(nodes) == 1 for nodes in bindings(pods, namespace).values()), told
        scheduler.wait_books(admin)
        for kind in ("Job",):
            for each in admin.list(kind, namespace):
                admin.delete(kind, namespace, each["metadata"]["name"])
        for each in pods.in_namespace(namespace):
            admin.delete("Pod", namespace, each["metadata"]["name"], grace=0)
        pods.until(lambda present: not present, namespace)
        scheduler.wait_idle()
        scheduler.kill()
        if not killer.killed.is_set():
            # The watch may tell of the last bind before it is answered.
            assert number >= members, "this run has hardly written anything"
            return
    raise AssertionError("the run never ends")
