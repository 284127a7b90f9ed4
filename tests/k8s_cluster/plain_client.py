"""The tests' own client of the API server: plain JSON objects, and a history of a kind's changes."""

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

Object = dict[str, Any]

_GROUPS = {
    "/api/v1": """
        Pod Node Namespace ConfigMap Secret Service ServiceAccount Event ResourceQuota PersistentVolume
        PersistentVolumeClaim
    """,
    "/apis/batch/v1": "Job",
    "/apis/apps/v1": "Deployment ReplicaSet StatefulSet DaemonSet",
    "/apis/coordination.k8s.io/v1": "Lease",
    "/apis/scheduling.k8s.io/v1": "PriorityClass",
    "/apis/storage.k8s.io/v1": "StorageClass CSINode",
    "/apis/rbac.authorization.k8s.io/v1": "Role RoleBinding ClusterRole ClusterRoleBinding",
    "/apis/apiextensions.k8s.io/v1": "CustomResourceDefinition",
}
#: Kind → the path before the namespace, and the plural.
KINDS = {
    kind: (prefix, kind.lower() + ("es" if kind.endswith("s") else "s"))
    for prefix, kinds in _GROUPS.items()
    for kind in kinds.split()
}
CLUSTER_WIDE = {
    *("Node", "Namespace", "PriorityClass", "PersistentVolume", "StorageClass", "CSINode"),
    *("ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"),
}
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class APIError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


def path_of(kind: str, namespace: str | None = None, name: str | None = None) -> str:
    prefix, plural = KINDS[kind]
    parts = [prefix]
    if namespace is not None and kind not in CLUSTER_WIDE:
        parts.append(f"namespaces/{quote(namespace)}")
    parts.append(plural)
    if name is not None:
        parts.append(quote(name))
    return "/".join(parts)


class PlainClient:
    """One connection for each thread that uses it."""

    def __init__(self, server: str, token: str, tls: ssl.SSLContext | None) -> None:
        self._address = urlsplit(server)
        self._token = token
        self._tls = tls
        self._lock = threading.Lock()
        self._kept = threading.local()
        self._open: list[http.client.HTTPConnection] = []

    def close(self) -> None:
        with self._lock:
            for each in self._open:
                if each.sock is not None:
                    # Else a thread that reads would go on reading.
                    with contextlib.suppress(OSError):
                        each.sock.shutdown(socket.SHUT_RDWR)
                each.close()
            self._open.clear()

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        host, port = self._address.hostname, self._address.port
        assert host is not None
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=timeout)
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=self._tls)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Object:
        """The reply's object. Raises ``APIError`` for every status from 300."""
        if query:
            path = f"{path}?{urlencode(query)}"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content}
        data = None if body is None else json.dumps(body).encode()
        for again in (True, False):
            kept: http.client.HTTPConnection | None = getattr(self._kept, "connection", None)
            if kept is None:
                kept = self._connection(60)
                self._kept.connection = kept
                with self._lock:
                    self._open.append(kept)
            try:
                kept.request(method, path, data, headers)
                answer = kept.getresponse()
                text = answer.read()
                break
            except (OSError, http.client.HTTPException):
                # The server has closed a connection that was idle.
                kept.close()
                if not again:
                    raise
        if answer.status >= 300:
            raise APIError(answer.status, text.decode(errors="replace"))
        read: Object = json.loads(text) if text else {}
        return read

    # -- objects

    def create(self, thing: Object, namespace: str | None = None) -> Object:
        namespace = thing["metadata"].get("namespace", namespace)
        return self.request("POST", path_of(thing["kind"], namespace), thing)

    def get(self, kind: str, namespace: str | None, name: str) -> Object:
        return self.request("GET", path_of(kind, namespace, name))

    def find(self, kind: str, namespace: str | None, name: str) -> Object | None:
        """The object, or ``None`` if there is none."""
        try:
            return self.get(kind, namespace, name)
        except APIError as error:
            if error.status != 404:
                raise
            return None

    def list(self, kind: str, namespace: str | None = None, **query: str) -> list[Object]:
        return list(self.request("GET", path_of(kind, namespace), query=query)["items"])

    def patch(
        self,
        kind: str,
        namespace: str | None,
        name: str,
        change: Object,
        *,
        content: str = MERGE,
        part: str = "",
    ) -> Object:
        path = path_of(kind, namespace, name) + (f"/{part}" if part else "")
        return self.request("PATCH", path, change, content=content)

    def replace(self, thing: Object, part: str = "") -> Object:
        meta = thing["metadata"]
        path = path_of(thing["kind"], meta.get("namespace"), meta["name"])
        return self.request("PUT", path + (f"/{part}" if part else ""), thing)

    def delete(
        self, kind: str, namespace: str | None, name: str, *, grace: int | None = None
    ) -> None:
        """With 404 all is well."""
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        options["propagationPolicy"] = "Background"
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        try:
            self.request("DELETE", path_of(kind, namespace, name), options)
        except APIError as error:
            if error.status != 404:
                raise

    def delete_all(self, kind: str, namespace: str, **query: str) -> None:
        """At once, without grace."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        self.request("DELETE", path_of(kind, namespace), options, query=query)

    def wait_not_terminating(self, namespace: str, seconds: float = 60) -> None:
        """Until the namespace is not one that an earlier test has deleted."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.find("Namespace", None, namespace)
            if found is None or not found["metadata"].get("deletionTimestamp"):
                return
            time.sleep(0.1)

    # -- changes

    def watch(self, kind: str, version: str, seconds: int = 3600) -> Iterator[Object]:
        """Events from this resource version on, on a connection of its own."""
        connection = self._connection(seconds + 30)
        with self._lock:
            self._open.append(connection)
        query = urlencode(
            {"watch": "1", "resourceVersion": version, "timeoutSeconds": str(seconds)}
        )
        connection.request(
            "GET", f"{path_of(kind)}?{query}", headers={"Authorization": f"Bearer {self._token}"}
        )
        answer = connection.getresponse()
        if answer.status != 200:
            raise APIError(answer.status, answer.read().decode(errors="replace"))
        for line in answer:
            yield json.loads(line)


class History:
    """All changes of a kind, in the server's order, and the objects as they are now.

    ``until`` waits for changes, never by looking again and again.
    """

    def __init__(self, client: PlainClient, kind: str) -> None:
        self.kind = kind
        self.changes: list[tuple[str, Object]] = []
        self.now: dict[str, Object] = {}
        self._changed = threading.Condition()
        self._client = client
        self._stopped = False
        self._error: BaseException | None = None
        first = client.request("GET", path_of(kind))
        for each in first["items"]:
            self.now[each["metadata"]["uid"]] = each
        self._version = first["metadata"]["resourceVersion"]
        self._thread = threading.Thread(target=self._follow, name=f"history of {kind}")
        self._thread.daemon = True
        self._thread.start()

    def _follow(self) -> None:
        while not self._stopped:
            try:
                for event in self._client.watch(self.kind, self._version):
                    if event["type"] == "ERROR":
                        self._list_again()
                        break
                    self._take(event["type"], event["object"])
            except (OSError, http.client.HTTPException, ValueError, AttributeError):
                # The server is being restarted, or the client was closed.
                if not self._stopped:
                    time.sleep(0.2)
            except APIError as error:
                if error.status != 410 and error.status < 500:
                    self._error = error
                    return
                self._list_again()

    def _list_again(self) -> None:
        try:
            found = self._client.request("GET", path_of(self.kind))
        except (OSError, APIError, http.client.HTTPException):
            time.sleep(0.2)
            return
        known = {each["metadata"]["uid"]: each for each in found["items"]}
        for uid in [uid for uid in self.now if uid not in known]:
            self._take("DELETED", self.now[uid])
        for uid, each in known.items():
            if uid not in self.now:
                self._take("ADDED", each)
            elif (
                self.now[uid]["metadata"]["resourceVersion"] != each["metadata"]["resourceVersion"]
            ):
                self._take("MODIFIED", each)
        self._version = found["metadata"]["resourceVersion"]

    def _take(self, change: str, thing: Object) -> None:
        with self._changed:
            self._version = thing["metadata"]["resourceVersion"]
            self.changes.append((change, thing))
            if change == "DELETED":
                self.now.pop(thing["metadata"]["uid"], None)
            else:
                self.now[thing["metadata"]["uid"]] = thing
            self._changed.notify_all()

    def in_namespace(self, namespace: str) -> list[Object]:
        with self._changed:
            return [each for each in self.now.values() if _namespace(each) == namespace]

    def of(self, namespace: str) -> list[tuple[str, Object]]:
        """The changes so far of one namespace's objects."""
        with self._changed:
            return [each for each in self.changes if _namespace(each[1]) == namespace]

    def until(
        self,
        holds: Callable[[list[Object]], object],
        namespace: str | None = None,
        *,
        seconds: float = 30,
        what: str = "",
    ) -> list[Object]:
        """Wait until it holds for the present objects (of this namespace), and return these."""
        end = time.monotonic() + seconds
        with self._changed:
            while True:
                present = [
                    each
                    for each in self.now.values()
                    if namespace is None or _namespace(each) == namespace
                ]
                if holds(present):
                    return present
                left = end - time.monotonic()
                if self._error is not None or left <= 0:
                    told = "\n".join(summary(each) for each in present)
                    raise AssertionError(
                        f"after {seconds:g} s still not so{': ' + what if what else ''}\n{told}"
                    ) from self._error
                self._changed.wait(left)

    def stop(self) -> None:
        """The client has to be closed after it."""
        self._stopped = True


def _namespace(thing: Object) -> str:
    return str(thing["metadata"].get("namespace", ""))


def summary(thing: Object) -> str:
    """One line about an object, for messages."""
    status, spec = thing.get("status", {}), thing.get("spec", {})
    conditions = [
        f"{each['type']}={each['status']}/{each.get('reason', '')}: {each.get('message', '')}"
        for each in status.get("conditions", ())
    ]
    return " ".join(
        str(each)
        for each in (
            thing["metadata"]["name"],
            status.get("phase", ""),
            spec.get("nodeName", ""),
            "terminating" if thing["metadata"].get("deletionTimestamp") else "",
            *conditions,
        )
    )
