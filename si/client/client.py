"""The client for programs with threads: `SchedulerAPI` for a remote scheduler."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple, Unpack

from quadriga.base.pacing import Backoff
from quadriga.si import (
    AllocationRequest,
    ApplicationRequest,
    NodeRequest,
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    ResourceManagerCallback,
    UpdateConfigurationRequest,
)
from quadriga.si.client.asynchronous import MEBIBYTE, AsyncClient
from quadriga.si.client.channels import Tls
from quadriga.si.client.connection_state import Watcher
from quadriga.si.client.errors import ClientError
from quadriga.si.client.registration import Delivery
from quadriga.si.extension.extension_pb2 import Channel, ExplainResponse, StepResponse

_log = logging.getLogger("quadriga.client")

T = TypeVar("T")
Args = TypeVarTuple("Args")


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that ignores late events of gRPC. gRPC has one event queue for all loops of a
    process, so the loop of another client may pass on an event to this loop after it has closed.
    That must not be an error in the other loop."""

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Args]], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.Handle:
        try:
            return super().call_soon_threadsafe(callback, *args, context=context)
        except RuntimeError:
            if not self.is_closed():
                raise
            late = asyncio.Handle(callback, args, self, context)
            late.cancel()
            return late

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Ignore an error of older gRPC versions, raised when the loop of another client has read
        the shared queue first. That loop passes the event on, so nothing is lost."""
        queue = "PollerCompletionQueue" in context.get("message", "")
        if not (queue and isinstance(context.get("exception"), BlockingIOError)):
            super().default_exception_handler(context)


class Client:
    """A resource manager's connection to a remote scheduler, as `SchedulerAPI`; `AsyncClient`
    describes the parameters.

    Safe for threads. Callbacks are called one after another in a thread of the client, and may call
    the client. Questions (predicates) are answered in another thread, so the scheduler is not held
    up by a callback that waits for it. Close the client at the end, or use it with ``with``:
    closing disconnects, and the scheduler waits for the resource manager to come back (I6).
    ``shutdown`` leaves for good.
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
    ) -> None:
        self.address = address
        self._client = AsyncClient(
            address,
            tls=tls,
            token=token,
            insecure=insecure,
            backoff=backoff,
            watcher=watcher,
            timeout_s=timeout_s,
            max_pending=max_pending,
            max_pending_bytes=max_pending_bytes,
            max_request_bytes=max_request_bytes,
            deliver=self._deliver,
            ask=self._ask,
        )
        self._callbacks = ThreadPoolExecutor(1, "quadriga-callbacks")
        self._questions = ThreadPoolExecutor(1, "quadriga-questions")
        self._loop = _Loop()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="quadriga-client", daemon=True)
        self._thread.start()

    @property
    def state(self) -> str:
        """The state of the connection (`quadriga.si.client.connection_state`)."""
        return self._client.state

    @property
    def waiting(self) -> int:
        """The number of requests that the scheduler has not taken yet."""
        return self._client.waiting

    # -- SchedulerAPI ----------------------------------------------------------------------------

    def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> RegisterResourceManagerResponse:
        """Register the resource manager, for the first time or again (I5, I7).

        Pending requests and messages of an earlier registration are dropped. If the registration is
        refused, the earlier one stays. Raises `RequestError`, `PermissionError`, `Unreachable`,
        `ClientError`.
        """
        return self._do(self._client.register_resource_manager(request, callback))

    def update_allocation(self, request: AllocationRequest) -> None:
        """Add or change asks, release asks, release allocations (M2).

        Returns when the request is queued. Raises `RequestError` for an rmID that is not registered
        here, `RegisterAgain`, and `Unreachable` if the queue stays full.
        """
        self._do(self._client.update_allocation(request))

    def update_application(self, request: ApplicationRequest) -> None:
        """Add applications, then remove applications (M5). Returns and raises like
        `update_allocation`."""
        self._do(self._client.update_application(request))

    def update_node(self, request: NodeRequest) -> None:
        """Create, update, drain, undrain or remove nodes (M7). Returns and raises like
        `update_allocation`."""
        self._do(self._client.update_node(request))

    def update_configuration(self, request: UpdateConfigurationRequest) -> None:
        """Change queues and settings (I39), after all requests that were made before.

        Returns when the new configuration is in force. Raises `RequestError`, `PermissionError`,
        `RegisterAgain`, `Unreachable`.
        """
        self._do(self._client.update_configuration(request))

    # -- more ------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Wait until the scheduler has taken all requests that were made before. Raises
        `RegisterAgain`, and `Unreachable` after the timeout."""
        self._do(self._client.flush())

    def step(
        self,
        now: int,
        requests: Iterable[Channel] = (),
        *,
        advance: bool = False,
        schedule: bool = False,
        limit: int = 0,
    ) -> StepResponse:
        """Advance the clock of a scheduler that runs by the client's clock (`AsyncClient.step`)."""
        return self._do(
            self._client.step(now, requests, advance=advance, schedule=schedule, limit=limit)
        )

    def explain(
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
        return self._do(
            self._client.explain(application_id, allocation_key, partition, predicates=predicates)
        )

    def shutdown(self) -> None:
        """Leave for good after all requests that were made before: the scheduler drops the resource
        manager's state at once (I6). Raises like `update_configuration`; the client is closed in
        any case."""
        try:
            self._do(self._client.shutdown())
        finally:
            self.close()

    def close(self) -> None:
        """Disconnect. Pending requests and messages are dropped. May be called twice, and from a
        callback; the call then returns before the callback's thread ends."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        asyncio.run_coroutine_threadsafe(self._client.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        for pool in (self._callbacks, self._questions):
            pool.shutdown(wait=not threading.current_thread().name.startswith("quadriga-"))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- threads ---------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(_cancel_all())
        finally:
            self._loop.close()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            if self._closed:
                work.close()
                raise ClientError("the client has been closed")
            done = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return done.result()
        except CancelledError:
            raise ClientError("the client has been closed") from None

    async def _deliver(self, calls: Sequence[Delivery]) -> None:
        await self._loop.run_in_executor(self._callbacks, _call_all, calls)

    async def _ask(self, method: Callable[..., Any], *args: Any) -> Any:
        return await self._loop.run_in_executor(self._questions, method, *args)


async def _cancel_all() -> None:
    """Cancel all tasks; callers that still wait get an error."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _call_all(calls: Sequence[Delivery]) -> None:
    for method, args in calls:
        try:
            method(*args)
        except Exception:
            _log.exception("a callback of the resource manager failed")
