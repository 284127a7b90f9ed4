"""Resource managers in a process of their own, against a served scheduler: ``python -m bench._support.rms``.

The process reads one line of JSON (a `Task`), registers the RMs, prints ``ready`` and waits for a
line. Then all RMs send their asks at once, and the process prints one line of JSON (a `Told`). The
RMs use only the stubs and do as little as possible, because the server is what is measured.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from typing import Any, cast

import grpc

from quadriga import si
from quadriga.si.v1.si_pb2_grpc import SchedulerStub
from quadriga.sim.scripted.script import resource

QUEUES = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
"""
APPS = 4
NODES = 20
#: The longest that one RM may take for its whole task (s).
PATIENCE = 900.0


@dataclass(frozen=True, slots=True)
class Task:
    """Each RM sends ``asks`` asks, ``batch`` in a message, at most ``rate`` a second (0: as fast as it
    can), and with ``release`` releases all allocations again."""

    port: int
    names: tuple[str, ...]
    asks: int
    batch: int = 1
    rate: float = 0.0
    release: bool = True


@dataclass(slots=True)
class Told:
    """The result of a `Task`. Latencies are in s, from writing an ask to reading its allocation."""

    latencies: list[float] = field(default_factory=list)
    allocations: int = 0
    confirmations: int = 0
    #: Number of keys that were not answered exactly once.
    wrong: int = 0
    #: Times from the first ask to the last allocation, and from the first release to the last
    #: confirmation (s).
    placing: float = 0.0
    releasing: float = 0.0
    messages: int = 0


class _RM:
    def __init__(self, task: Task, name: str) -> None:
        self.task = task
        self.name = name
        self.sent: dict[str, float] = {}
        self.new: Counter[str] = Counter()
        self.released: Counter[str] = Counter()
        self.held: list[tuple[str, str, str]] = []
        self.latencies: list[float] = []
        self.messages = 0
        self.done = asyncio.Event()

    async def begin(self) -> None:
        options = (("grpc.use_local_subchannel_pool", 1),)
        self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{self.task.port}", options=options)
        stub = SchedulerStub(self.channel)
        await stub.RegisterResourceManager(
            si.RegisterResourceManagerRequest(rmID=self.name, config=QUEUES)
        )
        metadata = (("quadriga-rm-id", self.name),)
        self.nodes: Any = stub.UpdateNode(metadata=metadata)
        self.apps: Any = stub.UpdateApplication(metadata=metadata)
        self.pods: Any = stub.UpdateAllocation(metadata=metadata)
        await self.pods.initial_metadata()
        vcore = 1000 * (self.task.asks // NODES + 1)
        infos = [
            si.NodeInfo(
                nodeID=f"n{at:02}",
                action=si.NodeInfo.CREATE,
                schedulableResource=resource({"vcore": vcore, "memory": vcore}),
            )
            for at in range(NODES)
        ]
        await self.nodes.write(si.NodeRequest(nodes=infos))
        user = si.UserGroupInformation(user="user", groups=["group"])
        new = [
            si.AddApplicationRequest(applicationID=f"app-{at}", queueName="root.a", ugi=user)
            for at in range(APPS)
        ]
        await self.apps.write(si.ApplicationRequest(new=new))
        accepted = 0
        while accepted < NODES:
            accepted += len(cast("si.NodeResponse", await self.nodes.read()).accepted)
        await self.apps.read()
        self.listening = [
            asyncio.create_task(self._listen()),
            asyncio.create_task(_drain(self.apps)),
        ]

    async def _listen(self) -> None:
        wanted = self.task.asks
        while True:
            message = await self.pods.read()
            now = perf_counter()
            self.messages += 1
            for each in message.new:
                key = each.allocationKey
                self.latencies.append(now - self.sent[key])
                self.new[key] += 1
                self.held.append((each.UUID, each.applicationID, key))
            for each in message.released:
                self.released[each.UUID] += 1
            if message.new and self.new.total() >= wanted:
                self.done.set()
            if message.released and self.released.total() >= wanted:
                self.done.set()

    async def ask(self) -> None:
        task = self.task
        amount = resource({"vcore": 1000, "memory": 1000})
        numbers = iter(range(task.asks))
        begin, said = perf_counter(), 0
        while some := [*islice(numbers, task.batch)]:
            request = si.AllocationRequest()
            for at in some:
                request.asks.add(
                    allocationKey=f"pod-{at}",
                    applicationID=f"app-{at % APPS}",
                    resourceAsk=amount,
                    maxAllocations=1,
                )
            if task.rate:
                await asyncio.sleep(begin + said / task.rate - perf_counter())
            now = perf_counter()
            for at in some:
                self.sent[f"pod-{at}"] = now
            said += len(some)
            await self.pods.write(request)
        await self.done.wait()
        self.done.clear()

    async def release(self) -> None:
        for first in range(0, len(self.held), self.task.batch):
            request = si.AllocationRequest()
            for uuid, app, key in self.held[first : first + self.task.batch]:
                request.releases.allocationsToRelease.add(
                    partitionName="default",
                    applicationID=app,
                    UUID=uuid,
                    allocationKey=key,
                    terminationType=si.TerminationType.STOPPED_BY_RM,
                )
            await self.pods.write(request)
        await self.done.wait()

    @property
    def wrong(self) -> int:
        """The number of asks and releases that were not answered exactly once."""
        keys = [f"pod-{at}" for at in range(self.task.asks)]
        found = sum(self.new[key] != 1 for key in keys) + len(self.new.keys() - {*keys})
        if self.task.release:
            found += sum(self.released[uuid] != 1 for uuid, _, _ in self.held)
            found += len(self.released.keys() - {uuid for uuid, _, _ in self.held})
        return found

    async def end(self) -> None:
        for task in self.listening:
            task.cancel()
        await asyncio.gather(*self.listening, return_exceptions=True)
        for call in (self.nodes, self.apps, self.pods):
            call.cancel()
        await self.channel.close()


async def _drain(call: Any) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass


async def run(task: Task) -> Told:
    """Do the whole task."""
    rms = [_RM(task, name) for name in task.names]
    for rm in rms:
        await rm.begin()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    told = Told()
    async with asyncio.timeout(PATIENCE):
        begin = perf_counter()
        await asyncio.gather(*(rm.ask() for rm in rms))
        told.placing = perf_counter() - begin
        told.messages = sum(rm.messages for rm in rms)
        if task.release:
            begin = perf_counter()
            await asyncio.gather(*(rm.release() for rm in rms))
            told.releasing = perf_counter() - begin
    for rm in rms:
        told.latencies += rm.latencies
        told.allocations += rm.new.total()
        told.confirmations += rm.released.total()
        told.wrong += rm.wrong
        await rm.end()
    return told


def main() -> None:
    """Do one task, read from standard input, and print its result."""
    fields = json.loads(sys.stdin.readline())
    fields["names"] = tuple(fields["names"])
    print(json.dumps(dataclasses.asdict(asyncio.run(run(Task(**fields))))), flush=True)


if __name__ == "__main__":
    main()
