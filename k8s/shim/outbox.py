"""Messages to the core, collected from many inputs and sent together (K194).

The core handles the parts of one message in a fixed order: of an AllocationRequest the allocations, the asks,
the releases of asks, the releases; of an ApplicationRequest the new applications, then the removed ones. A
part that has to come after one of a later kind, for the same pod or application, begins a new message.
"""

from __future__ import annotations

from typing import Final

from quadriga.k8s.conversion import messages
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.shim.actions import Send
from quadriga.si import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    NodeInfo,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    UpdateConfigurationRequest,
)

__all__ = ["Outbox"]

#: parts of one message (K141)
MOST: Final = 1000

_NONE: Final = 0
_ALLOCATIONS: Final = 1
_APPLICATIONS: Final = 2
_NODES: Final = 3


class Outbox:
    """``settings`` names the resource manager."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._done: list[Send] = []
        self._kind = _NONE
        self._parts = 0
        self._asks: list[AllocationAsk] = []
        self._asked: set[str] = set()
        self._reports: list[Allocation] = []
        self._releases: list[AllocationRelease] = []
        self._ask_releases: list[AllocationAskRelease] = []
        self._released: set[str] = set()
        self._new: list[AddApplicationRequest] = []
        self._removed: list[RemoveApplicationRequest] = []
        self._removed_ids: set[str] = set()
        self._nodes: list[NodeInfo] = []
        self._wakes = False

    def ask(self, ask: AllocationAsk) -> None:
        self._begin(_ALLOCATIONS)
        if ask.allocationKey in self._released:
            self._split()
        self._asks.append(ask)
        self._asked.add(ask.allocationKey)

    def ask_instead(self, ask: AllocationAsk, release: AllocationRelease | None) -> None:
        """Both in one message (K108)."""
        self._begin(_ALLOCATIONS)
        if ask.allocationKey in self._released:
            self._split()
        self._asks.append(ask)
        self._asked.add(ask.allocationKey)
        if release is not None:
            self._releases.append(release)
            self._released.add(release.allocationKey)

    def report(self, allocation: Allocation) -> None:
        self._begin(_ALLOCATIONS)
        key = allocation.allocationKey
        if key in self._released or key in self._asked:
            self._split()
        self._reports.append(allocation)

    def release(self, release: AllocationRelease) -> None:
        self._begin(_ALLOCATIONS)
        self._releases.append(release)
        self._released.add(release.allocationKey)

    def release_ask(self, release: AllocationAskRelease) -> None:
        self._begin(_ALLOCATIONS)
        self._ask_releases.append(release)
        self._released.add(release.allocationKey)

    def add_application(self, application: AddApplicationRequest) -> None:
        self._begin(_APPLICATIONS)
        if application.applicationID in self._removed_ids:
            self._split()
        self._new.append(application)

    def remove_application(self, application_id: str) -> None:
        self._begin(_APPLICATIONS)
        self._removed.append(messages.remove_application(application_id))
        self._removed_ids.add(application_id)

    def node(self, node: NodeInfo) -> None:
        self._begin(_NODES)
        self._nodes.append(node)

    def wake(self) -> None:
        """The core tries again what predicates have refused, which any message makes it do."""
        self._wakes = True

    def request(self, request: RegisterResourceManagerRequest | UpdateConfigurationRequest) -> None:
        self._close()
        self._done.append(Send(request))

    def flush(self) -> list[Send]:
        """All messages, in their order. The box is empty then."""
        self._close()
        done, self._done = self._done, []
        if self._wakes and not done:
            done.append(Send(messages.allocations(self.settings, [], [], [], [])))
        self._wakes = False
        return done

    def clear(self) -> None:
        """The core has forgotten everything: what was not sent means nothing (K151)."""
        self.flush()

    def _begin(self, kind: int) -> None:
        if self._kind != kind or self._parts >= MOST:
            self._close()
            self._kind = kind
        self._parts += 1

    def _split(self) -> None:
        """The part at hand begins a new message."""
        self._close()
        self._parts = 1

    def _close(self) -> None:
        kind, self._parts = self._kind, 0
        if self._asks or self._reports or self._releases or self._ask_releases:
            self._done.append(
                Send(
                    messages.allocations(
                        self.settings,
                        self._asks,
                        self._reports,
                        self._releases,
                        self._ask_releases,
                    )
                )
            )
            self._asks, self._reports, self._releases = [], [], []
            self._ask_releases = []
            self._asked.clear()
            self._released.clear()
        elif self._new or self._removed:
            self._done.append(Send(messages.applications(self.settings, self._new, self._removed)))
            self._new, self._removed = [], []
            self._removed_ids.clear()
        elif self._nodes:
            self._done.append(Send(messages.nodes(self.settings, self._nodes)))
            self._nodes = []
        self._kind = kind
