"""The gRPC server: authentication of calls, unary calls, streams, start and stop (I2, I6, I7)."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic_ns
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection, reflection_pb2

from quadriga.base.pacing import TokenBucket
from quadriga.si.access import Access, Principal
from quadriga.si.api import RequestError
from quadriga.si.extension.extension_pb2 import (
    ExplainRequest,
    ExplainResponse,
    FailedCheck,
    ReservedNode,
    ShutdownRequest,
    ShutdownResponse,
    StepRequest,
    StepResponse,
    UpdateConfigurationResponse,
)
from quadriga.si.server.authentication import (
    Context,
    Tls,
    authenticate,
    authorize,
    integer_metadata,
    metadata,
)
from quadriga.si.server.channels import CALLBACK, MESSAGE_OF, RPC_OF, SI_CHANNELS
from quadriga.si.server.connections import Connections
from quadriga.si.server.driver import Driver, Served
from quadriga.si.server.interceptor import StrictInterceptor
from quadriga.si.server.limits import LONGEST_ID, Limits
from quadriga.si.server.registry import Registry
from quadriga.si.server.session import Session
from quadriga.si.server.single_thread import SingleThreadDriver
from quadriga.si.server.status import StatusError, status_of
from quadriga.si.server.stepping import step
from quadriga.si.server.streams import Stream, parse, rm_id_of
from quadriga.si.v1.si_pb2 import (
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    UpdateConfigurationRequest,
)
from quadriga.si.wire import EPOCH, IN_ORDER, RECEIVED, RM_ID, is_loopback

_log = logging.getLogger("quadriga.grpc")

SI_SERVICE = "si.v1.Scheduler"
EXTENSION_SERVICE = "quadriga.v1.Extension"

Code = grpc.StatusCode

#: the server remembers at most this many rmIDs for each resource manager that may be registered
_IDS_PER_REGISTRATION = 16
#: a connection without calls is closed after this time, in ms; a resource manager keeps its streams
#: open
_IDLE_MS = 600_000
#: time between two looks at the number of connections, in s; and while they are too many
_LOOK_S, _LOOK_SOON_S = 1.0, 0.1
#: a configuration longer than this, in characters, is parsed in a thread
_LARGE = 4096


class Server:
    """Serves a scheduler on ``address``: ``host:port``, where port 0 is any free one, or
    ``unix:path``.

    Without ``tls`` the address must be on loopback, unless ``insecure`` allows plaintext. With
    ``client_clock`` time advances by the ``Step`` calls of a client; the service must then have no
    thread of its own.

    Use it in one event loop: ``await start()``, ``await stop(grace)``.
    """

    def __init__(
        self,
        service: Driver,
        *,
        access: Access | None = None,
        address: str = "127.0.0.1:0",
        tls: Tls | None = None,
        limits: Limits | None = None,
        client_clock: bool = False,
        insecure: bool = False,
    ) -> None:
        if tls is None and not insecure and not is_loopback(address):
            raise ValueError(
                f"plaintext on {address} can be read by others: use TLS, or set insecure=True"
            )
        self.access = access if access is not None else Access.open()
        self.limits = limits if limits is not None else Limits()
        self.port = 0
        #: number of refused calls and streams, by status
        self.refused: Counter[str] = Counter()
        self._steps = SingleThreadDriver(service) if client_clock else None
        self._driver: Served = self._steps or service
        self._address = address
        self._tls = tls
        self._renewed: grpc.ServerCertificateConfiguration | None = None
        self.registry = Registry(self._driver, self.limits, client_clock=client_clock)
        self._stepping = asyncio.Lock()
        self._preparing = asyncio.Lock()
        #: rmID -> number of its open streams; the key is "" until a stream has named its resource
        #: manager
        self._streams: Counter[str] = Counter()
        self.connections = Connections(self.limits)
        self._server: grpc.aio.Server | None = None
        self._health: Any = None
        self._bucket: TokenBucket | None = None

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> int:
        """Listen, and return the port. Raises ``OSError`` if the address cannot be used,
        ``ValueError`` for unusable certificates."""
        limits = self.limits
        options = [
            ("grpc.max_receive_message_length", limits.message_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", 16 << 10),
            ("grpc.max_concurrent_streams", limits.streams_per_rm * 4),
            ("grpc.so_reuseport", 0),
            # a further connection is closed at once
            ("grpc.max_allowed_incoming_connections", self.connections.most),
            # close connections that never speak HTTP/2, and connections that have had no call for
            # long
            ("grpc.server_handshake_timeout_ms", max(1000, int(limits.introduction_s * 1000))),
            ("grpc.max_connection_idle_ms", _IDLE_MS),
            ("grpc.keepalive_time_ms", int(limits.keepalive_s * 1000)),
            ("grpc.keepalive_timeout_ms", int(limits.keepalive_timeout_s * 1000)),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
        ]
        self._bucket = TokenBucket(limits.requests_per_second, limits.request_burst)
        interceptor = StrictInterceptor(limits.streams, self.connections)
        server = grpc.aio.server(interceptors=[interceptor], options=options)
        server.add_generic_rpc_handlers((self._si_handlers(), self._extension_handlers()))
        self._health = health_aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = (SI_SERVICE, EXTENSION_SERVICE, "grpc.health.v1.Health")
        add_reflection(server, names)
        for name in names[:2]:
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        try:
            if self._tls is not None:
                self.port = server.add_secure_port(
                    self._address, self._tls.credentials(self._pop_renewed)
                )
            else:
                self.port = server.add_insecure_port(self._address)
        except RuntimeError as error:
            raise OSError(f"gRPC cannot listen on {self._address}: {error}") from None
        if not self.port and not self._address.startswith("unix:"):
            raise OSError(f"gRPC cannot listen on {self._address}")
        await server.start()
        self._server = server
        self.registry.spawn(self.registry.sweep())
        self.connections.port = self.port
        self.registry.spawn(self._close_surplus())
        return self.port

    async def _close_surplus(self) -> None:
        """Keep the bounds of connections."""
        connections, closed = self.connections, 0
        while True:
            await asyncio.sleep(_LOOK_SOON_S if closed else _LOOK_S)
            closed = await asyncio.to_thread(connections.close_surplus, connections.busy())

    async def stop(self, grace: float | None = 5.0) -> None:
        """Announce the stop, let calls finish for ``grace`` seconds, and end the rest. The
        scheduler keeps running, with the state of all resource managers."""
        self.registry.stopping = True
        if self._server is None:
            return
        await self._health.enter_graceful_shutdown()
        status = StatusError(
            Code.UNAVAILABLE, "I8", "the scheduler stops: connect again, then register"
        )
        for session in self.registry.sessions.values():
            for stream in [*session.streams.values()]:
                stream.end(status)
        await self._server.stop(grace)
        await self.registry.stop(status)
        if self._steps is not None:
            self._steps.stop()
        self._server = None

    def renew_certificates(self) -> None:
        """Read the TLS files again, for new connections. Raises ``ValueError`` and changes nothing
        if they are unusable."""
        if self._tls is not None:
            self._renewed = self._tls.configuration()

    def _pop_renewed(self) -> grpc.ServerCertificateConfiguration | None:
        """Called by gRPC for every new connection."""
        found, self._renewed = self._renewed, None
        return found

    # -- looking ---------------------------------------------------------------------------------

    @property
    def sessions(self) -> dict[str, Session]:
        """The sessions of all registered resource managers, by id."""
        return dict(self.registry.sessions)

    @property
    def streams(self) -> int:
        """The number of open streams."""
        return self._streams.total()

    # -- handlers --------------------------------------------------------------------------------

    def _si_handlers(self) -> grpc.GenericRpcHandler:
        handlers: dict[str, Any] = {
            RPC_OF[channel]: grpc.stream_stream_rpc_method_handler(self._stream_of(channel))
            for channel in SI_CHANNELS
        }
        handlers["RegisterResourceManager"] = self._unary(
            RegisterResourceManagerRequest, self._register
        )
        return grpc.method_handlers_generic_handler(SI_SERVICE, handlers)

    def _extension_handlers(self) -> grpc.GenericRpcHandler:
        handlers = {
            "Callbacks": grpc.stream_stream_rpc_method_handler(self._stream_of(CALLBACK)),
            "UpdateConfiguration": self._unary(UpdateConfigurationRequest, self._configure),
            "Shutdown": self._unary(ShutdownRequest, self._shut_down),
            "Step": self._unary(StepRequest, self._step),
            "Explain": self._unary(ExplainRequest, self._explain),
        }
        return grpc.method_handlers_generic_handler(EXTENSION_SERVICE, handlers)

    def _count_call(self) -> None:
        """Take a token for a unary call. Raises `StatusError` if there is none."""
        if self._bucket is not None:
            now = monotonic_ns()
            if self._bucket.ready_at() > now:
                raise StatusError(
                    Code.RESOURCE_EXHAUSTED, "I11", "too many requests: try again later"
                )
            self._bucket.take(now)

    def _unary(
        self, message: type[Any], do: Callable[[Principal, Any, Context], Awaitable[Any]]
    ) -> Any:
        async def handle(data: bytes, context: Context) -> bytes:
            try:
                principal = self._authenticate(context)
                self._count_call()
                with self.connections.call(context):
                    response = await do(principal, parse(message, data), context)
            except StatusError as status:
                await self._abort(context, status)
            return bytes(response.SerializeToString())

        return grpc.unary_unary_rpc_method_handler(handle)

    def _stream_of(self, channel: int) -> Callable[[Any, Context], Coroutine[Any, Any, None]]:
        async def handle(_: Any, context: Context) -> None:
            try:
                with self.connections.call(context):
                    status = await self._stream(channel, context)
            except StatusError as error:
                status = error
            if status is not None:
                await self._abort(context, status)

        return handle

    async def _abort(self, context: Context, status: StatusError) -> None:
        self.refused[status.code.name] += 1
        try:
            await context.abort(status.code, status.details, status.trailing)
        except grpc.aio.InternalError:  # the caller has gone
            raise asyncio.CancelledError from None

    def _authenticate(self, context: Context) -> Principal:
        """The caller. Raises `StatusError` for an unknown one."""
        if self.registry.stopping:
            raise StatusError(Code.UNAVAILABLE, "I8", "the scheduler stops")
        return authenticate(self.access, context)

    # -- unary calls -----------------------------------------------------------------------------

    async def _register(
        self, principal: Principal, request: RegisterResourceManagerRequest, context: Context
    ) -> RegisterResourceManagerResponse:
        rm_id = request.rmID
        authorize(principal, rm_id)
        if len(rm_id) > LONGEST_ID:
            raise StatusError(Code.INVALID_ARGUMENT, "I10", f"rmID is longer than {LONGEST_ID}")
        most = self.limits.resource_managers
        if rm_id not in self.registry.sessions and len(self.registry.sessions) >= most:
            raise StatusError(
                Code.RESOURCE_EXHAUSTED, "I9", f"{most} resource managers are registered"
            )
        if (
            rm_id not in self.registry.known_ids
            and len(self.registry.known_ids) >= most * _IDS_PER_REGISTRATION
        ):
            raise StatusError(
                Code.RESOURCE_EXHAUSTED, "I9", "too many different resource manager ids"
            )
        await self._prepare(request)
        # a registration is completed even if the caller stops waiting for it
        in_order = metadata(context, IN_ORDER) is not None
        session = await asyncio.shield(
            self.registry.spawn(self.registry.register(rm_id, request, in_order))
        )
        await context.send_initial_metadata(((EPOCH, str(session.epoch)),))
        return RegisterResourceManagerResponse()

    async def _prepare(
        self, request: RegisterResourceManagerRequest | UpdateConfigurationRequest
    ) -> None:
        """Parse large queue configurations in a thread, one at a time."""
        if len(request.config) > _LARGE:
            async with self._preparing:
                await asyncio.to_thread(self._driver.prepare, request)

    async def _configure(
        self, principal: Principal, request: UpdateConfigurationRequest, _: Context
    ) -> UpdateConfigurationResponse:
        self._registered(principal, request.rmID)
        await self._prepare(request)
        try:
            await asyncio.wrap_future(self._driver.submit(request))
        except RequestError as error:
            raise status_of(error) from None
        return UpdateConfigurationResponse()

    async def _shut_down(
        self, principal: Principal, request: ShutdownRequest, _: Context
    ) -> ShutdownResponse:
        session = self._registered(principal, request.rmID)
        await asyncio.shield(self.registry.spawn(self.registry.leave(session)))
        return ShutdownResponse()

    async def _step(self, principal: Principal, request: StepRequest, _: Context) -> StepResponse:
        session = self._registered(principal, request.rmID)
        if self._steps is None:
            raise StatusError(
                Code.FAILED_PRECONDITION, "Step", "the scheduler has a clock of its own"
            )
        async with self._stepping:
            return await step(self._steps, session, request, self.limits)

    async def _explain(
        self, principal: Principal, request: ExplainRequest, _: Context
    ) -> ExplainResponse:
        self._registered(principal, request.rmID)
        partition = request.partition or "default"
        app, key = request.applicationID, request.allocationKey
        try:
            found = await asyncio.wrap_future(
                self._driver.explain(
                    request.rmID, partition, app, key, predicates=not request.withoutPredicates
                )
            )
        except KeyError as error:
            name = f"{app}/{key}" if key else app
            text = f"{name!r} in partition {partition!r} is not known: {error}"
            raise StatusError(Code.NOT_FOUND, "Explain", text) from None
        return ExplainResponse(
            queue=found.queue,
            state=found.state,
            reasons=found.reasons,
            verdict=found.verdict,
            gathers=found.gathers,
            reservedNodes=[
                ReservedNode(nodeID=node, allocationKey=ask) for node, ask in found.reservations
            ],
            checks=[FailedCheck(**each._asdict()) for each in found.checks],
        )

    def _registered(self, principal: Principal, rm_id: str) -> Session:
        authorize(principal, rm_id)
        session = self.registry.sessions.get(rm_id)
        if session is None:
            raise StatusError(
                Code.NOT_FOUND,
                "I43",
                f"resource manager {rm_id!r} is not registered",
                register_again=True,
            )
        return session

    # -- streams ---------------------------------------------------------------------------------

    async def _stream(self, channel: int, context: Context) -> StatusError | None:
        principal = self._authenticate(context)
        opened = self.registry.epoch
        if self._streams.total() >= self.limits.streams:
            raise StatusError(
                Code.RESOURCE_EXHAUSTED, "I2", f"{self.limits.streams} streams are open already"
            )
        rm_id = metadata(context, RM_ID) or ""
        first = None
        if not rm_id:
            with self._counted(""):
                first = await self._first_message(channel, context)
            if first is None:
                return None
            rm_id = rm_id_of(channel, first)
        authorize(principal, rm_id)
        if self._streams[rm_id] >= self.limits.streams_per_rm:
            raise StatusError(
                Code.RESOURCE_EXHAUSTED,
                "I2",
                f"resource manager {rm_id!r} has {self.limits.streams_per_rm} streams already",
            )
        with self._counted(rm_id):
            session = await self.registry.session_for(
                rm_id, opened, integer_metadata(context, EPOCH)
            )
            stream = Stream(
                channel,
                session,
                context,
                self.limits,
                submit=self._driver.post,
                on_half_close=self.registry.on_half_close,
                on_hello=self.registry.install_callbacks,
            )
            self.registry.attach(stream, integer_metadata(context, RECEIVED))
            try:
                await context.send_initial_metadata(
                    ((EPOCH, str(session.epoch)), (RECEIVED, str(session.received[channel])))
                )
                return await stream.run(first)
            finally:
                self.registry.detach(stream)

    @contextmanager
    def _counted(self, rm_id: str) -> Iterator[None]:
        """Count an open stream of this resource manager."""
        self._streams[rm_id] += 1
        try:
            yield
        finally:
            self._streams[rm_id] -= 1
            if not self._streams[rm_id]:
                del self._streams[rm_id]

    async def _first_message(self, channel: int, context: Context) -> Any | None:
        """The first message, which names the resource manager; ``None`` if the stream ends
        before."""
        limit = self.limits.introduction_s
        try:
            data = await asyncio.wait_for(context.read(), limit)
        except TimeoutError:
            raise StatusError(
                Code.DEADLINE_EXCEEDED, "I11", f"no rmID within {limit:g} s of the stream's start"
            ) from None
        return None if data is grpc.aio.EOF else parse(MESSAGE_OF[channel], data)


_V1: Final = "grpc.reflection.v1.ServerReflection"


def add_reflection(server: grpc.aio.Server, services: Iterable[str]) -> None:
    """Serve reflection for these services and for itself, for clients without the .proto files, such as
    ``grpcurl``.

    The library serves v1alpha only. v1 has the same messages, byte for byte, and newer clients ask for
    it first, so the same servicer answers for both names.
    """
    names = (*services, _V1, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    handler = grpc.stream_stream_rpc_method_handler(
        reflection.aio.ReflectionServicer(names).ServerReflectionInfo,
        reflection_pb2.ServerReflectionRequest.FromString,
        reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    methods = {"ServerReflectionInfo": handler}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_V1, methods),))
