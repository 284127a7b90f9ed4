"""Health and reflection beside our services: bounded, and not a way to fill the log."""

import asyncio
import logging
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from quadriga.si.server import Limits
from tests.si.wire import PATIENCE, House, house

BROKEN = b"\x0a\x02\xff\xff"
HEALTH = "/grpc.health.v1.Health/"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


async def code_of(call: Any) -> str:
    code: grpc.StatusCode = await call.code()
    return code.name


async def test_what_cannot_be_read_is_the_senders_mistake(
    caplog: pytest.LogCaptureFixture, place: House
) -> None:
    caplog.set_level(logging.WARNING)
    channel = place.channel()
    assert await code_of(channel.unary_unary(HEALTH + "Check")(BROKEN)) == "INVALID_ARGUMENT"
    assert await code_of(channel.unary_stream(HEALTH + "Watch")(BROKEN)) == "INVALID_ARGUMENT"
    call = channel.stream_stream(REFLECTION)()
    await call.write(BROKEN)
    assert await code_of(call) == "INVALID_ARGUMENT"
    assert "I1: 4 bytes" in await call.details()
    # asyncio's are gRPC's own, when the loop of an earlier test is gone
    assert not [each for each in caplog.records if each.name != "asyncio"]


async def test_their_streams_are_counted_too() -> None:
    async with house(limits=Limits(streams=2)) as place:
        channel = place.channel()
        health = health_pb2_grpc.HealthStub(channel)
        reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
        watches = [health.Watch(health_pb2.HealthCheckRequest()) for _ in range(2)]
        for watch in watches:
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        for call in (
            health.Watch(health_pb2.HealthCheckRequest()),
            reflection.ServerReflectionInfo(),
        ):
            assert await code_of(call) == "RESOURCE_EXHAUSTED"
        # resource managers have a number of their own, and who leaves makes room
        await place.rm().begin()
        watches[0].cancel()
        for _ in range(100):
            call = reflection.ServerReflectionInfo()
            try:
                await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
                assert await call.read()
                break
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        else:
            pytest.fail("there is no room")
        call.cancel()
        watches[1].cancel()


async def test_a_connection_that_says_nothing_is_closed() -> None:
    async with house(limits=Limits(introduction_s=0.3)) as place:
        reader, writer = await asyncio.open_connection("127.0.0.1", place.server.port)
        async with asyncio.timeout(PATIENCE):
            while await reader.read(1000):  # the server says hello
                pass
        writer.close()
        await writer.wait_closed()
