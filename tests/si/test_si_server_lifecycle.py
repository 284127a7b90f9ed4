"""The life of a resource manager over gRPC follows from its streams (I2, I6, I7, I43)."""

from __future__ import annotations

import asyncio
import contextlib

import grpc
import pytest

from quadriga.si import ApplicationRequest, NodeRequest, RemoveApplicationRequest
from quadriga.si.server import Limits
from tests.si.wire import PATIENCE, RM, House, application, ask, house, node, until

pytestmark = pytest.mark.asyncio

STREAMS = ("UpdateAllocation", "UpdateApplication", "UpdateNode")


async def run_something(rm: RM, key: str = "pod-1", app: str = "app-1") -> None:
    """A node, an application and a pod that runs."""
    before = len(rm.allocations)
    await rm.say(application(app))
    await until(lambda: rm.heard("UpdateApplication", "accepted"))
    await rm.say(ask(app, key))
    await until(lambda: len(rm.allocations) > before)


async def test_i2_a_pod_runs_over_four_rpcs(rm: RM) -> None:
    await rm.has_node()
    await run_something(rm)
    assert [a.allocationKey for a in rm.allocations] == ["pod-1"]
    await until(lambda: rm.states("app-1") == ["Accepted", "Running"])


async def test_i6_a_lost_stream_pauses_and_coming_back_in_time_loses_nothing(
    virtual: House,
) -> None:
    rm = await virtual.rm().begin()
    await rm.has_node()
    await rm.submits()
    await rm.say(ask("app-1", "pod-1"))
    await until(lambda: virtual.server.sessions["rm-1"].received[1] == 1)

    await rm.wires["UpdateAllocation"].lose()
    await virtual.becomes("Paused")
    virtual.service.step(virtual.clock.pass_by(10))
    assert not rm.allocations

    rm.open("UpdateAllocation")
    await virtual.becomes("Running")
    virtual.service.step(virtual.clock.pass_by(1))
    await until(lambda: rm.allocations)


async def test_i6_all_three_streams_have_to_be_back(virtual: House) -> None:
    rm = await virtual.rm().begin()
    for name in STREAMS:
        await rm.wires[name].lose()
    await virtual.becomes("Paused")
    for name in STREAMS[:2]:
        await rm.open(name).call.initial_metadata()
    assert await virtual.state() == "Paused"
    rm.open(STREAMS[2])
    await virtual.becomes("Running")


async def test_i6_too_late_is_stopped_and_the_status_asks_to_register_again(virtual: House) -> None:
    rm = await virtual.rm().begin()
    await rm.has_node()
    await rm.lose()
    await virtual.becomes("Paused")
    virtual.service.step(virtual.clock.pass_by(301))
    assert await virtual.state() == "Stopped"

    wire = rm.open("UpdateNode")
    error = await wire.end()
    assert error is not None
    assert wire.status[0] == "FAILED_PRECONDITION"
    assert wire.status[1].startswith("I43: ")
    assert ("quadriga-register", "again") in [*(error.trailing_metadata() or ())]
    assert virtual.server.sessions == {}

    await rm.begin()
    await rm.say(node("n1"))  # it is new: all state was released
    await until(lambda: rm.nodes == ["n1"])


async def test_i6_a_scheduler_that_gave_up_is_noticed_without_a_call() -> None:
    async with house(virtual=True, limits=Limits(sweep_s=0.01)) as place:
        rm = await place.rm().begin()
        await rm.lose()
        await place.becomes("Paused")
        place.service.step(place.clock.pass_by(301))
        await until(lambda: not place.server.sessions)


async def test_i6_half_close_of_all_three_is_a_shutdown(place: House, rm: RM) -> None:
    for name in STREAMS:
        assert await place.state() == "Running"
        await rm.wires[name].call.done_writing()
    await place.becomes("Stopped")
    for name in STREAMS:
        assert await rm.wires[name].end() is None  # well


async def test_i6_a_half_closed_stream_still_hears(place: House, rm: RM) -> None:
    await rm.say(node("n1"))
    await rm.wires["UpdateNode"].call.done_writing()
    await until(lambda: rm.nodes == ["n1"])
    await run_something(rm)
    assert await place.state() == "Running"


async def test_i6_a_newer_stream_of_a_kind_takes_over(place: House, rm: RM) -> None:
    older = rm.wires["UpdateNode"]
    rm.open("UpdateNode")
    await older.is_refused("ABORTED", "I6: ")
    await rm.has_node()
    assert await place.state() == "Running"


async def test_i6_without_any_stream_it_counts_as_away() -> None:
    async with house(limits=Limits(attach_s=0.01)) as place:
        rm = place.rm()
        await rm.register()
        await place.becomes("Paused")
        await rm.connect()
        await place.becomes("Running")


async def test_i7_registering_again_ends_the_old_streams_and_starts_from_nothing(
    place: House,
) -> None:
    old = await place.rm().begin()
    await old.has_node()
    new = place.rm()
    await new.begin()
    assert int(new.epoch) > int(old.epoch)
    for name in STREAMS:
        await old.wires[name].is_refused("FAILED_PRECONDITION", "I7: ")
    heard = {name: len(wire.got) for name, wire in old.wires.items()}
    await new.has_node()
    await run_something(new)
    assert {name: len(wire.got) for name, wire in old.wires.items()} == heard


async def test_i7_a_stream_of_an_older_registration_is_refused(place: House) -> None:
    rm = place.rm()
    await rm.register()
    first = rm.epoch
    early = rm.open("UpdateNode", bound=False)  # it has not said yet whose it is
    await until(lambda: place.server.streams == 1)
    await rm.register()
    await early.say(NodeRequest(rmID="rm-1"))
    await early.end()
    assert early.status[1].startswith("I7: ")
    late = rm.open("UpdateNode", epoch=first)
    await late.end()
    assert late.status[1].startswith("I7: ")
    await rm.open("UpdateNode", epoch=rm.epoch).call.initial_metadata()


async def test_i7_a_refused_registration_leaves_the_old_one(rm: RM) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await rm.register(config="partitions: 7")
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    await rm.has_node()


async def answered(rm: RM, name: str) -> int:
    """How many requests of the stream the server has taken."""
    metadata = dict([*(await rm.wires[name].call.initial_metadata())])
    return int(metadata["quadriga-received"])


async def test_nothing_is_lost_that_the_rm_counts(virtual: House) -> None:
    """The RM says how many messages it has got, and gets what followed again."""
    rm = await virtual.rm().begin()
    for number in range(5):
        await rm.say(node(f"n{number}"))
    await until(lambda: len(rm.nodes) == 5)
    got = rm.wires["UpdateNode"].got
    await rm.wires["UpdateNode"].lose()
    await virtual.becomes("Paused")
    rm.open("UpdateNode", received=len(got) - 2, epoch=rm.epoch)
    assert await answered(rm, "UpdateNode") == 5
    await until(lambda: rm.wires["UpdateNode"].got == got[-2:])
    await virtual.becomes("Running")


async def test_what_is_no_longer_known_asks_to_register_again() -> None:
    async with house(limits=Limits(replay_bytes=1)) as place:
        rm = await place.rm().begin()
        for number in range(5):
            await rm.say(node(f"n{number}"))
            await until(lambda n=number: len(rm.nodes) == n + 1)
        wire = rm.open("UpdateNode", received=1)
        await wire.is_refused("FAILED_PRECONDITION", "I43: ")
        await place.becomes("Paused")
        await rm.begin()


async def test_messages_that_arise_meanwhile_are_kept(virtual: House) -> None:
    """An application completes while the stream that tells of it is away."""
    rm = await virtual.rm().begin()
    await rm.submits()
    await rm.wires["UpdateApplication"].lose()
    await virtual.becomes("Paused")
    remove = RemoveApplicationRequest(applicationID="app-1", partitionName="default")
    virtual.service.update_application(ApplicationRequest(rmID="rm-1", remove=[remove]))
    assert virtual.server.sessions["rm-1"].mailbox.waiting(2) > 0
    rm.open("UpdateApplication")
    await until(lambda: rm.states("app-1"))


async def test_a_stopping_server_says_so_and_keeps_the_scheduler(place: House, rm: RM) -> None:
    await place.server.stop(1)
    for name in STREAMS:
        await rm.wires[name].is_refused("UNAVAILABLE")
    assert await place.state() == "Running"
    await asyncio.wait_for(place.server.stop(0), PATIENCE)  # twice is no mistake


async def test_i7_who_has_left_says_nothing_to_the_next_registration(place: House) -> None:
    old = await place.rm().begin()
    await place.server.registry.leave(place.server.sessions["rm-1"])
    new = await place.rm().begin()
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
        await old.say(node("n1"))
    assert await old.wires["UpdateNode"].end() is None
    await new.has_node()  # it was not there


async def test_many_register_at_once(place: House) -> None:
    """Whoever registers under one name: the last one stays, and nobody else is heard."""
    rms = [place.rm() for _ in range(8)]
    await asyncio.gather(*(rm.register() for rm in rms))
    last = max(rms, key=lambda rm: int(rm.epoch))
    assert place.server.sessions["rm-1"].epoch == int(last.epoch)
    for rm in rms:
        wire = rm.open("UpdateNode", epoch=rm.epoch)
        if rm is not last:
            await wire.end()
            assert wire.status[1].startswith("I7: ")
    await last.has_node()
