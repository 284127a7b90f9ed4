"""Objects that exist only in REST; all others are in ``quadriga.core.views.objects``."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from quadriga.core.views.objects import (
    ApplicationObject,
    ApplicationSample,
    ClusterObject,
    ContainerSample,
    PartitionNodes,
    PartitionObject,
    PlacementObject,
    QueueObject,
)


class ConfigurationObject(TypedDict):
    """``partitions`` in the form of the file, the ``checksum`` of the loaded text, and ``extra``:
    the extraConfig of the resource manager."""

    partitions: list[dict[str, Any]]
    checksum: str
    extra: dict[str, str]


class ValidationObject(TypedDict):
    """``reason`` is empty if the configuration is allowed, else every problem with its path and
    line."""

    allowed: bool
    reason: str


class ReloadObject(TypedDict):
    """The resource manager whose queues were configured (empty: all that brought no configuration
    of their own), and the checksum of the new configuration."""

    rmID: str
    checksum: str


class QuantityObject(TypedDict):
    """Zero is left out."""

    value: NotRequired[int]


class EventResource(TypedDict):
    """Quantities by type."""

    resources: dict[str, QuantityObject]


class EventObject(TypedDict):
    """An event record. Kinds are the protocol's numbers (I41); zero and empty values are left
    out."""

    type: NotRequired[int]
    objectID: NotRequired[str]
    message: NotRequired[str]
    timestampNano: NotRequired[int]
    referenceID: NotRequired[str]
    eventChangeType: NotRequired[int]
    eventChangeDetail: NotRequired[int]
    resource: NotRequired[EventResource]


class EventBatchObject(TypedDict):
    """A range of the stored events, which have the ids from ``LowestID`` to ``HighestID``; it
    begins with the requested id."""

    InstanceUUID: str
    LowestID: int
    HighestID: int
    EventRecords: list[EventObject]


class StreamObject(TypedDict):
    """A client that follows the events."""

    name: str
    createdAt: int


class StateDumpObject(TypedDict):
    """The state of everything, read from ``timestamp`` to ``lastTimestamp`` (ns), while ``transitions``
    went from the first number to the second: equal numbers say that it is of one moment (2.13)."""

    timestamp: int
    partitions: list[PartitionObject]
    applications: list[ApplicationObject]
    appHistory: list[ApplicationSample]
    nodes: list[PartitionNodes]
    clusterInfo: list[ClusterObject]
    containerHistory: list[ContainerSample]
    queues: list[QueueObject]
    placementRules: list[PlacementObject]
    rmDiagnostics: dict[str, Any]
    logLevel: str
    config: ConfigurationObject
    eventStreams: list[StreamObject]
    lastTimestamp: int
    transitions: list[int]


class StatusObject(TypedDict):
    """The result of a probe; an error gives the reason of a failure."""

    status: str
