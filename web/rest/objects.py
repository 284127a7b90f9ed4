"""Objects that only REST has; the others are those of ``quadriga.core.views.objects``."""

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

__all__ = [
    "ConfigurationObject",
    "EventBatchObject",
    "EventObject",
    "EventResource",
    "QuantityObject",
    "ReloadObject",
    "StateDumpObject",
    "StatusObject",
    "StreamObject",
    "ValidationObject",
]


class ConfigurationObject(TypedDict):
    """``partitions`` in the form of the file, ``checksum`` of the text that was loaded, ``extra``:
    the extraConfig of the resource manager."""

    partitions: list[dict[str, Any]]
    checksum: str
    extra: dict[str, str]


class ValidationObject(TypedDict):
    """``reason`` is empty if it is allowed, else every problem with its path and line."""

    allowed: bool
    reason: str


class ReloadObject(TypedDict):
    """Whose queues were configured (empty: of all that brought no configuration of their own), and
    the checksum of what is configured now."""

    rmID: str
    checksum: str


class QuantityObject(TypedDict):
    """Zero is left out."""

    value: NotRequired[int]


class EventResource(TypedDict):
    """Quantities by type."""

    resources: dict[str, QuantityObject]


class EventObject(TypedDict):
    """An event record. Kinds are the protocol's numbers (I41); what is zero or empty is left out."""

    type: NotRequired[int]
    objectID: NotRequired[str]
    message: NotRequired[str]
    timestampNano: NotRequired[int]
    referenceID: NotRequired[str]
    eventChangeType: NotRequired[int]
    eventChangeDetail: NotRequired[int]
    resource: NotRequired[EventResource]


class EventBatchObject(TypedDict):
    """A stretch of the events that are remembered, which have the ids from ``LowestID`` to
    ``HighestID``; the first one has the id that was asked for."""

    InstanceUUID: str
    LowestID: int
    HighestID: int
    EventRecords: list[EventObject]


class StreamObject(TypedDict):
    """Somebody who follows the events."""

    name: str
    createdAt: int


class StateDumpObject(TypedDict):
    """Everything at one moment (2.13)."""

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


class StatusObject(TypedDict):
    """All is well; else there is an error, which says why not."""

    status: str
