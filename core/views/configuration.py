"""The running configuration as data that could be loaded again (2.14)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quadriga.core.config import PartitionConfig, partition_document
from quadriga.core.config.writer import write
from quadriga.fsm import QUEUE
from quadriga.fsm.lifecycles import queue as queue_fsm

if TYPE_CHECKING:
    from quadriga.core.model.resource_manager import ResourceManager


@dataclass(frozen=True, slots=True)
class Configured:
    """What a resource manager is configured with: its ``partitions`` by name, the ``checksum`` of their text, and
    ``extra``, its extraConfig. None of it changes, so that the object is made outside the owner's thread."""

    partitions: tuple[PartitionConfig, ...] = ()
    checksum: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)

    def as_object(self) -> dict[str, Any]:
        """The same as data. This takes long if there are many queues."""
        return {
            "partitions": [partition_document(config) for config in self.partitions],
            "checksum": self.checksum,
            "extra": dict(self.extra),
        }


def configured(rm: ResourceManager) -> Configured:
    """The running configuration of a resource manager."""
    partitions = [
        partition.config
        for _, partition in sorted(rm.partitions.items())
        if QUEUE.allows(partition.state, queue_fsm.STOP)
    ]
    return Configured(tuple(partitions), rm.configuration, dict(sorted(rm.extra.items())))


def as_yaml(configuration: Mapping[str, Any]) -> str:
    """The same as YAML, in the same order."""
    return write(dict(configuration), width=4096)
