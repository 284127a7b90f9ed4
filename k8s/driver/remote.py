"""A core in another process, over gRPC: what its client notices is passed to the shim (K1, K151)."""

from __future__ import annotations

from typing import Any, Protocol

from quadriga.si import RequestError
from quadriga.si.client.connection_state import FORGOTTEN
from quadriga.si.client.watcher import Watcher


class _Shim(Protocol):
    def core_forgot(self) -> None: ...
    def core_refused(self, request: str, reason: str) -> None: ...


class CoreWatcher(Watcher):
    """The watcher of the `Client` that a `KubernetesShim` is given. Set ``shim`` before it starts."""

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
