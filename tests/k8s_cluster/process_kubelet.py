"""A kubelet without containers: it runs pods as local processes, or only says that they run.

What becomes of a pod is decided by its annotation ``kubelet.test/run``:

    process        containers[0] runs as a process on this machine; the default if it has a command
    forever        it runs until it is deleted; the default if it has none, as placeholders have
    succeed, fail  it runs, and ends at once
    pending        it never starts

An image may have a program of its own (``images``), which makes the command from the pod.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import ssl
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
from plain_client import MERGE, STRATEGIC

Object = dict[str, Any]

RUN = "kubelet.test/run"
#: (pod, command and arguments, environment) → what is run instead
Image = Callable[[Object, list[str], dict[str, str]], list[str]]

_VARIABLE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_SERVICE = re.compile(r"\b[a-z0-9][-a-z0-9]*\.[a-z0-9][-a-z0-9]*\.svc(?:\.cluster\.local)?\b")


def node(
    name: str,
    *,
    cpu: str = "8",
    memory: str = "16Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Object] = (),
    **others: str,
) -> Object:
    """A node as a kubelet registers it. ``others``: further allocatable resources."""
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods, **others}
    own = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**own, **(labels or {})}},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {
            "capacity": allocatable,
            "allocatable": allocatable,
            "conditions": [_condition("Ready", "True", "KubeletReady")],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        },
    }


@dataclass
class _Running:
    pod: Object
    process: asyncio.subprocess.Process | None = None
    started: bool = False
    reported: bool = False
    stopping: bool = False


class ProcessKubelet:
    """All nodes of a test, on one loop in a thread of its own.

    ``start`` returns when it watches; ``stop`` when its processes have ended. ``node_names`` are those that
    it serves; pods on others are left alone.
    """

    def __init__(
        self,
        server: str,
        token: str,
        tls: ssl.SSLContext | None,
        folder: Path,
        *,
        images: Mapping[str, Image] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._server = server
        self._token = token
        self._tls = tls
        self._folder = folder
        self._images = dict(images or {})
        self._environment = dict(environment or {})
        self.node_names: set[str] = set()
        #: of every pod that it started
        self.started: list[str] = []
        self._pods: dict[str, _Running] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelet", daemon=True)
        self._main: asyncio.Task[None] | None = None
        self._session: aiohttp.ClientSession
        self._addresses = 0

    # -- from the test's thread

    def start(self) -> None:
        self._thread.start()
        if not self._ready.wait(30):
            raise RuntimeError("the kubelet does not come up")

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._cancel)
            self._thread.join(30)

    def register(self, *nodes: Object) -> None:
        """Create these nodes and serve them."""
        self.node_names.update(each["metadata"]["name"] for each in nodes)
        asyncio.run_coroutine_threadsafe(self._register(nodes), self._loop).result(60)

    def output(self, name: str) -> str:
        """What the pod's process has written."""
        path = self._folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def end(self, uid: str, *, succeeded: bool = True) -> None:
        """A pod that runs without a process ends, as soon as it runs."""
        phase = "Succeeded" if succeeded else "Failed"
        asyncio.run_coroutine_threadsafe(self._end(uid, phase), self._loop).result(60)

    # -- its own thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._main = self._loop.create_task(self._serve())
            with contextlib.suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._main)
        finally:
            # aiohttp leaves the end of TLS connections to the loop.
            self._loop.run_until_complete(asyncio.sleep(0.1))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _cancel(self) -> None:
        if self._main is not None:
            self._main.cancel()

    async def _serve(self) -> None:
        connector = aiohttp.TCPConnector(limit=64, ssl=self._tls or True)
        async with aiohttp.ClientSession(
            connector=connector,
            headers={"Authorization": f"Bearer {self._token}"},
            timeout=aiohttp.ClientTimeout(total=None),
        ) as session:
            self._session = session
            try:
                while True:
                    try:
                        await self._follow()
                    except (aiohttp.ClientError, OSError, ValueError):
                        await asyncio.sleep(0.2)
            finally:
                await self._stop_all()

    async def _stop_all(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for each in self._pods.values():
            if each.process is not None and each.process.returncode is None:
                _signal(each.process, signal.SIGKILL)
                await each.process.wait()

    async def _follow(self) -> None:
        path = f"{self._server}/api/v1/pods"
        bound = {"fieldSelector": "spec.nodeName!="}
        async with self._session.get(path, params=bound) as answer:
            answer.raise_for_status()
            found = json.loads(await answer.read())
        live = set()
        for pod in found["items"]:
            live.add(pod["metadata"]["uid"])
            self._take("ADDED", pod)
        for uid in [uid for uid in self._pods if uid not in live]:
            self._take("DELETED", self._pods[uid].pod)
        self._ready.set()
        version = found["metadata"]["resourceVersion"]
        query = {**bound, "watch": "1", "resourceVersion": version, "timeoutSeconds": "3600"}
        async with self._session.get(path, params=query) as answer:
            answer.raise_for_status()
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        return
                    self._take(event["type"], event["object"])

    def _take(self, change: str, pod: Object) -> None:
        meta = pod["metadata"]
        uid = meta["uid"]
        known = self._pods.get(uid)
        if known is None:
            if change == "DELETED" or pod["spec"].get("nodeName") not in self.node_names:
                return
            if pod["status"].get("phase") in ("Succeeded", "Failed"):
                return
            known = self._pods[uid] = _Running(pod)
        known.pod = pod
        if change == "DELETED":
            known.stopping = True
            self._spawn(self._gone(known))
        elif meta.get("deletionTimestamp"):
            # A node that is not served any more confirms nothing.
            if not known.stopping and pod["spec"]["nodeName"] in self.node_names:
                known.stopping = True
                self._spawn(self._terminate(known))
        elif not known.started:
            known.started = True
            self._spawn(self._start(known))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- one pod

    async def _start(self, known: _Running) -> None:
        pod = known.pod
        annotations = pod["metadata"].get("annotations") or {}
        container = pod["spec"]["containers"][0]
        image = self._images.get(container.get("image", ""))
        has_command = bool(container.get("command") or image)
        how = annotations.get(RUN) or ("process" if has_command else "forever")
        if how == "pending":
            return
        self.started.append(pod["metadata"]["name"])
        self._addresses += 1
        await self._report(pod, "Running", address=f"127.0.0.{self._addresses % 250 + 2}")
        known.reported = True
        if how == "process":
            status = await self._process(known, container, image)
            await self._report(pod, "Succeeded" if status == 0 else "Failed", status)
        elif how in ("succeed", "fail"):
            status = 0 if how == "succeed" else 1
            await self._report(pod, "Succeeded" if status == 0 else "Failed", status)

    async def _process(self, known: _Running, container: Object, image: Image | None) -> int:
        pod = known.pod
        environment = {**os.environ, **self._environment, **await self._variables(pod, container)}
        command = [
            _resolve(_expand(each, environment))
            for each in [*container.get("command", ()), *container.get("args", ())]
        ]
        if image is not None:
            command = image(pod, command, environment)
        log = self._folder / f"{pod['metadata']['name']}.log"
        with log.open("ab") as output:
            try:
                known.process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=environment,
                    cwd=self._folder,
                    start_new_session=True,
                )
            except OSError as error:
                output.write(f"cannot start {command}: {error}\n".encode())
                return 127
        if known.stopping:
            _signal(known.process, signal.SIGKILL)
        return await known.process.wait()

    async def _terminate(self, known: _Running) -> None:
        grace = known.pod["metadata"].get("deletionGracePeriodSeconds") or 0
        process = known.process
        if process is not None and process.returncode is None:
            _signal(process, signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), grace)
            except TimeoutError:
                _signal(process, signal.SIGKILL)
                await process.wait()
        await self._remove(known.pod)

    async def _gone(self, known: _Running) -> None:
        if known.process is not None and known.process.returncode is None:
            _signal(known.process, signal.SIGKILL)
            await known.process.wait()
        self._pods.pop(known.pod["metadata"]["uid"], None)

    async def _end(self, uid: str, phase: str) -> None:
        while uid not in self._pods or not self._pods[uid].reported:
            await asyncio.sleep(0.02)
        await self._report(self._pods[uid].pod, phase, 0 if phase == "Succeeded" else 1)

    # -- the API server

    async def _write(
        self, method: str, path: str, body: Object, content: str = "application/json"
    ) -> None:
        """Until the server has heard it. That the object is another or gone by now is no error."""
        while True:
            try:
                async with self._session.request(
                    method, path, data=json.dumps(body), headers={"Content-Type": content}
                ) as answer:
                    if answer.status >= 400 and answer.status not in (404, 409):
                        raise RuntimeError(f"{method} {path}: {await answer.text()}")
                    return
            except (aiohttp.ClientError, OSError):
                # It is away, as some tests want it.
                await asyncio.sleep(0.2)

    async def _register(self, nodes: Sequence[Object]) -> None:
        for each in nodes:
            path = f"{self._server}/api/v1/nodes"
            await self._write("POST", path, each)
            # A create leaves the status out in newer servers.
            path = f"{path}/{each['metadata']['name']}/status"
            await self._write("PATCH", path, {"status": each["status"]}, MERGE)

    def _path(self, pod: Object) -> str:
        meta = pod["metadata"]
        return f"{self._server}/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"

    async def _report(
        self, pod: Object, phase: str, exit_status: int | None = None, address: str = ""
    ) -> None:
        now = _now()
        ready = "True" if phase == "Running" else "False"
        reason = "" if phase == "Running" else "PodCompleted"
        state: Object = {"running": {"startedAt": now}}
        if exit_status is not None:
            ended = "Completed" if exit_status == 0 else "Error"
            state = {
                "terminated": {"exitCode": exit_status, "reason": ended, "finishedAt": now},
                "running": None,
            }
        container = pod["spec"]["containers"][0]
        status: Object = {
            "phase": phase,
            "conditions": [_condition(e, ready, reason) for e in ("Ready", "ContainersReady")],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container.get("image", ""),
                    "imageID": "",
                    "ready": phase == "Running",
                    "restartCount": 0,
                    "state": state,
                }
            ],
        }
        if address:
            status.update(
                hostIP="127.0.0.1", podIP=address, podIPs=[{"ip": address}], startTime=now
            )
        change = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        await self._write("PATCH", f"{self._path(pod)}/status", change, STRATEGIC)

    async def _remove(self, pod: Object) -> None:
        options = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": pod["metadata"]["uid"]},
        }
        await self._write("DELETE", self._path(pod), options)

    # -- the environment of a process

    async def _variables(self, pod: Object, container: Object) -> dict[str, str]:
        host, _, port = self._server.partition("://")[2].partition(":")
        made = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        namespace = pod["metadata"]["namespace"]
        for each in container.get("envFrom", ()):
            for kind, plural in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
                if kind in each:
                    found = await self._data(namespace, plural, each[kind]["name"])
                    prefix = each.get("prefix", "")
                    made.update({prefix + key: value for key, value in found.items()})
        for each in container.get("env", ()):
            value = each.get("value", "")
            source = each.get("valueFrom") or {}
            if "fieldRef" in source:
                value = _field(pod, source["fieldRef"]["fieldPath"])
            elif "resourceFieldRef" in source:
                value = _resource(container, source["resourceFieldRef"])
            for kind, plural in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
                if kind in source:
                    found = await self._data(namespace, plural, source[kind]["name"])
                    value = found.get(source[kind]["key"], "")
            made[each["name"]] = _resolve(_expand(value, made))
        return made

    async def _data(self, namespace: str, plural: str, name: str) -> dict[str, str]:
        path = f"{self._server}/api/v1/namespaces/{namespace}/{plural}/{name}"
        async with self._session.get(path) as answer:
            answer.raise_for_status()
            data: dict[str, str] = json.loads(await answer.read()).get("data") or {}
            return data


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _expand(text: str, environment: Mapping[str, str]) -> str:
    """$(NAME) as the kubelet does it: a name that is not there is left."""
    return _VARIABLE.sub(lambda found: environment.get(found[1], found[0]), text)


def _resolve(text: str) -> str:
    """All services are on this machine."""
    return _SERVICE.sub("127.0.0.1", text)


def _field(pod: Object, path: str) -> str:
    bracket = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    if bracket:
        return str((pod["metadata"].get(bracket[1]) or {}).get(bracket[2], ""))
    if path in ("status.podIP", "status.hostIP"):
        return "127.0.0.1"
    value: Any = pod
    for part in path.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return str(value)


def _resource(container: Object, reference: Object) -> str:
    part, _, name = reference["resource"].partition(".")
    return str((container.get("resources") or {}).get(part, {}).get(name, "0"))


def _condition(kind: str, status: str, reason: str) -> Object:
    return {"type": kind, "status": status, "reason": reason, "lastTransitionTime": _now()}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
