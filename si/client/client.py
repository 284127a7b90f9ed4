"""The client for programs with threads: `SchedulerAPI` towards a remote scheduler."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple, Unpack

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
from quadriga.si.client.backoff import Backoff
from quadriga.si.client.errors import ClientError
from quadriga.si.client.registration import Delivery
from quadriga.si.client.tls import Tls
from quadriga.si.client.watcher import Watcher
from quadriga.si.extension.extension_pb2 import Channel, ExplainResponse, StepResponse

__all__ = ["Client"]

_log = logging.getLogger("quadriga.client")

T = TypeVar("T")
Args = TypeVarTuple("Args")


class _Loop(asyncio.SelectorEventLoop):
    """gRPC has one queue of events for all loops of a process, and the loop of another client may hand on
    what was meant for this one. What comes after the end is nobody's, and no error in that other loop."""

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
        """Older versions of gRPC raise where the loop of another client has read that queue first. That
        loop hands the event on, so nothing is lost."""
        queue = "PollerCompletionQueue" in context.get("message", "")
        if not (queue and isinstance(context.get("exception"), BlockingIOError)):
            super().default_exception_handler(context)


class Client:
    """One resource manager's side towards a remote scheduler, as `SchedulerAPI`; see `AsyncClient`.

    Safe for several threads. Callbacks come one after another on a thread of the client's, and may
    call it; questions (predicates) are answered on another, so that a callback that waits for the
    scheduler does not keep the scheduler waiting. Close it in the end, or use it with ``with``: that
    leaves, and the scheduler waits for the resource manager to come back (I6); ``shutdown`` leaves
    for good.
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
    ) -> None:
        self.address = address
        self._client = AsyncClient(
            address,
            tls=tls,
            token=token,
            insecure=insecure,
            backoff=backoff,
            watcher=watcher,
            patience_s=patience_s,
            most_waiting=most_waiting,
            most_waiting_bytes=most_waiting_bytes,
            most_request_bytes=most_request_bytes,
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
        """The state of the connection (`quadriga.si.client.link`)."""
        return self._client.state

    @property
    def waiting(self) -> int:
        """How many requests the scheduler has not taken yet."""
        return self._client.waiting

    # -- SchedulerAPI ----------------------------------------------------------------------------

    def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> RegisterResourceManagerResponse:
        """Make the resource manager known, for the first time or anew (I5, I7).

        What was to be said or heard until now is forgotten. Raises `RequestError` for a registration
        that is refused, `PermissionError`, `Unreachable`, `ClientError`; an older one then stays.
        """
        return self._do(self._client.register_resource_manager(request, callback))

    def update_allocation(self, request: AllocationRequest) -> None:
        """Add or change asks, release asks, release allocations (M2).

        Returns when the request is taken over, to be sent in its turn. Raises `RequestError` for an
        rmID that is not registered here, `RegisterAgain`, and `Unreachable` where too much waits.
        """
        self._do(self._client.update_allocation(request))

    def update_application(self, request: ApplicationRequest) -> None:
        """Add applications, then remove applications (M5); as `update_allocation`."""
        self._do(self._client.update_application(request))

    def update_node(self, request: NodeRequest) -> None:
        """Create, update, drain, undrain or remove nodes (M7); as `update_allocation`."""
        self._do(self._client.update_node(request))

    def update_configuration(self, request: UpdateConfigurationRequest) -> None:
        """Change queues and settings (I39), after all that was said before.

        Returns when that is done. Raises `RequestError`, `PermissionError`, `RegisterAgain`,
        `Unreachable`.
        """
        self._do(self._client.update_configuration(request))

    # -- more ------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Wait until the scheduler has taken all that was said until now. Raises `RegisterAgain`,
        and `Unreachable` where that takes too long."""
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
        """Let time go on, for a scheduler that runs by the client's clock (`AsyncClient.step`)."""
        return self._do(
            self._client.step(now, requests, advance=advance, schedule=schedule, limit=limit)
        )

    def explain(
        self, application_id: str, allocation_key: str = "", partition: str = ""
    ) -> ExplainResponse:
        """Where an application is, and why one of its asks waits. Raises as `update_configuration`,
        `RequestError` for what the scheduler does not know."""
        return self._do(self._client.explain(application_id, allocation_key, partition))

    def shutdown(self) -> None:
        """Leave for good, after all that was said: the scheduler drops the resource manager's state
        at once (I6). Raises as `update_configuration`; the client is closed in any case."""
        try:
            self._do(self._client.shutdown())
        finally:
            self.close()

    def close(self) -> None:
        """Just leave. What waits to be said or heard is given up. Safe to call twice, and from a
        callback (which then returns before its thread ends)."""
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
            self._loop.run_until_complete(_end_all())
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


async def _end_all() -> None:
    """Whoever still waits for something waits in vain."""
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
