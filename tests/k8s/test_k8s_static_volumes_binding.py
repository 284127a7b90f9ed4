"""A claim is given the volume that was chosen for it, before its pod is bound (K102, K103)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from quadriga.k8s.api.claims import Claims
from quadriga.k8s.api.requester import JSON, MERGE_PATCH
from quadriga.k8s.api.volume_binding import VolumeBinding
from quadriga.k8s.objects import Pod
from quadriga.k8s.objects_volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from tests.k8s.test_k8s_volume_binding import pod, turns

Object = dict[str, Any]
OURS = {"namespace": "ns", "name": "a", "uid": "uid-a"}


class Server:
    """Volumes and claims as the API server has them, and what the watches show of them. ``controller`` binds a
    claim once its volume names it."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.version = 0
        self.patches: list[tuple[str, Object]] = []
        self.controller = True
        self.chosen: dict[tuple[str, str], str] = {}
        self.announced: Callable[[tuple[str, str]], None] = lambda key: None
        #: done before the next write arrives
        self.meanwhile: Callable[[], None] | None = None
        self.watched = Claims(lambda key: self.announced(key))
        self.watched.synced = True
        local = {
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        self.watched.announce("ADDED", msgspec.convert(local, StorageClass))

    def claim(self, name: str) -> None:
        metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "annotations": {}}
        self.put(name, {"metadata": metadata, "spec": {"storageClassName": "local"}})

    def volume(self, name: str, **spec: Any) -> None:
        self.put(name, {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec})

    def put(self, name: str, found: Object) -> None:
        self.version += 1
        found["metadata"]["resourceVersion"] = str(self.version)
        self.objects[name] = found
        self.show(name)

    def show(self, name: str) -> None:
        found = self.objects[name]
        kind = PersistentVolumeClaim if "namespace" in found["metadata"] else PersistentVolume
        self.watched.announce("MODIFIED", msgspec.convert(found, kind))

    def remove(self, name: str) -> None:
        found = self.objects.pop(name)
        self.watched.announce("DELETED", msgspec.convert(found, PersistentVolume))

    def bind(self, claim: str, volume: str) -> None:
        found = self.objects[claim]
        found["spec"]["volumeName"] = volume
        found["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
        self.put(claim, found)

    async def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON
    ) -> tuple[int, bytes]:
        assert (method, content_type) == ("PATCH", MERGE_PATCH)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        change, name = json.loads(body or b""), path.rpartition("/")[2]
        assert path == f"/api/v1/persistentvolumes/{name}"
        found = self.objects.get(name)
        if found is None:
            return 404, b"{}"
        if change["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            return 409, b"{}"
        self.patches.append((name, change))
        found["metadata"].update(change["metadata"])
        found["spec"].setdefault("claimRef", {}).update(change["spec"]["claimRef"])
        self.put(name, found)
        if self.controller:
            self.bind(found["spec"]["claimRef"]["name"], name)
        return 200, json.dumps(found).encode()


@pytest.fixture
def server() -> Server:
    """With a claim ``a`` for which ``v`` was chosen."""
    made = Server()
    made.claim("a")
    made.volume("v")
    made.chosen["ns", "a"] = "v"
    return made


@asynccontextmanager
async def binding(server: Server, of: Pod) -> AsyncGenerator[asyncio.Task[str | None]]:
    async def forever(seconds: float) -> None:
        await asyncio.Event().wait()

    volumes = VolumeBinding(
        server,
        server.watched,
        misplaced=lambda uid, node: None,
        chosen=lambda uid: server.chosen if uid == "pod-1" else {},
        timeout=600_000_000_000,
        write_timeout=121_000_000_000,
        sleep=forever,
    )
    server.announced = volumes.changed
    task = asyncio.create_task(volumes.bind_volumes(of, "node-1"))
    await turns()
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def bind(server: Server, *claims: str) -> str | None:
    async with binding(server, pod(*claims)) as task:
        return await asyncio.wait_for(task, 10)


async def test_k102_the_volume_is_told_its_claim(server: Server) -> None:
    assert await bind(server, "a") is None
    ((name, change),) = server.patches
    assert name == "v"
    assert change["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert change["spec"]["claimRef"] == {
        **OURS,
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "resourceVersion": "1",
    }


async def test_k102_the_pod_waits_for_the_controller(server: Server) -> None:
    server.controller = False
    async with binding(server, pod("a")) as task:
        assert len(server.patches) == 1
        assert not task.done()
        server.bind("a", "v")
        assert await task is None


async def test_k102_a_volume_that_a_user_has_set_aside_stays_marked_so(server: Server) -> None:
    server.volume("v", claimRef={"namespace": "ns", "name": "a"})
    assert await bind(server, "a") is None
    ((_, change),) = server.patches
    assert "annotations" not in change["metadata"]
    assert change["spec"]["claimRef"]["uid"] == "uid-a"


async def test_k102_what_was_written_before_is_not_written_again(server: Server) -> None:
    server.volume("v", claimRef=OURS)
    async with binding(server, pod("a")) as task:
        server.bind("a", "v")
        assert await task is None
    assert server.patches == []


async def test_k102_a_volume_that_has_changed_is_looked_at_again(server: Server) -> None:
    """It had become Available, say, and the watch was behind."""
    server.meanwhile = lambda: server.volume("v")
    assert await bind(server, "a") is None
    assert len(server.patches) == 1


async def test_k103_a_volume_that_somebody_else_was_faster_to_get(server: Server) -> None:
    other = {"namespace": "else", "name": "b", "uid": "uid-b"}
    server.meanwhile = lambda: server.volume("v", claimRef=other)
    assert await bind(server, "a") == (
        "persistentvolume v belongs to the claim b of namespace else now"
    )
    assert server.patches == []


@pytest.mark.parametrize("when", ["before", "meanwhile", "after"])
async def test_k103_a_volume_that_goes(server: Server, when: str) -> None:
    server.controller = False
    if when == "before":
        server.remove("v")
    elif when == "meanwhile":
        server.meanwhile = lambda: server.remove("v")
    async with binding(server, pod("a")) as task:
        if when == "after":
            server.remove("v")
        assert await task == "persistentvolume v not found"


async def test_k103_the_volume_of_one_claim_is_missing_and_none_is_written(server: Server) -> None:
    server.claim("b")
    server.chosen["ns", "b"] = "gone"
    assert await bind(server, "a", "b") == "persistentvolume gone not found"
    assert server.patches == []


async def test_k103_a_volume_that_is_being_deleted(server: Server) -> None:
    server.objects["v"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    server.put("v", server.objects["v"])
    assert await bind(server, "a") == "persistentvolume v is being deleted"
