"""Claims are bound before their pod (K102, K103, K150), by a scripted provisioner or to a volume that is there."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from quadriga.k8s.objects import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from quadriga.k8s.transport.requester import JSON, MERGE_PATCH, NoAnswer
from quadriga.k8s.writers.claims import Claims, claims_of, has_claims
from quadriga.k8s.writers.volume_binding import VolumeBinding

Object = dict[str, Any]

SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"


def pod(*claims: str, ephemeral: str = "") -> Pod:
    volumes: list[dict[str, Any]] = [
        {"name": f"v{index}", "persistentVolumeClaim": {"claimName": each}}
        for index, each in enumerate(claims)
    ]
    if ephemeral:
        volumes.append({"name": ephemeral, "ephemeral": {"volumeClaimTemplate": {}}})
    metadata = {"name": "one", "namespace": "ns", "uid": "pod-1"}
    return msgspec.convert({"metadata": metadata, "spec": {"volumes": volumes}}, Pod)


class Storage:
    """Claims and volumes as the API server has them. What is written reaches the watch at once, unless it is
    ``held``."""

    def __init__(self) -> None:
        self.found: dict[str, Object] = {}
        self.version = 0
        self.patches: list[tuple[str, Object]] = []
        self.objects = Claims(lambda key: self.changed(key))
        self.objects.synced = True
        self.changed: Callable[[tuple[str, str]], None] = lambda key: None
        self.answers: list[int | str] = []
        self.held = False
        self.misplaced: dict[tuple[str, str], str] = {}
        self.chosen: dict[tuple[str, str], str] = {}
        #: done before the next write arrives, and after each
        self.meanwhile: Callable[[], None] = lambda: None
        self.provision: Callable[[str], None] = lambda name: None
        self.add_class("wait", "WaitForFirstConsumer", "example.com/disk")
        self.add_class("now", "Immediate", "example.com/disk")
        self.add_class("local", "WaitForFirstConsumer", "kubernetes.io/no-provisioner")

    def add_class(self, name: str, mode: str, provisioner: str) -> None:
        found = {"metadata": {"name": name}, "volumeBindingMode": mode, "provisioner": provisioner}
        self.objects.announce("ADDED", msgspec.convert(found, StorageClass))

    def add(self, name: str, storage_class: str = "wait", **annotations: str) -> None:
        metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}"}
        metadata = {**metadata, "annotations": annotations}
        self.found[name] = {"metadata": metadata, "spec": {"storageClassName": storage_class}}
        self.show(name)

    def volume(self, name: str, **spec: Any) -> None:
        self.found[name] = {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec}
        self.show(name)

    def show(self, name: str) -> None:
        """A new version, which the watch shows."""
        self.version += 1
        self.found[name]["metadata"]["resourceVersion"] = str(self.version)
        if not self.held:
            self.announce("MODIFIED", name)

    def announce(self, change: Any, name: str) -> None:
        found = self.found[name]
        kind = PersistentVolumeClaim if "namespace" in found["metadata"] else PersistentVolume
        self.objects.announce(change, msgspec.convert(found, kind))

    def bind(self, name: str, volume: str = "") -> None:
        volume = volume or f"volume-{name}"
        self.found[name]["spec"]["volumeName"] = volume
        self.show(name)
        if volume not in self.found:
            self.volume(volume)
        self.found[name]["metadata"]["annotations"][COMPLETED] = "yes"
        self.show(name)

    def give_up(self, name: str) -> None:
        del self.found[name]["metadata"]["annotations"][SELECTED]
        self.show(name)

    def remove(self, name: str) -> None:
        self.announce("DELETED", name)
        del self.found[name]

    @property
    def selected(self) -> list[tuple[str, str]]:
        return [(name, c["metadata"]["annotations"][SELECTED]) for name, c in self.patches]

    async def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON
    ) -> tuple[int, bytes]:
        assert (method, content_type) == ("PATCH", MERGE_PATCH)
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        kind, name = path.removeprefix("/api/v1/").split("/")[-2:]
        in_namespace = "namespaces/ns/" * (kind == "persistentvolumeclaims")
        assert path == f"/api/v1/{in_namespace}{kind}/{name}"
        answer = self.answers.pop(0) if self.answers else 200
        if isinstance(answer, str):
            raise NoAnswer(answer)
        if answer != 200:
            return answer, b'{"message":"no","reason":"No"}'
        found, change = self.found.get(name), json.loads(body or b"")
        if found is None:
            return 404, b"{}"
        same = "uid" if in_namespace else "resourceVersion"
        if change["metadata"][same] != found["metadata"][same]:
            return 409, b"{}"
        self.patches.append((name, change))
        annotations = change["metadata"].get("annotations", {})
        found["metadata"].setdefault("annotations", {}).update(annotations)
        found["spec"].setdefault("claimRef", {}).update(change.get("spec", {}).get("claimRef", {}))
        self.show(name)
        written = json.dumps(found).encode()
        self.provision(name)
        return 200, written


@pytest.fixture
def storage() -> Storage:
    made = Storage()
    made.add("a")
    return made


class Binder:
    """``result`` of the binding; sleeps end when the test says so."""

    def __init__(self, storage: Storage) -> None:
        self.sleeps: list[tuple[float, asyncio.Event]] = []
        self.volumes = VolumeBinding(
            storage,
            storage.objects,
            misplaced=lambda uid, node: storage.misplaced.get((uid, node)),
            chosen=lambda uid: storage.chosen if uid == "pod-1" else {},
            timeout=600_000_000_000,
            write_timeout=121_000_000_000,
            sleep=self._sleep,
        )
        storage.changed = self.volumes.changed

    async def _sleep(self, seconds: float) -> None:
        event = asyncio.Event()
        self.sleeps.append((seconds, event))
        await event.wait()

    def wake(self, seconds: float) -> None:
        for each, event in self.sleeps:
            if each == seconds:
                event.set()


@asynccontextmanager
async def binding(
    storage: Storage, pod: Pod, node: str = "node-1"
) -> AsyncGenerator[tuple[Binder, asyncio.Task[str | None]]]:
    binder = Binder(storage)
    task = asyncio.create_task(binder.volumes.bind_volumes(pod, node))
    await turns()
    try:
        yield binder, task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def bind(storage: Storage, pod: Pod, node: str = "node-1") -> str | None:
    async with binding(storage, pod, node) as (_, task):
        return await asyncio.wait_for(task, 10)


# -- what binds ------------------------------------------------------------------------------------


async def test_k102_bound_claims_need_nothing() -> None:
    storage = Storage()
    for name, storage_class in (("a", "wait"), ("b", "now"), ("c", "local"), ("d", "unknown")):
        storage.add(name, storage_class)
        storage.bind(name)
    assert await bind(storage, pod("a", "b", "c", "d")) is None
    assert storage.patches == []
    storage.objects.synced = False
    assert await bind(storage, pod()) is None, "it has no claims"


async def test_k102_the_provisioner_is_told_and_all_claims_are_waited_for(storage: Storage) -> None:
    storage.add("b")
    async with binding(storage, pod("a", "b")) as (_, task):
        assert storage.selected == [("a", "node-1"), ("b", "node-1")]
        storage.bind("b")
        await turns()
        assert not task.done()
        storage.bind("a")
        assert await task is None


async def test_k102_a_claim_that_is_half_bound_is_waited_for() -> None:
    storage = Storage()
    storage.add("a", "now")
    storage.found["a"]["spec"]["volumeName"] = "v"
    storage.show("a")
    async with binding(storage, pod("a")) as (_, task):
        assert not task.done()
        storage.bind("a")
        assert await task is None
    assert storage.patches == []


async def test_k102_the_claim_of_an_ephemeral_volume() -> None:
    storage = Storage()
    storage.add("one-data")
    storage.provision = storage.bind
    assert list(claims_of(pod("a", ephemeral="data"))) == ["a", "one-data"]
    assert (has_claims(pod(ephemeral="data")), has_claims(pod())) == (True, False)
    assert await bind(storage, pod(ephemeral="data")) is None
    assert storage.selected == [("one-data", "node-1")]


@pytest.mark.parametrize(("before", "patches"), [("node-1", []), ("node-0", [("a", "node-1")])])
async def test_k150_an_annotation_with_the_same_node_is_kept_and_another_is_rewritten(
    before: str, patches: list[tuple[str, str]]
) -> None:
    storage = Storage()
    storage.add("a", **{SELECTED: before})
    async with binding(storage, pod("a")) as (_, task):
        storage.bind("a")
        assert await task is None
    assert storage.selected == patches


async def test_k102_an_old_version_from_the_watch_does_not_count(storage: Storage) -> None:
    """The watch is behind: it still shows the claim without the annotation."""
    storage.held = True
    async with binding(storage, pod("a")) as (binder, task):
        binder.volumes.changed(("ns", "a"))
        await turns()
        assert not task.done()
        storage.held = False
        storage.announce("MODIFIED", "a")
        await turns()
        assert not task.done()
        storage.bind("a")
        assert await task is None


async def test_k102_the_volume_itself_is_waited_for(storage: Storage) -> None:
    """Claims and volumes are watched apart: one may be seen before the other."""
    async with binding(storage, pod("a")) as (_, task):
        storage.found["a"]["spec"]["volumeName"] = "v"
        storage.found["a"]["metadata"]["annotations"][COMPLETED] = "yes"
        storage.show("a")
        await turns()
        assert not task.done()
        storage.volume("v")
        assert await task is None


async def test_k102_a_volume_that_was_made_for_another_node_does_not_do(storage: Storage) -> None:
    storage.provision = storage.bind
    storage.misplaced["pod-1", "node-1"] = "VolumeBinding: elsewhere"
    assert await bind(storage, pod("a")) == "VolumeBinding: elsewhere"


# -- what does not ---------------------------------------------------------------------------------


async def test_k102_the_provisioner_gives_up_and_the_next_node_works(storage: Storage) -> None:
    storage.provision = storage.give_up
    reason = await bind(storage, pod("a"))
    assert reason == "persistentvolumeclaim a: the provisioner cannot make a volume for node node-1"
    storage.provision = storage.bind
    assert await bind(storage, pod("a"), "node-2") is None
    assert storage.selected == [("a", "node-1"), ("a", "node-2")]


async def test_k102_a_list_may_skip_the_version_that_was_written(storage: Storage) -> None:
    storage.held = True
    async with binding(storage, pod("a")) as (_, task):
        storage.give_up("a")
        storage.announce("MODIFIED", "a")
        assert "cannot make a volume" in (await task or "")


async def test_k102_another_pod_takes_the_claim_to_its_node(storage: Storage) -> None:
    async with binding(storage, pod("a")) as (_, task):
        storage.found["a"]["metadata"]["annotations"][SELECTED] = "node-2"
        storage.show("a")
        assert await task == "persistentvolumeclaim a waits for node node-2 now"


@pytest.mark.parametrize("happens", ["deleted", "deleting", "replaced"])
async def test_k102_the_claim_goes(storage: Storage, happens: str) -> None:
    async with binding(storage, pod("a")) as (_, task):
        if happens == "deleted":
            storage.remove("a")
        elif happens == "deleting":
            storage.found["a"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            storage.show("a")
        else:
            storage.found["a"]["metadata"]["uid"] = "uid-other"
            storage.show("a")
        assert (await task or "").startswith("persistentvolumeclaim a ")


@pytest.mark.parametrize(
    ("storage_class", "reason"),
    [
        ("now", "is not bound yet"),
        ("local", "made by hand, and none was chosen"),
        ("unknown", "has no storage class"),
        ("", "has no storage class"),
    ],
)
async def test_k103_what_nobody_binds_is_refused_unwritten(storage_class: str, reason: str) -> None:
    storage = Storage()
    storage.add("good")
    storage.add("a", storage_class)
    assert reason in (await bind(storage, pod("good", "a")) or "")
    assert storage.patches == []


async def test_k9_claims_that_are_missing_or_not_known_yet_are_not_bound() -> None:
    storage = Storage()
    assert await bind(storage, pod("a")) == "persistentvolumeclaim a not found"
    storage.objects.synced = False
    assert await bind(storage, pod("a")) == "the claims of the cluster are not known yet"


async def test_k102_the_wait_has_an_end(storage: Storage) -> None:
    storage.add("b")
    async with binding(storage, pod("a", "b")) as (binder, task):
        storage.bind("a")
        binder.wake(600.0)
        assert await task == ("no volume for node node-1 within 600 s: persistentvolumeclaim b")


# -- writes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [500, 503, 429, "no connection"])
async def test_k107_a_write_is_tried_again(storage: Storage, answer: int | str) -> None:
    storage.answers = [answer, answer]
    storage.provision = storage.bind
    async with binding(storage, pod("a")) as (binder, task):
        binder.wake(1.0)
        await turns()
        binder.wake(2.0)
        assert await task is None
    assert [seconds for seconds, _ in binder.sleeps] == [600.0, 1.0, 2.0]


async def test_k107_a_write_is_not_tried_for_ever(storage: Storage) -> None:
    storage.answers = ["no connection"] * 9
    async with binding(storage, pod("a")) as (binder, task):
        for _ in range(9):
            for seconds in (1.0, 2.0, 4.0, 8.0, 16.0, 30.0):
                binder.wake(seconds)
            await turns()
        assert "cannot be written: no connection" in (await task or "")
    assert [seconds for seconds, _ in binder.sleeps[1:]] == [1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(403, "cannot be written"), (422, "cannot be written"), (404, "not there any more")],
)
async def test_k107_a_refusal_ends_it(storage: Storage, answer: int, reason: str) -> None:
    storage.answers = [answer]
    assert reason in (await bind(storage, pod("a")) or "")


async def test_k102_it_can_be_cancelled_and_goes_on_from_there(storage: Storage) -> None:
    async with binding(storage, pod("a")):
        pass
    async with binding(storage, pod("a")) as (_, task):
        storage.bind("a")
        assert await task is None
    assert storage.selected == [("a", "node-1")]


# -- volumes that are there already ----------------------------------------------------------------

OURS = {"namespace": "ns", "name": "a", "uid": "uid-a"}


@pytest.fixture
def made() -> Storage:
    """With a claim ``a`` for which the volume ``v`` was chosen, and a controller that binds it then."""
    storage = Storage()
    storage.add("a", "local")
    storage.volume("v")
    storage.chosen["ns", "a"] = "v"
    storage.provision = lambda volume: storage.bind("a", volume)
    return storage


async def test_k102_the_pod_waits_for_the_controller(made: Storage) -> None:
    made.provision = lambda name: None
    async with binding(made, pod("a")) as (_, task):
        ((name, change),) = made.patches
        assert not task.done()
        made.bind("a", "v")
        assert await task is None
    assert name == "v"
    assert change["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert change["spec"]["claimRef"] == {
        **OURS,
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "resourceVersion": "1",
    }


async def test_k102_a_volume_that_a_user_has_set_aside_stays_marked_so(made: Storage) -> None:
    made.volume("v", claimRef={"namespace": "ns", "name": "a"})
    assert await bind(made, pod("a")) is None
    ((_, change),) = made.patches
    assert "annotations" not in change["metadata"]
    assert change["spec"]["claimRef"]["uid"] == "uid-a"


async def test_k102_what_was_written_before_is_not_written_again(made: Storage) -> None:
    made.volume("v", claimRef=OURS)
    async with binding(made, pod("a")) as (_, task):
        made.bind("a", "v")
        assert await task is None
    assert made.patches == []


async def test_k102_a_volume_that_has_changed_is_looked_at_again(made: Storage) -> None:
    """It had become Available, say, and the watch was behind."""
    made.meanwhile = lambda: made.volume("v")
    assert await bind(made, pod("a")) is None
    assert len(made.patches) == 1


async def test_k103_a_volume_that_somebody_else_was_faster_to_get(made: Storage) -> None:
    other = {"namespace": "else", "name": "b", "uid": "uid-b"}
    made.meanwhile = lambda: made.volume("v", claimRef=other)
    assert await bind(made, pod("a")) == (
        "persistentvolume v belongs to the claim b of namespace else now"
    )
    assert made.patches == []


@pytest.mark.parametrize("when", ["before", "meanwhile", "after", "soon"])
async def test_k103_a_volume_that_goes(made: Storage, when: str) -> None:
    made.provision = lambda name: None
    if when == "before":
        made.remove("v")
    elif when == "meanwhile":
        made.meanwhile = lambda: made.remove("v")
    elif when == "soon":
        made.found["v"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        made.show("v")
    async with binding(made, pod("a")) as (_, task):
        if when == "after":
            made.remove("v")
        why = "is being deleted" if when == "soon" else "not found"
        assert await task == f"persistentvolume v {why}"


async def test_k103_the_volume_of_one_claim_is_missing_and_none_is_written(made: Storage) -> None:
    made.add("b", "local")
    made.chosen["ns", "b"] = "gone"
    assert await bind(made, pod("a", "b")) == "persistentvolume gone not found"
    assert made.patches == []
