"""Readers see one moment, cost the scheduler little, and never wait for each other (issue: reads)."""

import asyncio
import gc
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from live_cluster import LiveCluster
from on_a_port import PATIENCE, client_of

from quadriga.core.driver.service import SchedulerService
from quadriga.core.runtime.stepwise import parts
from quadriga.core.scheduler import Scheduler
from quadriga.core.views import NotFound
from quadriga.web.reader import Reader
from quadriga.web.responses import Refusal, encode
from quadriga.web.rest.fragments import Fragments


@pytest.fixture(autouse=True)
def _no_look_is_dear() -> None:
    """Here the clock says what a look costs."""


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service() -> Iterator[SchedulerService]:
    with SchedulerService(clock=lambda: 0) as service:
        yield service


@pytest.fixture
def reader(service: SchedulerService, clock: Clock) -> Reader:
    return Reader(service, share=0.1, clock=clock)


def counting(clock: Clock, cost: float) -> tuple[list[int], Any]:
    """A look that takes ``cost`` seconds, and how often it was made."""
    looks: list[int] = []

    def look(scheduler: Scheduler) -> int:
        looks.append(len(looks))
        clock.now += cost
        return len(looks)

    return looks, look


async def test_a_cheap_look_is_made_for_everybody_in_the_thread_of_the_owner(
    reader: Reader, clock: Clock
) -> None:
    """Without the garbage collector."""
    _, look = counting(clock, 0.0)
    assert [await reader.read("cheap", look) for _ in range(3)] == [1, 2, 3]
    assert gc.isenabled()
    seen = await reader.read("x", lambda _: (threading.current_thread().name, gc.isenabled()))
    assert seen == ("quadriga", False)
    assert gc.isenabled()


async def test_a_dear_look_serves_for_a_while(reader: Reader, clock: Clock) -> None:
    """Unless what it sees is taken away: that is for one."""
    looks, look = counting(clock, 2.0)
    assert await reader.read("dear", look) == 1
    clock.now += 19.875  # a tenth of the time is for looks
    assert await reader.read("dear", look) == 1
    clock.now += 0.25
    assert await reader.read("dear", look) == 2
    assert await reader.read("another", look) == 3
    assert reader.costs["dear"] == (2.0, 2.0)
    assert await reader.once("taken", look) == 4
    assert await asyncio.gather(reader.once("taken", look), reader.once("taken", look)) == [5, 6]
    assert len(looks) == 6
    assert reader.costs["taken"] == (2.0, 2.0)


async def test_those_who_wait_for_the_same_get_the_same(
    service: SchedulerService, reader: Reader
) -> None:
    looks: list[int] = []
    busy, go_on = threading.Event(), threading.Event()

    def work(scheduler: Scheduler) -> None:
        busy.set()
        assert go_on.wait(PATIENCE)

    service.read_later(work)
    assert await asyncio.to_thread(busy.wait, PATIENCE)
    waiting = [
        asyncio.create_task(reader.read("same", lambda core: looks.append(1))) for _ in range(20)
    ]
    await asyncio.sleep(0)
    one_leaves = waiting.pop()
    one_leaves.cancel()
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(*waiting)
    assert looks == [1]
    with pytest.raises(asyncio.CancelledError):
        await one_leaves


async def test_who_asks_after_a_look_began_sees_what_came_before_he_asked(
    service: SchedulerService, reader: Reader
) -> None:
    value = 1
    begun, go_on = threading.Event(), threading.Event()

    def look(scheduler: Scheduler) -> int:
        found = value
        begun.set()
        assert go_on.wait(PATIENCE)
        return found

    first = asyncio.create_task(reader.read("value", look))
    await asyncio.sleep(0)
    assert await asyncio.to_thread(begun.wait, PATIENCE)
    value = 2
    second = asyncio.create_task(reader.read("value", look))
    await asyncio.sleep(0)
    go_on.set()
    assert (await first, await second) == (1, 2)


async def test_errors_are_told_and_not_kept(reader: Reader, clock: Clock) -> None:
    def look(scheduler: Scheduler) -> None:
        clock.now += 5
        raise NotFound("Node not found")

    for _ in range(2):
        with pytest.raises(NotFound):
            await reader.read("error", look)
    assert await reader.read("error", lambda scheduler: "there") == "there"


async def test_a_service_that_has_stopped_is_said_to_be(
    service: SchedulerService, reader: Reader
) -> None:
    service.stop()
    with pytest.raises(Refusal, match="has been stopped") as refused:
        await reader.read("any", lambda scheduler: None)
    assert refused.value.status == 503


async def test_what_was_spelled_is_not_spelled_again(reader: Reader, clock: Clock) -> None:
    _, look = counting(clock, 2.0)
    spelled: list[str] = []

    def slowly(value: int) -> bytes:
        spelled.append(threading.current_thread().name)
        return encode(value)

    assert await reader.read("dear", look) == 1
    answers = await asyncio.gather(*(reader.text("dear", look, slowly) for _ in range(5)))
    answers.append(await reader.text("dear", look, slowly))
    assert set(answers) == {b"1"}
    assert len(spelled) == 1 and spelled[0].startswith("quadriga-spelling")


async def test_each_member_is_of_one_moment(busy: LiveCluster) -> None:
    """Sums that hold after each step hold in each member, whatever happens meanwhile; in a whole dump if
    it says that nothing happened."""

    def total(allocations: Any) -> int:
        return sum(each["resource"].get("vcore", 0) for each in allocations)

    async with client_of(busy) as client:

        async def get(path: str) -> Any:
            return (await client.get(f"/ws/v1/{path}")).json()

        for _ in range(15):
            for node in await get("partition/default/nodes"):
                assert total(node["allocations"]) == node["allocated"].get("vcore", 0)
            dump = await get("fullstatedump")
            held = sum(total(app["allocations"]) for app in dump["applications"])
            first, last = dump["transitions"]
            if first == last:
                assert held == dump["queues"][0]["allocatedResource"]["vcore"]
            for app in await get("partition/default/applications/active"):
                real = total(a for a in app["allocations"] if not a["placeholder"])
                assert real == app["usedResource"].get("vcore", 0)


async def test_texts_that_are_put_together_are_what_the_views_say(busy: LiveCluster) -> None:
    views = busy.views
    fragments = Fragments()
    for _ in range(15):

        def look(scheduler: Scheduler) -> tuple[Any, ...]:
            return (
                views.nodes("default"),
                parts(views.each_node("default")),
                views.applications("default", "active"),
                parts(views.each_application("default", "active")),
                views.state_dump(),
                parts(views.each_state()),
            )

        nodes, seen_nodes, apps, seen_apps, state, seen_state = busy.service.read(look)
        # what was seen is told later, when things have changed
        busy.step(lambda scheduler: busy.script)
        for writer, seen, told in (
            (fragments.nodes(), seen_nodes, nodes),
            (fragments.applications(), seen_apps, apps),
            (fragments.state(), seen_state, state),
        ):
            half = len(seen) // 2
            text = b"".join([*writer.pieces(seen[:half]), *writer.pieces(seen[half:])])
            assert json.loads(text + writer.end()) == told


async def test_texts_are_cached_up_to_a_bound(cluster: LiveCluster) -> None:
    fragments = Fragments()
    seen = cluster.service.read(lambda scheduler: parts(cluster.views.each_node("default")))
    text = b"".join(fragments.nodes().pieces(seen))
    assert len(fragments._nodes) == len(seen)
    fragments = Fragments(1)
    assert b"".join(fragments.nodes().pieces(seen)) == text
    assert len(fragments._nodes) == len(fragments._allocations) == 1
    assert b"".join(Fragments(0).nodes().pieces(seen)) == text


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_a_long_list_is_sent_while_it_is_read(
    monkeypatch: pytest.MonkeyPatch, busy: LiveCluster, encoding: str
) -> None:
    """In slices of one step each: whatever happens meanwhile, each member is of one moment."""
    monkeypatch.setattr("quadriga.web.rest.long_answers.LONG", 15)
    monkeypatch.setattr("quadriga.core.driver.slices.SLICE", -1.0)
    async with client_of(busy) as client:
        for path in ("nodes", "applications/active"):
            found = await client.get(
                f"/ws/v1/partition/default/{path}", headers={"Accept-Encoding": encoding}
            )
            assert "content-length" not in found.headers
            assert found.headers.get("content-encoding", "identity") == encoding
            time, transitions = map(int, found.headers["quadriga-read-from"].split(";"))
            assert time >= 0 and transitions > 0
            for each in found.json():
                held = [o for o in each["allocations"] if path == "nodes" or not o["placeholder"]]
                sums = each["allocated"] if path == "nodes" else each["usedResource"]
                assert sum(one["resource"].get("vcore", 0) for one in held) == sums.get("vcore", 0)
        page = await client.get("/ws/v1/partition/default/nodes?limit=1&offset=5")
        assert int(page.headers["content-length"]) > 0
        assert len(page.json()) == 1
        assert (await client.get("/ws/v1/partition/none/nodes")).status_code == 404
