"""The running configuration as data that could be loaded again (2.14)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quadriga.core.config import partition_document
from quadriga.core.config.writer import write
from quadriga.fsm import QUEUE
from quadriga.fsm.lifecycles import queue as queue_fsm

if TYPE_CHECKING:
    from quadriga.core.model.resource_manager import ResourceManager


def configuration_object(rm: ResourceManager) -> dict[str, Any]:
    """The configured ``partitions`` by name, the ``checksum`` of their text, and ``extra``: the resource
    manager's extraConfig."""
    configured = [
        partition.config
        for _, partition in sorted(rm.partitions.items())
        if QUEUE.allows(partition.state, queue_fsm.STOP)
    ]
    return {
        "partitions": [partition_document(config) for config in configured],
        "checksum": rm.configuration,
        "extra": dict(sorted(rm.extra.items())),
    }


def as_yaml(configuration: Mapping[str, Any]) -> str:
    """The same as YAML, in the same order."""
    return write(dict(configuration), width=4096)
