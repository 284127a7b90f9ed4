"""`quadriga kubernetes` in a process of its own, and what its REST says of its books."""

import json
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from control_plane import ControlPlane, Process, free_ports
from plain_client import Object, PlainClient

SCHEDULER = "yunikorn"
ENDED = ("Succeeded", "Failed")


class _Program:
    """One of our programs, which writes its ports to a file; and what its REST says of the core's books."""

    def __init__(self, name: str, folder: Path, command: Sequence[str | Path]) -> None:
        self.name = name
        self._ports_file = folder / f"{name}-ports.json"
        self._ports: dict[str, int] = {}
        self._log = folder / f"{name}.log"
        ports = f"--ports-file={self._ports_file}"
        self._process = Process(name, [sys.executable, *command, ports], self._log)

    def kill(self) -> None:
        """As a machine that loses power."""
        self._process.kill()

    def ended(self) -> bool:
        return self._process.ended()

    def tail(self, lines: int = 60) -> str:
        return self._process.tail(lines)

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def _begin(self) -> None:
        self._ports_file.unlink(missing_ok=True)
        self._ports = {}
        self._process.start()

    # -- the core's books

    def rest(self, path: str) -> Any:
        """The JSON below /ws/v1."""
        return json.loads(self._ask("http", f"/ws/v1{path}") or b"null")

    def _ask(self, which: str, path: str) -> bytes | None:
        """``None`` for every status but 200. Raises OSError."""
        status, text = self.ask(path, which)
        return text.encode() if status == 200 else None

    @property
    def ports(self) -> dict[str, int]:
        """Raises OSError until they have been written."""
        if not self._ports:
            try:
                self._ports = json.loads(self._ports_file.read_text())
            except ValueError as error:
                raise OSError("the ports are being written") from error
        return self._ports

    def ask(self, path: str, which: str = "health") -> tuple[int, str]:
        """Status and text. Raises OSError."""
        url = f"http://127.0.0.1:{self.ports[which]}{path}"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(url, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def usage(self) -> dict[str, int]:
        """What the root queue's applications have, without what is 0."""
        used = self.rest("/partition/default/queues").get("allocatedResource") or {}
        return {name: value for name, value in used.items() if value}

    def allocated(self) -> dict[str, set[str]]:
        """Node → the keys of what the core has on it, without foreign pods."""
        nodes = self.rest("/partition/default/nodes") or []
        return {
            each["nodeID"]: {str(one["allocationKey"]) for one in each.get("allocations") or ()}
            for each in nodes
        }

    def applications(self, state: str = "active") -> dict[str, str]:
        """Application → state. ``state``: active, completed or rejected."""
        found = self.rest(f"/partition/default/applications/{state}") or []
        return {each["applicationID"]: each["applicationState"] for each in found}

    def wait_idle(self, seconds: float = 20) -> None:
        """Until no queue has anything."""
        wait(lambda: self.usage() == {}, "nothing used", seconds, lambda: f"{self.usage()}")

    def cached(self) -> dict[str, set[str]] | None:
        """Node → UIDs of the pods that the shim's cache has on it, with foreign ones and those that are to
        be bound there; ``None`` if the shim is another process."""
        cache = self.rest("/fullstatedump")["rmDiagnostics"].get("cache")
        if cache is None:
            return None
        found: dict[str, set[str]] = {name: set() for name in cache["nodes"]}
        for uid, pod in cache["pods"].items():
            if on := pod["node"] or pod["assumed"]:
                found.setdefault(on, set()).add(uid)
        return found

    def wait_books(self, client: PlainClient, seconds: float = 20) -> None:
        """Until the core has on every node exactly the live pods of ours that are bound there, and the shim's
        cache these and the foreign ones."""

        def differences() -> str:
            every = bound_pods(client)
            ours = bound_pods(client, ours=True)
            found, cached = "", self.cached()
            for who, books, true in (("core", self.allocated(), ours), ("cache", cached, every)):
                if books is not None and books != true:
                    found += f"{who}    {_ordered(books)}\ncluster {_ordered(true)}\n"
            return found

        wait(
            lambda: not differences(),
            "the books of the core and of the cache are the cluster's",
            seconds,
            differences,
        )


class Quadriga(_Program):
    """``server``: what stands before the API server, if anything. ``core``: the address of a core in
    another process; then there is no REST here. ``program``: what takes the command's arguments."""

    def __init__(
        self,
        plane: ControlPlane,
        folder: Path,
        *,
        name: str = "quadriga",
        user: str = "admin",
        namespace: str = "default",
        server: str | None = None,
        lease: bool = False,
        core: str | None = None,
        program: Sequence[str | Path] = ("-m", "quadriga.cli"),
        arguments: Sequence[str] = (),
    ) -> None:
        command = [
            *program,
            "kubernetes",
            f"--kubeconfig={plane.kubeconfig(user, server)}",
            f"--namespace={namespace}",
            "--health=0",
            "--log-level=info",
            *arguments,
        ]
        command += ["--http=0"] if core is None else [f"--core={core}"]
        if not lease:
            command.append("--no-lease")
        super().__init__(name, folder, command)

    # -- the process

    def start(self, *, ready: bool = True) -> None:
        self._begin()
        if ready:
            self.wait_ready()

    def wait_ready(self, seconds: float = 60) -> None:
        """Until it schedules: it is registered and recovery is over."""
        wait(lambda: self.is_ready() or self._process.ended(), "ready", seconds, self.tail)
        assert not self._process.ended(), self.tail()

    def is_ready(self) -> bool:
        try:
            return self.ask("/readyz") == (200, "ok\n")
        except OSError:
            return False

    def kill_soon(self) -> None:
        """As `kill`, without waiting for the end."""
        self._process.signal(signal.SIGKILL)

    def freeze(self) -> None:
        self._process.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.signal(signal.SIGCONT)

    def stop(self, which: signal.Signals = signal.SIGTERM, seconds: float = 20) -> int:
        """Its exit status."""
        self._process.signal(which)
        return self._process.wait(seconds)

    def wait(self, seconds: float) -> int:
        return self._process.wait(seconds)


class ServedCore(_Program):
    """`quadriga serve`. ``port`` is that of gRPC, the same one after a restart."""

    def __init__(self, folder: Path, *, name: str = "core") -> None:
        (self.port,) = free_ports(1)
        command = ["-m", "quadriga.cli", "serve", "--http=0", f"--grpc={self.port}"]
        super().__init__(name, folder, command)

    def start(self) -> None:
        """Until it serves."""
        self._begin()
        wait(self._ports_file.exists, "it serves", 60, self.tail)


def _ordered(books: dict[str, set[str]]) -> dict[str, list[str]]:
    return {name: sorted(keys) for name, keys in sorted(books.items())}


def bound_pods(client: PlainClient, *, ours: bool = False) -> dict[str, set[str]]:
    """Node → UIDs of the live pods (of ours) on it, as the API server has them."""
    found: dict[str, set[str]] = {each["metadata"]["name"]: set() for each in client.list("Node")}
    for pod in client.list("Pod"):
        on = pod["spec"].get("nodeName")
        if on and (is_ours(pod) or not ours) and pod["status"].get("phase") not in ENDED:
            found.setdefault(on, set()).add(pod["metadata"]["uid"])
    return found


def is_ours(pod: Object) -> bool:
    return bool(pod["spec"].get("schedulerName") == SCHEDULER)


def wait(
    holds: Callable[[], Any], what: str, seconds: float = 20, told: Callable[[], str] | None = None
) -> Any:
    """For what no event tells; returns that. An OSError counts as no."""
    end = time.monotonic() + seconds
    while True:
        try:
            if found := holds():
                return found
        except OSError:
            pass
        if time.monotonic() >= end:
            more = told() if told is not None else ""
            raise AssertionError(f"after {seconds:g} s still not: {what}\n{more}")
        time.sleep(0.05)
