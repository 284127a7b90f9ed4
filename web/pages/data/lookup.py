"""The partition, application, node or queue that a page asks for. All functions raise ``NotFound``."""

from __future__ import annotations

from quadriga.core import Scheduler
from quadriga.core.model.application import Application, EndedApplication
from quadriga.core.model.node import Node
from quadriga.core.model.partition import Partition
from quadriga.core.model.queue import Queue
from quadriga.core.views import NotFound


def partition_of(scheduler: Scheduler, name: str) -> Partition:
    """The partition with this name or key (``[rmID]name``); without one the first partition."""
    for partition in scheduler.partitions():
        if not name or name in (partition.name, partition.key):
            return partition
    raise NotFound("Partition not found" if name else "No resource manager has registered yet")


def application_of(
    scheduler: Scheduler, partition: str, app_id: str
) -> Application | EndedApplication:
    """The living application with this id, or else the summary of the last one that ended."""
    found = partition_of(scheduler, partition)
    try:
        return scheduler.application(app_id, found.name, found.rm.rm_id)
    except KeyError:
        raise NotFound("Application not found") from None


def node_of(scheduler: Scheduler, partition: str, node_id: str) -> Node:
    """The node with this id."""
    found = partition_of(scheduler, partition).nodes.get(node_id)
    if found is None:
        raise NotFound("Node not found")
    return found


def queue_of(scheduler: Scheduler, partition: str, path: str) -> Queue:
    """The queue with this path; without one the root."""
    found = partition_of(scheduler, partition)
    queue = found.queue(path) if path else found.root
    if queue is None:
        raise NotFound("Queue not found")
    return queue
