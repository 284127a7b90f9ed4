"""The client for asyncio programs. `Client` is its counterpart for programs with threads."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import grpc

from quadriga.base.pacing import Backoff
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
from quadriga.si.client import connection_state as states
from quadriga.si.client.callbacks import Ask
from quadriga.si.client.channels import ChannelFactory, Tls
from quadriga.si.client.connection import Connection, ConnectionLost
from quadriga.si.client.connection_state import Watcher
from quadriga.si.client.errors import (
    ClientError,
    RegisterAgain,
    Unreachable,
    is_permanent,
    refusal,
    to_exception,
)
from quadriga.si.client.outgoing import OutgoingRequests
from quadriga.si.client.registration import Delivery, Registration
from quadriga.si.client.streams import STREAM_OF, STREAMS
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

_log = logging.getLogger("quadriga.client")

MEBIBYTE: Final = 1024 * 1024

#: at most this many messages are delivered before they are confirmed together
_DELIVERY_BATCH: Final = 256
#: pending calls have this long to receive their answers after the streams have ended, in s
_CALL_GRACE_S: Final = 1.0

Deliver = Callable[[Sequence[Delivery]], Awaitable[None]]


class AsyncClient:
    """A resource manager's connection to a remote scheduler: `SchedulerAPI` with ``await``.

    `address` is ``host:port``. Without `tls` the connection is not encrypted. A `token` is sent
    with every call as ``Authorization: Bearer``; beyond loopback it needs `tls` (else `ValueError`)
    or `insecure`. A lost connection is restored and work resumes: `backoff` decides when, and
    `watcher` is informed. Calls that need the scheduler wait for it up to `timeout_s`. At most
    `max_pending` requests of together `max_pending_bytes` wait to be taken by the scheduler; beyond
    that `update_...` waits as well. A request has at most `max_request_bytes`, which is the limit
    of servers.

    Methods of the callback and the watcher may be plain or ``async``. They are called one after
    another, except that questions (predicates) are answered at the same time. Not safe for threads.
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
        timeout_s: float = 30.0,
        max_pending: int = 10_000,
        max_pending_bytes: int = 64 * MEBIBYTE,
        max_request_bytes: int = 4 * MEBIBYTE,
        deliver: Deliver | None = None,
        ask: Ask | None = None,
    ) -> None:
        self.address = address
        self._channels = ChannelFactory(address, tls, token, insecure=insecure)
        self._backoff = backoff or Backoff()
        self._watcher = watcher or Watcher()
        self._timeout = timeout_s
        self._max_pending = (max_pending, max_pending_bytes)
        self._max_bytes = max_request_bytes
        self._deliver = deliver or _call_all
        self._ask = ask or _called
        self._state = states.ConnectionState(self._on_state_change)
        self._registration = Registration("", None, OutgoingRequests(*self._max_pending))
        self._channel: grpc.aio.Channel | None = None
        #: number of unary calls that wait for their answers
        self._calls = 0
        self._connection: Connection | None = None
        self._registering = asyncio.Lock()
        self._connection_task: asyncio.Task[None] | None = None
        self._delivery_task: asyncio.Task[None] | None = None
        self._wake_delivery = asyncio.Event()
        self._progress = asyncio.Event()

    @property
    def state(self) -> str:
        """The state of the connection (`quadriga.si.client.connection_state`)."""
        return self._state.state

    @property
    def waiting(self) -> int:
        """The number of requests that the scheduler has not taken yet."""
        return len(self._registration.outgoing)

    # -- SchedulerAPI ----------------------------------------------------------------------------

    async def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> RegisterResourceManagerResponse:
        """Register the resource manager, for the first time or again (I5, I7).

        Pending requests and messages of an earlier registration are dropped. If the registration is
        refused, the earlier one stays. Raises `RequestError`, `PermissionError`, `Unreachable`,
        `ClientError`.
        """
        self._check_open()
        if not (request.rmID.isascii() and request.rmID.isprintable()):
            raise RequestError(type(request).__name__, "rmID", "is not printable ASCII")
        async with self._registering:
            await self._stop_connection()
            old = self._registration
            self._registration = Registration(
                request.rmID, callback, OutgoingRequests(*self._max_pending)
            )
            try:
                response = await self._register(request)
            except BaseException:
                self._restore(old)
                raise
            self._state.fire(states.REGISTER)
            if self._delivery_task is None:
                self._delivery_task = asyncio.create_task(self._deliver_all())
            self._connection_task = asyncio.create_task(self._stay_connected())
            return response

    async def update_allocation(self, request: AllocationRequest) -> None:
        """Add or change asks, release asks, release allocations (M2).

        Returns when the request is queued. Raises `RequestError` for an rmID that is not registered
        here, `RegisterAgain`, and `Unreachable` if the queue stays full.
        """
        await self._send(request)

    async def update_application(self, request: ApplicationRequest) -> None:
        """Add applications, then remove applications (M5). Returns and raises like
        `update_allocation`."""
        await self._send(request)

    async def update_node(self, request: NodeRequest) -> None:
        """Create, update, drain, undrain or remove nodes (M7). Returns and raises like
        `update_allocation`."""
        await self._send(request)

    async def update_configuration(self, request: UpdateConfigurationRequest) -> None:
        """Change queues and settings (I39), after all requests that were made before.

        Returns when the new configuration is in force. Raises `RequestError`, `PermissionError`,
        `RegisterAgain`, `Unreachable`.
        """
        await self.flush()
        await self._call(lambda stub: stub.UpdateConfiguration, request)

    # -- more ------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Wait until the scheduler has taken all requests that were made before. Raises
        `RegisterAgain`, and `Unreachable` after the timeout."""
        outgoing = self._registration.outgoing
        wanted = outgoing.added
        await self._until(lambda: outgoing.done >= wanted, f"{self.waiting} requests wait")

    async def step(
        self,
        now: int,
        requests: Iterable[Channel] = (),
        *,
        advance: bool = False,
        schedule: bool = False,
        limit: int = 0,
    ) -> StepResponse:
        """Advance the clock of a scheduler that runs by the client's clock to `now` ns, take one
        request from each of these streams, then schedule. With `advance`, timers that are due at
        `now` fire too.

        Returns when the callback has received all resulting messages. Raises like
        `update_configuration`.
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
        await self._until(
            lambda: registration.delivered_count >= wanted, "the messages of a step are late"
        )
        return response

    async def explain(
        self,
        application_id: str,
        allocation_key: str = "",
        partition: str = "",
        *,
        predicates: bool = True,
    ) -> ExplainResponse:
        """Where an application is, and why one of its asks waits; with ``predicates`` also by what this
        resource manager has answered about nodes. Raises like `update_configuration`; `RequestError`
        for unknown names."""
        request = ExplainRequest(
            rmID=self._registration.rm_id,
            partition=partition,
            applicationID=application_id,
            allocationKey=allocation_key,
            withoutPredicates=not predicates,
        )
        response = await self._call(lambda stub: stub.Explain, request)
        assert isinstance(response, ExplainResponse)
        return response

    async def shutdown(self) -> None:
        """Leave for good after all requests that were made before: the scheduler drops the resource
        manager's state at once (I6). Raises like `update_configuration`; the client is closed in
        any case."""
        try:
            await self.flush()
            request = ShutdownRequest(rmID=self._registration.rm_id)
            await self._call(lambda stub: stub.Shutdown, request)
        finally:
            await self.close()

    async def close(self) -> None:
        """Disconnect. The scheduler pauses the resource manager and drops it after a time (I6).
        Pending requests and messages are dropped. May be called twice."""
        self._state.fire(states.CLOSE)
        await self._stop_connection()
        if self._delivery_task is not None and self._delivery_task is not asyncio.current_task():
            self._delivery_task.cancel()
            await asyncio.gather(self._delivery_task, return_exceptions=True)
            self._delivery_task = None
        self._notify()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # -- saying ----------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._state.state == states.CLOSED:
            raise ClientError("the client has been closed")

    def _check_registered(self) -> None:
        self._check_open()
        if self._state.state in states.UNKNOWN:
            raise RegisterAgain(f"resource manager {self._registration.rm_id!r} has to register")

    async def _send(self, request: Request) -> None:
        name = type(request).__name__
        self._check_registered()
        if request.rmID != self._registration.rm_id:
            reason = f'received {name}, but RmID="{request.rmID}" not registered'
            raise RequestError(name, "rmID", reason)
        data = request.SerializeToString()
        if len(data) > self._max_bytes:
            reason = (
                f"has {len(data)} bytes, more than the {self._max_bytes} that one request may have"
            )
            raise RequestError(name, "", reason)
        outgoing = self._registration.outgoing
        await self._until(lambda: outgoing.has_room(len(data)), f"{len(outgoing)} requests wait")
        outgoing.add(STREAM_OF[type(request)], data)
        if self._connection is not None:
            self._connection.wake()

    async def _call(self, method: Callable[[Any], Any], request: Any) -> Any:
        """Make a unary call, over the connection of the streams."""
        await self._until(lambda: self._channel is not None, "there is no connection")
        assert self._channel is not None
        self._calls += 1
        try:
            return await self._channels.call(self._channel, method, request)
        finally:
            self._calls -= 1

    async def _until(self, holds: Callable[[], bool], else_: str) -> None:
        """Wait until the condition holds. Raises `RegisterAgain` if the registration is lost
        meanwhile, and `Unreachable` after the timeout."""
        self._check_registered()
        if holds():
            return
        try:
            async with asyncio.timeout(self._timeout):
                while not holds():
                    await self._progress.wait()
                    self._check_registered()
        except TimeoutError:
            raise Unreachable(f"{self.address}: {else_}, after {self._timeout:g} s") from None

    def _notify(self) -> None:
        """Wake up all waiters, so that they check their conditions again."""
        self._progress.set()
        self._progress = asyncio.Event()

    # -- hearing ---------------------------------------------------------------------------------

    def _on_messages(self) -> None:
        self._registration.deliver_ready()
        self._wake_delivery.set()

    def _on_state_change(self, state: str, why: str) -> None:
        if state != states.CLOSED:  # the caller of `close` knows
            self._registration.undelivered.append((None, [(self._watcher.changed, (state, why))]))
            self._wake_delivery.set()
        self._notify()

    def _on_refused(self, refused: Refused) -> None:
        request = STREAMS[refused.channel].request.FromString(refused.request)
        error = refusal(refused.reason, type(request).__name__)
        self._registration.undelivered.append((None, [(self._watcher.refused, (request, error))]))
        self._wake_delivery.set()

    async def _deliver_all(self) -> None:
        while True:
            self._wake_delivery.clear()
            registration = self._registration
            waiting = registration.undelivered
            if not waiting:
                await self._wake_delivery.wait()
                continue
            batch = [waiting.popleft() for _ in range(min(len(waiting), _DELIVERY_BATCH))]
            await self._deliver([call for _, calls in batch for call in calls])
            for stream, _ in batch:
                if stream is not None:
                    registration.delivered[stream] += 1
            if registration is self._registration and self._connection is not None:
                self._connection.confirm(registration.delivered)
            registration.delivered_some.set()
            self._notify()

    # -- connecting ------------------------------------------------------------------------------

    async def _register(
        self, request: RegisterResourceManagerRequest
    ) -> RegisterResourceManagerResponse:
        """Register and open the streams; retry while the scheduler is out of reach."""
        now = asyncio.get_running_loop().time
        until = now() + self._timeout
        for wait in self._backoff.waits():
            try:
                return await self._register_once(request, until - now())
            except ConnectionLost as lost:
                await self._disconnect()
                if lost.error is None:
                    error: Exception = Unreachable(f"{self.address}: {lost.why}")
                else:
                    error = to_exception(lost.error, type(request).__name__, self.address)
                if not isinstance(error, Unreachable) or now() + wait >= until:
                    raise error from None
                self._check_open()
            except BaseException:
                await self._disconnect()
                raise
            await asyncio.sleep(wait)
        raise AssertionError("there is always another wait")

    def _restore(self, old: Registration) -> None:
        """Return to the earlier registration after a refused one: the scheduler still knows it, if
        there was one."""
        self._registration = old
        if self._state.state in states.KNOWN:
            self._state.fire(states.LOSE, "another registration was refused")
            self._connection_task = asyncio.create_task(self._stay_connected())

    async def _register_once(
        self, request: RegisterResourceManagerRequest, within_s: float
    ) -> RegisterResourceManagerResponse:
        channel = self._channel = self._channels.dial()
        call = SchedulerStub(channel).RegisterResourceManager(
            request,
            metadata=(*self._channels.metadata, (IN_ORDER, "yes")),
            timeout=max(0.001, within_s),
        )
        try:
            response = await self._channels.answer_of(call)
            metadata = dict([*(await call.initial_metadata() or ())])
        except grpc.RpcError as error:
            raise ConnectionLost(error) from None
        if EPOCH not in metadata:
            raise ClientError(f"{self.address}: the scheduler does not number registrations")
        self._registration.epoch = str(metadata[EPOCH])
        await self._connect(channel)
        assert isinstance(response, RegisterResourceManagerResponse)
        return response

    async def _connect(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
        connection = Connection(
            channel,
            self._channels.metadata,
            self._registration,
            ask=self._ask,
            on_messages=self._on_messages,
            on_taken=self._notify,
            on_refused=self._on_refused,
        )
        try:
            async with asyncio.timeout(self._timeout):
                await connection.open()
        except TimeoutError:
            connection.close()
            raise ConnectionLost(None, f"no answer for {self._timeout:g} s") from None
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    async def _stay_connected(self) -> None:
        """Stay connected until the scheduler no longer knows the resource manager."""
        waits: Iterator[float] = self._backoff.waits()
        while True:
            try:
                if self._connection is None:
                    await self._connect(self._channels.dial())
                    self._state.fire(states.RESUME)
                    waits = self._backoff.waits()
                assert self._connection is not None
                await self._connection.run()
            except ConnectionLost as lost:
                await self._disconnect()
                if is_permanent(lost.error):
                    self._state.fire(states.FORGET, lost.why)
                    return
                self._state.fire(states.LOSE, lost.why)
                await asyncio.sleep(next(waits))
            except Exception as error:  # unexpected, but waiters must learn of it
                _log.exception("the connection to the scheduler failed")
                await self._disconnect()
                self._state.fire(states.FORGET, repr(error))
                return

    async def _disconnect(self) -> None:
        channel, self._channel, self._connection = self._channel, None, None
        if channel is not None:
            # The streams may end before the answer of the call that ended them (``shutdown``).
            await channel.close(_CALL_GRACE_S if self._calls else None)

    async def _stop_connection(self) -> None:
        if self._connection_task is not None:
            self._connection_task.cancel()
            await asyncio.gather(self._connection_task, return_exceptions=True)
            self._connection_task = None
        await self._disconnect()


async def _called(method: Callable[..., Any], *args: Any) -> Any:
    """Call a method, plain or ``async``, and return its result."""
    found = method(*args)
    return await found if inspect.isawaitable(found) else found


async def _call_all(calls: Sequence[Delivery]) -> None:
    for method, args in calls:
        try:
            await _called(method, *args)
        except Exception:
            _log.exception("a callback of the resource manager failed")
