"""The numbers behind metrics: counters, and present amounts (2.15)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypedDict

from quadriga.core.model.queue import LeafQueue
from quadriga.core.views.nodes import BUCKETS, bucket_of
from quadriga.core.views.partitions import containers_of
from quadriga.core.views.quantities import amounts, provided, sorted_amounts
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import node as node_fsm
from quadriga.si.constants import NODE_READY_ATTRIBUTE

if TYPE_CHECKING:
    from quadriga.core.model.ended import EndedApplication
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.runtime.tally import Tally
    from quadriga.core.scheduler import Scheduler
    from quadriga.core.views.objects import Resources


class SchedulerCounters(TypedDict):
    """Over all partitions.

    ``containers`` and ``submissions`` only grow, except that ``allocated`` and ``released`` restart when
    a resource manager registers again (I7). ``nodes`` and ``applications`` are present numbers, by
    canonical state name; ended applications are included until they expire. ``node_usage`` has the
    number of nodes in each of the ten buckets, by resource type.
    """

    containers: dict[str, int]
    submissions: dict[str, int]
    applications: dict[str, int]
    nodes: dict[str, int]
    node_usage: dict[str, list[int]]
    events: dict[str, int]


class QueueCounters(TypedDict):
    """One queue with all below it.

    ``containers`` are those allocated and released since the queue exists. ``ended`` are all
    applications that have ended in it, by state, also in an earlier queue of the same path.
    """

    queue: str
    applications: dict[str, int]
    ended: dict[str, int]
    containers: dict[str, int]
    guaranteed: Resources
    max: Resources
    allocated: Resources
    pending: Resources
    preempting: Resources
    maxRunningApps: int


class PartitionCounters(TypedDict):
    """The present numbers of a partition."""

    allocations: int
    applications: int
    completedApplications: int
    placeholderAllocations: int
    rejectedApplications: int
    reservations: int


def partition_counters(partition: Partition) -> PartitionCounters:
    rejected = sum(app.state in application_fsm.TURNED_AWAY for app in partition.ended)
    living = partition.applications.values()
    return {
        "allocations": containers_of(partition),
        "applications": len(living),
        "completedApplications": len(partition.ended) - rejected,
        "placeholderAllocations": sum(len(app.placeholders) for app in living),
        "rejectedApplications": rejected,
        "reservations": len(partition.reservations),
    }


def scheduler_counters(scheduler: Scheduler, errors: int) -> SchedulerCounters:
    """``errors`` is the number of errors that the driver survived."""
    partitions, tally = list(scheduler.partitions()), scheduler.tally
    held = sum(map(containers_of, partitions))
    released = sum(
        p.root.released + sum(app.released for app in p.applications.values()) for p in partitions
    )
    states = Counter(
        app.state for p in partitions for apps in (p.applications.values(), p.ended) for app in apps
    )
    nodes = [node for p in partitions for node in p.nodes.values()]
    kinds = Counter(node.state for node in nodes)
    usage: dict[str, list[int]] = {}
    for partition in partitions:
        for name in provided(partition):
            counts = usage.setdefault(name, [0] * len(BUCKETS))
            index = partition.registry.index[name]
            for node in partition.nodes.values():
                if (whole := node.total[index]) > 0:
                    counts[bucket_of(node.allocated[index], whole)] += 1
    return {
        "containers": {
            "allocated": held + released,
            "released": released,
            "rejected": tally.asks_rejected,
            "error": errors,
        },
        "submissions": {
            "new": tally.applications_accepted + tally.applications_rejected,
            "accepted": tally.applications_accepted,
            "rejected": tally.applications_rejected,
        },
        "applications": dict(sorted(states.items())),
        "nodes": {
            "active": sum(kinds[state] for state in node_fsm.OPEN),
            "draining": sum(kinds[state] for state in node_fsm.CLOSED),
            "decommissioned": tally.nodes_removed,
            "unhealthy": sum(
                node.attributes.get(NODE_READY_ATTRIBUTE, "").lower() == "false" for node in nodes
            ),
            "failed": sum(len(p.failed_nodes) for p in partitions),
        },
        "node_usage": dict(sorted(usage.items())),
        "events": scheduler.events.counts._asdict(),
    }


def queue_counters(partition: Partition, tally: Tally) -> list[QueueCounters]:
    """Every queue, parents first, children by name. Ended applications count in their queue."""
    ended: dict[str, list[EndedApplication]] = {}
    for app in partition.ended:
        ended.setdefault(app.queue_path, []).append(app)
    found: list[QueueCounters] = []
    _queue_counters(partition.root, ended, found)
    for each in found:
        counts = tally.ended.get((partition.key, each["queue"]), Counter())
        each["ended"] = {state: counts[state] for state in application_fsm.RECORDED}
    return found


def _queue_counters(
    queue: Queue, ended: dict[str, list[EndedApplication]], found: list[QueueCounters]
) -> tuple[Counter[str], int, int]:
    """Append the counters of the queue and all below to ``found``. Returns its applications by state, and
    the numbers of allocations that living applications hold and have released."""
    partition = queue.partition
    mine: QueueCounters = {
        "queue": queue.path,
        "applications": {},
        "ended": {},
        "containers": {},
        "guaranteed": sorted_amounts(queue.guaranteed),
        "max": sorted_amounts(queue.max) if queue.parent is not None else provided(partition),
        "allocated": amounts(partition, queue.allocated),
        "pending": amounts(partition, queue.pending),
        "preempting": amounts(partition, queue.preempting),
        "maxRunningApps": queue.max_applications,
    }
    found.append(mine)
    living = list(queue.apps.values()) if isinstance(queue, LeafQueue) else []
    states = Counter(app.state for app in (*living, *ended.get(queue.path, ())))
    held = sum(len(app.allocations) + len(app.placeholders) for app in living)
    released = sum(app.released for app in living)
    for name in sorted(queue.children):
        more, below_held, below_released = _queue_counters(queue.children[name], ended, found)
        states += more
        held += below_held
        released += below_released
    mine["applications"] = dict(sorted(states.items()))
    mine["containers"] = {
        "allocated": held + released + queue.released,
        "released": released + queue.released,
    }
    return states, held, released
