"""Sender of the shim's messages to the core, in their order, from a thread of its own.

A call of the core may wait: in this process until the core has applied the request, over gRPC until there is
capacity. The shim's loop must not wait, so it hands its messages over.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol

from quadriga.k8s.conversion.unified_asks import unified
from quadriga.k8s.shim.inputs import CoreAnswered, CoreForgot, CoreRefused, Input
from quadriga.k8s.tuning import TUNING
from quadriga.si import (
    AllocationRequest,
    ApplicationRequest,
    NodeRequest,
    RegisterResourceManagerRequest,
    RequestError,
    ResourceManagerCallback,
    SchedulerAPI,
    UpdateConfigurationRequest,
)
from quadriga.si.client.connection_state import FORGOTTEN, Watcher

_log = logging.getLogger("quadriga.kubernetes.core")


class CoreSender:
    """Sends messages. ``deliver`` takes the outcomes, on the sender's thread. With ``unify`` asks have the form of
    SI 1.6 (K8)."""

    def __init__(
        self,
        scheduler: SchedulerAPI,
        callback: ResourceManagerCallback,
        deliver: Callable[[Input], None],
        *,
        unify: bool = False,
    ) -> None:
        self._scheduler = scheduler
        self._callback = callback
        self._deliver = deliver
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="quadriga-to-core", daemon=True)
        self._calls: dict[type, Callable[[Any], object]] = {
            RegisterResourceManagerRequest: self._register,
            UpdateConfigurationRequest: scheduler.update_configuration,
            ApplicationRequest: scheduler.update_application,
            AllocationRequest: self._update_unified if unify else scheduler.update_allocation,
            NodeRequest: scheduler.update_node,
        }

    @property
    def waiting(self) -> int:
        """The number of messages that are not handed over yet."""
        return self._queue.qsize()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def send(self, request: Any) -> None:
        """Send the message after all earlier ones."""
        self._queue.put(request)

    def stop(self) -> None:
        """End the thread. Queued messages are not sent."""
        self._stopping.set()
        self._queue.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            request = self._queue.get()
            while request is not None:
                request = self._hand_over(request)

    def _hand_over(self, request: Any) -> RegisterResourceManagerRequest | None:
        """Hand the message to the core. Return the next message if it has been taken from the queue."""
        name = type(request).__name__
        while True:
            try:
                self._calls[type(request)](request)
                return None
            except ConnectionError as error:
                _log.warning("%s could not be sent: %s", name, error)
            except (RequestError, PermissionError) as error:
                self._deliver(CoreRefused(name, str(error)))
                return None
            except Exception as error:
                if _must_register(error):
                    return self._forget()
                _log.exception("%s was not sent", name)
                self._deliver(CoreRefused(name, repr(error)))
                return None
            if self._stopping.wait(TUNING.core_retry_s):
                return None

    def _register(self, request: RegisterResourceManagerRequest) -> None:
        response = self._scheduler.register_resource_manager(request, self._callback)
        self._deliver(CoreAnswered(response))

    def _update_unified(self, request: AllocationRequest) -> None:
        """Send the request in the form of SI 1.6. A part that was handed over before an error changes nothing
        when it is sent again."""
        for part in unified(request):
            self._scheduler.update_allocation(part)

    def _forget(self) -> RegisterResourceManagerRequest | None:
        """Drop the queued messages up to a registration: they were meant for a core that knew us (K151)."""
        while not self._queue.empty():
            request = self._queue.get()
            if isinstance(request, RegisterResourceManagerRequest):
                return request
        self._deliver(CoreForgot())
        return None


def _must_register(error: Exception) -> bool:
    """Return whether a remote core does not know this resource manager any more."""
    try:
        from quadriga.si.client.errors import RegisterAgain
    except ImportError:  # there is no remote core without gRPC
        return False
    return isinstance(error, RegisterAgain)


class _Shim(Protocol):
    def core_forgot(self) -> None: ...
    def core_refused(self, request: str, reason: str) -> None: ...


class CoreWatcher(Watcher):
    """The watcher of the `Client` of a core in another process (K1, K151). Set ``shim`` before it starts."""

    def __init__(self) -> None:
        self.shim: _Shim | None = None

    def changed(self, state: str, why: str) -> None:
        """Tell the shim when the core has forgotten it."""
        super().changed(state, why)
        if state == FORGOTTEN and self.shim is not None:
            self.shim.core_forgot()

    def refused(self, request: Any, error: RequestError) -> None:
        """Tell the shim that the core has refused a request."""
        super().refused(request, error)
        if self.shim is not None:
            self.shim.core_refused(error.request, str(error))
