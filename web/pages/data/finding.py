"""Which partition, application or node a page asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.views import NotFound

if TYPE_CHECKING:
    from quadriga.core import Scheduler
    from quadriga.core.model.application import Application
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition

__all__ = ["application_of", "node_of", "partition_of"]


def partition_of(scheduler: Scheduler, name: str) -> Partition:
    """By name or key (``[rmID]name``); the first one where nobody says which."""
    for partition in scheduler.partitions():
        if not name or name in (partition.name, partition.key):
            return partition
    raise NotFound("Partition not found" if name else "No resource manager has registered yet")


def application_of(scheduler: Scheduler, partition: str, app_id: str) -> Application:
    """The living application of this id, else the last that ended."""
    found = partition_of(scheduler, partition)
    living = found.applications.get(app_id)
    if living is not None:
        return living
    for app in reversed(found.ended):
        if app.app_id == app_id:
            return app
    raise NotFound("Application not found")


def node_of(scheduler: Scheduler, partition: str, node_id: str) -> Node:
    found = partition_of(scheduler, partition).nodes.get(node_id)
    if found is None:
        raise NotFound("Node not found")
    return found
