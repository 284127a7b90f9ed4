"""Inputs of the shim: changes of objects, messages of the core, outcomes of its own writes.

The driver puts them into one queue in the order in which they arrive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from quadriga.k8s.objects import Namespace, Node, Pod, PodGroup, PriorityClass
from quadriga.si import (
    AllocationResponse,
    ApplicationResponse,
    EventRecord,
    NodeResponse,
    RegisterResourceManagerResponse,
    UpdateContainerSchedulingStateRequest,
)

Change = Literal["ADDED", "MODIFIED", "DELETED"]
Watched = Pod | Node | Namespace | PriorityClass | PodGroup


class _Input(msgspec.Struct, frozen=True, gc=False):
    pass


class Changed(_Input, frozen=True):
    """A reflector announces an object (K19 to K24). For a deleted object it is the last known version."""

    change: Change
    object: Watched


class VolumesChanged(_Input, frozen=True):
    """Storage objects have changed in the cache, so predicates may answer differently now."""


class PodGroupsServed(_Input, frozen=True):
    """The API server has PodGroups in this version of their API; "" if it has none (K204)."""

    version: str


class Synced(_Input, frozen=True):
    """Every reflector has delivered its first complete list (K24)."""


class ConfigurationChanged(_Input, frozen=True):
    """The merged texts of both ConfigMaps have changed (K47 to K49), or the reasons why they cannot be read."""

    values: Mapping[str, str] = msgspec.field(default_factory=dict)
    errors: Sequence[str] = ()


class LeaseHeld(_Input, frozen=True):
    """This process is the leader now, or needs no lease."""


class LeaseLost(_Input, frozen=True):
    """This process no longer holds the lease."""

    reason: str


class CoreAnswered(_Input, frozen=True):
    """A message of the core's callback arrived. An accepted registration is one too.

    The ``new`` allocations of a message are assumed in the cache before this input is in the queue, except
    those in ``refusals``: their pods (by UID) may no longer go to that node, for the reason given (K100).
    """

    message: (
        AllocationResponse
        | ApplicationResponse
        | NodeResponse
        | RegisterResourceManagerResponse
        | UpdateContainerSchedulingStateRequest
        | Sequence[EventRecord]
    )
    refusals: Mapping[str, str] = msgspec.field(default_factory=dict)


class CoreRefused(_Input, frozen=True):
    """The core refused a whole request (``RequestError``). ``request`` is the name of the message."""

    request: str
    reason: str


class CoreForgot(_Input, frozen=True):
    """The core was restarted and does not know this resource manager (K151)."""


class BindEnded(_Input, frozen=True):
    """A ``Bind`` has ended with all its retries (K105 to K107).

    ``bound``: the pod is on our node. ``elsewhere``: it is on ``node``, which another process chose. ``gone``:
    it is deleted, terminating, or another pod of that name. ``failed``: with the reason.
    """

    uid: str
    outcome: Literal["bound", "elsewhere", "gone", "failed"]
    node: str = ""
    #: for ``failed``: the step that failed, for the event's reason (K108)
    step: Literal["bind", "volumes"] = "bind"
    reason: str = ""


class CreateEnded(_Input, frozen=True):
    """A ``Create`` has ended with all its retries (K72).

    ``name_taken`` asks for another name; ``refused`` turns the gang into an ordinary application.
    """

    application_id: str
    group: str
    name: str
    outcome: Literal["created", "name_taken", "refused"]
    reason: str = ""


class CoreAllocation(NamedTuple):
    """What the core counts for a pod on a node. ``application`` is "" for a pod of another scheduler."""

    application: str
    amounts: Mapping[str, int]


class CoreNode(NamedTuple):
    """A node in the core's state. Amounts have no zeros."""

    is_open: bool
    capacity: Mapping[str, int]
    #: by UID
    pods: Mapping[str, CoreAllocation]


class AuditBegins(_Input, frozen=True):
    """An audit begins: the inputs up to `AuditEnds` are compared with the shim's state (K176). A core in
    another process does not show its state."""

    with_core: bool = True


class WatchShows(_Input, frozen=True):
    """The audit shows some pods of the reflector, and UIDs of cached pods that the reflector does not have."""

    pods: Sequence[Pod] = ()
    gone: Sequence[str] = ()


class CoreShows(_Input, frozen=True):
    """The audit shows a part of the core's state, read on the core's thread: what was requested and what is
    there, and for an application its asks by UID."""

    nodes_asked: Sequence[str] = ()
    nodes: Mapping[str, CoreNode] = msgspec.field(default_factory=dict)
    applications_asked: Sequence[str] = ()
    applications: Mapping[str, Mapping[str, Mapping[str, int]]] = msgspec.field(
        default_factory=dict
    )


class AuditEnds(_Input, frozen=True):
    """The audit has shown everything."""


Input = (
    Changed
    | VolumesChanged
    | PodGroupsServed
    | Synced
    | ConfigurationChanged
    | LeaseHeld
    | LeaseLost
    | CoreAnswered
    | CoreRefused
    | CoreForgot
    | BindEnded
    | CreateEnded
    | AuditBegins
    | WatchShows
    | CoreShows
    | AuditEnds
)
