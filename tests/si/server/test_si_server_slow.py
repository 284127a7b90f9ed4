"""A resource manager that does not read costs little, and nobody else anything."""

import asyncio
from typing import Any

from quadriga.si import AllocationRequest, EventRecord, NodeRequest
from quadriga.si.server import Limits
from tests.si.wire import PATIENCE, RM, House, ask, house, until


async def deaf(place: House, rm_id: str) -> tuple[RM, Any]:
    """A registered RM whose allocation stream is never read."""
    rm = RM(place.channel(**{"grpc.http2.bdp_probe": 0}), rm_id)
    await rm.register()
    call = rm.scheduler.UpdateAllocation(metadata=[("quadriga-rm-id", rm_id)])
    for each in (rm.open("UpdateApplication").call, rm.open("UpdateNode").call, call):
        await each.initial_metadata()
    return rm, call


async def ready(rm: RM) -> None:
    await rm.has_node(vcore=1_000_000)
    await rm.submits()


def asks(rm_id: str, first: int, count: int) -> AllocationRequest:
    together = AllocationRequest(rmID=rm_id)
    for number in range(first, first + count):
        # long keys, so that what waits is more than what gRPC takes ahead
        together.asks.extend(ask("app-1", f"pod-{number}-{'x' * 500}", 1).asks)
    return together


async def test_a_slow_rm_is_paused_and_bounded_while_others_go_on() -> None:
    limits = Limits(backlog_bytes=2_000_000, replay_bytes=100_000, batch_bytes=50_000)
    async with house(limits=limits) as place:
        slow, call = await deaf(place, "slow")
        await ready(slow)
        session = place.server.sessions["slow"]

        def everything(scheduler: Any) -> int:
            return sum(len(e.allocations) for e in scheduler.partition(rm_id="slow").nodes.values())

        said = 0
        async with asyncio.timeout(PATIENCE):
            while session.mailbox.keeps_up:
                # no more at once: the scheduler may decide them all before it hears that it is slow
                await call.write(asks("slow", said, 200))
                said += 200
                while place.service.read(everything) < said and session.mailbox.keeps_up:
                    await asyncio.sleep(0.002)
        await place.becomes("Paused", "slow")
        assert limits.backlog_bytes // 2 < session.backlog <= limits.backlog_bytes
        decided = place.service.read(everything)
        await call.write(asks("slow", said, 50))
        said += 50

        quick = await place.rm("quick").begin()
        await ready(quick)
        await quick.say(asks("quick", 0, 1000))
        await until(lambda: len(quick.allocations) == 1000)
        assert place.service.read(everything) == decided

        got: list[Any] = []

        async def read() -> None:
            while True:
                got.extend((await call.read()).new)

        reader = asyncio.create_task(read())
        await place.becomes("Running", "slow")  # it has caught up
        await call.write(asks("slow", said, 400))
        said += 400
        await until(lambda: len(got) >= said)
        assert len(got) == place.service.read(everything) == said > 1000
        assert len({each.allocationKey for each in got}) == len(got)
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        call.cancel()


async def test_past_the_bound_it_has_to_register_again() -> None:
    """What is decided before the scheduler hears that the RM is slow may be too much."""
    limits = Limits(backlog_bytes=20_000)
    async with house(limits=limits, virtual=True) as place:
        rm = await place.rm().begin()
        await ready(rm)
        await rm.wires["UpdateAllocation"].lose()
        await place.becomes("Paused")
        session = place.server.sessions["rm-1"]
        for number in range(100):
            rejected = ask("app-0", f"pod-{number}-{'x' * 200}")
            rejected.rmID = "rm-1"
            place.service.update_allocation(rejected)
        assert session.backlog == 0  # it is not kept
        await until(lambda: not place.server.sessions)
        for name in ("UpdateApplication", "UpdateNode"):
            await rm.wires[name].is_refused("RESOURCE_EXHAUSTED", "I43: ")
        assert await place.state() == "Paused"
        await rm.begin()
        assert await place.state() == "Running"


async def test_news_that_nobody_reads_are_dropped() -> None:
    async with house(limits=Limits(pending_events=3), virtual=True) as place:
        await place.rm().begin()
        session = place.server.sessions["rm-1"]
        session.hello.events = True
        for number in range(5):
            session.send_event([EventRecord(objectID=str(number))])
        assert session.mailbox.waiting(4) == 3
        assert session.dropped == 2


async def test_small_messages_are_joined_when_behind(rm: RM) -> None:
    await ready(rm)
    await rm.say(asks("rm-1", 0, 5000))
    await until(lambda: len(rm.allocations) == 5000)
    assert len(rm.wires["UpdateAllocation"].got) < 5000
    keys = [each.allocationKey.split("-")[1] for each in rm.allocations]
    assert keys == [str(number) for number in range(5000)]


async def test_an_empty_request_only_says_whose_stream_it_is(place: House) -> None:
    rm = place.rm()
    await rm.register()
    wire = rm.open("UpdateNode", bound=False)
    await wire.say(NodeRequest(rmID="rm-1"))
    await wire.call.initial_metadata()
    await until(lambda: place.server.sessions["rm-1"].received[3] == 1)
