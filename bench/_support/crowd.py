"""Resource managers (RMs) with different loads, each kind in a process of its own, against a served
scheduler: ``python -m bench._support.crowd``.

The process reads one line of JSON (a `Crowd` or a `Visitor`), registers, prints ``ready``, waits for a
line, and prints one line of JSON at the end. Bulk RMs send large requests and count the answers. A
visitor asks for one pod at a time at a steady rate, while other RMs register beside it from time to
time.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import grpc

from bench._support.rms import APPS, NODES, PATIENCE, QUEUES
from quadriga import si
from quadriga.si.extension.extension_pb2 import ShutdownRequest
from quadriga.si.extension.extension_pb2_grpc import ExtensionStub
from quadriga.si.v1.si_pb2_grpc import SchedulerStub
from quadriga.sim.scripted.script import resource

_WANT = resource({"vcore": 1000, "memory": 1000})


@dataclass(frozen=True, slots=True)
class Crowd:
    """Bulk RMs: each sends ``asks`` asks, ``batch`` in a message, as fast as it can."""

    port: int
    names: tuple[str, ...]
    asks: int
    batch: int


@dataclass(frozen=True, slots=True)
class Visitor:
    """One RM with ``rate`` asks a second until it is told to stop, and ``registrations`` of other RMs a
    second beside it."""

    port: int
    name: str
    rate: float
    registrations: float


@dataclass(slots=True)
class CrowdTold:
    """The result of a `Crowd`. ``placing`` is the time from the first ask to the last allocation (s),
    ``wrong`` the number of asks that were not answered exactly once."""

    allocations: int = 0
    wrong: int = 0
    placing: float = 0.0


@dataclass(slots=True)
class VisitorTold:
    """The result of a `Visitor`: the times from an ask to its allocation, and of each registration (s)."""

    latencies: list[float] = field(default_factory=list)
    registrations: list[float] = field(default_factory=list)
    wrong: int = 0


class _RM:
    def __init__(self, port: int, name: str) -> None:
        options = (("grpc.use_local_subchannel_pool", 1),)
        self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options)
        self.name = name

    async def begin(self, asks: int) -> None:
        """Register, with nodes that have room for this number of asks."""
        stub = SchedulerStub(self.channel)
        await stub.RegisterResourceManager(
            si.RegisterResourceManagerRequest(rmID=self.name, config=QUEUES)
        )
        metadata = (("quadriga-rm-id", self.name),)
        nodes: Any = stub.UpdateNode(metadata=metadata)
        apps: Any = stub.UpdateApplication(metadata=metadata)
        self.pods: Any = stub.UpdateAllocation(metadata=metadata)
        await self.pods.initial_metadata()
        room = resource(dict.fromkeys(("vcore", "memory"), 1000 * (asks // NODES + 1)))
        infos = [
            si.NodeInfo(nodeID=f"n{at:02}", action=si.NodeInfo.CREATE, schedulableResource=room)
            for at in range(NODES)
        ]
        await nodes.write(si.NodeRequest(nodes=infos))
        accepted = 0
        while accepted < NODES:
            accepted += len((await nodes.read()).accepted)
        user = si.UserGroupInformation(user="user", groups=["group"])
        new = [
            si.AddApplicationRequest(applicationID=f"app-{at}", queueName="root.a", ugi=user)
            for at in range(APPS)
        ]
        await apps.write(si.ApplicationRequest(new=new))
        await apps.read()
        self.calls = [self.pods, nodes, apps]
        self.reading = asyncio.create_task(_drain(apps))

    async def ask(self, numbers: range) -> None:
        request = si.AllocationRequest()
        for at in numbers:
            request.asks.add(
                allocationKey=f"pod-{at}",
                applicationID=f"app-{at % APPS}",
                resourceAsk=_WANT,
                maxAllocations=1,
            )
        await self.pods.write(request)

    async def end(self) -> None:
        self.reading.cancel()
        await asyncio.gather(self.reading, return_exceptions=True)
        for call in self.calls:
            call.cancel()
        await self.channel.close()


async def _drain(call: Any) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass


def _number(key: str) -> int:
    return int(key.removeprefix("pod-"))


# -- many asks -------------------------------------------------------------------------------------


async def _ask_for_all(rm: _RM, task: Crowd) -> tuple[int, int]:
    """The number of allocations, and the number of asks without one."""
    seen = bytearray(task.asks)

    async def listen() -> int:
        found = 0
        while found < task.asks:
            message = await rm.pods.read()
            found += len(message.new)
            for each in message.new:
                seen[_number(each.allocationKey)] += 1
        return found

    listening = asyncio.create_task(listen())
    for first in range(0, task.asks, task.batch):
        await rm.ask(range(first, min(first + task.batch, task.asks)))
    return await listening, task.asks - seen.count(1)


async def crowd(task: Crowd) -> CrowdTold:
    rms = [_RM(task.port, name) for name in task.names]
    for rm in rms:
        await rm.begin(task.asks)
    await _ready()
    told = CrowdTold()
    async with asyncio.timeout(PATIENCE):
        begin = perf_counter()
        found = await asyncio.gather(*(_ask_for_all(rm, task) for rm in rms))
        told.placing = perf_counter() - begin
    told.allocations = sum(allocations for allocations, _ in found)
    told.wrong = sum(wrong for _, wrong in found)
    for rm in rms:
        await rm.end()
    return told


# -- a few asks ------------------------------------------------------------------------------------


async def visit(task: Visitor) -> VisitorTold:
    rm = _RM(task.port, task.name)
    await rm.begin(1_000_000)
    await _ready()
    told = VisitorTold()
    sent: dict[int, float] = {}
    leaving = asyncio.Event()

    async def listen() -> None:
        while True:
            message = await rm.pods.read()
            now = perf_counter()
            for each in message.new:
                begin = sent.pop(_number(each.allocationKey), None)
                if begin is None:
                    told.wrong += 1
                else:
                    told.latencies.append(now - begin)

    async def ask() -> None:
        begin = perf_counter()
        at = 0
        while not leaving.is_set():
            await asyncio.sleep(begin + at / task.rate - perf_counter())
            sent[at] = perf_counter()
            await rm.ask(range(at, at + 1))
            at += 1

    async def register() -> None:
        scheduler, extension = SchedulerStub(rm.channel), ExtensionStub(rm.channel)
        at = 0
        while True:
            name = f"{task.name}-{at % 10}"
            begin = perf_counter()
            await scheduler.RegisterResourceManager(
                si.RegisterResourceManagerRequest(rmID=name, config=QUEUES)
            )
            told.registrations.append(perf_counter() - begin)
            await extension.Shutdown(ShutdownRequest(rmID=name))
            at += 1
            await asyncio.sleep(1 / task.registrations)

    asking, registering = asyncio.create_task(ask()), asyncio.create_task(register())
    listening = asyncio.create_task(listen())
    await asyncio.to_thread(sys.stdin.readline)
    leaving.set()
    await asking  # not cancelled: within ``write`` that would cancel the stream, and its answers
    registering.cancel()
    (result,) = await asyncio.gather(registering, return_exceptions=True)
    if not isinstance(result, asyncio.CancelledError):
        raise result if isinstance(result, BaseException) else AssertionError(result)
    with suppress(TimeoutError):
        async with asyncio.timeout(60):
            while sent:
                await asyncio.sleep(0.01)
    told.wrong += len(sent)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    await rm.end()
    return told


async def _ready() -> None:
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


def main() -> None:
    """Do one task, read from standard input, and print its result."""
    fields = json.loads(sys.stdin.readline())
    if "names" in fields:
        fields["names"] = tuple(fields["names"])
        told: Any = asyncio.run(crowd(Crowd(**fields)))
    else:
        told = asyncio.run(visit(Visitor(**fields)))
    print(json.dumps(dataclasses.asdict(told)), flush=True)


if __name__ == "__main__":
    main()
