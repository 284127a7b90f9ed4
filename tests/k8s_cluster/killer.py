"""Ends the scheduler at a chosen step: a write to the API server, or a message to or from its core."""

import contextlib
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from fault_proxy import FaultProxy, Seen
from scheduler_process import Quadriga

When = Literal["before", "after"]


@dataclass(frozen=True, order=True)
class Point:
    """Before or after the ``number``-th step with this part."""

    part: str
    when: When
    number: int

    def __str__(self) -> str:
        return f"{self.when} number {self.number} of {self.part}"


class Killer:
    """``heard`` counts the steps since `arm`, by part and moment. A write to a pod's status only tells, as
    events do, and is no step."""

    def __init__(self, proxy: FaultProxy) -> None:
        self.heard: Counter[tuple[str, When]] = Counter()
        #: parts in the order in which they were heard first
        self.parts: list[str] = []
        self.killed = threading.Event()
        self._point: Point | None = None
        self._scheduler: Quadriga | None = None
        self._lock = threading.Lock()
        self._proxy = proxy
        proxy.on_write = self._write
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name="witness", daemon=True).start()

    def arm(self, scheduler: Quadriga, point: Point | None) -> None:
        """From now on steps count; at the point this scheduler is killed."""
        with self._lock:
            self._scheduler, self._point = scheduler, point
            self.heard.clear()
            self.parts.clear()
            self.killed.clear()

    def disarm(self) -> bool:
        """Nobody is killed, and nothing is counted, from now on. Returns whether it was killed before."""
        with self._lock:
            killed = self.killed.is_set()
            self._scheduler = self._point = None
            self.killed.clear()
        return killed

    def close(self) -> None:
        self._proxy.on_write = None
        self._listener.close()

    def _hear(self, parts: Iterable[str], when: When) -> bool:
        """Whether it goes on."""
        with self._lock:
            if self._scheduler is None:
                return True
            point = self._point
            for part in parts:
                if part not in self.parts:
                    self.parts.append(part)
                self.heard[part, when] += 1
                if (
                    point is not None
                    and (part, when) == (point.part, point.when)
                    and self.heard[part, when] == point.number
                ):
                    self._scheduler.kill_soon()
                    self.killed.set()
            return not self.killed.is_set()

    # -- writes to the API server

    def _write(self, write: Seen, when: When) -> bool:
        if "/events" in write.path or write.path.endswith("/status"):
            return False
        found = re.fullmatch(r"/(?:api/v1|apis/[^/]+/[^/]+)/(.*)", write.path)
        parts = (found[1] if found is not None else write.path).split("/")
        if parts[0] == "namespaces" and len(parts) > 2:
            del parts[:2]
        what = "/".join([*parts[:1], *parts[2:]])
        # What it has sent already does not arrive either.
        return not self._hear([f"{write.method} {what}"], when)

    # -- messages

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._listen, args=(connection,), daemon=True).start()

    def _listen(self, connection: socket.socket) -> None:
        with connection, connection.makefile("r") as lines, contextlib.suppress(OSError):
            for line in lines:
                when, *parts = line.split()
                assert when in ("before", "after")
                if self._hear(parts, when):
                    connection.sendall(b".")
