"""What the shim wants done: messages to the core and writes to the API server, as data.

The driver carries them out in this order per pod; writes to one pod never overtake each other. Retries are
the driver's as well, so the shim hears of an end only (``inputs``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from quadriga.k8s.conversion import messages
from quadriga.k8s.conversion.settings import Settings
from quadriga.si import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationRequest,
    ApplicationRequest,
    NodeInfo,
    NodeRequest,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    UpdateConfigurationRequest,
)

__all__ = ["Outbox"]


class _Action(msgspec.Struct, frozen=True, gc=False):
    """Several are made for each pod: a frozen dataclass would take ten times as long."""


class PodRef(_Action, frozen=True):
    """Which pod: a name alone may be another pod by now."""

    namespace: str
    name: str
    uid: str


class Send(_Action, frozen=True):
    """A message to the core, after all earlier ones."""

    request: (
        RegisterResourceManagerRequest
        | UpdateConfigurationRequest
        | ApplicationRequest
        | AllocationRequest
        | NodeRequest
    )


class Bind(_Action, frozen=True):
    """Bind the pod to the node (K102 to K107); its claims first. Ends in ``BindEnded``."""

    pod: PodRef
    node: str
    #: other pods come first (Q16)
    placeholder: bool = False


class CancelBind(_Action, frozen=True):
    """Do not try the pod's bind again (K97). It still ends in ``BindEnded``."""

    uid: str


class Delete(_Action, frozen=True):
    """Delete the pod, until it works or is not there (K79, K112). ``grace`` in seconds, ``None`` for the
    pod's own. ``preempted`` sets the condition DisruptionTarget first (K113)."""

    pod: PodRef
    grace: int | None = None
    preempted: bool = False


class Create(_Action, frozen=True):
    """Create this placeholder pod (K72). Ends in ``CreateEnded``."""

    application_id: str
    group: str
    manifest: Mapping[str, Any]


class Annotate(_Action, frozen=True):
    """Set annotations of the pod (K77)."""

    pod: PodRef
    annotations: Mapping[str, str]


class SetCondition(_Action, frozen=True):
    """Set the condition PodScheduled=False of a waiting pod (K155 to K157). The newest one wins."""

    pod: PodRef
    reason: str
    message: str


class SetGroupCondition(SetCondition, frozen=True):
    """Set the condition of a PodGroup, which ``pod`` names: True with the reason ``Scheduled``, False with any
    other one (K205)."""

    #: of the API
    version: str = ""
    #: of the PodGroup
    generation: int = 0


class DropCondition(_Action, frozen=True):
    """What ``SetCondition`` still waits to write of this pod, or of this PodGroup, is out of date."""

    uid: str


class FailPod(_Action, frozen=True):
    """Set the pod's phase to Failed with this reason and message (K34)."""

    pod: PodRef
    reason: str
    message: str


class Record(_Action, frozen=True):
    """A Kubernetes event about an object (K153)."""

    kind: Literal["Pod", "Node", "Namespace", "ConfigMap"]
    namespace: str
    name: str
    uid: str
    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str
    #: an earlier process may have written it: it is not written again if it is there
    maybe_told: bool = False


class LogWarning(_Action, frozen=True):
    """A line for the operator."""

    text: str


class Stop(_Action, frozen=True):
    """End the process (K11, K142)."""

    code: int
    reason: str


Action = (
    Send
    | Bind
    | CancelBind
    | Delete
    | Create
    | Annotate
    | SetCondition
    | SetGroupCondition
    | DropCondition
    | FailPod
    | Record
    | LogWarning
    | Stop
)


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
