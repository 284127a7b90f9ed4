"""The client for programs on asyncio; `Client` is the same for all others."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import grpc

from quadriga.si import (
    AllocationRequest,
    ApplicationRequest,
    NodeRequest,
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    RequestError,
    ResourceManagerCallback,
    UpdateConfigurationRequest,
)
from quadriga.si.client import link as life
from quadriga.si.client.answers import Ask
from quadriga.si.client.backoff import Backoff
from quadriga.si.client.connection import Connection, Lost
from quadriga.si.client.errors import (
    ClientError,
    RegisterAgain,
    Unreachable,
    is_for_good,
    refusal,
    translated,
)
from quadriga.si.client.line import Line
from quadriga.si.client.outgoing import Outgoing
from quadriga.si.client.registration import Delivery, Registration
from quadriga.si.client.streams import STREAM_OF, STREAMS
from quadriga.si.client.tls import Tls
from quadriga.si.client.watcher import Watcher
from quadriga.si.extension.extension_pb2 import (
    Channel,
    ExplainRequest,
    ExplainResponse,
    Refused,
    ShutdownRequest,
    StepRequest,
    StepResponse,
)
from quadriga.si.v1.si_pb2_grpc import SchedulerStub
from quadriga.si.wire import EPOCH, IN_ORDER, Request

__all__ = ["MEBIBYTE", "AsyncClient", "Deliver"]

_log = logging.getLogger("quadriga.client")

MEBIBYTE: Final = 1024 * 1024

#: at most so many messages are delivered before they are confirmed
_BATCH: Final = 256
#: how long a call may still be answered once the streams have ended
_LAST_WORD_S: Final = 1.0

Deliver = Callable[[Sequence[Delivery]], Awaitable[None]]


class AsyncClient:
    """One resource manager's side towards a remote scheduler: `SchedulerAPI` with ``await``.

    `address` is ``host:port``. Without `tls` nothing is encrypted; a `token` is sent with every call
    as ``Authorization: Bearer``, beyond loopback only with `tls` (else `ValueError`) or if that is
    meant (`insecure`). What a lost connection interrupts goes on when it is back: `backoff`
    says when that is tried, `watcher` is told. Calls that need the scheduler wait up to `patience_s`
    for it. At most `most_waiting` requests of `most_waiting_bytes` altogether wait to be taken by
    the scheduler; beyond that `update_...` waits as well. A request has at most `most_request_bytes`,
    which is what servers let in.

    Methods of the callback and the watcher may be plain or ``async``. They are called one after
    another, except that questions (predicates) are answered while others are at work. Not safe for
    several threads.
    """

    def __init__(
        self,
        address: str,
        *,
        tls: Tls | None = None,
        token: str | None = None,
        insecure: bool = False,
        backoff: Backoff | None = None,
        watcher: Watcher | None = None,
        patience_s: float = 30.0,
        most_waiting: int = 10_000,
        most_waiting_bytes: int = 64 * MEBIBYTE,
        most_request_bytes: int = 4 * MEBIBYTE,
        deliver: Deliver | None = None,
        ask: Ask | None = None,
    ) -> None:
        self.address = address
        self._line = Line(address, tls, token, insecure=insecure)
        self._backoff = backoff or Backoff()
        self._watcher = watcher or Watcher()
        self._patience = patience_s
        self._most = (most_waiting, most_waiting_bytes)
        self._most_bytes = most_request_bytes
        self._deliver = deliver or _call_all
        self._ask = ask or _called
        self._link = life.Link(self._tell)
        self._registration = Registration("", None, Outgoing(*self._most))
        self._channel: grpc.aio.Channel | None = None
        #: calls with one answer that wait for it
        self._calls = 0
        self._connection: Connection | None = None
        self._registering = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None
        self._deliverer: asyncio.Task[None] | None = None
        self._something_to_deliver = asyncio.Event()
        self._news = asyncio.Event()

    @property
    def state(self) -> str:
        """The state of the connection (`quadriga.si.client.link`)."""
        return self._link.state

    @property
    def waiting(self) -> int:
        """How many requests the scheduler has not taken yet."""
        return len(self._registration.outgoing)

    # -- SchedulerAPI ----------------------------------------------------------------------------

    async def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> RegisterResourceManagerResponse:
        """Make the resource manager known, for the first time or anew (I5, I7).

        What was to be said or heard until now is forgotten. Raises `RequestError` for a registration
        that is refused, `PermissionError`, `Unreachable`, `ClientError`; an older one then stays.
        """
        self._must_be_open()
        if not (request.rmID.isascii() and request.rmID.isprintable()):
            raise RequestError(type(request).__name__, "rmID", "is not printable ASCII")
        async with self._registering:
            await self._hang_up()
            old = self._registration
            self._registration = Registration(request.rmID, callback, Outgoing(*self._most))
            try:
                response = await self._register(request)
            except BaseException:
                self._go_back_to(old)
                raise
            self._link.fire(life.REGISTER)
            if self._deliverer is None:
                self._deliverer = asyncio.create_task(self._deliver_all())
            self._keeper = asyncio.create_task(self._keep())
            return response

    async def update_allocation(self, request: AllocationRequest) -> None:
        """Add or change asks, release asks, release allocations (M2).

        Returns when the request is taken over, to be sent in its turn. Raises `RequestError` for an
        rmID that is not registered here, `RegisterAgain`, and `Unreachable` where too much waits.
        """
        await self._say(request)

    async def update_application(self, request: ApplicationRequest) -> None:
        """Add applications, then remove applications (M5); as `update_allocation`."""
        await self._say(request)

    async def update_node(self, request: NodeRequest) -> None:
        """Create, update, drain, undrain or remove nodes (M7); as `update_allocation`."""
        await self._say(request)

    async def update_configuration(self, request: UpdateConfigurationRequest) -> None:
        """Change queues and settings (I39), after all that was said before.

        Returns when that is done. Raises `RequestError`, `PermissionError`, `RegisterAgain`,
        `Unreachable`.
        """
        await self.flush()
        await self._call(lambda stub: stub.UpdateConfiguration, request)

    # -- more ------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Wait until the scheduler has taken all that was said until now. Raises `RegisterAgain`,
        and `Unreachable` where that takes too long."""
        outgoing = self._registration.outgoing
        wanted = outgoing.added
        await self._until(lambda: outgoing.over >= wanted, f"{self.waiting} requests wait")

    async def step(
        self,
        now: int,
        requests: Iterable[Channel] = (),
        *,
        advance: bool = False,
        schedule: bool = False,
        limit: int = 0,
    ) -> StepResponse:
        """Let time go on to `now` ns (with `advance` its timers fire too), take a request from each
        of these streams, then schedule; for a scheduler that runs by the client's clock.

        Returns when the callback has heard all that follows. Raises as `update_configuration`.
        """
        registration = self._registration
        request = StepRequest(
            rmID=registration.rm_id,
            now=now,
            advance=advance,
            requests=requests,
            schedule=schedule,
            limit=limit,
        )
        response = await self._call(lambda stub: stub.Step, request)
        assert isinstance(response, StepResponse)
        registration.stepped += len(response.messages)
        wanted = registration.stepped
        await self._until(lambda: registration.heard >= wanted, "the messages of a step are late")
        return response

    async def explain(
        self, application_id: str, allocation_key: str = "", partition: str = ""
    ) -> ExplainResponse:
        """Where an application is, and why one of its asks waits. Raises as `update_configuration`,
        `RequestError` for what the scheduler does not know."""
        request = ExplainRequest(
            rmID=self._registration.rm_id,
            partition=partition,
            applicationID=application_id,
            allocationKey=allocation_key,
        )
        response = await self._call(lambda stub: stub.Explain, request)
        assert isinstance(response, ExplainResponse)
        return response

    async def shutdown(self) -> None:
        """Leave for good, after all that was said: the scheduler drops the resource manager's state
        at once (I6). Raises as `update_configuration`; the client is closed in any case."""
        try:
            await self.flush()
            request = ShutdownRequest(rmID=self._registration.rm_id)
            await self._call(lambda stub: stub.Shutdown, request)
        finally:
            await self.close()

    async def close(self) -> None:
        """Just leave. The scheduler pauses the resource manager, and forgets it after a time (I6);
        what waits to be said or heard is given up. Safe to call twice."""
        self._link.fire(life.CLOSE)
        await self._hang_up()
        if self._deliverer is not None and self._deliverer is not asyncio.current_task():
            self._deliverer.cancel()
            await asyncio.gather(self._deliverer, return_exceptions=True)
            self._deliverer = None
        self._notify()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # -- saying ----------------------------------------------------------------------------------

    def _must_be_open(self) -> None:
        if self._link.state == life.CLOSED:
            raise ClientError("the client has been closed")

    def _must_be_registered(self) -> None:
        self._must_be_open()
        if self._link.state in life.UNKNOWN:
            raise RegisterAgain(f"resource manager {self._registration.rm_id!r} has to register")

    async def _say(self, request: Request) -> None:
        name = type(request).__name__
        self._must_be_registered()
        if request.rmID != self._registration.rm_id:
            said = f'received {name}, but RmID="{request.rmID}" not registered (I43)'
            raise RequestError(name, "rmID", said)
        data = request.SerializeToString()
        if len(data) > self._most_bytes:
            said = (
                f"has {len(data)} bytes, more than the {self._most_bytes} that may be sent at once"
            )
            raise RequestError(name, "", said)
        outgoing = self._registration.outgoing
        await self._until(lambda: outgoing.has_room(len(data)), f"{len(outgoing)} requests wait")
        outgoing.add(STREAM_OF[type(request)], data)
        if self._connection is not None:
            self._connection.say()

    async def _call(self, method: Callable[[Any], Any], request: Any) -> Any:
        """A call with one answer, over the connection of the streams."""
        await self._until(lambda: self._channel is not None, "there is no connection")
        assert self._channel is not None
        self._calls += 1
        try:
            return await self._line.call(self._channel, method, request)
        finally:
            self._calls -= 1

    async def _until(self, holds: Callable[[], bool], else_: str) -> None:
        """Wait until it holds. Raises `RegisterAgain` once nothing can make it hold any more."""
        self._must_be_registered()
        if holds():
            return
        try:
            async with asyncio.timeout(self._patience):
                while not holds():
                    await self._news.wait()
                    self._must_be_registered()
        except TimeoutError:
            raise Unreachable(f"{self.address}: {else_}, after {self._patience:g} s") from None

    def _notify(self) -> None:
        """Whoever waits looks again whether it holds now."""
        self._news.set()
        self._news = asyncio.Event()

    # -- hearing ---------------------------------------------------------------------------------

    def _heard(self) -> None:
        self._registration.hand_on()
        self._something_to_deliver.set()

    def _tell(self, state: str, why: str) -> None:
        if state != life.CLOSED:  # which whoever has closed it knows
            self._registration.undelivered.append((None, [(self._watcher.changed, (state, why))]))
            self._something_to_deliver.set()
        self._notify()

    def _refused(self, refused: Refused) -> None:
        request = STREAMS[refused.channel].request.FromString(refused.request)
        told = refusal(refused.reason, type(request).__name__)
        self._registration.undelivered.append((None, [(self._watcher.refused, (request, told))]))
        self._something_to_deliver.set()

    async def _deliver_all(self) -> None:
        while True:
            self._something_to_deliver.clear()
            registration = self._registration
            waiting = registration.undelivered
            if not waiting:
                await self._something_to_deliver.wait()
                continue
            batch = [waiting.popleft() for _ in range(min(len(waiting), _BATCH))]
            await self._deliver([call for _, calls in batch for call in calls])
            for stream, _ in batch:
                if stream is not None:
                    registration.delivered[stream] += 1
            if registration is self._registration and self._connection is not None:
                self._connection.confirm(registration.delivered)
            registration.relieved.set()
            self._notify()

    # -- connecting ------------------------------------------------------------------------------

    async def _register(
        self, request: RegisterResourceManagerRequest
    ) -> RegisterResourceManagerResponse:
        """Register and open the streams; tries again while the scheduler is out of reach."""
        now = asyncio.get_running_loop().time
        until = now() + self._patience
        for wait in self._backoff.waits():
            try:
                return await self._knock(request, until - now())
            except Lost as lost:
                await self._disconnect()
                if lost.error is None:
                    told: Exception = Unreachable(f"{self.address}: {lost.why}")
                else:
                    told = translated(lost.error, type(request).__name__, self.address)
                if not isinstance(told, Unreachable) or now() + wait >= until:
                    raise told from None
                self._must_be_open()
            except BaseException:
                await self._disconnect()
                raise
            await asyncio.sleep(wait)
        raise AssertionError("there is always another wait")

    def _go_back_to(self, old: Registration) -> None:
        """A registration was refused: the scheduler still knows the one before, if there was one."""
        self._registration = old
        if self._link.state in life.KNOWN:
            self._link.fire(life.LOSE, "another registration was refused")
            self._keeper = asyncio.create_task(self._keep())

    async def _knock(
        self, request: RegisterResourceManagerRequest, within_s: float
    ) -> RegisterResourceManagerResponse:
        channel = self._channel = self._line.dial()
        call = SchedulerStub(channel).RegisterResourceManager(
            request,
            metadata=(*self._line.metadata, (IN_ORDER, "yes")),
            timeout=max(0.001, within_s),
        )
        try:
            response = await self._line.answer_of(call)
            told = dict([*(await call.initial_metadata() or ())])
        except grpc.RpcError as error:
            raise Lost(error) from None
        if EPOCH not in told:
            raise ClientError(f"{self.address}: the scheduler does not number registrations")
        self._registration.epoch = str(told[EPOCH])
        await self._connect(channel)
        assert isinstance(response, RegisterResourceManagerResponse)
        return response

    async def _connect(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
        connection = Connection(
            channel,
            self._line.metadata,
            self._registration,
            ask=self._ask,
            heard=self._heard,
            taken=self._notify,
            refused=self._refused,
        )
        try:
            async with asyncio.timeout(self._patience):
                await connection.open()
        except TimeoutError:
            connection.close()
            raise Lost(None, f"no answer for {self._patience:g} s") from None
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    async def _keep(self) -> None:
        """Stay connected until the scheduler has forgotten us."""
        waits: Iterator[float] = self._backoff.waits()
        while True:
            try:
                if self._connection is None:
                    await self._connect(self._line.dial())
                    self._link.fire(life.RESUME)
                    waits = self._backoff.waits()
                assert self._connection is not None
                await self._connection.run()
            except Lost as lost:
                await self._disconnect()
                if is_for_good(lost.error):
                    self._link.fire(life.FORGET, lost.why)
                    return
                self._link.fire(life.LOSE, lost.why)
                await asyncio.sleep(next(waits))
            except Exception as error:  # whatever it was, nobody waits for ever
                _log.exception("the connection to the scheduler failed")
                await self._disconnect()
                self._link.fire(life.FORGET, repr(error))
                return

    async def _disconnect(self) -> None:
        channel, self._channel, self._connection = self._channel, None, None
        if channel is not None:
            # The streams may end before the answer comes that says why (``shutdown``).
            await channel.close(_LAST_WORD_S if self._calls else None)

    async def _hang_up(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
            self._keeper = None
        await self._disconnect()


async def _called(method: Callable[..., Any], *args: Any) -> Any:
    """What a method gives, plain or ``async``."""
    found = method(*args)
    return await found if inspect.isawaitable(found) else found


async def _call_all(calls: Sequence[Delivery]) -> None:
    for method, args in calls:
        try:
            await _called(method, *args)
        except Exception:
            _log.exception("a callback of the resource manager failed")
