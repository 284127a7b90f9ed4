"""A resource manager as a program of its own: it brings one gang to run, and starts again if it must.

    python -m tests.si.rm_process HOST:PORT STORE APPLICATION PAUSE

STORE outlasts it: which pods run where. At every point of its work it prints a line and waits for one,
so that whoever has started it may end it right there; at the end it prints ``done``.
"""

import contextlib
import itertools
import json
import os
import queue
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from quadriga import si
from quadriga.si.client import FORGOTTEN, Backoff, Client, RegisterAgain, Unreachable, Watcher
from tests.si.requests import apps, asks, nodes, register, releases

RM_ID = "rm"
NODES = ("n1", "n2")
MEMBERS = ("m0", "m1", "m2")
REPLACED = si.TerminationType.PLACEHOLDER_REPLACED

SIZE = si.Resource(resources={"vcore": si.Quantity(value=1000)})


def point(name: str) -> None:
    """Here it may be ended."""
    print(name, flush=True)
    if not sys.stdin.readline():
        sys.exit(3)  # whoever has started it is gone


class Store:
    """Pods that run: key to node and UUID. A pod that starts twice is written down as wrong."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.pods: dict[str, dict[str, str]] = {}
        self.gone: list[str] = []
        self.wrong: list[str] = []
        if path.exists():
            found = json.loads(path.read_text())
            self.pods, self.gone, self.wrong = found["pods"], found["gone"], found["wrong"]

    def write(self) -> None:
        """All or nothing: it may be killed at any moment."""
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps({"pods": self.pods, "gone": self.gone, "wrong": self.wrong}))
        os.replace(new, self._path)

    def start(self, allocation: si.Allocation) -> None:
        key, uuid = allocation.allocationKey, allocation.UUID
        before = self.pods.get(key)
        if before is not None and before["uuid"] != uuid:
            self.wrong.append(f"{key} runs as {before['uuid']} and starts as {uuid}")
        if key in self.gone:
            self.wrong.append(f"{key} is over and starts again")
        self.pods[key] = {"node": allocation.nodeID, "uuid": uuid}
        self.write()

    def stop(self, key: str) -> None:
        if self.pods.pop(key, None) is not None:
            self.gone.append(key)
        self.write()

    @property
    def is_reserved(self) -> bool:
        """There is a place for every member, its own or a placeholder's."""
        return len(self.pods) >= len(MEMBERS)

    @property
    def is_done(self) -> bool:
        return sorted(self.pods) == sorted(MEMBERS)

    def placeholders(self) -> list[str]:
        """Those to ask for: what was given up already is made anew under another name."""
        known = {*self.pods, *self.gone}
        names = (name for name in (f"p{n}" for n in itertools.count()) if name not in known)
        return [*itertools.islice(names, len(MEMBERS) - len(self.pods))]


class Inbox(si.NullCallback, Watcher):
    """What is heard, for the one thread that works."""

    def __init__(self) -> None:
        self.news: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.news.put(response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.news.put(si.AllocationResponse())  # nothing to do, but perhaps it runs now

    def changed(self, state: str, why: str) -> None:
        if state == FORGOTTEN:
            self.news.put(None)


class Gang:
    """The work: register, report, ask for placeholders, then for members, and confirm."""

    def __init__(self, address: str, store: Store, app_id: str, pause: str) -> None:
        self.store = store
        self.app_id = app_id
        self.settings = {"rm.pauseTimeout": pause}
        self.inbox = Inbox()
        backoff = Backoff(first_s=0.02, most_s=0.1)
        self.client = Client(address, watcher=self.inbox, backoff=backoff)
        self.asked = False

    def run(self) -> None:
        self.begin()
        while True:
            if self.store.is_done and self.is_agreed():
                point("done")
                continue
            response = self.inbox.news.get()
            with contextlib.suppress(RegisterAgain):  # which the next news say too
                self.hear(response)

    def is_agreed(self) -> bool:
        """Whether the scheduler is there, and knows. If not, there will be news."""
        try:
            return self.client.explain(self.app_id).state == "Running"
        except (RegisterAgain, Unreachable, si.RequestError):
            return False

    def begin(self) -> None:
        """Register, and tell all that is known (I7, I8)."""
        point("register")
        self.asked = False
        try:
            again = register(RM_ID, extraConfig=self.settings)
            self.client.register_resource_manager(again, self.inbox)
            point("registered")
            gang = {"vcore": 1000 * len(MEMBERS)}
            self.client.update_application(apps(self.app_id, gang=gang, gangSchedulingStyle="Hard"))
            point("application")
            self.client.update_node(self.nodes())
            point("nodes")
            if not self.store.is_reserved:
                self.ask(self.store.placeholders(), placeholder=True)
                point("placeholders asked")
            self.ask_for_members()
        except RegisterAgain:
            pass

    def nodes(self) -> si.NodeRequest:
        request = nodes(*NODES)
        for node in request.nodes:
            node.existingAllocations.extend(
                si.Allocation(
                    allocationKey=key,
                    UUID=pod["uuid"],
                    nodeID=node.nodeID,
                    applicationID=self.app_id,
                    partitionName="default",
                    resourcePerAlloc=SIZE,
                    taskGroupName="workers",
                    placeholder=key not in MEMBERS,
                )
                for key, pod in self.store.pods.items()
                if pod["node"] == node.nodeID
            )
        return request

    def ask(self, keys: Iterable[str], *, placeholder: bool) -> None:
        keys = [key for key in keys if key not in self.store.pods]
        self.client.update_allocation(
            asks(self.app_id, *keys, vcore=1000, group="workers", placeholder=placeholder)
        )

    def ask_for_members(self) -> None:
        if self.store.is_reserved and not self.asked:
            self.asked = True
            self.ask(MEMBERS, placeholder=False)
            point("members asked")

    def hear(self, response: si.AllocationResponse | None) -> None:
        if response is None:
            self.begin()
            return
        for new in response.new:
            if self.store.pods.get(new.allocationKey, {}).get("uuid") == new.UUID:
                continue  # the echo of what was reported
            point(f"{new.allocationKey} allocated")
            self.store.start(new)
            point(f"{new.allocationKey} runs")
        for gone in response.released:
            if gone.terminationType != REPLACED:
                self.store.wrong.append(f"{gone.allocationKey} was released: {gone.message}")
                self.store.write()
                continue
            point(f"{gone.allocationKey} asked back")
            self.store.stop(gone.allocationKey)
            point(f"{gone.allocationKey} is gone")
            self.client.update_allocation(releases(self.app_id, gone.UUID, kind=REPLACED))
            point(f"{gone.allocationKey} confirmed")
        self.ask_for_members()


if __name__ == "__main__":
    Gang(sys.argv[1], Store(Path(sys.argv[2])), *sys.argv[3:]).run()
