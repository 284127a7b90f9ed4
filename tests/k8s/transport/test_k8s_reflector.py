"""A reflector: lists in pages, watches, and all the ways in which they end (K19 to K25)."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quadriga.k8s.objects import Pod
from quadriga.k8s.transport.listing import Decoders, Event, WatchError
from quadriga.k8s.transport.reflector import Reflector, Watching
from quadriga.k8s.transport.requester import NoAnswer
from tests.k8s.fake_api import DROP, HANG, FakeApi, FakeTime, client_of, event, expired, marked, pod

param = pytest.param

PODS = "/api/v1/pods"


class Impatient(Watching):
    """A watch that says nothing for 50 ms is over."""

    lasts = (0, 0)
    patience = 0.05


class Seen:
    """A reflector, and what it announced: ("ADDED", name, version)."""

    def __init__(self, api: FakeApi, time: FakeTime) -> None:
        self.api, self.time = api, time
        self.changes: list[tuple[str, str, str]] = []
        self.objects: list[Any] = []
        self.synced_after: list[int] = []
        self.reflector: Reflector[Pod]
        self.changed = asyncio.Event()

    def announce(self, change: str, object: Pod) -> None:
        self.changes.append((change, object.metadata.name, object.metadata.resource_version))
        self.objects.append(object)

    def synced(self) -> None:
        self.synced_after.append(len(self.changes))

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(600):
            while not condition():
                await asyncio.sleep(0.001)

    def watches(self) -> int:
        return sum("watch" in str(query) for query in self.queries())

    def queries(self) -> list[str]:
        return self.api.queries


@asynccontextmanager
async def reflector(
    *pods: dict[str, Any], script: Callable[[FakeApi], None] = lambda api: None, **more: Any
) -> AsyncIterator[Seen]:
    api, time = FakeApi(), FakeTime()
    api.add(*pods)
    script(api)
    async with api.serve(), client_of(api, time) as client:
        seen = Seen(api, time)
        seen.reflector = Reflector(
            client, PODS, Pod, seen.announce, time, synced=seen.synced, **more
        )
        task = asyncio.create_task(seen.reflector.run())
        try:
            yield seen
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert seen.reflector.state == "Stopped"


async def test_k19_k20_the_first_list_comes_in_pages_and_then_it_watches() -> None:
    class Small(Watching):
        page = 2

    async with reflector(*(pod(f"p{i}") for i in range(5)), watching=Small) as seen:
        seen.time.chance = 0.5
        await seen.until(seen.watches)
        assert [change[:2] for change in seen.changes] == [("ADDED", f"p{i}") for i in range(5)]
        *lists, watch = seen.queries()[:4]
        assert lists == ["limit=2", "limit=2&continue=2", "limit=2&continue=4"]
        assert seen.synced_after == [5]
        assert (seen.reflector.synced, seen.reflector.known) == (True, 5)
        # it asks for bookmarks and for an end
        for part in ("allowWatchBookmarks=true", "resourceVersion=1", "timeoutSeconds=360"):
            assert part in watch


async def test_k19_a_list_that_expires_in_the_middle_starts_over_once_without_pages() -> None:
    def script(api: FakeApi) -> None:
        api.pages.append(
            {"metadata": {"resourceVersion": "1", "continue": "x"}, "items": [pod("old")]}
        )
        api.pages.append(410)

    async with reflector(pod("p"), script=script) as seen:
        await seen.until(seen.watches)
        assert seen.queries()[2] == "resourceVersion=0"
        assert seen.changes == [("ADDED", "p", "1")]
        assert seen.time.slept == []


async def test_k23_each_change_is_announced_once() -> None:
    changes = [
        event("ADDED", pod("p", version=1)),  # known from the list
        event("ADDED", pod("q", version=2)),
        event("MODIFIED", pod("q", version=3)),
        event("MODIFIED", pod("q", version=3)),
        event("MODIFIED", pod("new", version=4)),  # unknown: it counts as added
        event("DELETED", pod("p", version=5)),
        event("DELETED", pod("never", version=6)),
        marked(9),
        HANG,
    ]
    async with reflector(pod("p"), script=lambda api: api.watches.append(changes)) as seen:
        await seen.until(lambda: seen.reflector.version == "9")
        assert seen.changes == [
            ("ADDED", "p", "1"),
            ("ADDED", "q", "2"),
            ("MODIFIED", "q", "3"),
            ("ADDED", "new", "4"),
            ("DELETED", "p", "5"),
        ]


async def test_k20_a_watch_that_ends_goes_on_from_the_last_bookmark() -> None:
    async with reflector(pod("p")) as seen:
        await seen.until(seen.watches)
        await seen.api.say(marked(7))
        await seen.until(lambda: seen.reflector.version == "7")
        seen.time.ns += 300_000_000_000
        await seen.api.end()
        await seen.until(lambda: seen.watches() == 2)
        assert "resourceVersion=7" in seen.queries()[-1]
        assert seen.time.slept == []
        assert len(seen.changes) == 1


@pytest.mark.parametrize("at_once", [False, True])
async def test_k21_after_410_the_differences_are_announced(at_once: bool) -> None:
    async with reflector(pod("gone"), pod("same"), pod("other"), pod("again", uid="first")) as seen:
        await seen.until(seen.watches)
        del seen.api.pods["gone"]
        seen.api.add(
            pod("other", version=5), pod("again", uid="second", version=6), pod("new", version=7)
        )
        seen.api.version = 8
        seen.changes.clear()
        if not at_once:
            seen.time.ns += 10_000_000_000
        await seen.api.say(expired())
        await seen.until(lambda: seen.watches() == 2)
        assert seen.changes == [
            ("DELETED", "again", "1"),
            ("DELETED", "gone", "1"),
            ("ADDED", "again", "6"),
            ("ADDED", "new", "7"),
            ("MODIFIED", "other", "5"),
        ]
        assert "resourceVersion=8" in seen.queries()[-1]
        assert seen.synced_after == [4]
        # A version that expires as soon as it was listed must not make it list without end.
        assert seen.time.slept == ([0.8] if at_once else [])


async def test_k21_a_watch_that_is_refused_with_410_lists_again() -> None:
    async with reflector(pod("p"), script=lambda api: api.watches.append([410])) as seen:
        await seen.until(lambda: seen.watches() == 2)
        kinds = [query.split("=")[0] for query in seen.queries()]
        assert kinds == ["limit", "watch", "limit", "watch"]


ERROR = event("ERROR", {"kind": "Status", "code": 500, "message": "etcd is away"})


@pytest.mark.parametrize(
    ("watches", "chance", "slept"),
    [
        param([[500]] * 8, 1, [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30], id="K22 they are doubled"),
        param([[500]] * 3, 0, [0.4, 0.8, 1.6], id="K22 half of a pause is chance"),
        param([[marked(2)]] * 4, 1, [0.8, 1.6, 3.2, 6.4], id="K22 a watch that ends at once"),
        param([[ERROR]], 1, [0.8], id="an error event that is no 410"),
    ],
)
async def test_pauses_between_watches(watches: list[Any], chance: float, slept: Any) -> None:
    async with reflector(pod("p"), script=lambda api: api.watches.extend(watches)) as seen:
        seen.time.chance = chance
        await seen.until(lambda: seen.watches() == len(watches) + 1)
        assert seen.time.slept == slept
        assert [query.split("=")[0] for query in seen.queries()].count("limit") == 1
        assert len(seen.changes) == 1


async def test_k22_two_calm_minutes_make_the_pause_short_again() -> None:
    async with reflector(pod("p"), script=lambda api: api.watches.extend([[500]] * 3)) as seen:
        await seen.until(lambda: seen.watches() == 4)
        seen.time.ns += 121_000_000_000
        seen.api.watches.append([500])
        await seen.api.end()
        await seen.until(lambda: seen.watches() == 6)
        assert seen.time.slept == [0.8, 1.6, 3.2, 0.8]


class Dead:
    """A server that nobody reaches. ``tries`` are the times (ns) at which it was tried."""

    def __init__(self, time: FakeTime) -> None:
        self.time = time
        self.tries: list[int] = []

    async def request(self, *_: Any, **__: Any) -> Any:
        self.tries.append(self.time.ns)
        raise NoAnswer("connection refused")


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
async def test_k22_a_dead_server_is_tried_ten_times_at_most_in_five_seconds(chance: float) -> None:
    time = FakeTime(chance)
    server, began = Dead(time), time.ns
    dead = Reflector(server, PODS, Pod, lambda *_: None, time)  # type: ignore[arg-type]
    task = asyncio.create_task(dead.run())
    while time.ns - began < 60_000_000_000:
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert 3 <= sum(each - began <= 5_000_000_000 for each in server.tries) <= 10


async def test_k19_k22_a_list_that_expires_again_or_is_refused_is_asked_for_again() -> None:
    async with reflector(pod("p"), script=lambda api: api.pages.extend([500, 403])) as seen:
        await seen.until(seen.watches)
        assert seen.time.slept == [0.8, 1.6]
        assert seen.changes == [("ADDED", "p", "1")]
    async with reflector(pod("p"), script=lambda api: api.pages.extend([410, 410])) as seen:
        await seen.until(seen.watches)
        assert seen.time.slept == [0.8]
        assert seen.queries()[:3] == ["limit=500", "resourceVersion=0", "limit=500"]


async def test_k20_a_half_open_connection_is_left_in_time(caplog: pytest.LogCaptureFixture) -> None:
    async with reflector(pod("p"), watching=Impatient) as seen:
        await seen.until(lambda: seen.watches() >= 2)
        assert seen.time.slept[0] == 0.8
        assert "no answer in time" in caplog.text


@pytest.mark.parametrize(
    "watch",
    [
        param([event("ADDED", pod("q", version=2))[:20], DROP], id="K22 a connection that breaks"),
        param([b"<html>\n"], id="what is no event"),
    ],
)
async def test_after_an_error_in_a_watch_nothing_is_lost(watch: list[Any]) -> None:
    async with reflector(pod("p"), script=lambda api: api.watches.append(watch)) as seen:
        seen.api.watches.append([event("ADDED", pod("q", version=2)), HANG])
        await seen.until(lambda: len(seen.changes) == 2)
        assert seen.changes[-1] == ("ADDED", "q", "2")
        assert seen.time.slept == [0.8]


async def test_an_event_may_come_in_pieces_and_many_in_one() -> None:
    events = b"".join(event("ADDED", pod(f"q{i}", version=i + 2)) for i in range(20))
    pieces = [events[i : i + 37] for i in range(0, len(events), 37)]
    async with reflector(script=lambda api: api.watches.append([*pieces, HANG])) as seen:
        await seen.until(lambda: len(seen.changes) == 20)
        assert [name for _, name, _ in seen.changes] == [f"q{i}" for i in range(20)]


async def test_an_unreadable_object_is_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    bad = pod("bad") | {"spec": {"priority": "high"}}
    worse = event("ADDED", pod("worse", version=3) | {"spec": 7})
    watch = [worse, event("ADDED", pod("q", version=4)), HANG]
    async with reflector(
        pod("a"), bad, pod("z"), script=lambda api: api.watches.append(watch)
    ) as seen:
        await seen.until(lambda: len(seen.changes) == 3)
        assert [name for _, name, _ in seen.changes] == ["a", "z", "q"]
    texts = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert texts[0].startswith("Pod ns/bad is left out: Expected")
    assert texts[1].startswith("Pod ns/worse is left out: Expected")


async def test_k15_the_watch_is_held_back() -> None:
    room = asyncio.Event()
    many = [event("ADDED", pod("q", version=2)), HANG]

    async def has_room() -> None:
        await room.wait()

    async with reflector(
        script=lambda api: api.watches.append(many), wait_for_capacity=has_room
    ) as seen:
        await seen.until(lambda: len(seen.changes) == 1)
        await seen.api.say(event("ADDED", pod("r", version=3)))
        await asyncio.sleep(0.02)
        assert len(seen.changes) == 1
        room.set()
        await seen.until(lambda: len(seen.changes) == 2)


async def test_k25_what_is_not_used_is_not_kept_and_texts_are_shared() -> None:
    decoders = Decoders(Pod)
    raw = pod("p", node="node-1")
    raw["metadata"] |= {"managedFields": [{"a": 1}], "labels": {"a-label-of-this-test": "x"}}
    body = json.dumps({"metadata": {}, "items": [raw, raw]}).encode()
    one, two = decoders.page(body).items
    assert not hasattr(one.metadata, "managed_fields")
    assert one.spec.node_name is two.spec.node_name
    assert one.metadata.namespace is two.metadata.namespace
    assert next(iter(one.metadata.labels)) is next(iter(two.metadata.labels))


async def test_what_the_decoders_make_of_events_and_of_an_empty_list() -> None:
    decoders = Decoders(Pod)
    assert list(decoders.page(b'{"metadata":{"resourceVersion":"3"},"items":null}').items) == []
    assert isinstance(decoders.event(expired()), WatchError)
    found = decoders.event(marked(3))
    assert isinstance(found, Event)
    assert (found.type, found.version, found.object) == ("BOOKMARK", "3", None)
