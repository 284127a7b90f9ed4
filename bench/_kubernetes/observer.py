"""When each pod got its node, seen by a watch that is the same for every scheduler that is measured."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    name: str
    uid: str
    resource_version: str


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct, gc=False):
    metadata: _Metadata
    spec: _Spec


class _Event(msgspec.Struct, gc=False):
    type: str
    object: _Pod


class _List(msgspec.Struct, gc=False):
    items: list[_Pod]


class Seen(msgspec.Struct, gc=False):
    """A pod: when it was first seen, when with a node, and when it was gone (s, monotonic; 0: not yet)."""

    name: str
    added: float
    bound: float = 0.0
    node: str = ""
    gone: float = 0.0


class Observer:
    """Watches the pods of a namespace from an empty list on."""

    def __init__(self, server: str, token: str, tls: ssl.SSLContext, namespace: str) -> None:
        parts = urlsplit(server)
        self._host, self._port, self._tls = parts.hostname or "", parts.port, tls
        self._path = f"/api/v1/namespaces/{namespace}/pods?watch=1&resourceVersion="
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._changed = threading.Condition()
        self._stopping = False
        self._version = 0
        self.failure: BaseException | None = None
        self.pods: dict[str, Seen] = {}
        #: how many were ever bound, by what stands in their names before the number
        self.bound: Counter[str] = Counter()
        self.events = 0
        self._thread = threading.Thread(target=self._run, name="observer", daemon=True)
        self._connect()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        sock = self._connection.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._close()

    def until(self, holds: Callable[[dict[str, Seen]], bool], what: str, seconds: float) -> None:
        """Wait for the pods to be so. Raises TimeoutError."""
        end = time.monotonic() + seconds
        with self._changed:
            while not holds(self.pods):
                if self.failure is not None:
                    raise RuntimeError("the observer has ended") from self.failure
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"not within {seconds:g} s: {what}")
                self._changed.wait(min(left, 0.5))

    def look(self) -> None:
        """List the pods: a watch that is taken up again misses some objects that were stored together."""
        connection = http.client.HTTPSConnection(self._host, self._port, context=self._tls)
        try:
            connection.request("GET", self._path.partition("?")[0], headers=self._headers)
            listed = msgspec.json.decode(connection.getresponse().read(), type=_List)
        finally:
            connection.close()
        now = time.monotonic()
        with self._changed:
            for pod in listed.items:
                self.pods.setdefault(pod.metadata.uid, Seen(pod.metadata.name, now))

    def _connect(self) -> None:
        self._connection = http.client.HTTPSConnection(self._host, self._port, context=self._tls)
        # Some events come again: several objects may have one version.
        path = f"{self._path}{max(0, self._version - 1)}"
        self._connection.request("GET", path, headers=self._headers)
        self._response = self._connection.getresponse()
        if self._response.status != 200:
            raise OSError(f"the watch was refused with {self._response.status}")

    def _close(self) -> None:
        self._response.close()
        self._connection.close()

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._read()
                # The server ends a watch whose client reads too slowly.
                self._close()
                self._connect()
        except (OSError, ValueError, http.client.HTTPException, AttributeError) as error:
            if not self._stopping:
                self.failure = error

    def _read(self) -> None:
        decode = msgspec.json.Decoder(_Event).decode
        rest = b""
        while chunk := self._response.read1(1 << 20):
            *lines, rest = (rest + chunk).split(b"\n")
            if not lines:
                continue
            now = time.monotonic()
            with self._changed:
                for line in lines:
                    self._hear(decode(line), now)
                self.events += len(lines)
                self._changed.notify_all()

    def _hear(self, event: _Event, now: float) -> None:
        pod = event.object
        self._version = int(pod.metadata.resource_version)
        seen = self.pods.get(pod.metadata.uid)
        if seen is None:
            if event.type == "DELETED":
                return
            seen = self.pods[pod.metadata.uid] = Seen(pod.metadata.name, now)
        if pod.spec.node_name and not seen.node:
            seen.node, seen.bound = pod.spec.node_name, now
            self.bound[seen.name.rpartition("-")[0]] += 1
        if event.type == "DELETED":
            seen.gone = now
