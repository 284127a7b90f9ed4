"""The server survives whatever comes in over gRPC; `QUADRIGA_FUZZ_SEEDS=0:500` tries other seeds."""

import asyncio
import itertools
import os
import resource as limits_of_process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from quadriga import si
from quadriga.si.extension import extension_pb2 as ext
from quadriga.si.server import Limits
from tests.si.certificates import access_by
from tests.si.hostile import Hostile
from tests.si.wire import PATIENCE, House, application, ask, house, node, until

SI, EXTENSION = "/si.v1.Scheduler/", "/quadriga.v1.Extension/"
UNARY = {
    SI + "RegisterResourceManager": si.RegisterResourceManagerRequest,
    EXTENSION + "UpdateConfiguration": si.UpdateConfigurationRequest,
    EXTENSION + "Shutdown": ext.ShutdownRequest,
    EXTENSION + "Step": ext.StepRequest,
    EXTENSION + "Explain": ext.ExplainRequest,
    "/grpc.health.v1.Health/Check": health_pb2.HealthCheckRequest,
    SI + "NoSuchMethod": Empty,
}
STREAMS = {
    SI + "UpdateAllocation": si.AllocationRequest,
    SI + "UpdateApplication": si.ApplicationRequest,
    SI + "UpdateNode": si.NodeRequest,
    EXTENSION + "Callbacks": ext.CallbackAnswer,
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": (
        reflection_pb2.ServerReflectionRequest
    ),
}
#: statuses that say: this was your mistake, or not now. UNKNOWN and INTERNAL would say: ours.
EXPECTED = {
    *("OK", "CANCELLED", "INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED", "ABORTED"),
    *("FAILED_PRECONDITION", "RESOURCE_EXHAUSTED", "UNIMPLEMENTED", "DEADLINE_EXCEEDED"),
    "UNAUTHENTICATED",
}


#: what a call may end with while something is done to it
GONE = grpc.aio.AioRpcError, asyncio.CancelledError, asyncio.InvalidStateError, TimeoutError


def _seeds(count: int) -> list[int]:
    first, _, last = os.environ.get("QUADRIGA_FUZZ_SEEDS", "").partition(":")
    return [*range(int(first), int(last))] if last else [*range(count)]


class Attack:
    """One who means ill: calls in any order, streams that stay, break, or end by halves."""

    def __init__(self, channel: grpc.aio.Channel, seed: int) -> None:
        self.channel = channel
        self.hostile = Hostile(seed, "bad")
        self.random = self.hostile.random
        self.open: list[tuple[Any, asyncio.Task[None], type[Any]]] = []
        #: how many messages
        self.sent = 0

    async def burst(self, steps: int) -> None:
        for _ in range(steps):
            chance = self.random.random()
            if chance < 0.25:
                await self._unary()
            elif chance < 0.4 or not self.open:
                await self._begin()
            elif chance < 0.9:
                await self._say()
            else:
                await self._end()

    def _metadata(self) -> list[tuple[str, str]]:
        random = self.random
        pairs = [("authorization", f"Bearer {BAD}")] if random.random() < 0.97 else []
        if random.random() < 0.7:
            whose = random.choice(("bad", "bad", "bad", "nobody", "x" * 300))
            pairs.append(("quadriga-rm-id", whose))
        for key in ("quadriga-epoch", "quadriga-received"):
            if random.random() < 0.15:
                pairs.append((key, random.choice(("0", "1", "-1", "9" * 40, "1e3", "", "abc"))))
        if random.random() < 0.3:
            pairs.append(("quadriga-in-order", "yes"))
        if random.random() < 0.1:
            pairs.append(("authorization", random.choice(("Bearer x", "Basic eA==", "", "Bearer"))))
        return pairs

    async def _unary(self) -> None:
        path, kind = self.random.choice([*UNARY.items()])
        if self.random.random() < 0.5:
            path, kind = next(iter(UNARY.items()))
        call = self.channel.unary_unary(path)(
            self.hostile.data(kind), metadata=self._metadata(), timeout=PATIENCE
        )
        self.sent += 1
        if self.random.random() < 0.1:
            await asyncio.sleep(0)
            call.cancel()
        await self._outcome(call)

    async def _outcome(self, call: Any) -> None:
        code = await call.code()
        details = await call.details() or ""
        # of this client: it wrote too late; or how an older one hears that there are too many
        if details != "Internal error from Core" and "RST_STREAM" not in details:
            assert code.name in EXPECTED, (code, details)

    async def _begin(self) -> None:
        if len(self.open) > 10:
            await self._end()
        path, kind = self.random.choice([*STREAMS.items()])
        call = self.channel.stream_stream(path)(metadata=self._metadata())
        reads = self.random.random() < 0.8
        task = asyncio.create_task(self._listen(call) if reads else asyncio.sleep(0))
        self.open.append((call, task, kind))
        if kind is ext.CallbackAnswer and self.random.random() < 0.8:
            hello = self.hostile.message(ext.Hello)
            hello.rmID = "bad"
            data = ext.CallbackAnswer(hello=hello).SerializeToString()
            with suppress(*GONE):
                await asyncio.wait_for(call.write(data), 5)

    async def _listen(self, call: Any) -> None:
        with suppress(*GONE):
            while await call.read() is not grpc.aio.EOF:
                pass

    async def _say(self) -> None:
        call, _, kind = self.random.choice(self.open)
        for _ in range(self.random.choice((1, 1, 3, 10))):
            if call.done():
                return
            self.sent += 1
            with suppress(*GONE):
                await asyncio.wait_for(call.write(self.hostile.data(kind)), 5)

    async def _end(self) -> None:
        if not self.open:
            return
        call, task, _ = self.open.pop(self.random.randrange(len(self.open)))
        if self.random.random() < 0.3:
            with suppress(*GONE):
                await call.done_writing()
            if self.random.random() < 0.5:
                await asyncio.sleep(0.01)
        if call.done():
            await self._outcome(call)
        else:
            call.cancel()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def leave(self) -> None:
        while self.open:
            await self._end()


GOOD, BAD = "the-token-of-the-faithful", "the-token-of-the-attacker"


@asynccontextmanager
async def besieged(folder: Path) -> AsyncIterator[tuple[House, Callable[[], Awaitable[None]]]]:
    """With one who behaves beside all that, and who is served when this is called."""
    access = access_by(folder, f"good rm:good plain:{GOOD}\nbad rm:bad,rm:nobody plain:{BAD}\n")
    pods = itertools.count(1)
    limits = Limits(introduction_s=1.0, backlog_bytes=4 << 20, predicate_timeout_s=0.2)
    async with house(limits=limits, access=access) as place:
        good = await place.rm("good", GOOD).begin()
        await good.has_node(vcore=1_000_000)
        await good.submits()

        async def is_served() -> None:
            number = next(pods)
            await good.say(ask("app-1", f"pod-{number}", 1))
            await until(lambda: len(good.allocations) == number, "the faithful one's pod")
            # what the scheduler says of itself is right, and no step of it failed
            assert place.service.read(lambda core: core.check()) == []
            assert place.service.failures == 0

        yield place, is_served


@pytest.mark.parametrize("seed", _seeds(2))
async def test_the_server_survives(seed: int, no_bugs: None, tmp_path: Path) -> None:
    before = limits_of_process.getrusage(limits_of_process.RUSAGE_SELF).ru_maxrss
    async with besieged(tmp_path) as (place, is_served):
        await is_served()
        attacker = Attack(place.channel(), seed)
        for _ in range(10):
            async with asyncio.timeout(5 * PATIENCE):
                await attacker.burst(100)
                await is_served()
        await attacker.leave()
        await is_served()
        await until(lambda: place.server.streams == 3, "the end of the attacker's streams")
    assert attacker.sent > 200
    after = limits_of_process.getrusage(limits_of_process.RUSAGE_SELF).ru_maxrss
    assert after - before < 300 * 1024  # KiB


@pytest.mark.parametrize("seed", _seeds(2))
async def test_a_clients_clock_may_say_anything(seed: int, no_bugs: None) -> None:
    """Steps with any numbers, and requests with anything in them."""
    hostile = Hostile(seed, "rm-1")
    random = hostile.random
    async with house(client_clock=True) as place:
        rm = await place.rm().begin()
        await rm.say(node("n1"))
        await rm.say(application("app-1", gang=2000))
        step = ext.StepRequest(rmID="rm-1", now=10**9, requests=[3, 2], schedule=True)
        await rm.extension.Step(step)
        clock = 10**9
        taken = 0
        kinds = ((1, si.AllocationRequest), (2, si.ApplicationRequest), (3, si.NodeRequest))
        for _ in range(60):
            asked = []
            for _ in range(random.randint(0, 3)):
                number, kind = random.choice(kinds)
                request = hostile.message(kind)
                request.rmID = "rm-1"
                fields = [field.name for field, _ in request.ListFields() if field.name != "rmID"]
                if fields and not any(wire.ended for wire in rm.wires.values()):
                    await rm.say(request)
                    if any(len(getattr(request, name)) for name in fields if name != "releases"):
                        asked.append(number)
            clock += random.choice((0, 1, 10**9, 40 * 10**9, 10**12))
            now = clock
            if random.random() < 0.1:
                now = random.choice((-(2**63), -1, 0, 2**62 + 1, 2**63 - 2, 2**63 - 1))
            step = ext.StepRequest(
                rmID=random.choice(("rm-1", "rm-1", "rm-1", "other")),
                now=now,
                requests=asked,
                advance=random.random() < 0.5,
                schedule=random.random() < 0.8,
                limit=random.choice((0, 0, 1, -1, 2**63 - 1)),
            )
            try:
                await asyncio.wait_for(rm.extension.Step(step), PATIENCE / 2)
                taken += 1
            except TimeoutError:
                break  # a request had nothing in it after all, so the step waits for it
            except grpc.aio.AioRpcError as error:
                assert error.code().name in EXPECTED, (error.code(), error.details(), step)
        await rm.lose()
        assert place.service.read(lambda core: core.check()) == []
        assert place.service.failures == 0
        assert taken > 5
