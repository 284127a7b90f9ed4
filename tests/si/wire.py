"""A server on loopback, and a resource manager that says what a test lets it say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest

from quadriga import si
from quadriga.core import Options
from quadriga.core.driver.service import SchedulerService
from quadriga.si.extension.extension_pb2_grpc import ExtensionStub
from quadriga.si.server import Server
from quadriga.si.v1.si_pb2_grpc import SchedulerStub
from tests.si.requests import apps, asks, nodes

#: the longest wait for something that must happen, in s
PATIENCE = 120.0

QUEUES = """
partitions:
  - name: default
    placementrules: [{name: provided, create: true}]
    queues: [{name: root, submitacl: "*"}]
"""


class Clock:
    """Time that a test moves, in ns."""

    def __init__(self) -> None:
        self.now = 1_000_000_000

    def __call__(self) -> int:
        return self.now

    def pass_by(self, seconds: float) -> int:
        self.now += int(seconds * 1e9)
        return self.now


async def until(true: Callable[[], Any], what: str = "it") -> None:
    """Wait until it is true; fail when that takes too long."""
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.002)


def node(node_id: str, vcore: int = 4000) -> si.NodeRequest:
    return nodes(node_id, vcore=vcore, rm_id="")


def application(app_id: str, gang: int = 0) -> si.ApplicationRequest:
    hard = {"gang": {"vcore": gang}, "gangSchedulingStyle": "Hard"} if gang else {}
    return apps(app_id, rm_id="", partitionName="default", **hard)


def ask(app_id: str, key: str, vcore: int = 1000, **more: Any) -> si.AllocationRequest:
    return asks(app_id, key, vcore=vcore, rm_id="", partitionName="default", **more)


@dataclass
class Wire:
    """A stream, and what came out of it."""

    call: Any
    got: list[Any] = field(default_factory=list)
    task: asyncio.Task[None] | None = None
    #: how it ended
    error: grpc.aio.AioRpcError | None = None
    ended: bool = False

    def listen(self) -> Wire:
        self.task = asyncio.create_task(self._listen())
        return self

    async def _listen(self) -> None:
        try:
            while (message := await self.call.read()) is not grpc.aio.EOF:
                self.got.append(message)
            code = await self.call.code()
            if code is not grpc.StatusCode.OK:
                self.error = grpc.aio.AioRpcError(
                    code,
                    await self.call.initial_metadata(),
                    await self.call.trailing_metadata(),
                    await self.call.details(),
                )
        except grpc.aio.AioRpcError as error:
            self.error = error
        except (asyncio.CancelledError, asyncio.InvalidStateError):
            pass
        self.ended = True

    async def say(self, message: Any) -> None:
        await self.call.write(message)

    async def lose(self) -> None:
        """The connection breaks."""
        self.call.cancel()
        if self.task is not None:
            await asyncio.gather(self.task, return_exceptions=True)

    async def end(self) -> grpc.aio.AioRpcError | None:
        """Wait for its end; how it ended."""
        await until(lambda: self.ended, "the end of the stream")
        return self.error

    async def is_refused(self, code: str, beginning: str = "") -> None:
        """It ends, with this status and details that begin so."""
        await self.end()
        assert self.status[0] == code
        assert self.status[1].startswith(beginning)

    @property
    def status(self) -> tuple[str, str]:
        assert self.error is not None
        return self.error.code().name, self.error.details() or ""


async def refusal(call: Any) -> tuple[str, str]:
    """Status and details of a unary call that is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as found:
        await call
    return found.value.code().name, found.value.details() or ""


class RM:
    """A resource manager, stream by stream."""

    def __init__(self, channel: grpc.aio.Channel, rm_id: str = "rm-1", token: str = "") -> None:
        self.rm_id = rm_id
        self.channel = channel
        self.metadata = [("authorization", f"Bearer {token}")] if token else []
        self.scheduler = SchedulerStub(channel)
        self.extension = ExtensionStub(channel)
        self.wires: dict[str, Wire] = {}
        self.epoch = ""

    async def register(self, **more: Any) -> None:
        more.setdefault("config", QUEUES)
        request = si.RegisterResourceManagerRequest(rmID=self.rm_id, version="1.4", **more)
        call = self.scheduler.RegisterResourceManager(request, metadata=self.metadata)
        await call
        self.epoch = dict([*(await call.initial_metadata())])["quadriga-epoch"]

    def open(self, name: str, *, bound: bool = True, **metadata: Any) -> Wire:
        pairs = [*self.metadata, *((f"quadriga-{k}", str(v)) for k, v in metadata.items())]
        if bound:
            pairs.append(("quadriga-rm-id", self.rm_id))
        stub = self.extension if name == "Callbacks" else self.scheduler
        wire = self.wires[name] = Wire(getattr(stub, name)(metadata=pairs)).listen()
        return wire

    async def connect(self) -> None:
        """All three streams, bound."""
        for name in ("UpdateAllocation", "UpdateApplication", "UpdateNode"):
            await self.open(name).call.initial_metadata()

    async def begin(self) -> RM:
        await self.register()
        await self.connect()
        return self

    async def say(self, message: Any) -> None:
        await self.wires[f"Update{type(message).__name__.removesuffix('Request')}"].say(message)

    async def has_node(self, name: str = "n1", vcore: int = 4000) -> None:
        """It reports a node, which is accepted."""
        await self.say(node(name, vcore))
        await until(lambda: name in self.nodes)

    async def submits(self, app_id: str = "app-1", gang: int = 0) -> None:
        """It submits an application, which is accepted."""
        await self.say(application(app_id, gang))
        await until(lambda: app_id in self.applications)

    # -- what was heard --------------------------------------------------------------------------

    def heard(self, name: str, what: str) -> list[Any]:
        return [item for message in self.wires[name].got for item in getattr(message, what)]

    @property
    def allocations(self) -> list[Any]:
        return self.heard("UpdateAllocation", "new")

    @property
    def nodes(self) -> list[str]:
        return [each.nodeID for each in self.heard("UpdateNode", "accepted")]

    @property
    def applications(self) -> list[str]:
        return [each.applicationID for each in self.heard("UpdateApplication", "accepted")]

    def states(self, app_id: str) -> list[str]:
        updates = self.heard("UpdateApplication", "updated")
        return [each.state for each in updates if each.applicationID == app_id]

    async def lose(self) -> None:
        for wire in self.wires.values():
            await wire.lose()


@dataclass
class House:
    """A scheduler with its server, and channels to it."""

    service: SchedulerService
    server: Server
    clock: Clock | None
    channels: list[grpc.aio.Channel] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    def channel(self, **options: Any) -> grpc.aio.Channel:
        """A connection of its own."""
        pairs = [("grpc.use_local_subchannel_pool", 1), *options.items()]
        channel = grpc.aio.insecure_channel(self.address, options=pairs)
        self.channels.append(channel)
        return channel

    def rm(self, rm_id: str = "rm-1", token: str = "") -> RM:
        return RM(self.channel(), rm_id, token)

    async def state(self, rm_id: str = "rm-1") -> str:
        def look(scheduler: Any) -> str:
            return next(r.state for r in scheduler.resource_managers() if r.rm_id == rm_id)

        return await asyncio.wrap_future(self.service.read_later(look))

    async def becomes(self, state: str, rm_id: str = "rm-1") -> None:
        async with asyncio.timeout(PATIENCE):
            while await self.state(rm_id) != state:
                await asyncio.sleep(0.002)


@asynccontextmanager
async def house(*, virtual: bool = False, **more: Any) -> AsyncIterator[House]:
    """``virtual``: time stands still, and nothing is decided but in ``service.step``; with
    ``client_clock`` in a client's steps."""
    clock = Clock() if virtual else None
    manual: Any = {"manual": True, "clock": clock or (lambda: 0)}
    by_itself = clock is None and not more.get("client_clock")
    service = SchedulerService(more.pop("options", Options()), **({} if by_itself else manual))
    server = Server(service, **more)
    await server.start()
    place = House(service, server, clock)
    try:
        yield place
    finally:
        for channel in place.channels:
            await channel.close()
        await server.stop(0)
        service.stop()
