"""What the shim wants done: messages to the core and writes to the API server, as data.

The driver carries them out in this order per pod; writes to one pod never overtake each other. Retries are
the driver's as well, so the shim hears of an end only (``inputs``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from quadriga.si import (
    AllocationRequest,
    ApplicationRequest,
    NodeRequest,
    RegisterResourceManagerRequest,
    UpdateConfigurationRequest,
)


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
