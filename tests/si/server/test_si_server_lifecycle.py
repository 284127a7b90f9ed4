"""The life of a resource manager over gRPC follows from its streams (I2, I6, I7, I43)."""

import asyncio

import pytest

from quadriga.si import NodeRequest
from quadriga.si.server import Limits
from tests.si.wire import PATIENCE, RM, House, ask, house, node, refusal, until

STREAMS = ("UpdateAllocation", "UpdateApplication", "UpdateNode")


@pytest.mark.parametrize("sweep_s", [0.01, 3600], ids=["swept", "called"])
async def test_i6_too_late_is_stopped_and_the_status_asks_to_register_again(sweep_s: float) -> None:
    async with house(virtual=True, limits=Limits(sweep_s=sweep_s)) as place:
        await too_late(place, sweep_s < 1)


async def too_late(virtual: House, swept: bool) -> None:
    rm = await virtual.rm().begin()
    await rm.has_node()
    await rm.lose()
    await virtual.becomes("Paused")
    virtual.service.step(virtual.clock.pass_by(301))
    assert await virtual.state() == "Stopped"
    if swept:  # without a call
        await until(lambda: not virtual.server.sessions)
    wire = rm.open("UpdateNode")
    await wire.is_refused("FAILED_PRECONDITION", "I43: ")
    assert wire.error is not None
    assert ("quadriga-register", "again") in [*(wire.error.trailing_metadata() or ())]
    assert virtual.server.sessions == {}

    await rm.begin()
    await rm.say(node("n1"))  # it is new: all state was released
    await until(lambda: rm.nodes == ["n1"])


async def test_i2_i6_half_close_of_all_three_is_a_shutdown(place: House, rm: RM) -> None:
    """A pod runs over four RPCs; one that is half closed still hears, a newer one takes over."""
    older = rm.wires["UpdateNode"]
    rm.open("UpdateNode")
    await older.is_refused("ABORTED", "I6: ")
    await rm.say(node("n1"))
    await rm.wires["UpdateNode"].call.done_writing()
    await until(lambda: rm.nodes == ["n1"])
    await rm.submits()
    await rm.say(ask("app-1", "pod-1"))
    await until(lambda: rm.states("app-1") == ["Accepted", "Running"])
    await until(lambda: [a.allocationKey for a in rm.allocations] == ["pod-1"])
    for name in STREAMS[:2]:
        assert await place.state() == "Running"
        await rm.wires[name].call.done_writing()
    await place.becomes("Stopped")
    for name in STREAMS:
        assert await rm.wires[name].end() is None  # well


async def test_i6_without_any_stream_it_counts_as_away() -> None:
    async with house(limits=Limits(attach_s=0.01)) as place:
        rm = place.rm()
        await rm.register()
        await place.becomes("Paused")
        await rm.connect()
        await place.becomes("Running")


async def test_i7_registering_again_ends_the_old_streams_and_starts_anew(place: House) -> None:
    """Unless it is refused."""
    old = await place.rm().begin()
    assert (await refusal(old.register(config="partitions: 7")))[0] == "INVALID_ARGUMENT"
    await old.has_node()
    new = place.rm()
    await new.begin()
    assert int(new.epoch) > int(old.epoch)
    for name in STREAMS:
        await old.wires[name].is_refused("FAILED_PRECONDITION", "I7: ")
    heard = {name: len(wire.got) for name, wire in old.wires.items()}
    await new.has_node()
    await new.submits()
    await new.say(ask("app-1", "pod-1"))
    await until(lambda: new.allocations)
    assert {name: len(wire.got) for name, wire in old.wires.items()} == heard


async def test_i7_a_stream_of_an_older_registration_is_refused(place: House) -> None:
    rm = place.rm()
    await rm.register()
    first = rm.epoch
    early = rm.open("UpdateNode", bound=False)  # it has not said yet whose it is
    await until(lambda: place.server.streams == 1)
    await rm.register()
    await early.say(NodeRequest(rmID="rm-1"))
    for wire in (early, rm.open("UpdateNode", epoch=first)):
        await wire.is_refused("FAILED_PRECONDITION", "I7: ")
    await rm.open("UpdateNode", epoch=rm.epoch).call.initial_metadata()


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


async def test_a_stopping_server_says_so_and_keeps_the_scheduler(place: House, rm: RM) -> None:
    await place.server.stop(1)
    for name in STREAMS:
        await rm.wires[name].is_refused("UNAVAILABLE")
    assert await place.state() == "Running"
    await asyncio.wait_for(place.server.stop(0), PATIENCE)  # twice is no mistake


async def test_many_register_at_once(place: House) -> None:
    """Whoever registers under one name: the last one stays, and nobody else is heard."""
    rms = [place.rm() for _ in range(8)]
    await asyncio.gather(*(rm.register() for rm in rms))
    last = max(rms, key=lambda rm: int(rm.epoch))
    assert place.server.sessions["rm-1"].epoch == int(last.epoch)
    for rm in rms:
        wire = rm.open("UpdateNode", epoch=rm.epoch)
        if rm is not last:
            await wire.is_refused("FAILED_PRECONDITION", "I7: ")
    await last.has_node()
