"""Claims in the driver: when storage is watched, who is looked at again, and the bind that comes after."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from quadriga.k8s.cluster.cache import ClusterCache
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.driver.volumes import Volumes
from quadriga.k8s.objects import PersistentVolumeClaim, Pod
from quadriga.k8s.shim.actions import Delete, PodRef
from quadriga.k8s.shim.inputs import BindEnded
from tests.k8s.admission_server import MemoryServer
from tests.k8s.fake_api import FakeTime
from tests.k8s.transport.test_k8s_writes import BIND, BOUND, P, pod, writer

STORAGE = "/apis/storage.k8s.io/v1"


async def test_k102_the_pod_is_bound_after_its_claims() -> None:
    order: list[str] = []

    async def bind_volumes() -> str | None:
        await asyncio.sleep(0)
        order.append("volumes")
        return None

    async def before(ref: PodRef) -> None:
        order.append("conditions")

    async with writer(pod("p"), before_bind=before, bind_volumes=lambda *_: bind_volumes()) as w:
        assert await w.do(BIND) == [BOUND]
        assert order == ["volumes", "conditions"]


async def test_k102_k108_claims_are_awaited_where_there_are_any_and_fail_the_bind() -> None:
    asked: list[tuple[PodRef, str]] = []
    async with writer(pod("p"), bind_volumes=lambda *given: asked.append(given)) as w:
        assert await w.do(BIND) == [BOUND]
        assert asked == [(P, "node-1")]

    async def bind_volumes() -> str | None:
        return "no room"

    async with writer(pod("p"), bind_volumes=lambda *_: bind_volumes()) as w:
        assert await w.do(BIND) == [no_volumes("no room")]
        assert w.api.requests == []


def no_volumes(reason: str) -> BindEnded:
    return BindEnded("uid-p", "failed", step="volumes", reason=reason)


@pytest.mark.parametrize("cancelled", [False, True])
async def test_k102_a_pod_to_be_deleted_does_not_wait_for_its_claims(cancelled: bool) -> None:
    ended: list[str] = []

    async def bind_volumes() -> str | None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("given up")
        return None

    async with writer(pod("p"), bind_volumes=lambda *_: bind_volumes()) as w:
        w.writes.submit(BIND)
        await asyncio.sleep(0)
        if cancelled:
            w.writes.cancel_bind("uid-p", "the node is gone")
        else:
            w.writes.submit(Delete(P))
        await w.do()
        reason = "the node is gone" if cancelled else "the pod is to be deleted"
        assert w.heard[0] == no_volumes(reason)
        assert ended == ["given up"]
        assert not any("binding" in path for _, path, _ in w.api.requests)


@dataclass
class Watched:
    server: MemoryServer
    cache: ClusterCache = field(default_factory=lambda: ClusterCache(lambda: 0))
    #: pods that are looked at again, and one element for each change that predicates may heed
    again: list[Pod] = field(default_factory=list)
    changes: list[None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.volumes = Volumes(
            *(self.server, self.cache, Settings(), FakeTime()),  # type: ignore[arg-type]
            *(self.again.append, lambda: self.changes.append(None)),
        )

    @property
    def watches(self) -> set[str]:
        return {path.partition("?")[0] for _, path in self.server.requests if "?" in path}


@asynccontextmanager
async def watched(*, capacities: bool = True) -> AsyncGenerator[Watched]:
    server = MemoryServer()
    names = ["storageclasses", *(["csistoragecapacities"] if capacities else [])]
    server.objects[STORAGE] = {"resources": [{"name": name} for name in names]}
    found = Watched(server)
    task = asyncio.create_task(found.volumes.run())
    try:
        yield found
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def claiming(name: str, *claims: str, node: str = "", phase: str = "Pending") -> Pod:
    volumes: list[dict[str, Any]] = [
        {"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims
    ]
    volumes.append({"name": "scratch"})
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}"}
    spec = {"volumes": volumes, "nodeName": node}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": phase}}, Pod)


def claim(name: str) -> PersistentVolumeClaim:
    return msgspec.convert({"metadata": {"name": name, "namespace": "ns"}}, PersistentVolumeClaim)


async def test_k9_storage_is_watched_once_a_waiting_pod_has_a_claim() -> None:
    async with watched() as w:
        w.volumes.pod_changed("ADDED", claiming("none"))
        w.volumes.pod_changed("ADDED", claiming("placed", "a", node="node-1"))
        w.volumes.pod_changed("ADDED", claiming("ended", "a", phase="Succeeded"))
        await asyncio.sleep(0.01)
        assert not w.volumes.awaited
        assert w.server.requests == []
        first = claiming("first", "a")
        w.volumes.pod_changed("ADDED", first)
        assert w.volumes.awaited
        await asyncio.wait_for(w.volumes.synced(), 10)
        assert not w.volumes.awaited
        assert w.again == [first]
        assert w.watches == {
            "/api/v1/persistentvolumeclaims",
            "/api/v1/persistentvolumes",
            f"{STORAGE}/storageclasses",
            f"{STORAGE}/csinodes",
            f"{STORAGE}/csidrivers",
            f"{STORAGE}/volumeattachments",
            f"{STORAGE}/csistoragecapacities",
        }


async def test_k9_an_old_server_has_no_capacities_and_each_is_asked_until_it_answers() -> None:
    async with watched(capacities=False) as w:
        w.volumes.pod_changed("ADDED", claiming("first", "a"))
        await asyncio.wait_for(w.volumes.synced(), 10)
        assert f"{STORAGE}/csistoragecapacities" not in w.watches
    async with watched() as w:
        w.server.refusals = [("GET", 503), ("GET", 500)]
        w.volumes.pod_changed("ADDED", claiming("first", "a"))
        await asyncio.wait_for(w.volumes.synced(), 10)


async def test_k88_pods_that_use_a_claim_are_looked_at_again_when_it_changes() -> None:
    async with watched() as w:
        one, two, both = claiming("one", "a"), claiming("two", "b"), claiming("both", "a", "b")
        for each in (one, two, both):
            w.volumes.pod_changed("ADDED", each)
        await asyncio.wait_for(w.volumes.synced(), 10)
        w.again.clear()
        w.volumes.announce("ADDED", claim("a"))
        assert w.again == [one, both]
        # The newest version counts, and a pod with a node waits no more.
        newer = claiming("one", "a", "c")
        w.volumes.pod_changed("MODIFIED", newer)
        w.volumes.pod_changed("MODIFIED", claiming("both", "a", "b", node="node-1"))
        w.again.clear()
        w.volumes.announce("MODIFIED", claim("a"))
        assert w.again == [newer]
        w.volumes.pod_changed("DELETED", newer)
        w.again.clear()
        w.volumes.announce("DELETED", claim("a"))
        w.volumes.announce("ADDED", claim("c"))
        assert w.again == []
        w.volumes.announce("ADDED", claim("b"))
        assert w.again == [two]


async def test_k88_what_keeps_a_pod_from_being_asked_for() -> None:
    async with watched() as w:
        waits = claiming("one", "a")
        for each in (waits, claiming("none")):
            w.cache.set_pod(each)
            w.volumes.pod_changed("ADDED", each)
        assert w.volumes.blocked_reason(claiming("none")) == ""
        assert w.volumes.blocked_reason(waits) == "the claims of the cluster are not known yet"
        await asyncio.wait_for(w.volumes.synced(), 10)
        assert w.volumes.blocked_reason(waits) == "the claim a does not exist"
        w.volumes.announce("ADDED", claim("a"))
        assert w.volumes.blocked_reason(waits) == ""
        w.volumes.announce("DELETED", claim("a"))
        assert w.volumes.blocked_reason(waits) == "the claim a does not exist"
        assert len(w.changes) == 2  # what was listed before needs no second try


async def test_k102_only_pods_with_claims_are_bound_in_two_steps() -> None:
    async with watched() as w:
        assert w.volumes.bind(None, "node-1") is None
        assert w.volumes.bind(claiming("none"), "node-1") is None
        bound = w.volumes.bind(claiming("one", "a"), "node-1")
        assert bound is not None
        assert await bound == "the claims of the cluster are not known yet"
