"""One resource manager's large requests hold up nobody else; what is read of it is bounded in items."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from quadriga import si
from quadriga.base.pacing import TokenBucket
from quadriga.base.times import SECOND
from quadriga.core import Options
from quadriga.si.extension.extension_pb2 import Channel
from quadriga.si.items import count
from quadriga.si.server import Limits
from quadriga.si.server.delivery.flow_control import FlowControl
from quadriga.si.server.delivery.replay_buffer import OVERHEAD, ReplayBuffer
from tests.si.wire import PATIENCE, RM, House, ask, house, until

ALLOCATION: int = Channel.ALLOCATION


def asks(first: int, number: int) -> si.AllocationRequest:
    together = si.AllocationRequest()
    for at in range(first, first + number):
        together.asks.extend(ask("app-1", f"pod-{at}", 1).asks)
    return together


def test_everything_in_a_request_counts_and_a_bucket_gives_tokens_for_items() -> None:
    request = asks(0, 3)
    request.allocations.add()
    request.releases.allocationsToRelease.add()
    request.releases.allocationAsksToRelease.add()
    assert count(request) == 6
    assert count(si.ApplicationRequest(new=[si.AddApplicationRequest()] * 2)) == 2
    info = si.NodeInfo(nodeID="n")
    info.existingAllocations.add()
    assert count(si.NodeRequest(nodes=[info, si.NodeInfo()])) == 3
    assert count(si.AllocationRequest(rmID="rm")) == 0
    bucket = TokenBucket(10, 20)
    assert bucket.take(0, 20) == 0
    assert bucket.take(0, 5) == SECOND // 2
    assert bucket.take(2 * SECOND, 15) == 0
    assert bucket.ready_at() == 21 * SECOND // 10
    assert bucket.take(2 * SECOND) == SECOND // 10


async def test_a_stream_is_read_no_further_while_a_window_of_items_is_on_its_way() -> None:
    flow = FlowControl(64, 100, lambda error, request: error, lambda: None)
    first, second = flow.send("first", 60), flow.send("second", 60)
    waiting = asyncio.create_task(flow.room())
    for _ in range(2):
        await asyncio.sleep(0)
    assert not waiting.done()
    first.set_result(None)  # 60 are left, more than half of the window
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    second.set_result(None)
    await asyncio.wait_for(waiting, PATIENCE)
    for number in range(64):
        flow.send(number, 1)
    assert not flow._has_at_most(63, 100)  # requests are counted as well


def test_a_box_joins_what_has_the_same_list_and_remembers_so_much() -> None:
    box = ReplayBuffer(batch_bytes=3, replay_bytes=1000)
    messages = ((1, b"a"), (1, b"b"), (2, b"c"), (1, b"d"), (0, b"e"), (0, b"f"))
    alone = [box.put(message, field) for field, message in messages]
    assert alone == [True, False, True, True, True, True]
    assert box.bytes == 6 * (1 + OVERHEAD)
    assert [box.take() for _ in range(6)] == [b"ab", b"c", b"d", b"e", b"f", None]
    assert (box.bytes, box.written) == (0, 5)
    for _ in range(5):  # together they would be beyond the limit
        box.put(b"xx", 1)
    assert [box.take() for _ in range(6)] == [b"xx"] * 5 + [None]
    assert box.put(b"a", 1)
    assert box.put(b"b", 1, anew=True)
    assert box.take() == b"a"
    box = ReplayBuffer(batch_bytes=1, replay_bytes=3)
    for letter in b"abcde":
        box.put(bytes([letter]))
        box.take()
    assert not box.rewind(1)
    assert not box.rewind(6)
    assert box.rewind(3)
    assert box.bytes == 2 * (1 + OVERHEAD)
    assert [box.take(), box.take(), box.take()] == [b"d", b"e", None]
    assert box.written == 5


@asynccontextmanager
async def bulk(**limits: Any) -> AsyncIterator[tuple[House, RM, threading.Event]]:
    """A resource manager that is about to send many asks. The scheduler does nothing until told to."""
    go = threading.Event()
    async with house(limits=Limits(**limits), options=Options()) as place:
        rm = await place.rm("bulk").begin()
        await rm.has_node(vcore=1_000_000)
        await rm.submits()

        def hold() -> list[Any]:
            go.wait(PATIENCE)
            return []

        place.service.begin(hold)
        try:
            yield place, rm, go
        finally:
            go.set()


async def rounds(rm: RM) -> None:
    """Answers of the server while the scheduler does nothing: its loop has had time for all else."""
    health = HealthStub(rm.channel)  # type: ignore[no-untyped-call]
    for _ in range(20):
        assert (await health.Check(HealthCheckRequest())).status == HealthCheckResponse.SERVING


async def test_windows_count_items_and_not_only_requests() -> None:
    async with bulk(window_items=100) as (place, rm, go):
        for at in range(10):
            await rm.say(asks(40 * at, 40))
        session = place.server.sessions["bulk"]
        await until(lambda: session.received[ALLOCATION] == 3)
        await rounds(rm)
        assert session.received[ALLOCATION] == 3  # 120 items; and health was answered
        go.set()
        await until(lambda: len(rm.allocations) == 400)
        assert session.received[ALLOCATION] == 10


async def test_i7_a_registration_is_before_the_asks_of_others() -> None:
    arrived: list[int] = []
    async with bulk() as (place, rm, go):
        service = place.service
        register = service._register

        def registers(request: Any, callback: Any) -> Any:
            arrived.append(service.scheduler.partition(rm_id="bulk").waiting.arrivals)
            return register(request, callback)

        service._register = registers  # type: ignore[method-assign]
        for at in range(4):
            await rm.say(asks(2000 * at, 2000))
        await until(lambda: service.waiting == 4)
        again = asyncio.create_task(RM(rm.channel, "bulk").register())
        await until(lambda: service.waiting == 5)
        # the bulk one has to wait for what it has sent itself, and nobody waits for it
        registering = asyncio.create_task(place.rm("other").register())
        await until(lambda: service.waiting == 6)
        go.set()
        await asyncio.wait_for(registering, PATIENCE)
        await asyncio.wait_for(again, PATIENCE)
    assert arrived == [256, 8000]


async def test_items_that_come_too_fast_are_taken_later() -> None:
    async with bulk(item_burst=50, items_per_second=2000) as (_, rm, go):
        go.set()
        for at in range(4):
            await rm.say(asks(50 * at, 50))
        await until(lambda: len(rm.allocations) == 200)
