"""What the shim hears: changes of objects, messages of the core, results of its own writes.

The driver puts them into one queue, in the order in which they came.
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
    """A reflector announces an object (K19 to K24). Of a deleted one it is the last known version."""

    change: Change
    object: Watched


class VolumesChanged(_Input, frozen=True):
    """Objects of volumes have changed in the cache: predicates may answer otherwise now."""


class PodGroupsServed(_Input, frozen=True):
    """The server has PodGroups in this version of their API; "": it has none (K204)."""

    version: str


class Synced(_Input, frozen=True):
    """Each reflector has delivered its first full list (K24)."""


class ConfigurationChanged(_Input, frozen=True):
    """The texts of both ConfigMaps, merged (K47 to K49), or the reasons why they cannot be read."""

    values: Mapping[str, str] = msgspec.field(default_factory=dict)
    errors: Sequence[str] = ()


class LeaseHeld(_Input, frozen=True):
    """This process is the leader now, or needs no lease."""


class LeaseLost(_Input, frozen=True):
    reason: str


class CoreAnswered(_Input, frozen=True):
    """A message of the core's callback, in its order. A registration that was accepted is one too.

    The ``new`` allocations of a message are assumed in the cache before this is in the queue, except those
    in ``refusals``: their pods (by UID) may not go to that node any more, for the reason given (K100).
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
    """A request was refused as a whole (``RequestError``). ``request`` is the message's name."""

    request: str
    reason: str


class CoreForgot(_Input, frozen=True):
    """The core was restarted and knows nothing of this resource manager (K151)."""


class BindEnded(_Input, frozen=True):
    """A ``Bind`` with all its retries has ended (K105 to K107).

    ``bound``: the pod is on our node. ``elsewhere``: on ``node``, which somebody else chose. ``gone``: it
    is deleted, is being deleted, or is another pod of that name. ``failed``: with the reason.
    """

    uid: str
    outcome: Literal["bound", "elsewhere", "gone", "failed"]
    node: str = ""
    #: of ``failed``: which step, for the event's reason (K108)
    step: Literal["bind", "volumes"] = "bind"
    reason: str = ""


class CreateEnded(_Input, frozen=True):
    """A ``Create`` with all its retries has ended (K72).

    ``name_taken`` asks for another name; ``refused`` makes the gang an ordinary application.
    """

    application_id: str
    group: str
    name: str
    outcome: Literal["created", "name_taken", "refused"]
    reason: str = ""


class CoreAllocation(NamedTuple):
    """What the core counts of a pod on a node. ``application`` is "" for one of another scheduler."""

    application: str
    amounts: Mapping[str, int]


class CoreNode(NamedTuple):
    """A node in the core's state. Amounts are without zeros."""

    is_open: bool
    capacity: Mapping[str, int]
    #: by UID
    pods: Mapping[str, CoreAllocation]


class AuditBegins(_Input, frozen=True):
    """What follows up to `AuditEnds` is compared with what is known here (K176). Without the core's state
    if that is in another process."""

    with_core: bool = True


class WatchShows(_Input, frozen=True):
    """Some of the pods that the reflector has, and UIDs of pods in the cache that it has not."""

    pods: Sequence[Pod] = ()
    gone: Sequence[str] = ()


class CoreShows(_Input, frozen=True):
    """A part of the core's state, read on its own thread: what was asked for, and what is there. Of an
    application its asks, by UID."""

    nodes_asked: Sequence[str] = ()
    nodes: Mapping[str, CoreNode] = msgspec.field(default_factory=dict)
    applications_asked: Sequence[str] = ()
    applications: Mapping[str, Mapping[str, Mapping[str, int]]] = msgspec.field(
        default_factory=dict
    )


class AuditEnds(_Input, frozen=True):
    """All was shown."""


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
