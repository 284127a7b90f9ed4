"""Actions: what the shim wants done, that is messages to the core and writes to the API server, as data.

The driver carries out the actions of a pod in this order; writes to one pod never overtake each other. The
driver also retries, so the shim learns only how an action ended (``inputs``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from quadriga.k8s.conversion import messages
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.tuning import TUNING
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


class _Action(msgspec.Struct, frozen=True, gc=False):
    """Base of the actions. Several are made for each pod, and a frozen dataclass would take ten times as long."""


class PodRef(_Action, frozen=True):
    """A reference to a pod. It has the UID, because a later pod may have the same name."""

    namespace: str
    name: str
    uid: str


class Send(_Action, frozen=True):
    """Send a message to the core, after all earlier ones."""

    request: (
        RegisterResourceManagerRequest
        | UpdateConfigurationRequest
        | ApplicationRequest
        | AllocationRequest
        | NodeRequest
    )


class Bind(_Action, frozen=True):
    """Bind the pod to the node (K102 to K107), after its claims. The outcome is a ``BindEnded``."""

    pod: PodRef
    node: str
    #: lets other pods go first (Q16)
    placeholder: bool = False
    #: its gang has placeholders, so writes to placeholders are not held back for it
    member: bool = False
    #: the units of shared devices that it has, which its annotation is to name (Q14)
    devices: str = ""


class CancelBind(_Action, frozen=True):
    """Stop retrying the pod's bind (K97). The outcome is still a ``BindEnded``."""

    uid: str


class Delete(_Action, frozen=True):
    """Delete the pod, and retry until it is gone (K79, K112). ``grace`` is in seconds; ``None`` leaves the
    pod's own. ``preempted`` sets the condition DisruptionTarget first (K113)."""

    pod: PodRef
    grace: int | None = None
    preempted: bool = False


class Create(_Action, frozen=True):
    """Create a placeholder pod (K72). The outcome is a ``CreateEnded``."""

    application_id: str
    group: str
    manifest: Mapping[str, Any]


class CancelCreate(_Action, frozen=True):
    """Do not create the placeholder if its turn has not come; there is no outcome then."""

    namespace: str
    name: str


class CancelDelete(_Action, frozen=True):
    """The placeholder is gone: do not delete it if the turn of that has not come."""

    uid: str


class Annotate(_Action, frozen=True):
    """Set annotations of the pod (K77)."""

    pod: PodRef
    annotations: Mapping[str, str]


class SetCondition(_Action, frozen=True):
    """Set the condition PodScheduled=False of a waiting pod (K155 to K157). The newest condition wins."""

    pod: PodRef
    reason: str
    message: str


class SetGroupCondition(SetCondition, frozen=True):
    """Set the condition of the PodGroup that ``pod`` refers to: True with the reason ``Scheduled``, False with
    any other reason (K205)."""

    #: version of the PodGroup API
    version: str = ""
    #: ``metadata.generation`` of the PodGroup
    generation: int = 0


class DropCondition(_Action, frozen=True):
    """Drop the ``SetCondition`` of this pod or PodGroup that is still to be written: it is out of date."""

    uid: str


class FailPod(_Action, frozen=True):
    """Set the pod's phase to Failed with this reason and message (K34)."""

    pod: PodRef
    reason: str
    message: str


class Record(_Action, frozen=True):
    """Record a Kubernetes event about an object (K153)."""

    kind: Literal["Pod", "Node", "Namespace", "ConfigMap"]
    namespace: str
    name: str
    uid: str
    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str
    #: an earlier process may have written the event: do not write it again if it exists
    may_exist: bool = False


class LogWarning(_Action, frozen=True):
    """Log a warning for the operator."""

    text: str


class Stop(_Action, frozen=True):
    """End the process (K11, K142)."""

    code: int
    reason: str


Action = (
    Send
    | Bind
    | CancelBind
    | CancelCreate
    | CancelDelete
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


_NONE: Final = 0
_ALLOCATIONS: Final = 1
_APPLICATIONS: Final = 2
_NODES: Final = 3


class Outbox:
    """Collects messages to the core. ``settings`` names the resource manager."""

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
        """Add a new or changed ask."""
        self._begin(_ALLOCATIONS)
        if ask.allocationKey in self._released:
            self._split()
        self._asks.append(ask)
        self._asked.add(ask.allocationKey)

    def ask_instead(self, ask: AllocationAsk, release: AllocationRelease | None) -> None:
        """Add an ask and the release of what it replaces, both in one message (K108)."""
        self.ask(ask)
        if release is not None:
            self._releases.append(release)
            self._released.add(release.allocationKey)

    def report(self, allocation: Allocation) -> None:
        """Report an allocation that already exists."""
        self._begin(_ALLOCATIONS)
        key = allocation.allocationKey
        if key in self._released or key in self._asked:
            self._split()
        self._reports.append(allocation)

    def release(self, release: AllocationRelease) -> None:
        """Add the release of an allocation."""
        self._begin(_ALLOCATIONS)
        self._releases.append(release)
        self._released.add(release.allocationKey)

    def release_ask(self, release: AllocationAskRelease) -> None:
        """Add the release of an ask."""
        self._begin(_ALLOCATIONS)
        self._ask_releases.append(release)
        self._released.add(release.allocationKey)

    def add_application(self, application: AddApplicationRequest) -> None:
        """Add a new application."""
        self._begin(_APPLICATIONS)
        if application.applicationID in self._removed_ids:
            self._split()
        self._new.append(application)

    def remove_application(self, application_id: str) -> None:
        """Add the removal of an application."""
        self._begin(_APPLICATIONS)
        self._removed.append(messages.remove_application(application_id))
        self._removed_ids.add(application_id)

    def node(self, node: NodeInfo) -> None:
        """Add a new node or a change of a node."""
        self._begin(_NODES)
        self._nodes.append(node)

    def wake(self) -> None:
        """Send at least one message: any message makes the core retry what predicates have refused."""
        self._wakes = True

    def request(self, request: RegisterResourceManagerRequest | UpdateConfigurationRequest) -> None:
        """Add a registration or a change of configuration, which is a message of its own."""
        self._close()
        self._done.append(Send(request))

    def flush(self) -> list[Send]:
        """Return all messages in their order and empty the outbox."""
        self._close()
        done, self._done = self._done, []
        if self._wakes and not done:
            done.append(Send(messages.allocations(self.settings, [], [], [], [])))
        self._wakes = False
        return done

    def clear(self) -> None:
        """Drop the messages that were not sent. The core has forgotten everything, so they mean nothing to it
        (K151)."""
        self.flush()

    def _begin(self, kind: int) -> None:
        if self._kind != kind or self._parts >= TUNING.message_items:
            self._close()
            self._kind = kind
        self._parts += 1

    def _split(self) -> None:
        """Start a new message with the current item."""
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
