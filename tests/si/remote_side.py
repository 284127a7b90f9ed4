"""A scheduler behind a server, and resource managers that write down what they hear."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from quadriga.core import Options, Scheduler
from quadriga.core.driver.service import SchedulerService
from quadriga.si import AllocationResponse, EventRecord, NullCallback, RequestError
from quadriga.si.client import Backoff, Client, Watcher
from quadriga.si.server import Limits, Server
from quadriga.sim import RemoteScheduler
from quadriga.sim.scripted.script import Script
from tests.si.requests import register

#: nothing here takes this long; it only ends a test that would hang
PATIENCE = 120.0

#: comes back soon, and always after the same waits
SOON = Backoff(first_s=0.01, most_s=0.05, draw=lambda: 0.5)

T = TypeVar("T")


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="test server")
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Serving:
    """A scheduler served on loopback. With ``steps`` it goes by its client's clock."""

    def __init__(
        self,
        *,
        steps: bool = False,
        service: SchedulerService | None = None,
        options: Options | None = None,
        limits: Limits | None = None,
        **more: Any,
    ) -> None:
        if service is None:
            manual: dict[str, Any] = {"manual": True, "clock": lambda: 0} if steps else {}
            service = SchedulerService(
                options or Options(journal_size=None, gang_admission="whole"), **manual
            )
        self.service = service
        self._loop = Loop()
        self._make: Callable[[], Server] = lambda: Server(
            service, client_clock=steps, limits=limits, **{"address": self.address, **more}
        )
        self.address = "127.0.0.1:0"
        self.server: Server
        self._begin()
        self.address = f"127.0.0.1:{self.port}"

    def _begin(self) -> None:
        async def begin() -> None:
            self.server = self._make()
            self.port = await self.server.start()

        self._loop.do(begin())

    def restart(self) -> None:
        """The server is another one now, on the same port; the scheduler is as it was."""
        self._loop.do(self.server.stop(0))
        self._begin()

    def stop(self) -> None:
        self._loop.do(self.server.stop(0))
        self._loop.stop()
        self.service.stop()

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


class Wire:
    """A network between a client and a server, which can fail."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._loop = Loop()
        self._open: set[asyncio.StreamWriter] = set()
        self._listener: asyncio.Server | None = None
        #: connections that were made
        self.calls = 0
        self.port = 0
        self.mend()
        self.address = f"127.0.0.1:{self.port}"

    def mend(self) -> None:
        """Let through what comes."""

        async def listen() -> None:
            self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            self.port = self._listener.sockets[0].getsockname()[1]

        self._loop.do(listen())

    def cut(self, *, mend: bool = False) -> None:
        """Every connection breaks, and nobody gets through after that unless it is mended."""

        async def stop() -> None:
            if self._listener is not None and not mend:
                self._listener.close()
                self._listener = None
            # A client may be back before the last of its old connections has ended.
            now = {*self._open}
            while broken := (self._open & now if mend else {*self._open}):
                for writer in broken:
                    writer.transport.abort()
                await asyncio.sleep(0)

        self._loop.do(stop())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        self._open.add(writer)
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            self._open.add(far_writer)
            try:
                ways = _carry(reader, far_writer), _carry(far_reader, writer)
                await asyncio.wait([asyncio.ensure_future(way) for way in ways])
            finally:
                self._open.discard(far_writer)
        except OSError:
            writer.transport.abort()
        finally:
            self._open.discard(writer)

    def stop(self) -> None:
        self.cut()
        self._loop.stop()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.transport.abort()


class Heard(NullCallback):
    """Writes down all messages, in order, and lets a test wait for what it expects."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.events: list[EventRecord] = []
        self._placed = 0
        self._changed = threading.Condition()

    def _note(self, message: Any) -> None:
        with self._changed:
            self.messages.append(message)
            self._placed += len(placed([message]))
            self._changed.notify_all()

    update_allocation = _note  # type: ignore[assignment]
    update_application = _note  # type: ignore[assignment]
    update_node = _note  # type: ignore[assignment]
    update_container_scheduling_state = _note  # type: ignore[assignment]

    def send_event(self, events: Sequence[EventRecord]) -> None:
        with self._changed:
            self.events.extend(events)
            self._changed.notify_all()

    def wait_for(self, what: Callable[[list[Any]], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: what(self.messages), PATIENCE), self.messages

    def wait_for_placed(self, count: int) -> None:
        """Until so many allocations were said, and no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._placed >= count, PATIENCE)
            told = f"{self._placed} of {count} in {len(self.messages)} messages"
            assert self._placed == count, told


def placed(messages: list[Any]) -> list[str]:
    """The keys of all allocations that were said, in order."""
    return [
        new.allocationKey
        for message in messages
        if isinstance(message, AllocationResponse)
        for new in message.new
    ]


class Told(Watcher):
    """Writes down the states of the connection, and what was refused."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.refusals: list[tuple[Any, RequestError]] = []
        self._changed = threading.Condition()

    def changed(self, state: str, why: str) -> None:
        with self._changed:
            self.states.append(state)
            self._changed.notify_all()

    def refused(self, request: Any, error: RequestError) -> None:
        with self._changed:
            self.refusals.append((request, error))
            self._changed.notify_all()

    def wait_for(self, what: Callable[[Told], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: what(self), PATIENCE), self.states


class OverTheWire(RemoteScheduler):
    """What a `Script` needs of a scheduler, over gRPC; its invariants are looked at where it is."""

    def __init__(self, serving: Serving, client: Client, questions: Any = None) -> None:
        super().__init__(client, questions)
        self._serving = serving

    def check(self) -> list[str]:
        return self._serving.service.scheduler.check()


class RemoteScript(Script):
    """A script whose scheduler is behind a server that goes by the script's clock."""

    def __init__(self, *args: Any, **how: Any) -> None:
        options = how.pop("options", None)
        self.serving = Serving(steps=True, options=options)
        self.client = Client(self.serving.address, backoff=SOON, timeout_s=PATIENCE)
        try:
            wire: Any = OverTheWire(self.serving, self.client, how.pop("questions", None))
            super().__init__(*args, scheduler=wire, **how)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        self.client.close()
        self.serving.stop()


def until(serving: Serving, holds: Callable[[Scheduler], bool]) -> None:
    """Wait for what becomes of the scheduler by itself; each look is a turn of its owner."""
    deadline = time.monotonic() + PATIENCE
    while not serving.service.read(holds):
        assert time.monotonic() < deadline, "it did not come to that"


def state_of(scheduler: Scheduler, rm_id: str = "rm") -> str:
    return next((rm.state for rm in scheduler.resource_managers() if rm.rm_id == rm_id), "")


Make = Callable[..., Client]


def registered(make: Make, **how: Any) -> tuple[Client, Heard]:
    """A client of resource manager ``rm``, and what it hears; ``heard`` is that, if it is given."""
    heard = how.pop("heard", None) or Heard()
    rm = make(**how)
    rm.register_resource_manager(register(), heard)
    return rm, heard
